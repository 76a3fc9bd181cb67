"""One thread that calls ops one after the other, and the kernels it launches. Times are in µs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.trace_builder import TraceBuilder

H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-80GB"
V100 = "Tesla V100-SXM2-16GB"
MI300X = "AMD Instinct MI300X"
MI210 = "AMD Instinct MI210"
BF16, F16, F32, I64, BOOL, FP8 = "c10::BFloat16", "c10::Half", "float", "long int", "bool", "c10::Float8_e4m3fn"
Input = tuple[tuple[int, ...], str] | str
Scene = Callable[[], TraceBuilder]
SCENES: dict[tuple[str, str], Scene] = {}


def scene(analyzer: str, pattern: str) -> Callable[[Scene], Scene]:
    """Register a trace under the pattern that it shows."""

    def register(build: Scene) -> Scene:
        if (analyzer, pattern) in SCENES:
            message = f"{analyzer}/{pattern} has a scene already"
            raise ValueError(message)
        SCENES[analyzer, pattern] = build
        return build

    return register


class Stage(TraceBuilder):
    """A thread and a device; an op begins where the last one ended, a kernel when launched and its queue is free."""

    def __init__(self, gpu: str = H100) -> None:
        super().__init__()
        self.device(gpu)
        self.amd = gpu.startswith("AMD")
        self.host = 0.0
        self.gpu: dict[int, float] = {}

    def call(
        self,
        op: str,
        kernels: Sequence[tuple[str, float]],
        inputs: Sequence[Input] = (),
        **more: Any,
    ) -> None:
        """An op of 3 µs and 3 µs a launch."""
        begin = self.host
        self.host += 2
        for name, dur in kernels:
            self.launched(name, dur)
        self.host += 1
        self.op(op, begin, self.host - begin, **arguments(inputs), **more)

    def launched(self, kernel: str, dur: float) -> None:
        """A launch of 3 µs, and its kernel."""
        correlation = self.launch("hipLaunchKernel" if self.amd else "cudaLaunchKernel", ts=self.host, dur=2)
        self.host += 3
        start = max(self.host + 3, self.gpu.get(7, 0.0))
        self.kernel(kernel, start, dur, correlation=correlation)
        self.gpu[7] = start + dur

    def rest(self, us: float) -> None:
        """The host does something that is not recorded."""
        self.host += us

    def drained(self) -> None:
        """The host goes on when the device is done, without a call that is recorded."""
        self.host = max([self.host, *self.gpu.values()])

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python frame, or an `nn.Module` one, round what is called inside."""
        begin = self.host
        self.host += 0.5
        yield
        self.host += 0.5
        self.python(name, begin, self.host - begin)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """A step of the profiler."""
        begin = self.host
        yield
        self.host += 0.5
        self.annotation(f"ProfilerStep#{number}", begin, self.host - begin)


def arguments(inputs: Sequence[Input]) -> dict[str, list[Any]]:
    """Kineto's four lists; a text among the inputs is a scalar."""
    if not inputs:
        return {}
    tensors = [None if isinstance(value, str) else value for value in inputs]
    return {
        "dims": [list(value[0]) if value else [] for value in tensors],
        "types": [value[1] if value else "Scalar" for value in tensors],
        "strides": [dense(value[0]) if value else [] for value in tensors],
        "concrete": [value if isinstance(value, str) else "" for value in inputs],
    }


def dense(shape: tuple[int, ...]) -> list[int]:
    """Row-major strides."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
