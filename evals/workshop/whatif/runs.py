"""The programs of a drawn run: steps of host-bound and GPU-bound stretches, with what its traits call for.

Times come from the GPU's measured distributions (``hardware.py``) through ``ThreadBuilder``. What is not
measured there is stated here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from evals.workshop import kernels
from evals.workshop.aten import Context, add, emit, gelu, linear
from evals.workshop.autograd import Emit, Tape, run_backward
from evals.workshop.blocks import layer_norm, read_scalar
from evals.workshop.hardware import Quantiles
from evals.workshop.instructions import Activity, Await, Launch, RecordEvent, Synchronize, Thread, WaitEvent
from evals.workshop.optimizer import adamw_step
from evals.workshop.program import Draws, Kernel, Tensor, ThreadBuilder
from evals.workshop.transformer import AUTOGRAD_TID, LOADER, MAIN_TID, READY_BATCH_NS
from evals.workshop.whatif.changes import NEVER
from evals.workshop.whatif.pieces import ALL_REDUCE
from evals.workshop.whatif.traits import Traits, pick

COMMUNICATION, SIDE = 20, 13
"""Streams beside the default one."""
PYTHON = Quantiles(values=(500, 2_000, 5_000, 12_000, 30_000))
"""Python between two operators of a host-bound stretch (assumption: tens of bytecodes up to a small loop)."""
WAKE = Quantiles(values=(8_000, 12_000, 18_000, 27_000, 45_000))
"""From a hand-over to the first work of the other thread (assumption: a condition variable)."""
ALLOCATE = Quantiles(values=(20_000, 60_000, 100_000, 180_000, 400_000))
"""A ``cudaMalloc`` (assumption: rule of thumb, it maps memory)."""
LINK_BYTES_PER_S = 150e9
"""What a ring all-reduce moves between GPUs of one node (rule of thumb)."""
BUCKET_NODES = 12
"""Backward nodes behind one all-reduce."""
EVENT_CALL = Quantiles(values=(700, 900, 1_200, 1_700, 3_000))
"""Host time of recording an event or making a stream wait for one (assumption: a fraction of a launch)."""
LARGE, SMALL = (Tensor((8, 1024, 1024)), Tensor((8, 1024, 2048)), Tensor((16, 1024, 1024))), (Tensor((2, 64, 256)),)
HUGE = Tensor((32, 1024, 2048))


@dataclass
class _Run:
    traits: Traits
    main: ThreadBuilder
    engine: ThreadBuilder
    tape: Tape
    events: int = 0
    pending: list[str] = field(default_factory=list)

    def event(self, label: str) -> str:
        """A new event's name."""
        self.events += 1
        return f"{label} {self.events}"

    def frame(self, name: str) -> AbstractContextManager[None]:
        """A Python frame of the main thread, where the run records stacks."""
        return self.main.frame(name) if self.traits.frames else nullcontext()


def programs(traits: Traits) -> tuple[Thread, ...]:
    """The host threads of a run."""
    draws, stream = Draws(traits.seed), 7 if traits.gpu.vendor == "nvidia" else 0
    main = ThreadBuilder(traits.gpu, draws, tid=MAIN_TID, name="python3", stream=stream)
    engine = ThreadBuilder(traits.gpu, draws, tid=AUTOGRAD_TID, name="pt_autograd_0", stream=stream)
    run = _Run(traits, main, engine, Tape(next_number=1000))
    with run.frame("train.py(96): <module>"):
        for step in range(traits.steps):
            main.step = engine.step = step
            with main.scope(f"step {step}"), main.annotation(f"ProfilerStep#{3 + step}"):
                _step(run, step)
        main.synchronize("device_sync")
    return (main.thread(), engine.thread()) if traits.trains else (main.thread(),)


def _step(run: _Run, step: int) -> None:
    traits, main = run.traits, run.main
    if traits.stall_ns:
        _batch(run, step)
    _forward(run)
    if traits.trains:
        _backward(run, step)
        with main.scope("optimizer"):
            adamw_step(main, [Tensor((2048, 1024)) for _ in range(3)])
    if traits.frees:
        _free(main)
    if traits.reads != "never":
        _read(run)


