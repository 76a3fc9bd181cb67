"""Pairs with the changes that runs meet most: a kernel, a layout, an optimizer, a graph or a stream that was lost.

Each change is written as the run shows it; numbers of kernels and their order are those of PyTorch's own dispatch.
"""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evals.workshop import kernels
from evals.workshop.aten import emit
from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X, Gpu
from evals.workshop.instructions import Instruction, RecordEvent, Synchronize, WaitEvent
from evals.workshop.pairs import changes
from evals.workshop.pairs.runs import PairCase, X, builder, run
from evals.workshop.program import Kernel, Tensor

COMM_STREAM = 20
FLASH = "aten::_scaled_dot_product_flash_attention"
OPTIMIZER = "Optimizer.step#AdamW.step"
SCORES = Tensor((8, 16, 1024, 1024))


def further_cases() -> list[PairCase]:
    """Every pair of this module."""
    return [case for part in (_attention(), _layout(), _casts(), _optimizer(), _graph(), _stream()) for case in part]


def _attention() -> list[PairCase]:
    """Flash attention lost: products, scaling, mask and softmax one by one."""
    return [
        PairCase(
            name=f"{gpu.slug} flash attention lost",
            gpu=gpu,
            base=run(gpu, "inference", "large"),
            target=changes.replaced_spans(run(gpu, "inference", "large"), FLASH, _math(gpu)),
            causes=("more_launches",),
            subject="aten::bmm",
        )
        for gpu in (H100_SXM, A100_SXM_80, MI300X)
    ]


