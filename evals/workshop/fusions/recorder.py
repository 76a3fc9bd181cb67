"""Writes down calls as a profiler would, and beside it what each kernel really read and made.

Host time advances by fixed amounts; a kernel starts when its launch has reached the device and its stream is free.
Kernels take the longer of their traffic and their arithmetic at common shares of the GPU's limits, so that a fused
kernel is faster by what the closed form says and not by chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evals.workshop.fusions.machines import Gpu, rate
from evals.workshop.fusions.tensors import KINETO, Storage, Tensor
from evals.workshop.fusions.truth import Executed, Instance, Plant, Version, instances

HOST = 4242
START_NS = 1_700_000_000_000
OP_NS, VIEW_NS, LAUNCH_NS, REACH_NS, GAP_NS = 6_000, 800, 3_000, 4_000, 1_000
MEMORY_SHARE, MATRIX_SHARE, BASE_NS = 0.62, 0.60, 1_300
"""Shares of bandwidth and matrix rate that eager kernels reach, and what each takes in any case (rules of thumb)."""
WRAPPED = object()
"""A Python number among tensors: recorded as a double without its value."""
LAUNCHES = {"nvidia": "cudaLaunchKernel", "amd": "hipLaunchKernel"}
GRAPHS = {"nvidia": "cudaGraphLaunch", "amd": "hipGraphLaunch"}
COPIES = {"nvidia": "cudaMemcpyAsync", "amd": "hipMemcpyWithStream"}


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a kernel does: looks read, tensors made, FLOPs on a unit.

    ``saved`` is made for a backward pass alone; ``scratch`` too, but a fused kernel would make it again when needed.
    """

    reads: tuple[Tensor, ...] = ()
    writes: tuple[Tensor, ...] = ()
    saved: tuple[Tensor, ...] = ()
    scratch: tuple[Tensor, ...] = ()
    flops: float = 0.0
    unit: tuple[str, str] = ("vector", "f32")
    ns: int | None = None


