"""Checks of a run's files: each a class whose name is its code, whose docstring is its message.

Reads files only, so that it works on a run made elsewhere. A module dropped into this folder is found by name; codes
are never reused.
"""

from __future__ import annotations

from rooftrace.validators.checks import CHECKS, Check, Problem, Result, check_prose, check_run

__all__ = ["CHECKS", "Check", "Problem", "Result", "check_prose", "check_run"]
