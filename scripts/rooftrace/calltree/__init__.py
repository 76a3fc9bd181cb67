"""Host call tree, GPU activities and the links between them: what launched what, from where, in which step."""

from __future__ import annotations

from rooftrace.calltree.activities import LINK_NAMES, Activities, Link, Work, collect_activities
from rooftrace.calltree.callers import Callers
from rooftrace.calltree.groups import OpGroup, group_ops, kernel_totals, part_of
from rooftrace.calltree.passes import PHASES, Context, build_context, is_user_frame
from rooftrace.calltree.quarantine import Quarantined, quarantine
from rooftrace.calltree.steps import Steps, find_steps, is_step_name
from rooftrace.calltree.tree import CallTree, build_tree, check_tree
from rooftrace.calltree.units import INFERRED
from rooftrace.contracts.module_names import module_class

__all__ = [
    "INFERRED",
    "LINK_NAMES",
    "PHASES",
    "Activities",
    "CallTree",
    "Callers",
    "Context",
    "Link",
    "OpGroup",
    "Quarantined",
    "Steps",
    "Work",
    "build_context",
    "build_tree",
    "check_tree",
    "collect_activities",
    "find_steps",
    "group_ops",
    "is_step_name",
    "is_user_frame",
    "kernel_totals",
    "module_class",
    "part_of",
    "quarantine",
]
