"""Builds the instructions of one host thread: operators with inputs, frames, launches with durations.

Every number that varies is drawn by *key* (seed, scope, label, how often that label occurred in that
scope), not from a running stream. So a program with one problem taken out draws the same numbers everywhere
else, and the difference of two runs is the cost of that problem and of nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from evals.workshop.hardware import Gpu, Quantiles, occupancy, roofline_ns
from evals.workshop.instructions import (
    Activity,
    Args,
    Enter,
    Exit,
    Instruction,
    Json,
    Launch,
    Signal,
    SpanKind,
    Synchronize,
    Thread,
    Work,
)

ITEM_SIZES = {"c10::BFloat16": 2, "float": 4, "long int": 8, "bool": 1}
DTYPE_CODES = {"c10::BFloat16": 15, "float": 6, "long int": 4, "bool": 11}
EFFICIENCY_LOW, EFFICIENCY_SPAN = 0.70, 0.25
"""A sound kernel reaches 70 to 95 % of its roofline: an assumption of the workshop, not a measurement."""


SET_UP_NS = 2_000
"""Least host time of an operator between its begin and its launch call (rule of thumb, eager PyTorch)."""


@dataclass(frozen=True)
class Tensor:
    """Shape, dtype as the profiler spells it, and strides (contiguous where not given)."""

    shape: tuple[int, ...]
    dtype: str = "c10::BFloat16"
    strides: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """Number of elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total

    @property
    def bytes(self) -> int:
        """Size of the elements, without gaps of the strides."""
        return self.count * ITEM_SIZES[self.dtype]

    def recorded_strides(self) -> list[int]:
        """Strides as a list; those of a contiguous tensor where none were given."""
        if self.strides is not None:
            return list(self.strides)
        strides, step = [], 1
        for size in reversed(self.shape):
            strides.append(step)
            step *= size
        return strides[::-1]

    def view(self, *shape: int) -> Tensor:
        """A contiguous tensor of the same elements in another shape."""
        return Tensor(shape, self.dtype)

    def t(self) -> Tensor:
        """The transpose of a matrix, as a view."""
        return Tensor(self.shape[::-1], self.dtype, tuple(self.recorded_strides()[::-1]))


Input: TypeAlias = "bool | int | float | Tensor | list[int] | list[bool] | list[Tensor] | None"


def recorded_inputs(inputs: Sequence[Input]) -> Args:
    """The four argument lists of a ``cpu_op`` event for these inputs."""
    rows = [_recorded(value) for value in inputs]
    names = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _recorded(value: Input) -> tuple[str, str, Json, Json]:
    if value is None:
        return "", "", [], []
    if isinstance(value, Tensor):
        return "", value.dtype, value.recorded_strides(), list(value.shape)
    if isinstance(value, list):
        tensors = [item for item in value if isinstance(item, Tensor)]
        if tensors:
            strides = [item.recorded_strides() for item in tensors]
            return "", "TensorList", strides, [list(item.shape) for item in tensors]
        return str(value), "ScalarList", [], []
    if isinstance(value, float):
        text = f"{value:.17g}"
        return (f"{text}." if text.lstrip("-").isdigit() else text), "Scalar", [], []
    return str(value), "Scalar", [], []


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """What a kernel is: name, work, launch geometry; without ``efficiency`` a sound one, drawn per shape.

    ``is_extra``: its op's work is charged to another kernel, so that none of its time is needed.
    """

    name: str
    flops: float
    bytes_moved: float
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int = 32
    shared: int = 0
    precision: str | None = None
    efficiency: float | None = None
    call: str = "launch"
    is_extra: bool = False


@dataclass(frozen=True, kw_only=True)
class Gemm:
    """One matrix product as it was asked for: ``[m, k] @ [k, n]``."""

    step: int
    op: str
    m: int
    n: int
    k: int

    @property
    def flops(self) -> int:
        """A multiply-add is two."""
        return 2 * self.m * self.n * self.k


@dataclass
class Draws:
    """Keyed draws; ``scope`` is where in the workload the program builder stands."""

    seed: str
    scope: str = ""
    seen: Counter[str] = field(default_factory=Counter)

    def level(self, label: str) -> float:
        """A number in [0, 1) for the next occurrence of ``label`` in the scope."""
        key = f"{self.seed}|{self.scope}|{label}"
        self.seen[key] += 1
        return self.fixed(f"{key}|{self.seen[key]}")

    def fixed(self, key: str) -> float:
        """A number in [0, 1) that depends on ``key`` alone."""
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2.0**64

    def at(self, quantiles: Quantiles, label: str) -> int:
        """A draw from a distribution."""
        return quantiles.at(self.level(label))


