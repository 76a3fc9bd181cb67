"""Small Kineto traces, written in the test that needs them. Times are in µs, as in the file.

The document is what torch.profiler writes today: header, events, trace name. Host events lie in process `HOST`,
one lane a thread; GPU events in process `device`, one lane a stream. Nothing is recorded that was not asked for:
a kernel has no correlation unless it is given one, an op no shapes.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rooftrace.trace import Trace

HOST = 4242
Container = Literal["plain", "gzip", "zstd", "zip", "tar"]

_H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_017_755_648,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
}
_ENDS = {
    "HtoD": "Pinned -> Device",
    "DtoH": "Device -> Pinned",
    "DtoD": "Device -> Device",
    "PtoP": "Device -> Device",
    "HtoH": "Pinned -> Pinned",
}


class TraceBuilder:
    """A trace that grows event by event, in the order of the calls."""

    def __init__(self) -> None:
        self._header: dict[str, Any] = {"schemaVersion": 1}
        self._devices: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._correlation = 0

    def op(
        self,
        name: str,
        ts: float,
        dur: float,
        tid: int = 1,
        *,
        dims: list[Any] | None = None,
        types: list[str] | None = None,
        strides: list[Any] | None = None,
        concrete: list[str] | None = None,
        sequence: int | None = None,
        forward_thread: int | None = None,
        external_id: int | None = None,
        **args: Any,
    ) -> None:
        """A host op; `dims` and the lists beside it are Kineto's four parallel lists."""
        recorded = {
            "External id": external_id,
            "Sequence number": sequence,
            "Fwd thread id": forward_thread,
            "Input Dims": dims,
            "Input Strides": strides,
            "Input type": types,
            "Concrete Inputs": concrete,
            **args,
        }
        self._host("cpu_op", name, ts, dur, tid, recorded)

    def python(self, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> None:
        """A Python frame, such as ``model.py(12): forward`` or ``nn.Module: Linear_0``."""
        self._host("python_function", name, ts, dur, tid, args)

    def annotation(self, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> None:
        """A host annotation, such as ``ProfilerStep#3``."""
        self._host("user_annotation", name, ts, dur, tid, args)

    def launch(
        self,
        name: str = "cudaLaunchKernel",
        *,
        ts: float,
        dur: float = 1,
        tid: int = 1,
        correlation: int | None = None,
        cat: str = "cuda_runtime",
        **args: Any,
    ) -> int:
        """A runtime call; returns its correlation, a new one unless given."""
        if correlation is None:
            self._correlation += 1
            correlation = self._correlation
        self._host(cat, name, ts, dur, tid, {"correlation": correlation, **args})
        return correlation

    def kernel(
        self,
        name: str,
        ts: float,
        dur: float,
        stream: int = 7,
        device: int = 0,
        *,
        correlation: int | None = None,
        external_id: int | None = None,
        **args: Any,
    ) -> None:
        """A kernel; further arguments are written under their own names (`grid`, `block` …)."""
        recorded = {"correlation": correlation, "External id": external_id, **args}
        self._gpu("kernel", name, ts, dur, (device, stream), recorded)

    def memcpy(
        self,
        direction: str,
        ts: float,
        dur: float,
        *,
        bytes: int | None = None,  # noqa: A002 - the trace's own word
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        external_id: int | None = None,
        **args: Any,
    ) -> None:
        """A copy; `direction` is HtoD, DtoH, DtoD, PtoP or HtoH."""
        recorded = {"bytes": bytes, "correlation": correlation, "External id": external_id, **args}
        name = f"Memcpy {direction} ({_ENDS[direction]})"
        self._gpu("gpu_memcpy", name, ts, dur, (device, stream), recorded)

    def memset(
        self,
        ts: float,
        dur: float,
        *,
        bytes: int | None = None,  # noqa: A002 - the trace's own word
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        external_id: int | None = None,
        **args: Any,
    ) -> None:
        """A fill of device memory."""
        recorded = {"bytes": bytes, "correlation": correlation, "External id": external_id, **args}
        self._gpu("gpu_memset", "Memset (Device)", ts, dur, (device, stream), recorded)

    def gpu_annotation(self, name: str, ts: float, dur: float, stream: int = 7, device: int = 0, **args: Any) -> None:
        """The GPU's copy of a host annotation."""
        self._gpu("gpu_user_annotation", name, ts, dur, (device, stream), args)

    def sync(
        self,
        name: str = "Stream Wait Event",
        *,
        ts: float,
        dur: float = 1,
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        wait_stream: int | None = None,
        wait_record: int | None = None,
        **args: Any,
    ) -> None:
        """A wait: Stream Wait Event, Event Sync, Stream Sync or Context Sync; `stream` is -1 where the host waits.

        It waits for what was in `wait_stream` when the call of correlation `wait_record` recorded the event.
        """
        recorded = {
            "cuda_sync_kind": name,
            "wait_on_stream": wait_stream,
            "wait_on_cuda_event_record_corr_id": wait_record,
            "correlation": correlation,
            **args,
        }
        self._gpu("cuda_sync", name, ts, dur, (device, stream), recorded)

    def flow(
        self,
        flow_id: int,
        *,
        ts: float | None = None,
        to_ts: float | None = None,
        tid: int = 1,
        to_tid: int | None = None,
        stream: int = 7,
        device: int = 0,
        cat: str = "ac2g",
    ) -> None:
        """An arrow from thread `tid` at `ts` to thread `to_tid`, else to the stream, at `to_ts`; None leaves it out."""
        plain = {"id": flow_id, "cat": cat, "name": cat}
        target = {"pid": device, "tid": stream} if to_tid is None else {"pid": HOST, "tid": to_tid}
        if ts is not None:
            self.event(ph="s", pid=HOST, tid=tid, ts=ts, **plain)
        if to_ts is not None:
            self.event(ph="f", **target, ts=to_ts, bp="e", **plain)

    def event(self, **fields: Any) -> None:
        """Any event, as it stands."""
        self._events.append(fields)

    def header(self, **keys: Any) -> None:
        """Keys beside `traceEvents`, such as ``distributedInfo`` or ``record_shapes``."""
        self._header.update(keys)

    def device(self, name: str | None = None, **properties: Any) -> None:
        """The next GPU of `deviceProperties`: an H100 unless named otherwise."""
        known = _H100 if name is None else {"name": name}
        self._devices.append({"id": len(self._devices), **known, **properties})

    def document(self) -> dict[str, Any]:
        """The trace as a JSON object."""
        devices = {"deviceProperties": self._devices} if self._devices else {}
        return {**self._header, **devices, "traceEvents": self._events, "traceName": "trace.json"}

    def json(self) -> bytes:
        """The trace as compact JSON."""
        return json.dumps(self.document(), separators=(",", ":")).encode()

    def write(self, path: Path, container: Container = "gzip") -> Path:
        """Write the trace to `path`, wrapped as asked; returns `path`."""
        path.write_bytes(wrapped(self.json(), container))
        return path

    def build(self) -> Trace:
        """The trace as the reader gives it."""
        from rooftrace.trace import load

        with tempfile.TemporaryDirectory() as folder:
            trace, _ = load(self.write(Path(folder) / "trace.json", "plain"))
        return trace

    def _host(self, cat: str, name: str, ts: float, dur: float, tid: int, args: dict[str, Any]) -> None:
        self.event(ph="X", cat=cat, name=name, pid=HOST, tid=tid, ts=ts, dur=dur, args=_given(args))

    def _gpu(self, cat: str, name: str, ts: float, dur: float, lane: tuple[int, int], args: dict[str, Any]) -> None:
        device, stream = lane
        place = {"device": device, "stream": stream}
        self.event(ph="X", cat=cat, name=name, pid=device, tid=stream, ts=ts, dur=dur, args=place | _given(args))


def collective(
    name: str,
    in_elements: int,
    out_elements: int | None = None,
    *,
    dtype: str = "Float",
    group: str = "0",
    description: str | None = "default_pg",
    ranks: tuple[int, ...] = (0, 1),
) -> dict[str, Any]:
    """Arguments that describe a collective, for its kernel or its ``record_param_comms`` op: ``**collective(...)``."""
    recorded = {
        "Collective name": name,
        "In msg nelems": in_elements,
        "Out msg nelems": in_elements if out_elements is None else out_elements,
        "Group size": len(ranks),
        "dtype": dtype,
        "Process Group Name": group,
        "Process Group Description": description,
        "Process Group Ranks": str(list(ranks)),
    }
    return _given(recorded)


def _given(args: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if value is not None}


def wrapped(content: bytes, container: Container, member: str = "trace.json") -> bytes:
    """The content in a container; archives hold it as `member`."""
    if container == "gzip":
        return gzip.compress(content, mtime=0)
    if container == "zstd":
        import zstandard

        return zstandard.ZstdCompressor().compress(content)
    if container == "zip":
        return zip_of({member: content})
    if container == "tar":
        return tar_of({member: content})
    return content


def zip_of(members: dict[str, bytes]) -> bytes:
    """A zip archive of the members, in the order given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tar_of(members: dict[str, bytes]) -> bytes:
    """An uncompressed tar archive of the members, in the order given."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
