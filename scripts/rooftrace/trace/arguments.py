"""The arguments of events, read by what an event is: every group of kinds has its own fields, Python frames have none.

They come as records, or as texts: those of a group are joined into one array and decoded at once. Where that fails,
for a number written as text or damage, they are read one by one, whatever stands in them.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct, field

from rooftrace.trace import repair
from rooftrace.trace.events import Collective, Inputs, Kind
from rooftrace.trace.rawevents import MALFORMED, NO_RAW, to_int

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray


class CollectiveArgs(msgspec.Struct, gc=False, frozen=True):
    """What a collective's op and its kernel say of it."""

    collective: msgspec.Raw = msgspec.field(default=NO_RAW, name="Collective name")
    dtype: msgspec.Raw = NO_RAW
    in_elements: msgspec.Raw = msgspec.field(default=NO_RAW, name="In msg nelems")
    out_elements: msgspec.Raw = msgspec.field(default=NO_RAW, name="Out msg nelems")
    group_size: msgspec.Raw = msgspec.field(default=NO_RAW, name="Group size")
    group: msgspec.Raw = msgspec.field(default=NO_RAW, name="Process Group Name")
    description: msgspec.Raw = msgspec.field(default=NO_RAW, name="Process Group Description")
    ranks: msgspec.Raw = msgspec.field(default=NO_RAW, name="Process Group Ranks")


class HostArgs(CollectiveArgs, gc=False, frozen=True):
    """Of an op or an annotation; -1 where absent."""

    external_id: int = msgspec.field(default=-1, name="External id")
    external_id_old: int = msgspec.field(default=-1, name="external id")
    sequence: int = msgspec.field(default=-1, name="Sequence number")
    forward_thread: int = msgspec.field(default=-1, name="Fwd thread id")
    dims: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input type")
    strides: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input Strides")
    concrete: msgspec.Raw = msgspec.field(default=NO_RAW, name="Concrete Inputs")
    dims_old: msgspec.Raw = msgspec.field(default=NO_RAW, name="Input dims")


class CallArgs(msgspec.Struct, gc=False, frozen=True):
    """Of a runtime or driver call, and of any other kind."""

    external_id: int = msgspec.field(default=-1, name="External id")
    external_id_old: int = msgspec.field(default=-1, name="external id")
    correlation: int = -1
    device: int = -1
    stream: int = -1
    nbytes: int | float | str = msgspec.field(default=-1, name="bytes")


class GpuArgs(CollectiveArgs, gc=False, frozen=True):
    """Of a kernel, a copy, a fill or an annotation's copy on the GPU; a record cannot extend two others."""

    external_id: int = msgspec.field(default=-1, name="External id")
    external_id_old: int = msgspec.field(default=-1, name="external id")
    correlation: int = -1
    device: int = -1
    stream: int = -1
    nbytes: int | float | str = msgspec.field(default=-1, name="bytes")
    graph_node: int = msgspec.field(default=-1, name="graph node id")
    grid: msgspec.Raw = NO_RAW


class SyncArgs(CallArgs, gc=False, frozen=True):
    """Of a wait."""

    wait_stream: int = msgspec.field(default=-1, name="wait_on_stream")
    wait_record: int = msgspec.field(default=-1, name="wait_on_cuda_event_record_corr_id")


class _Group(Struct, frozen=True):
    """Kinds whose events have the same arguments, the record of these, and which of its fields are numbers."""

    kinds: tuple[Kind, ...]
    record: type[msgspec.Struct]
    numbers: tuple[str, ...]
    decode: Callable[[bytes], list[Any]]
    decode_loosely: Callable[[msgspec.Raw], msgspec.Struct]


def _group(kinds: tuple[Kind, ...], record: type[msgspec.Struct]) -> _Group:
    known = msgspec.structs.fields(record)
    loose = [(f.name, msgspec.Raw, msgspec.field(default=NO_RAW, name=f.encode_name)) for f in known]
    return _Group(
        kinds,
        record,
        tuple(f.name for f in known if f.type is not msgspec.Raw),
        msgspec.json.Decoder(list[record]).decode,  # type: ignore[valid-type]
        msgspec.json.Decoder(msgspec.defstruct(f"Loose{record.__name__}", loose, gc=False)).decode,
    )


_HOST = _group((Kind.CPU_OP, Kind.ANNOTATION), HostArgs)
_CALL = _group((Kind.RUNTIME, Kind.DRIVER, Kind.OVERHEAD, Kind.OTHER), CallArgs)
_GPU = _group((Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.GPU_ANNOTATION), GpuArgs)
_SYNC = _group((Kind.SYNC,), SyncArgs)
_GROUPS = (_HOST, _CALL, _GPU, _SYNC)
RECORD_OF_KIND: dict[Kind, type[msgspec.Struct]] = {kind: group.record for group in _GROUPS for kind in group.kinds}
# The columns that arguments give, in a fixed order: numbers, and indices of what is interned.
DTYPES: dict[str, type[np.signedinteger[Any]]] = {
    **dict.fromkeys(sorted({name for group in _GROUPS for name in group.numbers}), np.int64),
    **dict.fromkeys(("inputs", "collective", "grid"), np.int32),
}
_GROUP_OF_KIND = np.full(len(Kind), -1, dtype=np.int8)
for _number_of, _one in enumerate(_GROUPS):
    _GROUP_OF_KIND[list(_one.kinds)] = _number_of
