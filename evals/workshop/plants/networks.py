"""Other networks: convolutions, experts, diffusion, recommendation; and the bases by name."""

from __future__ import annotations

from collections.abc import Callable

from evals.workshop.aten import emit
from evals.workshop.instructions import Thread
from evals.workshop.plants import kernels as more
from evals.workshop.plants.decoder import block, cast_there_and_back, decoder, linear
from evals.workshop.plants.host import after_step, before_step, inside_layer
from evals.workshop.plants.scene import Scene, Setting, collective, matmul, opened, wait
from evals.workshop.plants.training import distributed, training
from evals.workshop.program import Input, Tensor
from evals.workshop.transformer import CALL_IMPL

Body = Callable[[Scene], None]
EXPERTS = 16
EXCHANGE_BYTES = 32 << 20


def _served(setting: Setting, model: str, body: Body) -> tuple[Thread, ...]:
    scene = opened(setting)
    b = scene.main
    with b.frame("serve.py(58): <module>"):
        for step in range(setting.steps):
            scene.step = b.step = step
            with b.scope(f"step {step}"), b.annotation(f"ProfilerStep#{3 + step}"):
                before_step(scene)
                with b.module(f"{model}_0"), b.frame(CALL_IMPL), b.frame("model.py(88): forward"):
                    body(scene)
                after_step(scene)
        b.synchronize("device_sync")
    return scene.threads()


def convolutional(setting: Setting) -> tuple[Thread, ...]:
    """Convolutions with their ReLU inside, in stages of growing width, and a classifier."""

    def body(scene: Scene) -> None:
        b = scene.main
        for stage in range(setting.layers + 1):
            channels, side = 256 << min(stage, 1), 56 >> min(stage, 1)
            with b.scope(f"stage {stage}"), b.module(f"Stage_{stage}"), b.frame("model.py(69): forward"):
                for number in range(4):
                    _convolution(scene, (channels, side), 4 * stage + number)
                inside_layer(scene, stage)
        with b.scope("head"):
            linear(scene, Tensor((8 * setting.batch * 196, 512)), 1024, 900, "slow_gemm")

    return _served(setting, "ConvNet", body)


def _convolution(scene: Scene, shape: tuple[int, int], number: int) -> None:
    """3 x 3; channels-last as it should be, or between two changes of layout."""
    b, (channels, side) = scene.main, shape
    strides = (channels * side * side, 1, channels * side, channels)
    dense = scene.has("layout_copies")
    x = Tensor((8 * scene.setting.batch, channels, side, side), strides=None if dense else strides)
    weight = Tensor((channels, channels, 3, 3))
    op = "aten::cudnn_convolution_relu" if b.gpu.vendor == "nvidia" else "aten::miopen_convolution_relu"
    inputs: tuple[Input, ...] = (x, weight, None, [1, 1], [1, 1], [1, 1], 1)
    with b.scope(f"conv {number}"), b.module(f"Conv2d_{number}"), b.op(op, *inputs):
        with scene.place("layout_copies") as planted:
            if planted:
                b.launch(more.transposition(x, "nchwToNhwc"))
        b.launch(more.convolution(b.gpu, x, weight, x))
        with b.scope("back"), scene.place("layout_copies") as planted:
            if planted:
                b.launch(more.transposition(x, "nhwcToNchw"))


def experts(setting: Setting) -> tuple[Thread, ...]:
    """Layers of experts spread over eight GPUs: tokens are exchanged before and after, beside a shared expert."""

    def body(scene: Scene) -> None:
        b = scene.main
        x = Tensor((setting.batch * setting.length, setting.width))
        for layer in range(setting.layers):
            with b.scope(f"layer {layer}"), b.module(f"Block_{layer}"), b.frame("model.py(69): forward"):
                linear(scene, x, 2 * setting.width, 4 * layer, "fp32_gemm")
                _exchange(scene, x, layer)
                with b.module(f"Experts_{layer}"), b.frame("experts.py(40): forward"):
                    _experts(scene, x)
                inside_layer(scene, layer)

    return _served(setting, "Mixture", body)


def _exchange(scene: Scene, x: Tensor, layer: int) -> None:
    b = scene.main
    with scene.place("exposed_all_reduce") as planted:
        scene.events = 100 * (scene.step + 1) + 10 * layer
        done = collective(scene, b, "AllToAll", EXCHANGE_BYTES)
        if planted:
            wait(b, done, b.stream)
    with b.scope("shared"):
        linear(scene, x, 4 * scene.setting.width, 4 * layer + 1, "slow_gemm")
    wait(b, done, b.stream)