class ThreadBuilder:
    """Collects what one host thread does. Spans are context managers; the rest appends instructions."""

    def __init__(self, gpu: Gpu, draws: Draws, *, tid: int, name: str, stream: int) -> None:
        self.gpu = gpu
        self.draws = draws
        self.tid = tid
        self.name = name
        self.stream = stream
        self.step = 0
        self.tag = ""
        self.instructions: list[Instruction] = []
        self.gemms: list[Gemm] = []

    def thread(self) -> Thread:
        """The finished thread."""
        return Thread(tid=self.tid, name=self.name, instructions=tuple(self.instructions))

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Draws inside are keyed below ``name``."""
        outer = self.draws.scope
        self.draws.scope = f"{outer}/{name}"
        yield
        self.draws.scope = outer

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """What is launched inside is there for ``tag``."""
        outer, self.tag = self.tag, tag
        yield
        self.tag = outer

    @contextmanager
    def span(self, kind: SpanKind, name: str, args: Args | None = None, share: float = 1.0) -> Iterator[None]:
        """Opens a span; its own time is a view operator's, two thirds before the body and one after."""
        own = round(self.draws.at(self.gpu.view_op, name) * share)
        self.instructions.append(Enter(kind=kind, name=name, args=args or {}))
        self.work(own * 2 // 3)
        yield
        self.work(own - own * 2 // 3)
        self.instructions.append(Exit())

    def frame(self, name: str) -> AbstractContextManager[None]:
        """A Python frame; half a view operator of its own time."""
        return self.span("python_function", name, share=0.5)

    def module(self, name: str) -> AbstractContextManager[None]:
        """An ``nn.Module`` call."""
        return self.span("python_function", f"nn.Module: {name}", share=0.5)

    def annotation(self, name: str) -> AbstractContextManager[None]:
        """A ``record_function`` range."""
        return self.span("user_annotation", name)

    def op(
        self, name: str, *inputs: Input, sequence: int | None = None, forward_thread: int = 0
    ) -> AbstractContextManager[None]:
        """An operator with its inputs and, where one is recorded, its autograd sequence number."""
        numbered: Args = {} if sequence is None else {"Sequence number": sequence, "Fwd thread id": forward_thread}
        return self.span("cpu_op", name, {**numbered, **recorded_inputs(inputs)})

    def leaf(self, name: str, *inputs: Input, sequence: int | None = None) -> None:
        """An operator without children or launches."""
        with self.op(name, *inputs, sequence=sequence):
            pass

    def work(self, ns: int) -> None:
        """Host time."""
        if ns > 0:
            self.instructions.append(Work(ns=ns))

    def launch(self, kernel: Kernel) -> None:
        """Launches a kernel on the thread's stream."""
        blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
        threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
        per_unit, warps, reached = occupancy(self.gpu, blocks, threads, kernel.registers)
        args: Args = {
            "registers per thread": kernel.registers,
            "shared memory": kernel.shared,
            "blocks per SM": per_unit,
            "warps per SM": warps,
            "grid": list(kernel.grid),
            "block": list(kernel.block),
            "est. achieved occupancy %": reached,
        }
        activity = Activity(
            kind="kernel",
            name=kernel.name,
            duration_ns=self.duration_ns(kernel),
            gap_ns=self.draws.at(self.gpu.queued_gap, "gap"),
            args=args,
            tag=self.tag,
            floor_ns=self.floor_ns(kernel),
        )
        self._put(kernel.call, activity)

    def copy(self, direction: str, size: int, *, is_blocking: bool = False) -> None:
        """A copy between host and device; ``direction`` as in ``HtoD (Pinned -> Device)``.

        AMD's profiler does not tell pinned from pageable memory: it calls both ``Host``.
        """
        if self.gpu.vendor == "amd":
            direction = direction.replace("Pinned", "Host").replace("Pageable", "Host")
        activity = Activity(
            kind="gpu_memcpy",
            name=f"Memcpy {direction}",
            duration_ns=self.gpu.least_kernel_ns + round(size / self.gpu.pcie_bytes_per_s * 1e9),
            gap_ns=self.draws.at(self.gpu.queued_gap, "gap"),
            args={"bytes": size},
            tag=self.tag,
        )
        self._put("memcpy_blocking" if is_blocking else "memcpy", activity, is_blocking=is_blocking)

    def synchronize(self, call: str = "stream_sync") -> None:
        """Waits for the thread's stream (for the device where the call says so)."""
        self.instructions.append(
            Synchronize(
                call=call,
                host_ns=self.draws.at(self.gpu.launch_call, call),
                tail_ns=self.draws.at(self.gpu.sync_tail, call),
                stream=self.stream if call == "stream_sync" else None,
            )
        )

    def signal(self, baton: str) -> None:
        """Hands over."""
        self.instructions.append(Signal(baton=baton))

    def duration_ns(self, kernel: Kernel) -> int:
        """Roofline time over efficiency, times jitter; never below the GPU's shortest kernel."""
        best = roofline_ns(self.gpu, flops=kernel.flops, bytes_moved=kernel.bytes_moved, precision=kernel.precision)
        shape = f"{self.draws.seed}|{kernel.name}|{kernel.flops:.0f}|{kernel.bytes_moved:.0f}"
        drawn = EFFICIENCY_LOW + EFFICIENCY_SPAN * self.draws.fixed(shape)
        typical = max(float(self.gpu.least_kernel_ns), best / (kernel.efficiency or drawn))
        return round(typical * self.draws.at(self.gpu.jitter_ppm, "jitter") / 1e6)

    def floor_ns(self, kernel: Kernel) -> int:
        """Roofline time, never below the GPU's shortest kernel; 0 for one that its op could do without."""
        if kernel.is_extra:
            return 0
        best = roofline_ns(self.gpu, flops=kernel.flops, bytes_moved=kernel.bytes_moved, precision=kernel.precision)
        return max(self.gpu.least_kernel_ns, round(best))

    def _put(self, call: str, activity: Activity, *, is_blocking: bool = False) -> None:
        self.work(self.draws.at(self.gpu.view_op, "set up") + SET_UP_NS)
        self.instructions.append(
            Launch(
                call=call,
                host_ns=self.draws.at(self.gpu.launch_call, "launch"),
                stream=self.stream,
                latency_ns=self.draws.at(self.gpu.launch_latency, "latency"),
                activities=(activity,),
                is_blocking=is_blocking,
                tail_ns=self.draws.at(self.gpu.sync_tail, "tail") if is_blocking else 0,
            )
        )
