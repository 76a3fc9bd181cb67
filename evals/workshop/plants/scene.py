"""Where a planted run is written down: its threads, streams and tape, and the questions what is planted."""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from evals.workshop import kernels
from evals.workshop.aten import Context, emit
from evals.workshop.autograd import Tape
from evals.workshop.hardware import Gpu
from evals.workshop.instructions import Activity, Launch, RecordEvent, Thread, WaitEvent
from evals.workshop.plants.machines import LINK_BYTES_PER_S, PAGEABLE_BYTES_PER_S, PINNED_BYTES_PER_S
from evals.workshop.program import Draws, Gemm, Input, Kernel, Tensor, ThreadBuilder
from evals.workshop.transformer import AUTOGRAD_TID, MAIN_TID

COMMUNICATION = 20
"""The stream of collectives."""
EVENT_CALL_NS = 1_200
"""Host time of recording an event or making a stream wait for one (assumption: a fraction of a launch)."""
SET_OFF_NS = 14_000
"""What a collective takes however small it is (rule of thumb, eight GPUs of one node)."""
NATURAL = "~"
"""Tags that begin so mark what a base does not do best, planted or not."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A base's GPU, seed, number of steps, size and what is planted in it.

    ``mended``: kinds that were planted and whose remedy stands in their place, where that is more than their absence.
    """

    gpu: Gpu
    seed: str
    planted: frozenset[str]
    mended: frozenset[str] = frozenset()
    steps: int = 3
    layers: int = 2
    width: int = 1024
    batch: int = 8
    length: int = 1024


@dataclass
class Scene:
    """One run being written."""

    setting: Setting
    main: ThreadBuilder
    engine: ThreadBuilder
    tape: Tape | None = None
    step: int = 0
    events: int = 0
    pending: list[str] = field(default_factory=list)

    @property
    def context(self) -> Context:
        """For operators of the forward pass."""
        return Context(b=self.main, tape=self.tape)

    def has(self, kind: str) -> bool:
        """Whether a kind is planted."""
        return kind in self.setting.planted

    @contextmanager
    def place(self, kind: str) -> Iterator[bool]:
        """Where a kind is planted or what takes its place stands; draws inside depend on nothing outside."""
        with self.main.scope(f"plant {kind}"), self.main.tagged(kind):
            yield self.has(kind)

    @contextmanager
    def without_tape(self) -> Iterator[None]:
        """Operators inside record no nodes."""
        kept, self.tape = self.tape, None
        yield
        self.tape = kept

    def event(self, label: str) -> str:
        """A new event's name."""
        self.events += 1
        return f"{label} {self.events}"

    def threads(self) -> tuple[Thread, ...]:
        """The finished threads."""
        both = (self.main.thread(), self.engine.thread())
        return both if both[1].instructions else both[:1]


def opened(setting: Setting, *, trains: bool = False) -> Scene:
    """An empty run."""
    draws, stream = Draws(setting.seed), 7 if setting.gpu.vendor == "nvidia" else 0
    main = ThreadBuilder(setting.gpu, draws, tid=MAIN_TID, name="python3", stream=stream)
    engine = ThreadBuilder(setting.gpu, draws, tid=AUTOGRAD_TID, name="pt_autograd_0", stream=stream)
    return Scene(setting, main, engine, Tape(next_number=1000) if trains else None)


def one(b: ThreadBuilder, op: str, functor: str, inputs: tuple[Tensor, ...], *rest: Input, out: Tensor) -> Tensor:
    """An elementwise operator of some tensors and further inputs."""
    emit(b, f"aten::{op}", kernels.elementwise(functor, out, *inputs), *inputs, *rest)
    return out


def matmul(b: ThreadBuilder, op: str, x: Tensor, weight: Tensor, kernel: Kernel, bias: Tensor | None = None) -> Tensor:
    """``x @ weight`` by ``aten::mm``, ``aten::bmm`` or ``aten::addmm``."""
    (m, k), n = x.shape[-2:], weight.shape[-1]
    b.gemms.append(Gemm(step=b.step, op=op, m=m, n=n, k=k))
    inputs: tuple[Input, ...] = (x, weight) if bias is None else (bias, x, weight, 1, 1)
    emit(b, op, kernel, *inputs)
    return Tensor((*x.shape[:-1], n), x.dtype)


