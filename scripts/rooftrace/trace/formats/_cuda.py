"""Activities of CUDA as Nsight Systems exports them, whatever the export's form: one event each in our vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from rooftrace.trace.formats._events import text_of, whole
from rooftrace.trace.formats._nvtx import as_event

if TYPE_CHECKING:
    from rooftrace.trace.formats._events import Rows

# ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND of the schema reference.
_DIRECTIONS = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
# Waits of CUPTI, by number and by name, in Kineto's words.
_WAITS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
_WAITS_BY_NAME = {
    "EVENT_SYNCHRONIZE": 1,
    "STREAM_WAIT_EVENT": 2,
    "STREAM_SYNCHRONIZE": 3,
    "CONTEXT_SYNCHRONIZE": 4,
}
_RANGES = (59, 60)  # NvtxPushPopRange, NvtxStartEndRange; others are marks and names
_NO_STREAM = (1 << 32) - 1
_MASK = (1 << 24) - 1


class Names(dict[int, str]):
    """Names by number; a number that is unknown, or a text in place of one, names itself."""

    def of(self, value: object) -> str:
        """The name that stands in a field."""
        number = whole(value)
        if number is None:
            return text_of(value)
        return self.get(number, "")


class Session(Struct):
    """Takes activities as rows with the column names of the SQLite export."""

    rows: Rows
    names: Names
    devices: dict[tuple[int, int], int] = field(default_factory=dict)
    _processes: dict[int, int] = field(default_factory=dict)

    def call(self, row: dict[str, Any]) -> None:
        """A call of the CUDA runtime or driver."""
        name = self.names.of(row.get("nameId"))
        category = "cuda_driver" if name.startswith("cu") and not name.startswith("cuda") else "cuda_runtime"
        plain = name.rpartition("_v")
        label = plain[0] if plain[0] and plain[2].isdecimal() else name
        self.rows.add(category, label or "unnamed call", _thread(row), _times(row), self._correlation(row, "globalTid"))

    def kernel(self, row: dict[str, Any]) -> None:
        """A kernel: its mangled name is the key that names are known by, then the demangled one."""
        keys = ("mangledName", "demangledName", "shortName", "name")
        name = next((text for key in keys if (text := self.names.of(row.get(key)))), "unnamed kernel")
        grid = [whole(row.get(f"grid{axis}")) for axis in "XYZ"]
        args = {
            "grid": grid if None not in grid else None,
            "graph node id": whole(row.get("graphNodeId")),
        }
        self._activity("kernel", name, row, args)

    def graph(self, row: dict[str, Any]) -> None:
        """A whole graph, where its kernels were not traced one by one."""
        self._activity("kernel", f"CUDA graph {whole(row.get('graphId')) or 0}", row, {})

    def copy(self, row: dict[str, Any]) -> None:
        """A copy."""
        direction = _DIRECTIONS.get(whole(row.get("copyKind")) or 0, "")
        source, target = (_MEMORY.get(_or(whole(row.get(key)), -1), "Unknown") for key in ("srcKind", "dstKind"))
        name = f"Memcpy {direction} ({source} -> {target})" if direction else f"Memcpy ({source} -> {target})"
        self._activity("gpu_memcpy", name, row, {"bytes": whole(row.get("bytes"))})

    def fill(self, row: dict[str, Any]) -> None:
        """A fill of memory."""
        memory = _MEMORY.get(_or(whole(row.get("memKind")), 2), "Device")
        self._activity("gpu_memset", f"Memset ({memory})", row, {"bytes": whole(row.get("bytes"))})

    def wait(self, row: dict[str, Any]) -> None:
        """A wait of the host, or of a stream for an event."""
        kind = row.get("syncType")
        number = whole(kind)
        if number is None:
            name = text_of(kind)
            number = next((n for key, n in _WAITS_BY_NAME.items() if name.endswith(key)), 0)
        label = _WAITS.get(number, "Sync")
        device, stream = self._place(row)
        args = {"device": device, "stream": stream, "cuda_sync_kind": label} | self._correlation(row, "globalPid")
        if label in ("Stream Sync", "Stream Wait Event"):
            args["wait_on_stream"] = stream
        self.rows.add("cuda_sync", label, (device, f"sync {stream}"), _times(row), args)

    def overhead(self, row: dict[str, Any]) -> None:
        """Time that the profiler itself took."""
        self.rows.add("overhead", self.names.of(row.get("nameId")) or "Profiler", _thread(row), _times(row))

    def range(self, row: dict[str, Any]) -> None:
        """A range that the program marked; marks without an end are none."""
        kind = whole(row.get("eventType"))
        start, end = _times(row)
        if end is None or (kind is not None and kind not in _RANGES):
            return
        category, name, args = as_event(text_of(row.get("text")) or self.names.of(row.get("textId")))
        if kind == _RANGES[1]:  # these may overlap one another on a thread, and none of them holds the others
            pid, tid = _thread(row)
            self.rows.add("user_annotation", name, (pid, f"ranges of {tid}"), (start, end))
        else:
            self.rows.add(category, name, _thread(row), (start, end), args)

    def _activity(self, category: str, name: str, row: dict[str, Any], args: dict[str, Any]) -> None:
        device, stream = self._place(row)
        known = {"device": device, "stream": stream} | self._correlation(row, "globalPid") | args
        self.rows.add(category, name, (device, stream), _times(row), known)

    def _place(self, row: dict[str, Any]) -> tuple[int, int]:
        """The GPU and the stream; streams of several processes on one GPU are told apart."""
        process = _process(row, "globalPid")
        device = _or(whole(row.get("deviceId")), 0)
        stream = _or(whole(row.get("streamId")), -1)
        if not 0 <= stream < _NO_STREAM:
            return self.devices.get((process, device), device), -1
        return self.devices.get((process, device), device), stream + (self._number(process) << 32)

    def _correlation(self, row: dict[str, Any], key: str) -> dict[str, int]:
        """Ids are those of a process: its number goes above them."""
        number = whole(row.get("correlationId"))
        if number is None or not 0 < number < 1 << 32:
            return {}
        return {"correlation": number + (self._number(_process(row, key)) << 32)}

    def _number(self, process: int) -> int:
        return self._processes.setdefault(process, len(self._processes)) % (1 << 20)


def _process(row: dict[str, Any], key: str) -> int:
    return (_or(whole(row.get(key)), 0) >> 24) & _MASK


def _thread(row: dict[str, Any]) -> tuple[int, int]:
    identity = _or(whole(row.get("globalTid")), 0)
    return (identity >> 24) & _MASK, identity & _MASK


def _times(row: dict[str, Any]) -> tuple[int | None, int | None]:
    return whole(row.get("start")), whole(row.get("end"))


def _or(value: int | None, other: int) -> int:
    return other if value is None else value
