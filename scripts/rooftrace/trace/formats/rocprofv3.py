"""Results of rocprofv3 as JSON (``--output-format json``): kernels, copies, calls of HIP and HSA, markers.

The layout is that of the rocprofiler-sdk tool (its docs, "Using rocprofv3", JSON output schema): under
``rocprofiler-sdk-tool`` one entry a process with ``agents``, ``kernel_symbols``, ``strings.buffer_records`` (names of
kinds and operations by number) and ``buffer_records`` (lists by domain). Times are ns of one clock for host and GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rooftrace.trace.formats._document import decoded
from rooftrace.trace.formats._events import Rows, entries, mapping, text_of, whole
from rooftrace.trace.formats._nvtx import as_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

NAME = "rocprofv3"
_KEY = "rocprofiler-sdk-tool"
_GPU = 2  # type of an agent; 1 is a CPU
_DIRECTIONS = {
    "HOST_TO_DEVICE": "Memcpy HtoD (Host -> Device)",
    "DEVICE_TO_HOST": "Memcpy DtoH (Device -> Host)",
    "DEVICE_TO_DEVICE": "Memcpy DtoD (Device -> Device)",
    "HOST_TO_HOST": "Memcpy HtoH (Host -> Host)",
}
# Domains whose records are calls of the host that may launch something.
_CALLS = ("hip_api", "hip_runtime_api", "hip_compiler_api", "hip_runtime_api_ext", "hsa_api", "rccl_api")
# An HSA call stands inside the HIP call that launched and has its correlation: the launch is the HIP call.
_NO_LAUNCH = ("hsa_api",)


def recognises(head: bytes) -> bool:
    """The key of the tool stands first."""
    return b'"rocprofiler-sdk-tool"' in head[:4096] and b'"traceEvents"' not in head[:4096]


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All kernels, copies, calls and markers of all processes in the file."""
    content = mapping(decoded(source, progress))
    tools = content.get(_KEY)
    rows, devices = Rows(), []
    for number, tool in enumerate([tools] if isinstance(tools, dict) else entries(tools)):
        process = _Process.of(tool, number)
        devices += process.devices()
        process.add_all(rows, mapping(tool.get("buffer_records")))
    return rows.finish({"deviceProperties": _distinct(devices)}, NAME)