def _experts(scene: Scene, x: Tensor) -> None:
    """One grouped product, or one product an expert."""
    b, width = scene.main, scene.setting.width
    rows = x.shape[0] // EXPERTS // 4
    with scene.place("tiny_gemms") as planted:
        if not planted:
            whole = Tensor((EXPERTS, rows, width))
            weights = Tensor((EXPERTS, width, 256))
            matmul(b, "aten::bmm", whole, weights, more.product(b.gpu, (rows, 256, width), batch=EXPERTS))
            return
        for number in range(EXPERTS):
            with b.scope(f"expert {number}"):
                kernel = more.product(b.gpu, (rows, 256, width))
                matmul(b, "aten::mm", Tensor((rows, width)), Tensor((width, 256)), kernel)


def diffusion(setting: Setting) -> tuple[Thread, ...]:
    """Denoising steps: convolutions and transformer blocks of an image model."""

    def body(scene: Scene) -> None:
        b = scene.main
        x = Tensor((setting.batch * setting.length, setting.width))
        for layer in range(setting.layers):
            with b.scope(f"layer {layer}"), b.module(f"UNetBlock_{layer}"), b.frame("model.py(69): forward"):
                _convolution(scene, (256, 56), layer)
                with b.module(f"TransformerBlock_{layer}"):
                    block(scene, x, layer)
                inside_layer(scene, layer)

    return _served(setting, "UNet", body)


def recommender(setting: Setting) -> tuple[Thread, ...]:
    """Embedding bags, an exchange of them beside the dense part, and towers."""

    def body(scene: Scene) -> None:
        b = scene.main
        rows = setting.batch * setting.length
        with b.scope("bags"), b.module("EmbeddingBag_0"), b.frame("model.py(33): forward"):
            _bags(scene, rows)
        x = Tensor((rows, setting.width))
        for layer in range(setting.layers):
            with b.scope(f"tower {layer}"), b.module(f"Tower_{layer}"), b.frame("model.py(53): forward"):
                _exchange(scene, x, layer)
                hidden = Tensor((rows, 4 * setting.width))
                with scene.place("redundant_casts") as planted:
                    if planted:
                        cast_there_and_back(scene, hidden)
                linear(scene, hidden, setting.width, 4 * layer + 3, "fp32_gemm")
                inside_layer(scene, layer)

    return _served(setting, "Recommender", body)


def _bags(scene: Scene, rows: int) -> None:
    b = scene.main
    table, index, offsets = Tensor((1_000_000, 128)), Tensor((16 * rows,), "long int"), Tensor((rows,), "long int")
    moved = 2.0 * 16 * rows * 128 + 8.0 * (index.count + rows) + 2.0 * rows * 128
    kernel = more.rows(
        f"void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<{more.BF16}, long>"
        f"(long const*, long const*, {more.BF16}*, {more.BF16}*)",
        rows,
        16.0 * rows * 128,
        moved,
    )
    inputs: tuple[Input, ...] = (table, index, offsets, False, 0, False, None, False, -1)
    emit(b, "aten::_embedding_bag", kernel, *inputs)


BASES: dict[str, Callable[[Setting], tuple[Thread, ...]]] = {
    "decoder": decoder,
    "training": training,
    "distributed": distributed,
    "convolutional": convolutional,
    "experts": experts,
    "diffusion": diffusion,
    "recommender": recommender,
}
_HOST = (
    "item_per_step",
    "item_in_loop",
    "loader_stall",
    "launch_bound",
    "gc_pause",
    "recompilation",
    "tokenisation",
    "allocator_churn",
    "pageable_copies",
)
_BLOCK = (
    "slow_gemm",
    "fp32_gemm",
    "unfused_attention",
    "unfused_norm",
    "unfused_rotary",
    "unfused_activation",
    "redundant_casts",
    "tiny_gemms",
)
_TRAINING = ("slow_gemm", "unfused_norm", "unfused_optimizer")
POSSIBLE: dict[str, tuple[str, ...]] = {
    "decoder": (*_BLOCK, "misaligned", *_HOST),
    "training": (*_TRAINING, *_HOST),
    "distributed": (*_TRAINING, "exposed_all_reduce", "small_buckets", "straggler", *_HOST),
    "convolutional": ("layout_copies", "slow_gemm", *_HOST),
    "experts": ("slow_gemm", "fp32_gemm", "tiny_gemms", "exposed_all_reduce", *_HOST),
    "diffusion": (*_BLOCK, "layout_copies", *_HOST),
    "recommender": ("slow_gemm", "fp32_gemm", "redundant_casts", "exposed_all_reduce", *_HOST),
}
"""Base -> the kinds that can be planted in it."""
