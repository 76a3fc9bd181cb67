"""Who makes calls that are not the user's own code: the optimizer whose step they are, or data parallelism."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from rooftrace.fusion.tokens import base_word
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.fusion.calls import Calls, FusionInputs

DDP_COPIES: Final = "copies of DDP: `broadcast_buffers=False`, `gradient_as_bucket_view=True`"
# What torch.optim.Optimizer records around each step (torch/optim/optimizer.py, profile_hook_step).
_STEP: Final = re.compile(r"Optimizer\.step#(\w{1,60})\.step")
# Gradients to and from the reducer's buckets, and buffers from rank 0 before each forward pass
# (torch/csrc/distributed/c10d/reducer.cpp, torch/nn/parallel/distributed.py).
_REDUCER: Final = re.compile(r"^torch(?:\.|::)distributed.*reducer::")
_BROADCAST: Final = re.compile(r"^<built-in method _broadcast_coalesced |: _distributed_broadcast_coalesced$")


def optimizer_in(name: str) -> str:
    """Class of the optimizer whose step an annotation is; "" for another one."""
    match = _STEP.fullmatch(name)
    return match.group(1) if match else ""


def optimizers(run: FusionInputs, calls: Calls) -> tuple[NDArray[np.int64], list[str]]:
    """For each call the number of the optimizer whose step it is part of, and their classes, "" first for none."""
    tree, names = run.tree, run.trace.names
    classes = [""]
    marks = np.isin(tree.kind, [int(Kind.ANNOTATION), int(Kind.CPU_OP)])
    number = np.zeros(len(names), dtype=np.int64)
    for code in sorted_unique(tree.name[marks]).tolist():
        found = optimizer_in(names[code])
        if found:
            if found not in classes:
                classes.append(found)
            number[code] = classes.index(found)
    steps = tree.innermost(marks & (number[tree.name] > 0))
    result = np.zeros(calls.node.size, dtype=np.int64)
    around = np.where(calls.node >= 0, steps[np.maximum(calls.node, 0)], -1) if tree.row.size else calls.node
    result[around >= 0] = number[tree.name[around[around >= 0]]]
    return result, classes


def optimizer_of(run: FusionInputs, node: int) -> str:
    """Class of the optimizer whose step a node is part of; "" outside of any."""
    tree = run.tree
    while node >= 0:
        found = optimizer_in(run.trace.names[int(tree.name[node])])
        if found:
            return found
        node = int(tree.parent[node])
    return ""


def ddp_copies(run: FusionInputs, calls: Calls) -> NDArray[np.bool_]:
    """Copies that DistributedDataParallel makes, of buffers and of gradients."""
    tree, names = run.tree, run.trace.names
    result = np.zeros(calls.node.size, dtype=bool)
    if not calls.node.size or not tree.row.size:
        return result
    kinds = ((Kind.CPU_OP, _REDUCER), (Kind.PYTHON, _BROADCAST))
    marked = np.zeros(tree.row.size, dtype=bool)
    for kind, expression in kinds:
        mine = tree.kind == int(kind)
        verdict = np.zeros(len(names), dtype=bool)
        for code in sorted_unique(tree.name[mine]).tolist():
            verdict[code] = expression.search(names[code]) is not None
        marked |= mine & verdict[tree.name]
    moves = np.array([base_word(meaning.name) == "copy" for meaning in calls.meanings], dtype=bool)[calls.meaning]
    inside = tree.innermost(marked)
    chosen = np.flatnonzero(moves & (calls.node >= 0))
    result[chosen] = inside[calls.node[chosen]] >= 0
    return result