def host_copy(scene: Scene, size: int, *, pinned: bool, way: str = "HtoD") -> None:
    """``tensor.to(device)`` or back; pageable memory blocks and is slow, pinned memory does neither."""
    b, slug = scene.main, scene.setting.gpu.slug
    tensor = Tensor((size // 8,), "long int")
    rate = (PINNED_BYTES_PER_S if pinned else PAGEABLE_BYTES_PER_S)[slug]
    memory = "Pinned" if pinned else "Pageable"
    name = f"HtoD ({memory} -> Device)" if way == "HtoD" else f"DtoH (Device -> {memory})"
    with (
        b.op("aten::to", tensor, 4, 0, None, None, pinned, False, None),
        b.op("aten::_to_copy", tensor, 4, 0, None, None, pinned, None),
        b.op("aten::copy_", tensor, tensor, pinned),
    ):
        b.copy(name, size, is_blocking=not pinned)
        _set_duration(b, scene.setting.gpu.least_kernel_ns + round(size / rate * 1e9))
        if not pinned and b.gpu.vendor == "nvidia":
            b.synchronize()


def _set_duration(b: ThreadBuilder, ns: int) -> None:
    """Gives the copy that was put last its time."""
    at = max(place for place, row in enumerate(b.instructions) if isinstance(row, Launch))
    launch = b.instructions[at]
    if isinstance(launch, Launch):
        rows = tuple(replace(row, duration_ns=ns) for row in launch.activities)
        b.instructions[at] = replace(launch, activities=rows)


def collective(scene: Scene, b: ThreadBuilder, kind: str, size: int, *, waits: float = 1.0) -> str:
    """A collective of ``size`` bytes behind the work so far, on its own stream; the event that marks its end.

    ``waits``: how much longer a slow peer makes it.
    """
    slug, default = scene.setting.gpu.slug, b.stream
    x = Tensor((size // 2,))
    ready, done = scene.event("ready"), scene.event("done")
    sent = 2 * 7 / 8 if kind == "AllReduce" else 7 / 8
    taken = SET_OFF_NS + round(size * sent / LINK_BYTES_PER_S[slug] * 1e9)
    call = {"AllReduce": "c10d::allreduce_", "AllToAll": "c10d::alltoall_base_"}[kind]
    name = f"ncclDevKernel_{kind}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    if kind == "AllToAll":
        name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    inputs: tuple[Input, ...] = ([x],) if kind == "AllReduce" else (x, x)
    with b.scope(ready), b.op(call, *inputs), b.op("record_param_comms", x, 8):
        record(b, ready, default)
        wait(b, ready, COMMUNICATION)
        with b.annotation("nccl:all_reduce" if kind == "AllReduce" else "nccl:all_to_all"):
            _launch_collective(b, name, round(taken * waits * b.draws.at(b.gpu.jitter_ppm, "jitter") / 1e6), size)
        record(b, done, COMMUNICATION)
    return done


def _launch_collective(b: ThreadBuilder, name: str, duration_ns: int, size: int) -> None:
    activity = Activity(
        kind="kernel",
        name=name,
        duration_ns=duration_ns,
        args={"grid": [16, 1, 1], "block": [512, 1, 1], "In msg nelems": size // 2, "dtype": "BFloat16"},
        tag=b.tag,
    )
    b.work(b.draws.at(b.gpu.view_op, "set up") + 2_000)
    b.instructions.append(
        Launch(
            call="launch_cluster",
            host_ns=b.draws.at(b.gpu.launch_call, "launch"),
            stream=COMMUNICATION,
            latency_ns=b.draws.at(b.gpu.launch_latency, "latency"),
            activities=(activity,),
        )
    )


def record(b: ThreadBuilder, event: str, stream: int) -> None:
    """Marks the work put on a stream so far."""
    b.instructions.append(RecordEvent(event=event, stream=stream, host_ns=EVENT_CALL_NS))


def wait(b: ThreadBuilder, event: str, stream: int) -> None:
    """Later work of a stream starts no earlier than what an event marks has ended."""
    b.instructions.append(WaitEvent(event=event, stream=stream, host_ns=EVENT_CALL_NS))
