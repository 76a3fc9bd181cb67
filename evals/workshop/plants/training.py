"""A decoder that trains, alone or on eight GPUs: autograd thread, fused AdamW, gradients reduced under the backward."""

# ruff: noqa: FBT003, SIM117 - operator inputs are positional, as PyTorch records them
from __future__ import annotations

from dataclasses import replace

from evals.workshop import kernels
from evals.workshop.aten import add, emit, gelu, swap, view
from evals.workshop.aten import linear as biased_linear
from evals.workshop.autograd import Emit, Tape, run_backward
from evals.workshop.blocks import attention, cross_entropy, decomposed_rms_norm, flat_rows, rms_norm
from evals.workshop.instructions import Await, Launch, Thread
from evals.workshop.optimizer import zero_grad
from evals.workshop.plants import kernels as more
from evals.workshop.plants.host import after_step, before_step, inside_layer
from evals.workshop.plants.scene import NATURAL, Scene, Setting, collective, one, opened, wait
from evals.workshop.program import Input, Tensor, ThreadBuilder
from evals.workshop.transformer import CALL_IMPL

HEAD_WIDTH, VOCABULARY = 64, 8000
WAKE_NS = 25_000
"""From a hand-over to the first work of the other thread (assumption: a condition variable)."""
BUCKETS, BUCKET_BYTES = 4, 24 << 20
SMALL_BUCKETS, SMALL_BYTES = 60, 96 << 10
STRAGGLER = 20.0
"""How much longer one all-reduce takes where a peer is late."""


def training(setting: Setting) -> tuple[Thread, ...]:
    """Training on one GPU."""
    return _run(setting, distributed=False)


def distributed(setting: Setting) -> tuple[Thread, ...]:
    """The same with its gradients reduced among eight."""
    return _run(setting, distributed=True)


def _run(setting: Setting, *, distributed: bool) -> tuple[Thread, ...]:
    scene = opened(setting, trains=True)
    b = scene.main
    with b.frame("train.py(96): <module>"), b.frame("train.py(71): main"):
        for step in range(setting.steps):
            scene.step = b.step = scene.engine.step = step
            with b.scope(f"step {step}"), b.annotation(f"ProfilerStep#{3 + step}"):
                _step(scene, distributed=distributed)
        b.synchronize("device_sync")
    return scene.threads()


def _step(scene: Scene, *, distributed: bool) -> None:
    b = scene.main
    with scene.without_tape():
        before_step(scene)
    with b.frame("train.py(43): train_step"):
        zero_grad(b)
        loss = _forward(scene)
        _backward(scene, loss, distributed=distributed)
        with b.scope("optimizer"):
            _optimizer(scene)
        with scene.without_tape():
            after_step(scene)


