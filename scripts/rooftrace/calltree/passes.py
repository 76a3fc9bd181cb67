"""Passes over the call tree: for every node the op, module, frame and phase it belongs to."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace import opmodels
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rooftrace.calltree.tree import CallTree
    from rooftrace.trace import Trace

PHASES = ("forward", "backward", "optimizer", "communication", "data")
_MODULE = "nn.Module: "
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$|^torch::autograd::")
_OPTIMIZER = re.compile(r"^Optimizer\.(?:step|zero_grad)#|^optimizer_step|\boptim\b.*: step$")
_DATA = re.compile(r"DataLoader|^enumerate\(|dataloader|data_loading")
_RECOMPUTE = re.compile(r"torch/utils/checkpoint\.py\(\d+\): (?:recompute_fn|unpack_hook|recompute)")
# Frames of the framework itself are never the place a user can change.
_FRAMEWORK = re.compile(
    r"^(?:nn\.Module: |<built-in|<frozen|torch/|torch\\|threading\.py|contextlib\.py|functools\.py|runpy\.py|_bootstrap"
    r"|.*[/\\](?:site|dist)-packages[/\\]torch[/\\]|.*[/\\]lib[/\\]python3[.\d]*[/\\](?!site-packages|dist-packages)"
    r"|<string>|<method|<eval_with_key>|importlib|multiprocessing[/\\]|concurrent[/\\]|asyncio[/\\]|unknown$)"
)
# What profilers of 2021 recorded like an op and today's record as annotations.
_ANNOTATION = re.compile(r"^ProfilerStep|^Optimizer\.|^enumerate\(DataLoader\)")
_FRAME = re.compile(r"^.+\(\d+\): .+")
# No model nests its modules as deep; below, all count for the module at this depth (else paths grow with its square).
_DEEPEST_MODULE = 100


class Context(Struct, frozen=True, kw_only=True):
    """Per node: indices of related nodes (-1: none), module path ids and phases; 32 bits: widen before computing."""

    op: NDArray[np.int32]  # innermost op
    unit: NDArray[np.int32]  # the outermost op that claims what lies below it, else the innermost op
    forward: NDArray[np.int32]  # of nodes inside a backward call: the forward call it belongs to
    frame: NDArray[np.int32]  # innermost frame outside the framework
    module: NDArray[np.int32]  # id of the module path, index into module_paths
    module_paths: tuple[tuple[str, ...], ...]
    phase: NDArray[np.uint8]  # index into PHASES
    recompute: NDArray[np.bool_]
    has_backward: bool
    has_optimizer: bool


def build_context(trace: Trace, tree: CallTree) -> Context:
    """Run all passes."""
    is_op = _name_mask(trace, tree, lambda name: not _ANNOTATION.match(name), Kind.CPU_OP)
    op = tree.innermost(is_op)
    claims = is_op & _name_mask(trace, tree, opmodels.claims_subtree, Kind.CPU_OP)
    claimed = tree.outermost(claims)
    module, paths = _module_paths(trace, tree)
    backward = tree.innermost(is_op & _name_mask(trace, tree, _matcher(_BACKWARD), Kind.CPU_OP)) >= 0
    marks = (Kind.ANNOTATION, Kind.CPU_OP)
    optimizer = tree.innermost(_name_mask(trace, tree, _matcher(_OPTIMIZER), *marks, Kind.PYTHON)) >= 0
    data = tree.innermost(_name_mask(trace, tree, _matcher(_DATA), *marks)) >= 0
    recompute = tree.innermost(_name_mask(trace, tree, _matcher(_RECOMPUTE), Kind.PYTHON)) >= 0
    phase = np.zeros(tree.row.size, dtype=np.uint8)
    for mask, code in ((data, 4), (backward, 1), (optimizer, 2)):
        phase[mask] = code
    unit = np.where(claimed >= 0, claimed, op)
    context = Context(
        op=op,
        unit=unit,
        forward=np.full(tree.row.size, -1, dtype=np.int32),
        frame=tree.innermost(_name_mask(trace, tree, is_user_frame, Kind.PYTHON)),
        module=module,
        module_paths=paths,
        phase=phase,
        recompute=recompute,
        has_backward=bool(backward.any()),
        has_optimizer=bool(optimizer.any()),
    )
    _find_forward_calls(trace, tree, context)
    inherits = (context.forward >= 0) & (context.module == 0)
    context.module[inherits] = context.module[context.forward[inherits]]
    return context


def _matcher(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda name: pattern.search(name) is not None


def is_user_frame(name: str) -> bool:
    """Whether a Python frame lies outside the framework's and the interpreter's own folders."""
    return _FRAME.match(name) is not None and not _FRAMEWORK.match(name)


def _name_mask(trace: Trace, tree: CallTree, test: Callable[[str], bool], *kinds: Kind) -> NDArray[np.bool_]:
    """Nodes of the given kinds whose name passes a test; each distinct name is tested once."""
    mask = np.isin(tree.kind, [int(kind) for kind in kinds])
    verdict = np.zeros(len(trace.names), dtype=bool)
    codes = sorted_unique(tree.name[mask])
    verdict[codes] = [test(trace.names[code]) for code in codes.tolist()]
    return mask & verdict[tree.name]


def _module_paths(trace: Trace, tree: CallTree) -> tuple[NDArray[np.int32], tuple[tuple[str, ...], ...]]:
    """For each node the id of its module path; id 0 is the empty path."""
    is_module = _name_mask(trace, tree, lambda name: name.startswith(_MODULE), Kind.PYTHON)
    nearest = tree.innermost(is_module)
    path_of_node = np.zeros(tree.row.size + 1, dtype=np.int32)  # the last entry serves index -1
    ids: dict[tuple[int, str], int] = {}
    paths: list[tuple[str, ...]] = [()]
    for node in np.flatnonzero(is_module).tolist():
        above = tree.parent[node]
        outer = int(path_of_node[nearest[above]]) if above >= 0 and nearest[above] >= 0 else 0
        if len(paths[outer]) >= _DEEPEST_MODULE:
            path_of_node[node] = outer
            continue
        key = (outer, trace.names[tree.name[node]].removeprefix(_MODULE))
        if key not in ids:
            ids[key] = len(paths)
            paths.append((*paths[outer], key[1]))
        path_of_node[node] = ids[key]
    return path_of_node[nearest], tuple(paths)


def _find_forward_calls(trace: Trace, tree: CallTree, context: Context) -> None:
    """Set the forward call of every node inside a backward one: that with the backward call's sequence number.

    Several forward ops may carry one number (it is the next to be handed out); the last to start before the
    backward op made the node. Every thread counts for itself: where two threads used a number, `Fwd thread id` tells
    which, by what it meant for numbers that only one thread used; else the call is left without a forward one.
    """
    numbered = np.flatnonzero((trace.sequence[tree.row] >= 0) & (tree.kind == int(Kind.CPU_OP)))
    numbered = numbered[np.argsort(tree.start[numbered], kind="stable")]
    heads = np.full(tree.row.size, -1, dtype=np.int32)
    last_forward: dict[int, dict[int, int]] = defaultdict(dict)  # sequence number -> thread -> node
    lane_of_thread: dict[int, int] = {}
    unclear: list[tuple[int, int, dict[int, int]]] = []
    rows = tree.row[numbered]
    lanes, numbers, threads = tree.lane[numbered], trace.sequence[rows], trace.forward_thread[rows]
    columns: tuple[NDArray[Any], ...] = (numbered, context.phase[numbered] == 1, lanes, numbers, threads)
    for node, is_backward, own_lane, number, thread in zip(*(column.tolist() for column in columns), strict=True):
        if not is_backward:
            last_forward[number][own_lane] = node
            continue
        candidates = last_forward.get(number, {})
        if len(candidates) == 1:
            lane, heads[node] = next(iter(candidates.items()))
            lane_of_thread.setdefault(thread, lane)
        elif candidates:
            unclear.append((node, thread, dict(candidates)))
    for node, thread, candidates in unclear:
        heads[node] = candidates.get(lane_of_thread.get(thread, -1), -1)
    nearest = tree.innermost(heads >= 0)
    inside = nearest >= 0
    context.forward[inside] = heads[nearest[inside]]
