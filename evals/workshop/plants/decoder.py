"""A decoder that serves: fused norms, rotary embedding and gate, flash attention, no bias; or what is planted."""

# ruff: noqa: FBT003, SIM117 - operator inputs are positional, as PyTorch records them
from __future__ import annotations

from evals.workshop import kernels
from evals.workshop.aten import Context, emit, reshape, swap, view
from evals.workshop.blocks import attention, cast_leaf, decomposed_rms_norm, swapped
from evals.workshop.instructions import Thread
from evals.workshop.plants import kernels as more
from evals.workshop.plants.host import after_step, before_step, inside_layer
from evals.workshop.plants.scene import Scene, Setting, matmul, one, opened
from evals.workshop.program import Input, Tensor
from evals.workshop.transformer import CALL_IMPL

HEAD_WIDTH = 64
VOCABULARY = 16000
EXPERTS, EXPERT_ROWS = 24, 128


def decoder(setting: Setting) -> tuple[Thread, ...]:
    """``steps`` forward passes over a batch."""
    scene = opened(setting)
    b = scene.main
    with b.frame("serve.py(58): <module>"):
        for step in range(setting.steps):
            scene.step = b.step = step
            with b.scope(f"step {step}"), b.annotation(f"ProfilerStep#{3 + step}"):
                before_step(scene)
                with b.module("Decoder_0"), b.frame(CALL_IMPL), b.frame("model.py(88): forward"):
                    _forward(scene)
                after_step(scene)
        b.synchronize("device_sync")
    return scene.threads()


def _forward(scene: Scene) -> None:
    setting, b = scene.setting, scene.main
    x = Tensor((setting.batch * setting.length, setting.width))
    for layer in range(setting.layers):
        with b.scope(f"layer {layer}"), b.module(f"Block_{layer}"), b.frame("model.py(69): forward"):
            block(scene, x, layer)
            inside_layer(scene, layer)
    with b.scope("head"), b.module("Linear_900"), b.frame("torch/nn/modules/linear.py(124): forward"):
        with scene.place("misaligned") as planted:
            words = VOCABULARY + 1 if planted else VOCABULARY
            kernel = more.product(b.gpu, (x.shape[0], words, x.shape[1]), how="misaligned" if planted else "sound")
            matmul(b, "aten::mm", x, Tensor((words, x.shape[1])).t(), kernel)


def block(scene: Scene, x: Tensor, layer: int) -> None:
    """One layer over flat rows."""
    b, width = scene.main, scene.setting.width
    with b.scope("norm 1"), b.module(f"RMSNorm_{2 * layer}"), b.frame("norm.py(30): forward"):
        _fused_norm(scene, x)
    with b.scope("attention"), b.module(f"SelfAttention_{layer}"), b.frame("model.py(31): forward"):
        _attention(scene, x, layer)
    with b.scope("norm 2"), b.module(f"RMSNorm_{2 * layer + 1}"), b.frame("norm.py(17): forward"):
        with scene.place("unfused_norm") as planted:
            _norm(scene, x, planted=planted)
    with b.scope("mlp"), b.module(f"MLP_{layer}"), b.frame("model.py(53): forward"):
        gate = linear(scene, x, 8 * width, 4 * layer + 2, "fp32_gemm")
        with scene.place("unfused_activation") as planted, b.module(f"SwiGLU_{layer}"):
            hidden = _gate(scene, gate, planted=planted)
        with scene.place("redundant_casts") as planted:
            if planted:
                cast_there_and_back(scene, hidden)
        linear(scene, hidden, width, 4 * layer + 3, "slow_gemm")
    with scene.place("tiny_gemms") as planted, b.module(f"Adapters_{layer}"), b.frame("adapters.py(40): forward"):
        _adapters(scene, planted=planted)


def _fused_norm(scene: Scene, x: Tensor) -> None:
    emit(scene.main, "_C::fused_add_rms_norm", more.added_norm(x), x, x, Tensor(x.shape[-1:]), 1e-5)


def _norm(scene: Scene, x: Tensor, *, planted: bool) -> None:
    if not planted:
        _fused_norm(scene, x)
        return
    one(scene.main, "add", "add", (x, x), 1, out=x)
    decomposed_rms_norm(Context(b=scene.main, tape=None), x)


def linear(scene: Scene, x: Tensor, features: int, place: int, kind: str = "") -> Tensor:
    """A projection without bias, which may be planted as slow or as one of floats."""
    b = scene.main
    sizes = (x.shape[0], features, x.shape[1])
    with b.scope(f"linear {place}"), b.module(f"Linear_{place}"), b.frame("torch/nn/modules/linear.py(124): forward"):
        with scene.place(kind) as planted:
            if kind == "fp32_gemm" and planted:
                wide = Tensor(x.shape, "float")
                matmul(
                    b,
                    "aten::mm",
                    wide,
                    Tensor((features, x.shape[1]), "float").t(),
                    more.product(b.gpu, sizes, dtype="float"),
                )
            else:
                how = "slow" if planted and kind == "slow_gemm" else "sound"
                matmul(b, "aten::mm", x, Tensor((features, x.shape[1])).t(), more.product(b.gpu, sizes, how=how))
    return Tensor((x.shape[0], features))