def _forward(scene: Scene) -> Tensor:
    setting, b, c = scene.setting, scene.main, scene.context
    x = Tensor((setting.batch, setting.length, setting.width))
    with b.module("GPT_0"), b.frame(CALL_IMPL), b.frame("model.py(88): forward"):
        for layer in range(setting.layers):
            with b.scope(f"layer {layer}"), b.module(f"Block_{layer}"), b.frame("model.py(69): forward"):
                _block(scene, x, layer)
                with scene.without_tape():
                    inside_layer(scene, layer)
        with b.scope("head"):
            logits = linear(scene, x, VOCABULARY, 900, has_bias=False)
    with b.scope("loss"), b.tagged(f"{NATURAL}loss"), b.frame("torch/nn/functional.py(3452): cross_entropy"):
        targets = Tensor((x.count // setting.width,), "long int")
        return cross_entropy(c, flat_rows(c, logits), targets)


def _block(scene: Scene, x: Tensor, layer: int) -> None:
    b, c, width = scene.main, scene.context, scene.setting.width
    with b.scope("norm 1"), b.module(f"RMSNorm_{2 * layer}"), b.frame("norm.py(30): forward"):
        with b.tagged(f"{NATURAL}norm"):
            rms_norm(c, x, residual=True)
    with b.scope("attention"), b.module(f"SelfAttention_{layer}"), b.frame("model.py(31): forward"):
        _attention(scene, x, layer)
    with b.scope("residual 1"), b.tagged(f"{NATURAL}residual"):
        add(c, x, x)
    with b.scope("norm 2"), b.module(f"RMSNorm_{2 * layer + 1}"), b.frame("norm.py(17): forward"):
        with scene.place("unfused_norm") as planted:
            if planted:
                decomposed_rms_norm(c, x)
            else:
                with b.tagged(f"{NATURAL}norm"):
                    rms_norm(c, x, residual=True)
    with b.scope("mlp"), b.module(f"MLP_{layer}"), b.frame("model.py(53): forward"):
        hidden = linear(scene, x, 4 * width, 4 * layer + 2)
        with b.module(f"GELU_{layer}"), b.tagged(f"{NATURAL}activation"):
            gelu(c, hidden)
        linear(scene, hidden, width, 4 * layer + 3, kind="slow_gemm")
    with b.scope("residual 2"), b.tagged(f"{NATURAL}residual"):
        add(c, x, x)


def linear(scene: Scene, x: Tensor, features: int, place: int, *, has_bias: bool = True, kind: str = "") -> Tensor:
    """A projection; the slow one is so in its forward pass."""
    b = scene.main
    with b.scope(f"linear {place}"), b.module(f"Linear_{place}"), b.frame("torch/nn/modules/linear.py(124): forward"):
        if not kind:
            return biased_linear(scene.context, x, features, has_bias=has_bias)
        with b.scope(f"plant {kind}"):
            before = len(b.instructions)
            out = biased_linear(scene.context, x, features, has_bias=has_bias, is_slow=scene.has(kind))
            _tag_launches(b, before, kind)
            return out


def _tag_launches(b: ThreadBuilder, since: int, kind: str) -> None:
    """Tags what the forward pass launched, but not the nodes that it recorded."""
    for at in range(since, len(b.instructions)):
        row = b.instructions[at]
        if isinstance(row, Launch):
            rows = tuple(replace(activity, tag=kind) for activity in row.activities)
            b.instructions[at] = replace(row, activities=rows)


def _attention(scene: Scene, x: Tensor, layer: int) -> None:
    setting, c = scene.setting, scene.context
    heads = setting.width // HEAD_WIDTH
    shape = (setting.batch, setting.length, heads, HEAD_WIDTH)
    parts = []
    for place in range(3):
        with scene.main.scope(f"part {place}"):
            parts.append(swap(c, view(c, linear(scene, x, setting.width, 40 * layer + place), shape)))
    back = swap(c, attention(c, *parts))
    linear(scene, view(c, Tensor(back.shape), x.shape), setting.width, 4 * layer + 1)


def _backward(scene: Scene, loss: Tensor, *, distributed: bool) -> None:
    """Hands over to the engine's thread, which reduces gradients bucket by bucket, and waits for it."""
    main, tape, baton = scene.main, scene.tape or Tape(), f"backward {scene.step}"
    late = scene.has("exposed_all_reduce")
    if distributed:
        _hook(scene, tape, late=late)
    with (
        main.scope("backward"),
        main.frame("torch/_tensor.py(614): backward"),
        main.frame("<built-in method run_backward of torch._C._EngineBase object>"),
    ):
        emit(main, "aten::fill_", kernels.elementwise("fill", loss), loss, 1.0)
        main.signal(f"{baton}/start")
        run_backward(scene.engine, tape, baton, WAKE_NS)
        main.instructions.append(Await(baton=f"{baton}/done", wake_ns=WAKE_NS))
    if distributed:
        with main.scope("reduce"), main.frame("train.py(55): finish_gradients"):
            _reduce_rest(scene, late=late)


def _hook(scene: Scene, tape: Tape, *, late: bool) -> None:
    """All-reduces behind some nodes; none where they are all left for the end."""
    nodes = len(tape.nodes)
    places = {round(nodes * (number + 1) / (BUCKETS + 1)) for number in range(BUCKETS)}
    if late:
        return
    tape.nodes[:] = [
        replace(node, after=_then(node.after, scene)) if place in places else node
        for place, node in enumerate(tape.nodes)
    ]


def _then(after: Emit | None, scene: Scene) -> Emit:
    def emitted(b: ThreadBuilder) -> None:
        if after is not None:
            after(b)
        _bucket(scene, b)

    return emitted


def _bucket(scene: Scene, b: ThreadBuilder) -> None:
    """One bucket; the straggler's is late in the middle step."""
    number = len(scene.pending)
    last = number == BUCKETS - 1
    kind = "exposed_all_reduce" if scene.has("exposed_all_reduce") else "straggler" if last else ""
    slow = last and scene.has("straggler") and scene.step == 1
    outer, b.draws.scope = b.draws.scope, f"bucket {scene.step}.{number}"
    scene.events = 1000 * (scene.step + 1) + 10 * number
    with b.tagged(kind):
        scene.pending.append(collective(scene, b, "AllReduce", BUCKET_BYTES, waits=STRAGGLER if slow else 1.0))
    b.draws.scope = outer


def _reduce_rest(scene: Scene, *, late: bool) -> None:
    b = scene.main
    if late:
        for _ in range(BUCKETS):
            _bucket(scene, b)
    for event in scene.pending:
        wait(b, event, b.stream)
    scene.pending.clear()
    scene.events = 1000 * (scene.step + 1) + 100
    with scene.place("small_buckets") as planted:
        count = SMALL_BUCKETS if planted else 1
        for number in range(count):
            with b.scope(f"small {number}"):
                done = collective(scene, b, "AllReduce", SMALL_BYTES * SMALL_BUCKETS // count)
        wait(b, done, b.stream)


def _optimizer(scene: Scene) -> None:
    b, width = scene.main, scene.setting.width
    shapes: list[tuple[int, ...]] = [(VOCABULARY, width)]
    for _ in range(scene.setting.layers):
        shapes += [(width,)] * 4 + [(width, width)] * 4 + [(4 * width, width), (width, 4 * width)]
    weights = [Tensor(shape) for shape in shapes]
    with scene.place("unfused_optimizer") as planted, b.annotation("Optimizer.step#AdamW.step"):
        if not planted:
            steps: list[Tensor] = [Tensor((), "float") for _ in weights]
            inputs: tuple[Input, ...] = (weights, weights, weights, weights, [], steps, 0.001, 0.9, 0.999, 0.01, 1e-8)
            kernel = more.fused_adam(sum(weight.count for weight in weights))
            emit(b, "aten::_fused_adamw_", kernel, *inputs, False, False, None, None)
            return
        with b.frame("torch/optim/adam.py(346): _single_tensor_adam"):
            for number, weight in enumerate(weights):
                with b.scope(f"weight {number}"):
                    _adam(b, weight)


def _adam(b: ThreadBuilder, weight: Tensor) -> None:
    """One weight's update, operator by operator."""
    one(b, "mul_", "mul number", (weight,), 0.999, out=weight)
    one(b, "lerp_", "lerp", (weight, weight), 0.1, out=weight)
    one(b, "mul_", "mul number", (weight,), 0.999, out=weight)
    one(b, "addcmul_", "addcmul", (weight, weight, weight), 0.001, out=weight)
    one(b, "sqrt", "sqrt", (weight,), out=weight)
    one(b, "div_", "mul number", (weight,), 0.9, out=weight)
    one(b, "add_", "add number", (weight,), 1e-8, 1, out=weight)
    one(b, "addcdiv_", "addcdiv", (weight, weight, weight), -0.001, out=weight)
