"""Calls that tell sizes of a model: products, embeddings, norms, attention, convolutions, by the module they ran in."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import module_class
from rooftrace.calltree.surroundings import record_op
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooftrace.analyzers.workload import RatedRun

Path = tuple[str, ...]
Shape = tuple[int, ...]

_LINEAR = ("aten::linear", "aten::addmm", "aten::mm")
_ATTENTION = re.compile(r"^aten::(?:_?scaled_dot_product_\w*attention|_(?:flash|efficient)_attention_forward)$")
_TELLING = (
    *_LINEAR,
    "aten::embedding",
    "aten::layer_norm",
    "aten::group_norm",
    "aten::conv2d",
    "aten::conv3d",
    "aten::convolution",
    "aten::bmm",
    "aten::topk",
)
# A table of so few rows holds positions, types or buckets of distances, no vocabulary.
_LEAST_VOCABULARY = 5_000
_LEAST_HEAD = 20_000
_MOST_EXPERTS = 1_024
_ROUTER = re.compile(r"gate$|router", re.IGNORECASE)


class Call(Struct, frozen=True, kw_only=True):
    """A forward call of one op with one set of shapes in one module, and how often it ran."""

    op: str
    path: Path
    shapes: tuple[Shape, ...]
    scalar: int | None  # k of a topk
    count: int


def telling_calls(workload: RatedRun) -> list[Call]:
    """Forward calls whose shapes tell sizes, each distinct one once, in a fixed order."""
    trace, tree, context = workload.trace, workload.tree, workload.context
    wanted = [code for code, name in enumerate(trace.names) if name in _TELLING or _ATTENTION.match(name)]
    chosen = np.isin(tree.name, wanted) & (tree.kind == int(Kind.CPU_OP)) & (trace.inputs[tree.row] >= 0)
    nodes = np.flatnonzero(chosen & (context.phase == 0) & ~context.recompute)
    keys = Counter(
        zip(
            tree.name[nodes].tolist(),
            context.module[nodes].tolist(),
            trace.inputs[tree.row[nodes]].tolist(),
            strict=True,
        )
    )
    calls = []
    for (name, module, inputs), count in sorted(keys.items()):
        op = record_op(trace, name, inputs)
        shapes = tuple(tensor.shape for tensor in op.tensors())
        text = op.text(1) if op.name == "aten::topk" else None
        scalar = int(text) if text and text.isdecimal() and len(text) < 6 else None
        calls.append(Call(op=op.name, path=context.module_paths[module], shapes=shapes, scalar=scalar, count=count))
    return calls


def most_common(values: Iterable[tuple[int, int]]) -> int | None:
    """The value of greatest weight; the smallest of several."""
    totals: Counter[int] = Counter()
    for value, weight in values:
        totals[value] += weight
    return min(totals, key=lambda value: (-totals[value], value)) if totals else None


def products(calls: Sequence[Call]) -> list[tuple[Call, Shape, int, int]]:
    """Products with a weight: the call, the input's shape, and how wide input and output are."""
    found = []
    linear = [call for call in calls if call.op == "aten::linear"]
    for call in linear or [call for call in calls if call.op in _LINEAR]:
        two = [shape for shape in call.shapes if len(shape) >= 2]
        if len(two) < 2:
            continue
        given, weight = two[0], two[1]
        wide = weight[0] if call.op == "aten::linear" else weight[-1]
        found.append((call, given, given[-1], wide))
    return found


def hidden_size(calls: Sequence[Call]) -> int | None:
    """What layers hand on: the width that most products read or write; else heads times their size."""
    ends = ((width, call.count) for call, _, read, wrote in products(calls) for width in (read, wrote))
    known = most_common(ends)
    if known is not None:
        return known
    shape = attention_shape(calls)
    return shape[1] * shape[3] if shape else None


def intermediate_size(calls: Sequence[Call], hidden: int | None) -> int | None:
    """Width inside a feed-forward block: written from the hidden size and read back into it."""
    written = {(wrote, call.count) for call, _, read, wrote in products(calls) if read == hidden != wrote}
    read_back = {read for _, _, read, wrote in products(calls) if wrote == hidden != read}
    return most_common((width, count) for width, count in written if width in read_back)