def _attention(scene: Scene, x: Tensor, layer: int) -> None:
    setting, b = scene.setting, scene.main
    c = Context(b=b, tape=None)
    linear(scene, x, 3 * setting.width, 4 * layer)
    heads = setting.width // HEAD_WIDTH
    shape = (setting.batch, setting.length, heads, HEAD_WIDTH)
    with scene.place("unfused_rotary") as planted, b.frame("rotary.py(151): apply_rotary_pos_emb"):
        _rotary(scene, x, shape, planted=planted)
    part = view(c, x, shape)
    query = swap(c, part)
    with scene.place("unfused_attention") as planted:
        _core(scene, query, planted=planted)
    reshape(b, part, x.shape)
    linear(scene, x, setting.width, 4 * layer + 1)


def _rotary(scene: Scene, x: Tensor, shape: tuple[int, ...], *, planted: bool) -> None:
    b = scene.main
    if not planted:
        table = Tensor((shape[1], HEAD_WIDTH))
        positions = Tensor((x.shape[0],), "long int")
        inputs: tuple[Input, ...] = (positions, x, x, HEAD_WIDTH, table, True)
        emit(b, "_C::rotary_embedding", more.rotary(x, x, table), *inputs)
        return
    heads = Tensor((shape[0], shape[2], shape[1], shape[3]))
    for part in ("query", "key"):
        with b.scope(part):
            _rotate(scene, heads)


def _rotate(scene: Scene, x: Tensor) -> None:
    """``x * cos + cat((-x2, x1)) * sin``."""
    b = scene.main
    table = Tensor((1, 1, x.shape[2], x.shape[3]))
    half = Tensor((*x.shape[:3], x.shape[3] // 2), x.dtype, tuple(x.recorded_strides()))
    out = Tensor(half.shape)
    one(b, "mul", "mul", (x, table), out=x)
    for place in range(2):
        b.leaf("aten::slice", x, 3, place * half.shape[3], (place + 1) * half.shape[3], 1)
    emit(b, "aten::neg", kernels.elementwise("neg", out, half), half)
    emit(b, "aten::cat", kernels.concatenation(x), [out, half], -1)
    one(b, "mul", "mul", (x, table), out=x)
    one(b, "add", "add", (x, x), 1, out=x)


def _core(scene: Scene, query: Tensor, *, planted: bool) -> None:
    b = scene.main
    if not planted:
        attention(Context(b=b, tape=None), query, query, query)
        return
    batch, heads, length, width = query.shape
    flat, turned = Tensor((batch * heads, length, width)), Tensor((batch * heads, width, length))
    scores = Tensor((batch * heads, length, length))
    shaped = scores.view(batch, heads, length, length)
    kernel = more.product(b.gpu, (length, length, width), batch=batch * heads)
    matmul(b, "aten::bmm", flat, turned, kernel)
    b.leaf("aten::view", scores, list(shaped.shape))
    one(b, "mul", "mul number", (shaped,), 0.125, out=shaped)
    mask = Tensor((1, 1, length, length))
    one(b, "add", "add", (shaped, mask), 1, out=shaped)
    with b.op("aten::softmax", shaped, -1, None):
        emit(b, "aten::_softmax", more.softmax(shaped), shaped, -1, False)
    b.leaf("aten::view", shaped, list(scores.shape))
    kernel = more.product(b.gpu, (length, width, length), batch=batch * heads)
    matmul(b, "aten::bmm", scores, flat, kernel)
    b.leaf("aten::view", flat, list(swapped(query).shape))


def _gate(scene: Scene, gate: Tensor, *, planted: bool) -> Tensor:
    b = scene.main
    out = Tensor((gate.shape[0], gate.shape[1] // 2))
    if not planted:
        emit(b, "_C::silu_and_mul", more.gated(out), out, gate)
        return out
    half = Tensor(out.shape, out.dtype, tuple(gate.recorded_strides()))
    with b.op("aten::chunk", gate, 2, -1), b.op("aten::split", gate, out.shape[1], -1):
        for _ in range(2):
            b.leaf("aten::narrow", gate, -1, 0, out.shape[1])
    one(b, "silu", "silu", (half,), out=out)
    one(b, "mul", "mul", (out, half), out=out)
    return out


def cast_there_and_back(scene: Scene, x: Tensor) -> None:
    """To float and back for nothing."""
    wide = Tensor(x.shape, "float")
    cast_leaf(scene.main, x, wide)
    cast_leaf(scene.main, wide, x)


def _adapters(scene: Scene, *, planted: bool) -> None:
    """Small products, one a group of rows, or all of them in one batched product."""
    b, width = scene.main, scene.setting.width
    sizes = (EXPERT_ROWS, 128, width)
    if not planted:
        x, weight = Tensor((EXPERTS, EXPERT_ROWS, width)), Tensor((EXPERTS, width, 128))
        matmul(b, "aten::bmm", x, weight, more.product(b.gpu, sizes, batch=EXPERTS))
        return
    for number in range(EXPERTS):
        with b.scope(f"group {number}"):
            matmul(b, "aten::mm", Tensor((EXPERT_ROWS, width)), Tensor((width, 128)), more.product(b.gpu, sizes))