def _distinct(devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each device once, by its id: every process lists all."""
    known = {device["id"]: device for device in reversed(devices)}
    return [known[identity] for identity in sorted(known)]


class _Process(Struct, frozen=True, kw_only=True):
    """What the numbers in the records of a process stand for."""

    pid: int
    number: int
    agents: dict[int, dict[str, Any]]
    gpus: dict[int, int]
    kernels: dict[int, str]
    operations: list[tuple[str, list[str]]]
    messages: dict[int, str]

    @classmethod
    def of(cls, tool: dict[str, Any], number: int) -> _Process:
        agents = {_handle(agent.get("id")): agent for agent in entries(tool.get("agents"))}
        strings = mapping(tool.get("strings"))
        return cls(
            pid=whole(mapping(tool.get("metadata")).get("pid")) or 0,
            number=number,
            agents=agents,
            gpus=_numbered(agents),
            kernels={
                identity: _kernel_name(symbol)
                for symbol in entries(tool.get("kernel_symbols"))
                if (identity := whole(symbol.get("kernel_id"))) is not None
            },
            operations=[
                (text_of(kind.get("kind")), [text_of(name) for name in _list(kind.get("operations"))])
                for kind in entries(strings.get("buffer_records"))
            ],
            messages={
                identity: text_of(entry.get("value"))
                for entry in entries(strings.get("marker_api"))
                if (identity := whole(entry.get("key"))) is not None
            },
        )

    def devices(self) -> list[dict[str, Any]]:
        """The GPUs as Kineto's header describes them."""
        return [_device(self.agents[handle], device) for handle, device in self.gpus.items()]

    def add_all(self, rows: Rows, records: dict[str, Any]) -> None:
        """Every record that takes time."""
        for record in entries(records.get("kernel_dispatch")):
            self._add_kernel(rows, record)
        for record in entries(records.get("memory_copy")):
            self._add_copy(rows, record)
        for domain in _CALLS:
            for record in entries(records.get(domain)):
                launch = None if domain in _NO_LAUNCH else self._correlation(record)
                rows.add("cuda_runtime", self._operation(record), self._thread(record), _times(record), launch)
        for record in entries(records.get("marker_api")):
            self._add_marker(rows, record)

    def _add_kernel(self, rows: Rows, record: dict[str, Any]) -> None:
        info = mapping(record.get("dispatch_info"))
        device = self.gpus.get(_handle(info.get("agent_id")), 0)
        queue = _stream(record, info)
        name = self.kernels.get(whole(info.get("kernel_id")) or 0, "unnamed kernel")
        place = {"device": device, "stream": queue, "grid": _grid(info)}
        rows.add("kernel", name, (device, queue), _times(record), place | self._correlation(record))

    def _add_copy(self, rows: Rows, record: dict[str, Any]) -> None:
        source, target = (_handle(record.get(key)) for key in ("src_agent_id", "dst_agent_id"))
        device = self.gpus.get(target, self.gpus.get(source, 0))
        operation = self._operation(record)
        name = next((text for key, text in _DIRECTIONS.items() if operation.endswith(key)), f"Memcpy ({operation})")
        stream = _stream(record, {})
        args = {"device": device, "stream": stream, "bytes": whole(record.get("bytes"))}
        rows.add("gpu_memcpy", name, (device, f"copies {stream}"), _times(record), args | self._correlation(record))

    def _add_marker(self, rows: Rows, record: dict[str, Any]) -> None:
        message = text_of(mapping(record.get("args")).get("message")) or self.messages.get(_internal(record), "")
        category, name, args = as_event(message or self._operation(record))
        rows.add(category, name, self._thread(record), _times(record), args)

    def _thread(self, record: dict[str, Any]) -> tuple[int, int]:
        return self.pid, whole(record.get("thread_id")) or 0

    def _operation(self, record: dict[str, Any]) -> str:
        kind, operation = whole(record.get("kind")), whole(record.get("operation"))
        if kind is None or operation is None or not 0 <= kind < len(self.operations):
            return text_of(record.get("operation")) or "unnamed call"
        name, operations = self.operations[kind]
        return operations[operation] if 0 <= operation < len(operations) else f"{name} {operation}"

    def _correlation(self, record: dict[str, Any]) -> dict[str, int]:
        """Ids of several processes overlap: the process's place in the file goes into the upper half."""
        own = _internal(record)
        return {"correlation": (self.number << 40) + own} if 0 < own < 1 << 40 else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _handle(value: object) -> int:
    """An id, which is a number in an object of its own."""
    number = whole(mapping(value).get("handle")) if isinstance(value, dict) else whole(value)
    return -1 if number is None else number


def _internal(record: dict[str, Any]) -> int:
    value = record.get("correlation_id")
    number = whole(value.get("internal")) if isinstance(value, dict) else whole(value)
    return number or 0


def _stream(record: dict[str, Any], info: dict[str, Any]) -> int:
    """The HIP stream where the version records it, else the hardware queue."""
    stream = _handle(record.get("stream_id"))
    queue = _handle(info.get("queue_id"))
    return stream if stream > 0 or queue < 0 else queue


def _times(record: dict[str, Any]) -> tuple[int | None, int | None]:
    return whole(record.get("start_timestamp")), whole(record.get("end_timestamp"))


def _grid(info: dict[str, Any]) -> list[int] | None:
    """Workgroups, as CUDA counts them; the record has work items."""
    grid, group = mapping(info.get("grid_size")), mapping(info.get("workgroup_size"))
    items = [whole(grid.get(axis)) for axis in "xyz"]
    sizes = [whole(group.get(axis)) or 1 for axis in "xyz"]
    return [-(-item // size) for item, size in zip(items, sizes, strict=True) if item is not None and size > 0] or None


def _kernel_name(symbol: dict[str, Any]) -> str:
    keys = ("kernel_name", "demangled_kernel_name", "formatted_kernel_name", "truncated_kernel_name")
    name = next((text for key in keys if (text := text_of(symbol.get(key)))), "unnamed kernel")
    return name.removesuffix(".kd")


def _numbered(agents: dict[int, dict[str, Any]]) -> dict[int, int]:
    """The number of each GPU among the GPUs, by handle."""
    gpus = [handle for handle, agent in agents.items() if whole(agent.get("type")) == _GPU]
    listed = {handle: whole(agents[handle].get("logical_node_type_id")) for handle in gpus}
    if len(set(listed.values())) == len(gpus) and all(n is not None and n >= 0 for n in listed.values()):
        return {handle: n for handle, n in listed.items() if n is not None}
    return {handle: number for number, handle in enumerate(gpus)}


def _device(agent: dict[str, Any], number: int) -> dict[str, Any]:
    product = text_of(agent.get("product_name")) or text_of(agent.get("model_name")) or text_of(agent.get("name"))
    banks = [whole(bank.get("size_in_bytes")) for bank in entries(agent.get("mem_banks"))]
    memory = [size for size in banks if size]
    # gfx942 is 90402: major, two digits of minor, two of stepping.
    target = whole(agent.get("gfx_target_version"))
    name = product if product.startswith("AMD") or not product else f"AMD {product}"
    found = {
        "id": number,
        "name": name,
        "numSms": whole(agent.get("cu_count")),
        "totalGlobalMem": max(memory) if memory else None,
        "computeMajor": target // 10000 if target else None,
        "computeMinor": target // 100 % 100 if target else None,
    }
    return {key: value for key, value in found.items() if value is not None}