class Recorder:
    """One trace under way."""

    def __init__(self, gpu: Gpu, *, stacks: bool = True, shapes: bool = True, named: bool = True) -> None:
        self.gpu, self.stacks, self.shapes, self.named = gpu, stacks, shapes, named
        self.trains = False
        self.tid, self.stream = 1, 7 if gpu.vendor == "nvidia" else 0
        self.executed: list[Executed] = []
        self.plants: list[Plant] = []
        self._events: list[dict[str, Any]] = []
        self._host: dict[int, int] = {}
        self._free: dict[int, int] = {}
        self._correlation = 0
        self._silent: int | None = None  # correlation of what launched everything; 0: nothing recorded
        self._under: list[Plant] = []
        self._needed: set[Version] = set()

    # --- the host

    @contextmanager
    def span(self, category: str, name: str, **args: Any) -> Iterator[None]:
        """A host event around what is recorded inside."""
        if self._silent is not None:
            yield
            return
        start, tid = self._now(), self.tid
        self._host[tid] = start + 400
        event = self._host_event(category, name, tid, start, args)
        yield
        self._host[tid] = self._now_of(tid) + 400
        event["dur"] = (self._now_of(tid) - start) / 1000
        self._host[tid] += 200

    @contextmanager
    def module(self, name: str) -> Iterator[None]:
        """An ``nn.Module`` frame; nothing where stacks are not recorded."""
        if not self.stacks:
            yield
            return
        with self.span("python_function", f"nn.Module: {name}"):
            yield

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A frame of the user's; nothing where stacks are not recorded."""
        if not self.stacks:
            yield
            return
        with self.span("python_function", name):
            yield

    @contextmanager
    def op(self, name: str, *inputs: Any, **args: Any) -> Iterator[None]:
        """A host op around others or around a launch."""
        with self.span("cpu_op", name, **(recorded(inputs) if self.shapes else {}), **args):
            self._host[self.tid] = self._now() + 600
            yield

    def view(self, name: str, *inputs: Any) -> None:
        """An op that launches nothing."""
        if self._silent is None:
            event = self._host_event("cpu_op", name, self.tid, self._now(), recorded(inputs) if self.shapes else {})
            event["dur"] = VIEW_NS / 1000
            self._host[self.tid] = self._now() + VIEW_NS + 200

    @contextmanager
    def on(self, *, tid: int | None = None, stream: int | None = None) -> Iterator[None]:
        """Another thread, stream or both for what is recorded inside."""
        before = self.tid, self.stream
        self.tid, self.stream = tid or self.tid, self.stream if stream is None else stream
        yield
        self.tid, self.stream = before

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Kernels without ops or launches: from before the window, or of a trace of the device alone."""
        self._silent, before = 0, self._silent
        yield
        self._silent = before

    @contextmanager
    def graph(self) -> Iterator[None]:
        """Kernels of one replayed graph."""
        self._correlation += 1
        number = self._correlation
        start = self._now()
        self._call(GRAPHS[self.gpu.vendor], start, number)
        self._host[self.tid] = start + 9_000
        self._silent, before = number, self._silent
        yield
        self._silent = before

    # --- the device

    def launch(self, kernel: str, work: Work, *, call: str | None = None) -> Executed:
        """A kernel launched by the op under way."""
        return self._joined(self._run("kernel", kernel, work, call or LAUNCHES[self.gpu.vendor]))

    def copy_on_device(self, source: Tensor, out: Tensor) -> None:
        """A copy of a dense tensor, which is no kernel."""
        work = Work(reads=(source,), writes=(out,))
        self._joined(self._run("gpu_memcpy", "Memcpy DtoD (Device -> Device)", work, COPIES[self.gpu.vendor]))

    def copy_out(self, source: Tensor) -> None:
        """A copy to the host that the host waits for (``item``)."""
        with self.op("aten::item", source), self.op("aten::_local_scalar_dense", source):
            row = self._run(
                "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", Work(reads=(source,)), COPIES[self.gpu.vendor]
            )
            self._host[self.tid] = max(self._now(), row.end_ns + 4_000)

    def wait(self) -> None:
        """The host catches up with the device."""
        self._host[self.tid] = max(self._now(), max(self._free.values(), default=0))

    def _run(self, category: str, name: str, work: Work, call: str) -> Executed:
        correlation = self._silent
        if correlation is None:
            self._correlation += 1
            correlation = self._correlation
            self._call(call, self._now(), correlation)
            self._host[self.tid] = self._now() + LAUNCH_NS
        elif correlation == 0:
            correlation = 900_000 + len(self.executed)
        start = max(self._now() + REACH_NS, self._free.get(self.stream, 0) + GAP_NS)
        end = start + (work.ns or self._duration(work))
        self._free[self.stream] = end
        args = {"correlation": correlation, "device": 0, "stream": self.stream}
        self._events.append(_event(category, name, (0, self.stream), (start, end), args))
        row = Executed(device=0, stream=self.stream, start_ns=start, end_ns=end, **self._flow(work))
        self.executed.append(row)
        return row

    def _flow(self, work: Work) -> dict[str, Any]:
        reads = tuple(((look.storage, look.storage.version), look.nbytes) for look in work.reads)
        return {
            "reads": reads,
            "writes": tuple(_written(made.storage) for made in work.writes),
            "saved": tuple(_written(made.storage) for made in work.saved),
            "flops": work.flops,
            "unit": work.unit,
        }

    def _duration(self, work: Work) -> int:
        moved = (*work.reads, *work.writes, *work.saved, *work.scratch)
        nbytes = sum(look.nbytes for look in moved)
        memory = nbytes / (MEMORY_SHARE * self.gpu.bytes_per_s)
        arithmetic = work.flops / (MATRIX_SHARE * rate(self.gpu, *work.unit))
        jitter = 1 + (len(self.executed) * 37 % 11 - 5) / 1000
        return BASE_NS + round(max(memory, arithmetic) * jitter * 1e9)

    # --- the truth

    @contextmanager
    def plant(
        self, pattern: str, *, modelled: bool = True, undone: bool = False, tensors: int = 0, lists: int = 2
    ) -> Iterator[Plant]:
        """An instance: the kernels launched inside are its members, and those of one around it.

        Of instances inside each other the truth keeps those that together save most.
        """
        plant = Plant(pattern=pattern, modelled=modelled, undone=undone, tensors=tensors, lists=lists)
        self.plants.append(plant)
        self._under.append(plant)
        yield plant
        self._under.remove(plant)

    @contextmanager
    def epilogue(self, pattern: str = "gemm_epilogue") -> Iterator[Plant]:
        """An instance that the product launched last takes in."""
        product = self.executed[-1]
        with self.plant(pattern) as plant:
            plant.anchor = product
            yield plant

    @contextmanager
    def apart(self, plant: Plant | None = None) -> Iterator[None]:
        """Kernels that are no members of the instances under way; of ``plant`` alone where given."""
        before, self._under = self._under, [plant] if plant else []
        yield
        self._under = before

    def _joined(self, row: Executed) -> Executed:
        for plant in self._under:
            plant.members.append(row)
        return row

    def need(self, *made: Tensor) -> None:
        """Mark results that something else needs: a backward pass, or code after the trace."""
        self._needed |= {(one.storage, one.storage.version) for one in made}

    def truth(self) -> tuple[Instance, ...]:
        """What was planted."""
        return instances(self.gpu, self.executed, self.plants, needed=self._needed, trains=self.trains)

    def document(self) -> bytes:
        """The trace as a profiler writes it."""
        header: dict[str, Any] = {"schemaVersion": 1}
        if self.named:
            header["deviceProperties"] = [{"id": 0, "name": self.gpu.name}]
        return json.dumps({**header, "traceEvents": self._events}, separators=(",", ":")).encode()

    def _now(self) -> int:
        return self._now_of(self.tid)

    def _now_of(self, tid: int) -> int:
        return self._host.setdefault(tid, START_NS)

    def _host_event(self, category: str, name: str, tid: int, start: int, args: dict[str, Any]) -> dict[str, Any]:
        event = _event(category, name, (HOST, tid), (start, start), args)
        self._events.append(event)
        return event

    def _call(self, name: str, start: int, correlation: int) -> None:
        event = self._host_event("cuda_runtime", name, self.tid, start, {"correlation": correlation})
        event["dur"] = LAUNCH_NS / 1000


def _written(storage: Storage) -> Version:
    storage.version += 1
    return storage, storage.version


def _event(
    category: str, name: str, lane: tuple[int, int], times: tuple[int, int], args: dict[str, Any]
) -> dict[str, Any]:
    start, end = times
    return {
        "ph": "X", "cat": category, "name": name, "pid": lane[0], "tid": lane[1],
        "ts": start / 1000, "dur": (end - start) / 1000, "args": args,
    }  # fmt: skip


def recorded(inputs: Sequence[Any]) -> dict[str, Any]:
    """Kineto's four lists of a call's inputs."""
    rows = [_one_input(value) for value in inputs]
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    return {key: [row[at] for row in rows] for at, key in enumerate(keys)}


def _one_input(value: Any) -> tuple[Any, str, Any, str]:
    if isinstance(value, Tensor):
        return list(value.shape), KINETO[value.dtype], list(value.strides), ""
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        return [list(one.shape) for one in value], "TensorList", [list(one.strides) for one in value], ""
    if value is WRAPPED:
        return [], "double", [], ""
    if value is None:
        return [], "", [], ""
    if isinstance(value, list):
        return [], "ScalarList", [], str(value)
    return [], "Scalar", [], str(value)