def attention_shape(calls: Sequence[Call]) -> Shape | None:
    """Batch, heads, positions and head size of the most frequent fused attention."""
    shapes = Counter[Shape]()
    for call in calls:
        if _ATTENTION.match(call.op) and call.shapes and len(call.shapes[0]) == 4:
            shapes[call.shapes[0]] += call.count
    return min(shapes, key=lambda shape: (-shapes[shape], shape)) if shapes else None


def heads(calls: Sequence[Call], hidden: int | None) -> tuple[int, int] | None:
    """Heads and the size of one: of fused attention, else of the batched products in modules named so."""
    shape = attention_shape(calls)
    if shape:
        return shape[1], shape[3]
    sizes = most_common(
        (call.shapes[0][-1], call.count) for call in calls if call.op == "aten::bmm" and _is_scores(call)
    )
    return (hidden // sizes, sizes) if sizes and hidden and hidden % sizes == 0 else None


def _is_scores(call: Call) -> bool:
    """Whether it is queries times keys: under an attention module, the inner size below or at that of the result."""
    if not call.path or "attention" not in module_class(call.path[-1]).lower() or len(call.shapes) < 2:
        return False
    first, second = call.shapes[:2]
    return (
        len(first) == len(second) == 3
        and 16 <= first[-1] <= 256
        and first[-1] == second[-2]
        and (second[-1] == first[-2])
    )


def vocabulary(calls: Sequence[Call]) -> tuple[int, Shape] | None:
    """Rows of the largest table of words, and the shape of its indices; else the width of the last product."""
    tables = [
        (call.shapes[0][0], call.shapes[1])
        for call in calls
        if call.op == "aten::embedding" and len(call.shapes) >= 2 and len(call.shapes[0]) == 2
    ]
    words = [
        (rows, indices)
        for rows, indices in tables
        if rows >= _LEAST_VOCABULARY and (not indices or indices[-1] != rows)
    ]
    if words:
        return max(words)
    # NB: a head of a model of many classes looks alike; so many classes are rare.
    wide = [(wrote, given[:-1]) for _, given, read, wrote in products(calls) if wrote >= max(_LEAST_HEAD, 4 * read)]
    return max(wide, default=None)


def experts(calls: Sequence[Call], found: list[tuple[Call, Shape, int, int]]) -> tuple[int, int | None] | None:
    """Number of experts, and how many a token is sent to: the width of the router's product."""
    width = most_common(
        (wrote, call.count) for call, _, _, wrote in found if 1 < wrote <= _MOST_EXPERTS and _is_router(call.path)
    )
    if width is None:
        return None
    chosen = (call for call in calls if call.op == "aten::topk" and call.shapes and call.shapes[0][-1:] == (width,))
    return width, most_common((call.scalar, call.count) for call in chosen if call.scalar)


def _is_router(path: Path) -> bool:
    return any(_ROUTER.search(module_class(name)) for name in path[-2:])


def first_image(calls: Sequence[Call]) -> tuple[Shape, Shape] | None:
    """Input and weight of the first convolution that reads colours."""
    for call in calls:
        if not call.op.startswith("aten::conv") or len(call.shapes) < 2 or len(call.shapes[0]) < 4:
            continue
        image, weight = call.shapes[:2]
        if image[1] in (1, 3, 4) and weight[1:2] == image[1:2]:
            return image, weight
    return None


def norm_input(calls: Sequence[Call], outside: Callable[[Path], bool]) -> Shape | None:
    """Batch, positions and width at the largest norm outside the layers, which sees what enters or leaves them all."""
    found = [
        call.shapes[0]
        for call in calls
        if call.op == "aten::layer_norm" and call.shapes and len(call.shapes[0]) == 3 and outside(call.path)
    ]
    return max(found, key=lambda shape: (shape[0] * shape[1] * shape[2], shape), default=None)