# The columns in which an unsigned 32-bit -1 stands for none; as an id of a stream it is no other.
_NONE_AS_UINT32 = ("stream", "wait_stream", "wait_record")
_UINT32_NONE = (1 << 32) - 1
_collective_parts = attrgetter(*CollectiveArgs.__struct_fields__)


class Interner(dict[Any, int]):
    """Numbers distinct keys in order of appearance."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


def codes(interner: dict[Any, int], keys: Iterable[Any], count: int) -> NDArray[np.int32]:
    """The number of each key."""
    return np.fromiter(map(interner.__getitem__, keys), dtype=np.int32, count=count)


def recoded(column: NDArray[np.int32], interner: dict[Any, int], keys: list[Any]) -> NDArray[np.int32]:
    """A column of indices into `keys` as numbers of these keys; -1 stays."""
    numbers = np.append(codes(interner, keys, len(keys)), np.int32(-1))
    return numbers[column]


def by_first_row(column: NDArray[np.int32], values: list[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """The column and its values numbered in order of the rows, however the rows were read."""
    if not values:
        return column, values
    used, first = np.unique(column[column >= 0], return_index=True)
    order = used[np.argsort(first)]
    numbers = np.full(len(values) + 1, -1, dtype=np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers[column], [values[number] for number in order.tolist()]


class _Decoded(dict[Any, int]):
    """Numbers the distinct values of texts, each text decoded once; -1 for a text without a value."""

    def __init__(self, decode: Callable[[Any], Any]) -> None:
        super().__init__()
        self.values_seen = Interner()
        self._decode = decode

    def __missing__(self, text: Any) -> int:
        value = self._decode(text)
        number = self[text] = -1 if value is None else self.values_seen[value]
        return number


class Arguments(Struct):
    """Reads the arguments of one block after the other; inputs, collectives and grids are interned on the way."""

    _signatures: Interner = field(default_factory=Interner)
    _collectives: _Decoded = field(default_factory=lambda: _Decoded(_collective))
    _grids: _Decoded = field(default_factory=lambda: _Decoded(_grid))

    def of_records(self, kind: NDArray[np.uint8], events: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """The columns of events whose arguments are records; -1 where absent, no column where nothing is present."""
        block = _Block(len(kind))
        for group, rows in _groups(kind):
            self._put(block, rows, group, [events[row].args for row in rows.tolist()])
        return block.columns

    def of_texts(self, kind: NDArray[np.uint8], events: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """The same of events whose arguments are texts."""
        block = _Block(len(kind))
        for group, rows in _groups(kind):
            self._put(block, rows, group, _read_texts([events[row].args for row in rows.tolist()], group))
        return block.columns

    def _put(self, block: _Block, rows: NDArray[np.int64], group: _Group, args: list[Any]) -> None:
        _put_numbers(block, rows, args, group.numbers)
        if group is _HOST:
            self._put_inputs(block, rows, args)
        elif group is _GPU:
            shaped = [at for at, arg in enumerate(args) if arg.grid is not NO_RAW]
            grids = [bytes(args[at].grid) for at in shaped]
            block.put("grid", rows[shaped], codes(self._grids, grids, len(shaped)))
        if group in (_HOST, _GPU):
            told = [at for at, arg in enumerate(args) if arg.collective is not NO_RAW]
            parts = [tuple(map(bytes, _collective_parts(args[at]))) for at in told]
            block.put("collective", rows[told], codes(self._collectives, parts, len(told)))

    def _put_inputs(self, block: _Block, rows: NDArray[np.int64], args: list[HostArgs]) -> None:
        dims = [arg.dims if arg.dims is not NO_RAW else arg.dims_old for arg in args]
        shaped = [at for at, raw in enumerate(dims) if raw is not NO_RAW]
        if shaped:
            used = [args[at] for at in shaped]
            keys = zip(
                map(bytes, [dims[at] for at in shaped]),
                *(map(bytes, map(attrgetter(name), used)) for name in ("types", "strides", "concrete")),
                strict=True,
            )
            block.put("inputs", rows[shaped], codes(self._signatures, keys, len(shaped)))

    def interned(self) -> dict[str, list[Any]]:
        """What the numbers of each column of indices stand for, texts not yet decoded."""
        return {name: list(known) for name, known in self._known().items()}

    def recoded(self, columns: dict[str, NDArray[Any]], interned: dict[str, list[Any]]) -> dict[str, NDArray[Any]]:
        """Columns of another reader, with the numbers of this one."""
        known = self._known()
        return {
            name: recoded(column, known[name], interned[name]) if name in known else column
            for name, column in columns.items()
        }

    def _known(self) -> dict[str, Interner]:
        return {
            "inputs": self._signatures,
            "collective": self._collectives.values_seen,
            "grid": self._grids.values_seen,
        }

    def signatures(self) -> list[Inputs]:
        """The distinct inputs, decoded; their texts are released."""
        decoded = [_decode_signature(key) for key in self._signatures]
        self._signatures.clear()
        return decoded

    def collectives(self) -> list[Collective]:
        """The distinct collectives."""
        return list(self._collectives.values_seen)

    def grids(self) -> list[tuple[int, int, int]]:
        """The distinct grids."""
        return list(self._grids.values_seen)


class _Block(Struct):
    """The columns of a block; one is made when its first value is put."""

    size: int
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)

    def put(self, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Write the values of some rows; -1 says nothing."""
        if (values != -1).any():
            if name not in self.columns:
                self.columns[name] = np.full(self.size, -1, dtype=DTYPES[name])
            self.columns[name][rows] = values


