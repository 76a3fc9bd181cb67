"""A GPT-like decoder: training steps with an autograd thread and AdamW, or inference; with planted problems.

A problem is a name in ``Workload.problems``. Taking the name out gives the program without it, and nothing
else changes (see ``program``), so the cost of a problem is the difference of two runs.
"""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them
from __future__ import annotations

from dataclasses import dataclass

from evals.workshop import kernels
from evals.workshop.aten import Context, add, embedding, emit, gelu, linear, swap, view
from evals.workshop.autograd import Tape, run_backward
from evals.workshop.blocks import (
    attention,
    cross_entropy,
    decomposed_rms_norm,
    flat_rows,
    layer_norm,
    read_scalar,
    rms_norm,
)
from evals.workshop.hardware import Gpu
from evals.workshop.instructions import Await, Thread
from evals.workshop.optimizer import adamw_step, zero_grad
from evals.workshop.program import Draws, Gemm, Tensor, ThreadBuilder

MAIN_TID, AUTOGRAD_TID = 4242, 4311
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
CALL_IMPL = "torch/nn/modules/module.py(1762): _call_impl"
PROBLEMS = ("slow_gemm", "unfused_rms_norm", "loss_item_each_step", "data_loader_stall")
READY_BATCH_NS = 55_000
"""What the loader's ``__next__`` takes when a batch is waiting (assumption: a queue read and an unpickle)."""
WAKE_NS = 45_000
"""From ``backward()`` to the first node on its thread, and back (assumption: a condition variable)."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Model, run and problems. Sizes are tokens, channels and layers; ``stall_ns`` is the late batch."""

    gpu: Gpu
    seed: str = "rooftrace"
    layers: int = 4
    width: int = 1024
    heads: int = 16
    vocabulary: int = 32000
    batch: int = 8
    length: int = 1024
    steps: int = 3
    first_step: int = 3
    stall_step: int = 1
    stall_ns: int = 3_500_000
    problems: frozenset[str] = frozenset(PROBLEMS)

    @property
    def stream(self) -> int:
        """The default stream as each vendor's profiler numbers it."""
        return 7 if self.gpu.vendor == "nvidia" else 0


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The threads of a run, and the products that it asks for."""

    threads: tuple[Thread, ...]
    gemms: tuple[Gemm, ...]


def training(workload: Workload) -> Programs:
    """``steps`` training steps of a main thread and an autograd thread."""
    draws = Draws(workload.seed)
    main = ThreadBuilder(workload.gpu, draws, tid=MAIN_TID, name="python3", stream=workload.stream)
    engine = ThreadBuilder(workload.gpu, draws, tid=AUTOGRAD_TID, name="pt_autograd_0", stream=workload.stream)
    tape = Tape(next_number=1000)
    with main.frame("train.py(96): <module>"), main.frame("train.py(71): main"):
        for step in range(workload.steps):
            main.step = engine.step = step
            number = workload.first_step + step
            with main.scope(f"step {step}"), main.annotation(f"ProfilerStep#{number}"):
                _train_step(workload, (main, engine), tape)
        main.synchronize("device_sync")
    return Programs(threads=(main.thread(), engine.thread()), gemms=(*main.gemms, *engine.gemms))


def inference(workload: Workload) -> Programs:
    """``steps`` forward passes without a tape."""
    b = ThreadBuilder(workload.gpu, Draws(workload.seed), tid=MAIN_TID, name="python3", stream=workload.stream)
    with b.frame("generate.py(58): <module>"):
        for step in range(workload.steps):
            b.step = step
            name = f"ProfilerStep#{workload.first_step + step}"
            with b.scope(f"step {step}"), b.annotation(name):
                forward(workload, Context(b=b, tape=None), _batch(workload, b))
        b.synchronize("device_sync")
    return Programs(threads=(b.thread(),), gemms=tuple(b.gemms))


def parameters(workload: Workload) -> list[Tensor]:
    """Every parameter, in registration order."""
    width = workload.width
    shapes: list[tuple[int, ...]] = [(workload.vocabulary, width)]
    for _ in range(workload.layers):
        shapes += [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,), (width,)]
        shapes += [(4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    shapes += [(width,), (width,), (workload.vocabulary, width)]
    return [Tensor(shape) for shape in shapes]


def _train_step(workload: Workload, builders: tuple[ThreadBuilder, ThreadBuilder], tape: Tape) -> None:
    main, engine = builders
    c = Context(b=main, tape=tape)
    tokens = _batch(workload, main)
    with main.frame("train.py(43): train_step"):
        zero_grad(main)
        logits = forward(workload, c, tokens)
        with main.scope("loss"), main.frame("torch/nn/functional.py(3452): cross_entropy"):
            rows = flat_rows(c, logits)
            targets = view(Context(b=main, tape=None), tokens, (tokens.count,))
            loss = cross_entropy(c, rows, targets)
        _backward(main, engine, tape, loss)
        with main.scope("optimizer"):
            adamw_step(main, parameters(workload))
        if "loss_item_each_step" in workload.problems:
            with main.scope("item"), main.frame("train.py(58): log_loss"):
                read_scalar(main, loss)


def _batch(workload: Workload, b: ThreadBuilder) -> Tensor:
    """Takes a batch from the loader and copies it to the device from pinned memory."""
    host = Tensor((workload.batch, workload.length), "long int")
    with b.scope("data"):
        with (
            b.frame("torch/utils/data/dataloader.py(733): __next__"),
            b.annotation(LOADER),
            b.frame("torch/utils/data/dataloader.py(1331): _get_data"),
        ):
            late = "data_loader_stall" in workload.problems and b.step == workload.stall_step
            b.work(READY_BATCH_NS + (workload.stall_ns if late else 0))
        with (
            b.op("aten::to", host, 4, 0, None, None, True, False, None),
            b.op("aten::_to_copy", host, 4, 0, None, None, True, None),
        ):
            b.leaf("aten::empty_strided", list(host.shape), host.recorded_strides(), 4, 0, None, None)
            with b.op("aten::copy_", host, host, True):
                b.copy("HtoD (Pinned -> Device)", host.bytes)
    return host


def forward(workload: Workload, c: Context, tokens: Tensor) -> Tensor:
    """Token ids to logits."""
    b, table = c.b, Tensor((workload.vocabulary, workload.width))
    with b.module("GPT_0"), b.frame(CALL_IMPL), b.frame("model.py(88): forward"):
        with (
            b.scope("embedding"),
            b.module("Embedding_0"),
            b.frame("torch/nn/modules/sparse.py(190): forward"),
        ):
            x = embedding(c, tokens, table)
        for layer in range(workload.layers):
            with b.scope(f"layer {layer}"), b.module(f"Block_{layer}"), b.frame("model.py(69): forward"):
                x = _block(workload, c, x, layer)
        with b.scope("final norm"):
            x = _module_norm(c, x, workload.layers, residual=False)
        with b.scope("head"):
            place = 4 * workload.layers
            return _module_linear(c, x, workload.vocabulary, place, has_bias=False)


def _block(workload: Workload, c: Context, x: Tensor, layer: int) -> Tensor:
    b = c.b
    with b.scope("norm 1"):
        normed = _module_norm(c, x, layer, residual=True)
    with b.scope("attention"), b.module(f"CausalSelfAttention_{layer}"), b.frame("model.py(31): forward"):
        mixed = _self_attention(workload, c, normed, layer)
    with b.scope("residual 1"):
        x = add(c, x, mixed)
    with b.scope("norm 2"), b.module(f"RMSNorm_{layer}"), b.frame("model.py(17): forward"):
        unfused = "unfused_rms_norm" in workload.problems
        normed = decomposed_rms_norm(c, x) if unfused else rms_norm(c, x, residual=True)
    with b.scope("mlp"), b.module(f"MLP_{layer}"), b.frame("model.py(53): forward"):
        hidden = _module_linear(c, normed, 4 * workload.width, 4 * layer + 2)
        with b.module(f"GELU_{layer}"), b.frame("torch/nn/modules/activation.py(735): forward"):
            hidden = gelu(c, hidden)
        slow = "slow_gemm" in workload.problems
        out = _module_linear(c, hidden, workload.width, 4 * layer + 3, is_slow=slow)
    with b.scope("residual 2"):
        return add(c, x, out)


def _self_attention(workload: Workload, c: Context, x: Tensor, layer: int) -> Tensor:
    batch, length, width = x.shape
    heads = workload.heads
    packed = _module_linear(c, x, 3 * width, 4 * layer)
    parts = _split(c, packed, width)
    turned = [swap(c, _heads(c, part, heads)) for part in parts]
    with c.b.frame("<built-in function scaled_dot_product_attention>"):
        mixed = attention(c, *turned)
    back = swap(c, mixed)
    merged = view(c, Tensor(back.shape), (batch, length, width))
    return _module_linear(c, merged, width, 4 * layer + 1)


def _split(c: Context, packed: Tensor, width: int) -> list[Tensor]:
    """``split(width, dim=2)``: three views; the node joins the gradients again."""
    strides = tuple(packed.recorded_strides())
    part = Tensor((*packed.shape[:-1], width), packed.dtype, strides)
    with c.b.op("aten::split", packed, width, 2, sequence=c.sequence):
        for place in range(3):
            with c.b.op("aten::narrow", packed, 2, place * width, width):
                c.b.leaf("aten::slice", packed, 2, place * width, (place + 1) * width, 1)
    if c.tape is not None:
        kernel = kernels.concatenation(packed)
        c.tape.record(c.b, "SplitBackward0", part, lambda b: emit(b, "aten::cat", kernel, [part, part, part], 2))
    return [part, part, part]


def _heads(c: Context, part: Tensor, heads: int) -> Tensor:
    """``view(batch, length, heads, width // heads)`` of a strided part."""
    batch, length, width = part.shape
    inner = width // heads
    strides = part.recorded_strides()
    result = Tensor((batch, length, heads, inner), part.dtype, (strides[0], strides[1], inner, 1))
    c.b.leaf("aten::view", part, list(result.shape), sequence=c.sequence)
    if c.tape is not None:
        contiguous = Tensor(result.shape)
        c.tape.record(c.b, "ViewBackward0", contiguous, lambda b: b.leaf("aten::view", contiguous, list(part.shape)))
    return result


def _module_linear(
    c: Context, x: Tensor, features: int, place: int, *, has_bias: bool = True, is_slow: bool = False
) -> Tensor:
    b = c.b
    with (
        b.scope(f"linear {place}"),
        b.module(f"Linear_{place}"),
        b.frame("torch/nn/modules/linear.py(124): forward"),
        b.frame("<built-in function linear>"),
    ):
        return linear(c, x, features, has_bias=has_bias, is_slow=is_slow)


def _module_norm(c: Context, x: Tensor, place: int, *, residual: bool) -> Tensor:
    b = c.b
    with (
        b.module(f"LayerNorm_{place}"),
        b.frame("torch/nn/modules/normalization.py(217): forward"),
        b.frame("torch/nn/functional.py(2901): layer_norm"),
    ):
        return layer_norm(c, x, residual=residual)


def _backward(main: ThreadBuilder, engine: ThreadBuilder, tape: Tape, loss: Tensor) -> None:
    """``loss.backward()``: seeds the gradient, hands over to the engine's thread and waits for it."""
    baton = f"backward {main.step}"
    with (
        main.scope("backward"),
        main.frame("torch/_tensor.py(614): backward"),
        main.frame("torch/autograd/__init__.py(254): backward"),
    ):
        with main.op("aten::ones_like", loss, None, None, None, None, 1):
            main.leaf("aten::empty_strided", [], [], 15, 0, None, None)
            emit(main, "aten::fill_", kernels.elementwise("fill", loss), loss, 1.0)
        with (
            main.frame("torch/autograd/graph.py(816): _engine_run_backward"),
            main.frame("<built-in method run_backward of torch._C._EngineBase object>"),
        ):
            main.signal(f"{baton}/start")
            run_backward(engine, tape, baton, WAKE_NS)
            main.instructions.append(Await(baton=f"{baton}/done", wake_ns=WAKE_NS))
