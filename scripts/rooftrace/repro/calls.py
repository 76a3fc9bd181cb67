"""From recorded calls to Python: names checked, scalars parsed, inputs described; nothing is copied as it is."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.chains import Chain, ChainStep, ChainTensor

_OP: Final = re.compile(r"aten::(_{0,2}[a-z][a-z_0-9]*)")
_DTYPE: Final = re.compile(r"[a-z][a-z_0-9]*")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_0-9]{0,30}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_MOST_ELEMENTS: Final = 1 << 40  # of one tensor; above it, not a size but damage
# Ops that move data to the host or to other processes, or return no tensor: nothing to time.
_REFUSED: Final = frozenset({"item", "_local_scalar_dense", "is_nonzero", "record_stream", "set_"})


class CannotRebuild(Exception):  # noqa: N818 - named for what is the case
    """A call cannot be rebuilt from its record; the text says why."""


class Numbers(Struct):
    """Numbers that the record leaves out, as named constants of the script."""

    values: dict[str, str] = field(default_factory=dict)
    _names: dict[tuple[int, int, int], str] = field(default_factory=dict)

    def name(self, key: tuple[int, int, int], value: float) -> str:
        """The constant of a case, call and argument."""
        if key not in self._names:
            self._names[key] = f"NUMBER_{len(self._names) + 1}"
            self.values[self._names[key]] = repr(value)
        return self._names[key]


def op_name(step: ChainStep) -> str:
    """The name after `aten::`, safe to write."""
    found = _OP.fullmatch(step.op)
    if found is None:
        raise CannotRebuild(f"op `{step.op}` cannot be rebuilt from its record: it is not one of PyTorch's own")
    if found.group(1) in _REFUSED:
        raise CannotRebuild(f"op `{step.op}` cannot be rebuilt from its record: it only reads or moves a tensor")
    return found.group(1)


def literal(step: ChainStep, text: str) -> str:
    """Python for the text of a scalar or of a list of them."""
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        parts = [part.strip() for part in stripped[1:-1].split(",")]
        return "[" + ", ".join(_plain(step, part) for part in parts if part) + "]"
    return _plain(step, stripped)


def _plain(step: ChainStep, text: str) -> str:
    if text in ("True", "False", "None"):
        return text
    if text in ("true", "false"):
        return text.capitalize()
    if _INTEGER.fullmatch(text):
        return repr(int(text))
    if _NUMBER.fullmatch(text):
        return repr(float(text))
    if text.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return f"float({float(text)!r:s})" if math.isnan(float(text)) else f'float("{float(text)}")'
    if _WORD.fullmatch(text):
        return repr(text)
    raise CannotRebuild(f"op `{step.op}` cannot be rebuilt from its record: `{text[:40]}` is no number or word")


def places(step: ChainStep, numbers: Sequence[str]) -> list[str]:
    """The arguments as `call` takes them; ``numbers`` are the names of those whose value is not recorded, in order."""
    names = iter(numbers)
    result = []
    for argument in step.arguments:
        if argument.kind == "scalar":
            result.append(literal(step, argument.text or ""))
        elif argument.kind == "number":
            result.append(next(names))
        else:
            result.append({"tensor": "T", "tensors": "L", "none": "None", "unrecorded": "U"}[argument.kind])
    return result


# For each op the argument that indexes: (its position, position of what is indexed, axis or where it is recorded).
_INDEXES: Final[dict[str, tuple[int, int, str]]] = {
    "embedding": (1, 0, "0"),
    "_embedding_bag": (1, 0, "0"),
    "embedding_bag": (1, 0, "0"),
    "_embedding_bag_forward_only": (1, 0, "0"),
    "embedding_dense_backward": (1, 2, "value"),
    "index_select": (2, 0, "argument 1"),
    **dict.fromkeys(("gather", "take_along_dim"), (2, 0, "argument 1")),
    **dict.fromkeys(("scatter", "scatter_", "scatter_add", "scatter_add_", "index_add_"), (2, 0, "argument 1")),
    **dict.fromkeys(("index_add", "index_copy", "index_copy_", "index_fill_"), (2, 0, "argument 1")),
    **dict.fromkeys(("index", "index_put", "index_put_", "_index_put_impl_"), (1, 0, "each")),
    **dict.fromkeys(("nll_loss", "nll_loss_forward", "nll_loss2d_forward", "cross_entropy_loss"), (1, 0, "1")),
    "nll_loss_backward": (2, 1, "1"),
}
_BAGS: Final = frozenset({"_embedding_bag", "embedding_bag", "_embedding_bag_forward_only"})
_VARIANCES: Final = {
    **dict.fromkeys(("batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_impl_index"), 4),
    **dict.fromkeys(("cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit_no_training"), 4),
}
_OF_POSITIVE: Final = frozenset({"sqrt", "rsqrt", "log", "log2", "pow", "sqrt_", "rsqrt_"})
_OVERWRITTEN: Final = frozenset({"copy_", "fill_", "zero_"})


def outside_tensors(chain: Chain) -> dict[int, ChainTensor]:
    """Tensors from outside by number, in order of their first use."""
    found: dict[int, ChainTensor] = {}
    for step in chain.steps:
        for argument in step.arguments:
            for tensor in argument.tensors:
                if tensor.step is None:
                    found.setdefault(tensor.number, tensor)
    return found


def input_lines(chain: Chain) -> list[str]:
    """`In(...)` of every tensor from outside."""
    fills = _fills(chain)
    result = []
    for number, tensor in outside_tensors(chain).items():
        dtype = tensor.dtype
        if dtype is None or not _DTYPE.fullmatch(dtype):
            op = next(step.op for step in chain.steps if _reads(step, number))
            raise CannotRebuild(f"op `{op}` cannot be rebuilt from its record: element type not recorded")
        if math.prod(tensor.shape) > _MOST_ELEMENTS or any(size < 0 for size in tensor.shape):
            raise CannotRebuild("a tensor's recorded shape cannot be right")
        strides = None if tensor.strides is None else _tuple(tensor.strides)
        if tensor.strides is not None and any(stride < 0 or stride > _MOST_ELEMENTS for stride in tensor.strides):
            raise CannotRebuild("a tensor's recorded strides cannot be right")
        more = fills.get(number, "")
        result.append(f'In({_tuple(tensor.shape)}, "{dtype}", {strides}{more}),  # x{number}')
    return result


def _tuple(sizes: Sequence[int]) -> str:
    return repr(tuple(int(size) for size in sizes))


def _reads(step: ChainStep, number: int) -> bool:
    return any(t.step is None and t.number == number for argument in step.arguments for t in argument.tensors)


def _fills(chain: Chain) -> dict[int, str]:
    """How inputs are filled where random numbers would not do."""
    fills: dict[int, str] = {}
    if chain.period:
        fills = dict.fromkeys(outside_tensors(chain), ', fill="positive"')
    roots: dict[int, int] = {}
    for at, step in enumerate(chain.steps):
        first = step.arguments[0].tensors[:1] if step.arguments else []
        if step.role == "view" and first:
            root = _root(first[0], roots)
            if root is not None:
                roots[at] = root
            continue
        for tensor, fill in _special(step):
            root = _root(tensor, roots)
            if root is not None:
                fills.setdefault(root, fill) if fill == ', fill="positive"' else fills.update({root: fill})
    return fills


def _root(tensor: ChainTensor, roots: dict[int, int]) -> int | None:
    return tensor.number if tensor.step is None else roots.get(tensor.step)


def _special(step: ChainStep) -> list[tuple[ChainTensor, str]]:
    """Tensors of a call that need certain values."""
    name = step.op.removeprefix("aten::")
    found: list[tuple[ChainTensor, str]] = []
    if name in _OVERWRITTEN and step.arguments:
        found += [(tensor, ', fill="zeros"') for tensor in step.arguments[0].tensors]
    if name in _OF_POSITIVE and step.arguments:
        found += [(tensor, ', fill="positive"') for tensor in step.arguments[0].tensors]
    if name in _VARIANCES and len(step.arguments) > _VARIANCES[name]:
        found += [(tensor, ', fill="positive"') for tensor in step.arguments[_VARIANCES[name]].tensors]
    if name in _INDEXES:
        found += _indexing(step, *_INDEXES[name])
    if name in _BAGS and len(step.arguments) > 2 and step.arguments[1].tensors:
        bags = math.prod(step.arguments[1].tensors[0].shape)
        found += [(tensor, f', fill="ends", high={bags}') for tensor in step.arguments[2].tensors]
    return found


def _indexing(step: ChainStep, at: int, source: int, axis: str) -> list[tuple[ChainTensor, str]]:
    """Index tensors with the number of elements that they may point at."""
    if len(step.arguments) <= max(at, source):
        return []
    indexed = step.arguments[source]
    if axis == "value":
        sizes = [int(indexed.text)] if indexed.text and _INTEGER.fullmatch(indexed.text) else []
    else:
        shape = indexed.tensors[0].shape if indexed.tensors else []
        sizes = list(shape) if axis == "each" else _size_at(step, shape, axis)
    tensors = step.arguments[at].tensors
    sizes = sizes if axis == "each" else sizes * len(tensors)
    return [(tensor, f", high={size}") for tensor, size in zip(tensors, sizes, strict=False)]


def _size_at(step: ChainStep, shape: Sequence[int], axis: str) -> list[int]:
    text = (step.arguments[1].text or "") if axis == "argument 1" else axis
    if not _INTEGER.fullmatch(text) or not shape or not -len(shape) <= int(text) < len(shape):
        return []
    return [shape[int(text)]]