def _batch(run: _Run, step: int) -> None:
    """A batch from the loader, late in every second step; a copy to the device from pinned memory."""
    main = run.main
    host, is_pinned = Tensor((64, 1024), "long int"), True
    with main.scope("data"):
        with run.frame("torch/utils/data/dataloader.py(733): __next__"), main.annotation(LOADER):
            main.work(READY_BATCH_NS + (run.traits.stall_ns if step % 2 == 1 else 0))
        with main.op("aten::to", host, 4), main.op("aten::copy_", host, host, is_pinned):
            main.copy("HtoD (Pinned -> Device)", host.bytes)


def _forward(run: _Run) -> None:
    traits, main = run.traits, run.main
    quota = traits.kernels
    c = Context(b=main, tape=run.tape if traits.trains else None)
    stretches = 3 + int(main.draws.level("stretches") * 8)
    with main.scope("forward"), run.frame("model.py(88): forward"):
        if traits.full:
            with main.scope("queued"):
                _queued(main, quota)
            quota = 120
        for number in range(stretches):
            with main.scope(f"stretch {number}"):
                _stretch(run, c, max(1, quota // stretches))
                _between(run, c)


def _stretch(run: _Run, c: Context, count: int) -> None:
    """``count`` forward kernels, either small ones with Python between them or large ones without."""
    main = run.main
    is_host = main.draws.level("kind") < run.traits.host_share
    x = pick(main.draws, "size", SMALL if is_host else LARGE)
    for place in range(count):
        with main.scope(f"op {place}"):
            if is_host:
                main.work(main.draws.at(PYTHON, "python"))
            kind = pick(main.draws, "operator", ("linear", "gelu", "add", "add", "norm"))
            if kind == "linear":
                linear(c, x, x.shape[-1] * pick(main.draws, "features", (1, 2)), has_bias=False)
            elif kind == "norm":
                layer_norm(c, x, residual=False)
            elif kind == "gelu":
                gelu(c, x)
            else:
                add(c, x, x)


def _queued(b: ThreadBuilder, count: int) -> None:
    """More launches of large kernels in a row than a stream holds."""
    for place in range(count):
        with b.scope(f"queued {place}"):
            emit(b, "aten::mul", kernels.elementwise("mul", HUGE, HUGE, HUGE), HUGE, HUGE)


def _between(run: _Run, c: Context) -> None:
    """What may stand between two stretches."""
    traits, b = run.traits, run.main
    if traits.graph_nodes and b.draws.level("graph") < 0.6:
        _graph(b, traits.graph_nodes)
    if traits.reads != "never" and b.draws.level("read") < traits.read_share:
        _read(run)
    if traits.side_stream and b.draws.level("side") < 0.7:
        _branch(run, c)
    if traits.copy_bytes and b.draws.level("copy") < 0.5:
        _copy_to_host(b, traits.copy_bytes)
    if traits.collective_bytes and not traits.trains and b.draws.level("collective") < 0.8:
        done = _all_reduce(run, b)
        _wait(b, done, b.stream)


def _graph(b: ThreadBuilder, nodes: int) -> None:
    """One launch of a graph of elementwise kernels."""
    x = pick(b.draws, "graph size", (*SMALL, *LARGE[:1]))
    kernel = kernels.elementwise("gelu", x, x)
    gaps = [b.draws.at(b.gpu.queued_gap, "node gap") for _ in range(nodes)]
    rows = (Activity(kind="kernel", name=kernel.name, duration_ns=b.duration_ns(kernel), gap_ns=gap) for gap in gaps)
    b.instructions.append(
        Launch(
            call="graph_launch",
            host_ns=2 * b.draws.at(b.gpu.launch_call, "graph launch"),
            stream=b.stream,
            activities=tuple(rows),
            latency_ns=b.draws.at(b.gpu.launch_latency, "graph latency"),
        )
    )


def _branch(run: _Run, c: Context) -> None:
    """Work on a side stream beside work on the default one, which then waits for it."""
    b, default = run.main, run.main.stream
    x = pick(b.draws, "branch size", (*SMALL, *LARGE))
    fork, join = run.event("fork"), run.event("join")
    _record(b, fork, default)
    _wait(b, fork, SIDE)
    b.stream = SIDE
    for _ in range(2 + int(b.draws.level("branch") * 6)):
        emit(b, "aten::mul", kernels.elementwise("mul", x, x, x), x, x)
    _record(b, join, SIDE)
    b.stream = default
    with b.scope("beside"):
        gelu(c, x)
    _wait(b, join, default)


def _copy_to_host(b: ThreadBuilder, size: int) -> None:
    """``tensor.cpu()``: a pageable copy that blocks, then a synchronisation that finds nothing to wait for."""
    x = Tensor((size // 2,))
    with b.op("aten::to", x, 5), b.op("aten::_to_copy", x, 5), b.op("aten::copy_", x, x, 0):
        b.copy("DtoH (Device -> Pageable)", x.bytes, is_blocking=True)
        b.synchronize()


def _read(run: _Run) -> None:
    """``loss.item()`` at the end of a step."""
    b, loss = run.main, Tensor((), "float")
    with b.scope("item"), run.frame("train.py(58): log_loss"):
        if run.traits.reads == "pinned":
            read_scalar(b, loss)
            return
        with b.op("aten::item", loss), b.op("aten::_local_scalar_dense", loss):
            b.copy("DtoH (Device -> Pageable)", loss.bytes, is_blocking=True)
            b.synchronize()


def _free(b: ThreadBuilder) -> None:
    """The allocator gives memory back and takes new: the first drains the device, the second only takes time."""
    with b.scope("memory"), b.op("aten::empty", [1 << 28]):
        tail = b.draws.at(b.gpu.sync_tail, "free")
        b.instructions.append(Synchronize(call="free", host_ns=b.draws.at(ALLOCATE, "free") // 2, tail_ns=tail))
        host = b.draws.at(ALLOCATE, "malloc")
        b.instructions.append(Synchronize(call="malloc", host_ns=host, tail_ns=0, event=NEVER))


def _backward(run: _Run, step: int) -> None:
    """Hands over to the autograd thread and waits for it; gradients are reduced bucket by bucket."""
    main, tape = run.main, run.tape
    if run.traits.collective_bytes:
        tape.nodes[:] = [
            replace(node, after=_then(node.after, run, is_last=place == 0)) if place % BUCKET_NODES == 0 else node
            for place, node in enumerate(tape.nodes)
        ]
    with (
        main.scope("backward"),
        run.frame("torch/autograd/graph.py(816): _engine_run_backward"),
        run.frame("<built-in method run_backward of torch._C._EngineBase object>"),
    ):
        main.signal(f"backward {step}/start")
        run_backward(run.engine, tape, f"backward {step}", main.draws.at(WAKE, "to autograd"))
        main.instructions.append(Await(baton=f"backward {step}/done", wake_ns=main.draws.at(WAKE, "back")))


def _then(after: Emit | None, run: _Run, *, is_last: bool) -> Emit:
    """What the engine does after a node, then an all-reduce; after the last one the default stream waits."""

    def emitted(b: ThreadBuilder) -> None:
        if after is not None:
            after(b)
        run.pending.append(_all_reduce(run, b))
        if run.traits.exposed or is_last:
            for event in run.pending:
                _wait(b, event, b.stream)
            run.pending.clear()

    return emitted


def _all_reduce(run: _Run, b: ThreadBuilder) -> str:
    """An all-reduce on the communication stream behind the work so far; the event that marks its end."""
    size, default = run.traits.collective_bytes, b.stream
    x = Tensor((size // 2,))
    ready, done = run.event("ready"), run.event("reduced")
    best = size / run.traits.gpu.dram_bytes_per_s
    kernel = Kernel(
        name=ALL_REDUCE,
        flops=0.0,
        bytes_moved=float(size),
        grid=(16, 1, 1),
        block=(512, 1, 1),
        registers=96,
        efficiency=best / (2 * size / LINK_BYTES_PER_S + 15e-6),  # a ring moves twice the size; 15 us to set off
    )
    with b.scope(ready), b.op("c10d::allreduce_", [x]), b.op("record_param_comms", x):
        _record(b, ready, default)
        _wait(b, ready, COMMUNICATION)
        with b.annotation("nccl:all_reduce"):
            b.stream = COMMUNICATION
            b.launch(kernel)
            b.stream = default
        _record(b, done, COMMUNICATION)
    return done


def _record(b: ThreadBuilder, event: str, stream: int) -> None:
    b.instructions.append(RecordEvent(event=event, stream=stream, host_ns=b.draws.at(EVENT_CALL, "record")))


def _wait(b: ThreadBuilder, event: str, stream: int) -> None:
    b.instructions.append(WaitEvent(event=event, stream=stream, host_ns=b.draws.at(EVENT_CALL, "wait")))