def _put_numbers(block: _Block, rows: NDArray[np.int64], args: list[Any], names: tuple[str, ...]) -> None:
    width = len(names)
    values = chain.from_iterable(map(attrgetter(*names), args))
    try:
        table = np.fromiter(values, np.int64, len(args) * width).reshape(-1, width)
    except (OverflowError, ValueError, TypeError):  # an unsigned 64-bit id, or a number written as text
        get: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
        table = np.array([[to_int(value) for value in get(arg)] for arg in args], dtype=np.int64)
    for at, name in enumerate(names):
        column = table[:, at]
        block.put(name, rows, np.where(column == _UINT32_NONE, -1, column) if name in _NONE_AS_UINT32 else column)


def _groups(kind: NDArray[np.uint8]) -> Iterator[tuple[_Group, NDArray[np.int64]]]:
    """The groups that occur, and their rows."""
    group_of = _GROUP_OF_KIND[kind]
    for number, group in enumerate(_GROUPS):
        rows = np.flatnonzero(group_of == number)
        if rows.size:
            yield group, rows


def _read_texts(texts: list[msgspec.Raw], group: _Group) -> list[Any]:
    try:
        return group.decode(b"[" + b",".join(texts) + b"]")
    except MALFORMED:
        return [_read_loosely(text, group) for text in texts]


def _read_loosely(text: msgspec.Raw, group: _Group) -> msgspec.Struct:
    """Arguments of any text, field by field; an object that was written as text is one."""
    inner = _value(text) if bytes(text).startswith(b'"') else None
    try:
        loose = group.decode_loosely(msgspec.Raw(inner) if isinstance(inner, str) else text)
    except MALFORMED:
        return group.record()
    values = msgspec.structs.asdict(loose)
    return group.record(**{name: _number(raw) if name in group.numbers else raw for name, raw in values.items()})


def _value(raw: msgspec.Raw | bytes) -> object:
    """What stands in a text; None if nothing or damage does."""
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except MALFORMED:
        return None


def _number(raw: msgspec.Raw | bytes) -> int:
    return -1 if raw is NO_RAW else to_int(_value(raw))


def _text(raw: bytes) -> str:
    value = _value(raw)
    return value if isinstance(value, str) else "" if value is None else str(value)


def _collective(parts: tuple[bytes, ...]) -> Collective | None:
    """The collective that these texts tell of, in the order of `CollectiveArgs`; none without a name."""
    name, dtype, in_elements, out_elements, group_size, group, description, ranks = parts
    if not _text(name):
        return None
    labels = [label for label in (_text(group), _text(description)) if label]
    return Collective(
        name=_text(name),
        dtype=_text(dtype),
        in_elements=_number(in_elements),
        out_elements=_number(out_elements),
        group_size=_number(group_size),
        group=f"{labels[0]} ({labels[1]})" if len(labels) > 1 else "".join(labels),
        ranks=_text(ranks),
    )


def _grid(text: bytes) -> tuple[int, int, int] | None:
    try:
        return msgspec.json.decode(text, type=tuple[int, int, int])
    except MALFORMED:
        pass
    with suppress(msgspec.ValidationError):
        return msgspec.convert(_whole(_listed(_value(text))), tuple[int, int, int])
    return None


def _decode_signature(key: tuple[bytes, bytes, bytes, bytes]) -> Inputs:
    dims, types, strides, concrete = (_listed(_decode_part(part)) if part else None for part in key)
    return Inputs(dims=_whole(dims), types=types, strides=_whole(strides), concrete=concrete)


def _listed(value: Any) -> Any:
    """A list that was written as text."""
    return _value(value.encode()) if isinstance(value, str) and value.startswith("[") else value


def _whole(value: Any) -> Any:
    """The value with its whole numbers as such, where a writer made all numbers floats."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _decode_part(text: bytes) -> Any:
    """A recorded list; strings in it were passed over so far and may hold any bytes."""
    try:
        return msgspec.json.decode(text)
    except MALFORMED:
        pass
    for _, attempt in repair.attempts(text):
        with suppress(*MALFORMED):
            return msgspec.json.decode(attempt)
    return None