def _math(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def math(number: int) -> Sequence[Instruction]:
        b = builder(gpu, f"math {number}")
        heads = Tensor((128, 1024, 64))
        scores = Tensor((128, 1024, 1024))
        with b.op("aten::_scaled_dot_product_attention_math", heads, heads, heads):
            emit(b, "aten::bmm", _batched(gpu), heads, heads)
            emit(b, "aten::add_", kernels.elementwise("add", SCORES, SCORES, SCORES), scores, scores)
            emit(b, "aten::_softmax", _softmax(), SCORES, -1, False)
            emit(b, "aten::bmm", _batched(gpu), scores, heads)
        return b.instructions

    return math


def _batched(gpu: Gpu) -> Kernel:
    return kernels.gemm(gpu, 128 * 1024, 1024, 64)


def _softmax() -> Kernel:
    return Kernel(
        name="void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>"
        "(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)",
        flops=float(5 * SCORES.count),
        bytes_moved=float(2 * SCORES.bytes),
        grid=(SCORES.count // 4096, 1, 1),
        block=(128, 1, 1),
    )


def _layout() -> list[PairCase]:
    """The layout that a library wants is made before every call and undone after it (channels_last lost)."""

    def turned(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
        def turn(number: int) -> Sequence[Instruction]:
            b = builder(gpu, f"layout {number}")
            for way in ("nchwToNhwc", "nhwcToNchw"):
                name = f"void cudnn::ops::{way}Kernel<__nv_bfloat16, __nv_bfloat16, float, false, true>(int, int)"
                b.launch(replace(kernels.elementwise("mul", X, X), name=name))
            return b.instructions

        return turn

    return [
        PairCase(
            name=f"{gpu.slug} layout turned in every product",
            gpu=gpu,
            base=run(gpu, "inference", "large"),
            target=changes.after_spans(run(gpu, "inference", "large"), "aten::addmm", turned(gpu), inside=True),
            causes=("layout_or_copy",),
        )
        for gpu in (H100_SXM, A100_SXM_80)
    ]


def _casts() -> list[PairCase]:
    """A cast behind every norm, as autocast makes them."""

    def casts(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
        def cast(number: int) -> Sequence[Instruction]:
            b = builder(gpu, f"cast {number}")
            with (
                b.op("aten::to", X, 6, False, False, None),
                b.op("aten::_to_copy", X, 6, None, None, None, False, None),
            ):
                emit(b, "aten::copy_", kernels.cast_to_float(X), Tensor(X.shape, "float"), X, False)
            return b.instructions

        return cast

    return [
        PairCase(
            name=f"{gpu.slug} cast after every norm",
            gpu=gpu,
            base=run(gpu, kind, "large"),
            target=changes.after_spans(run(gpu, kind, "large"), "aten::layer_norm", casts(gpu)),
            causes=("layout_or_copy",),
        )
        for gpu, kind in ((H100_SXM, "training"), (MI300X, "inference"))
    ]


def _optimizer() -> list[PairCase]:
    """A fused optimizer lost, and won."""
    cases = []
    for gpu in (H100_SXM, A100_SXM_80):
        passes = run(gpu, "training", "large")
        fused = changes.fused_span(
            passes,
            OPTIMIZER,
            "aten::_fused_adamw_",
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
            "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
            "(at::native::(anonymous namespace)::ADAM_MODE)1, false> >(int)",
            0.3,
        )
        lost = PairCase(
            name=f"{gpu.slug} fused optimizer lost",
            gpu=gpu,
            base=fused,
            target=passes,
            causes=("more_launches",),
            subject="aten::_foreach_addcdiv_",
            planted=False,
        )
        won = replace(
            lost,
            name=f"{gpu.slug} fused optimizer won",
            base=passes,
            target=fused,
            causes=("fewer_launches",),
            subject="aten::_fused_adamw_",
            is_regression=False,
        )
        cases += [lost, won]
    return cases


def _graph() -> list[PairCase]:
    """A graph lost: the same kernels, launched one by one by a host that is too slow."""
    cases = []
    for gpu in (H100_SXM, A100_SXM_80):
        eager = run(gpu, "inference", "small", frozenset(), 4)
        cases.append(
            PairCase(
                name=f"{gpu.slug} graph lost",
                gpu=gpu,
                base=changes.as_graph(eager, "nn.Module: GPT_0"),
                target=eager,
                causes=("launch_bound", "host_code", "data_loading"),
                planted=False,
            )
        )
    return cases


def _stream() -> list[PairCase]:
    """Gradients reduced beside the backward pass, then after each part of it; and a wait in every step."""
    cases = []
    for gpu in (H100_SXM, A100_SXM_80):
        threads = run(gpu, "training", "large")
        beside = changes.after_spans(threads, "autograd::engine::evaluate_function: AddmmBackward0", _reduced(gpu))
        cases.append(
            PairCase(
                name=f"{gpu.slug} all-reduce no longer beside backward",
                gpu=gpu,
                base=beside,
                target=changes.on_stream(beside, COMM_STREAM, 7),
                causes=("lost_overlap",),
                planted=False,
            )
        )
    small = run(H100_SXM, "inference", "large", frozenset(), 4)
    waits = changes.after_spans(small, "nn.Module: CausalSelfAttention_1", _wait)
    cases.append(
        PairCase(
            name="h100-sxm wait in every step",
            gpu=H100_SXM,
            base=small,
            target=waits,
            causes=("synchronisation",),
            planted=False,
        )
    )
    return cases


def _wait(_: int) -> Sequence[Instruction]:
    return [Synchronize(call="device_sync", host_ns=3_000, tail_ns=120_000)]


def _reduced(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def reduced(number: int) -> Sequence[Instruction]:
        b = builder(gpu, f"reduce {number}", COMM_STREAM)
        ready = f"ready {number}"
        weights = Tensor((1024, 4096))
        b.instructions.append(RecordEvent(event=ready, stream=7, host_ns=1_000))
        b.instructions.append(WaitEvent(event=ready, stream=COMM_STREAM, host_ns=1_000))
        with b.op("c10d::allreduce_", [weights]):
            name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
            b.launch(replace(kernels.elementwise("add", weights, weights), name=name, grid=(24, 1, 1), registers=96))
        return b.instructions

    return reduced
