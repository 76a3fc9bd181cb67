"""What a host may do between launches: planted kinds that any base can have. All times are nanoseconds."""

# ruff: noqa: SIM117 - a place is a statement of its own
from __future__ import annotations

from evals.workshop import kernels
from evals.workshop.aten import emit
from evals.workshop.blocks import read_scalar
from evals.workshop.instructions import Activity, Launch, Synchronize
from evals.workshop.plants.scene import Scene, host_copy
from evals.workshop.program import Kernel, Tensor, ThreadBuilder
from evals.workshop.transformer import LOADER, READY_BATCH_NS
from evals.workshop.whatif.changes import NEVER

LOADER_STALL_NS = 6_000_000
TOKENISE_NS = 3_200_000
GC_NS = 3_600_000
COMPILE_NS = 9_000_000
ALLOCATE_NS, FREE_NS = 420_000, 300_000
"""A `cudaMalloc` and a `cudaFree` of a large block (assumption: they map and unmap memory)."""
BATCH_BYTES = 1 << 20
SMALL = Tensor((8, 64))
SMALL_OPS = 110


def before_step(scene: Scene) -> None:
    """Everything that stands before the forward pass: batch, its copy, tokens, collection, compilation."""
    b = scene.main
    with b.scope("before"):
        _load(scene)
        with scene.place("tokenisation") as planted, b.frame("serve.py(41): next_batch"):
            with b.frame("tokenizer.py(88): encode"):
                b.work(TOKENISE_NS if planted else 30_000)
        _copy_batch(scene)
        with scene.place("gc_pause") as planted:
            if planted:
                with b.frame("train.py(52): housekeeping"), b.frame("<built-in function collect>"):
                    b.work(GC_NS)
        with scene.place("recompilation") as planted:
            if planted and scene.step == scene.setting.steps - 1:
                _compile(scene)


def _load(scene: Scene) -> None:
    b = scene.main
    with scene.place("loader_stall") as planted:
        with (
            b.frame("torch/utils/data/dataloader.py(733): __next__"),
            b.annotation(LOADER),
            b.frame("torch/utils/data/dataloader.py(1331): _get_data"),
        ):
            late = planted and scene.step == 1
            b.work(READY_BATCH_NS + (LOADER_STALL_NS if late else 0))


def _copy_batch(scene: Scene) -> None:
    with scene.place("pageable_copies") as planted, scene.main.frame("data.py(27): to_device"):
        for part in range(2):
            with scene.main.scope(f"part {part}"):
                host_copy(scene, BATCH_BYTES // 2, pinned=not planted)


def _compile(scene: Scene) -> None:
    b = scene.main
    with (
        b.frame("torch/_dynamo/eval_frame.py(655): _fn"),
        b.frame("torch/_dynamo/convert_frame.py(1392): __call__"),
        b.frame("torch/_dynamo/convert_frame.py(735): _compile"),
        b.frame("torch/_inductor/compile_fx.py(661): compile_fx_inner"),
    ):
        b.work(COMPILE_NS)


def inside_layer(scene: Scene, layer: int) -> None:
    """What may stand at the end of a layer: a read of a value, a string of small ops, the allocator."""
    b = scene.main
    with scene.place("item_in_loop") as planted:
        if planted:
            with b.frame("model.py(61): update_scale"):
                read_scalar(b, Tensor((), "float"))
    with scene.place("launch_bound") as planted:
        _small_ops(scene, layer, planted=planted)
    with scene.place("allocator_churn") as planted:
        if planted:
            with b.op("aten::empty", [1 << 28], 15, 0, None, None, None):
                _allocator_call(scene, "free")
                _allocator_call(scene, "malloc")


def _small_ops(scene: Scene, layer: int, *, planted: bool) -> None:
    """A bias worked out op by op on a tensor of a few hundred values; or the same kernels in one graph, where asked."""
    b = scene.main
    words = ("neg", "tanh", "mul number", "sqrt")
    if not planted:
        if "launch_bound" in scene.setting.mended:
            _graph(b, [kernels.elementwise(words[number % len(words)], SMALL, SMALL) for number in range(SMALL_OPS)])
        return
    with b.module(f"PositionBias_{layer}"), b.frame("model.py(120): forward"):
        for number in range(SMALL_OPS):
            word = words[number % len(words)]
            with b.scope(f"op {number}"), b.frame(f"model.py({121 + number}): step"):
                b.work(9_000)
                inputs = (SMALL, 0.5) if word == "mul number" else (SMALL,)
                emit(b, f"aten::{word.split()[0]}", kernels.elementwise(word, SMALL, SMALL), *inputs)


def _graph(b: ThreadBuilder, nodes: list[Kernel]) -> None:
    """One launch of a graph of kernels."""
    rows = tuple(
        Activity(
            kind="kernel",
            name=kernel.name,
            duration_ns=b.duration_ns(kernel),
            gap_ns=b.draws.at(b.gpu.queued_gap, "node gap"),
            tag=b.tag,
        )
        for kernel in nodes
    )
    b.instructions.append(
        Launch(
            call="graph_launch",
            host_ns=2 * b.draws.at(b.gpu.launch_call, "graph launch"),
            stream=b.stream,
            activities=rows,
            latency_ns=b.draws.at(b.gpu.launch_latency, "graph latency"),
        )
    )


def _allocator_call(scene: Scene, call: str) -> None:
    b = scene.main
    host = ALLOCATE_NS if call == "malloc" else FREE_NS
    tail = b.draws.at(b.gpu.sync_tail, call) if call == "free" else 0
    event = None if call == "free" else NEVER
    b.instructions.append(Synchronize(call=call, host_ns=host, tail_ns=tail, event=event))


def after_step(scene: Scene) -> None:
    """What may stand at the end of a step: the loss is read."""
    b = scene.main
    with scene.place("item_per_step") as planted:
        if planted:
            with b.frame("train.py(58): log_loss"):
                read_scalar(b, Tensor((), "float"))
