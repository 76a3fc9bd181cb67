"""Pairs in which the GPU's work changed: its kernels, their number, types, shapes and clock."""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evals.workshop import kernels
from evals.workshop.aten import emit
from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X, Gpu
from evals.workshop.instructions import Instruction
from evals.workshop.pairs import changes
from evals.workshop.pairs.runs import LARGE, PairCase, X, builder, run
from evals.workshop.transformer import Workload, inference, training


def kernel_cases() -> list[PairCase]:
    """Every pair of this module."""
    parts = (_slower(), _kernels(), _launches(), _types(), _moves(), _shapes(), _clock())
    return [case for part in parts for case in part]


def _slower() -> list[PairCase]:
    families = (
        (H100_SXM, "inference", "nvjet_tst_128x256", 1.3),
        (H100_SXM, "training", "flash_bwd_dq_dk_dv", 1.5),
        (H100_SXM, "inference", "flash_fwd_kernel", 2.0),
        (A100_SXM_80, "inference", "ampere_bf16_s16816gemm_bf16_256x128", 1.25),
        (A100_SXM_80, "training", "vectorized_layer_norm_kernel", 1.8),
        (MI300X, "inference", "MT256x256x64", 1.4),
        (MI300X, "training", "attn_fwd", 1.6),
        (H100_SXM, "training", "GeluCUDAKernelImpl", 1.7),
    )
    cases = [
        PairCase(
            name=f"{gpu.slug} {kind} {name} x {factor}",
            gpu=gpu,
            base=run(gpu, kind, "large"),
            target=changes.with_kernels(run(gpu, kind, "large"), name, factor),
            causes=("slower_kernel",),
        )
        for gpu, kind, name, factor in families
    ]
    faster = cases[0]
    turned = replace(faster, name=f"{faster.name}, turned", base=faster.target, target=faster.base, is_regression=False)
    return [*cases, turned]


def _kernels() -> list[PairCase]:
    def old(_: str) -> str:
        return "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_64x3_tn_align8>(Params)"

    def efficient(name: str) -> str:
        return (
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<>::Params)"
            if "fwd" in name
            else name
        )

    def rocm(name: str) -> str:
        return name.replace("MT256x256x64", "MT64x64x32")

    large = {gpu.slug: run(gpu, "inference", "large") for gpu in (H100_SXM, A100_SXM_80, MI300X)}
    rows = (
        (H100_SXM, "nvjet_tst_128x256", 1.4, old),
        (H100_SXM, "flash_fwd_kernel", 1.6, efficient),
        (A100_SXM_80, "ampere_bf16_s16816gemm_bf16_256x128", 1.3, old),
        (MI300X, "MT256x256x64", 1.5, rocm),
    )
    return [
        PairCase(
            name=f"{gpu.slug} other kernel for {name}",
            gpu=gpu,
            base=large[gpu.slug],
            target=changes.with_kernels(large[gpu.slug], name, factor, renamed),
            causes=("different_kernel",),
        )
        for gpu, name, factor, renamed in rows
    ]


def _launches() -> list[PairCase]:
    cases = []
    for gpu in (H100_SXM, A100_SXM_80):
        fused = run(gpu, "inference", "large")
        unfused = run(gpu, "inference", "large", frozenset(("unfused_rms_norm",)))
        cases += [
            PairCase(
                name=f"{gpu.slug} norm written out",
                gpu=gpu,
                base=fused,
                target=unfused,
                causes=("more_launches",),
                planted=False,
            ),
            PairCase(
                name=f"{gpu.slug} norm fused",
                gpu=gpu,
                base=unfused,
                target=fused,
                causes=("fewer_launches",),
                is_regression=False,
                planted=False,
            ),
        ]
    return cases


def _types() -> list[PairCase]:
    def retyped(value: object) -> object:
        return ["float" if entry == "c10::BFloat16" else entry for entry in value] if isinstance(value, list) else value

    cases = []
    for gpu, op, name in (
        (H100_SXM, "aten::addmm", "nvjet_tst_"),
        (A100_SXM_80, "aten::addmm", "ampere_bf16"),
        (MI300X, "aten::addmm", "Cijk_"),
    ):
        threads = run(gpu, "inference", "large")
        slowed = changes.with_kernels(threads, name, 1.9)
        for touched in (op, "aten::linear", "aten::mm"):
            slowed = changes.with_arguments(slowed, touched, "Input type", retyped)
        cases.append(
            PairCase(
                name=f"{gpu.slug} products in float32",
                gpu=gpu,
                base=threads,
                target=slowed,
                causes=("precision",),
            )
        )
    return cases


def _moves() -> list[PairCase]:
    cases = []
    for gpu, place in ((H100_SXM, "aten::addmm"), (A100_SXM_80, "aten::gelu"), (MI300X, "aten::gelu")):
        threads = run(gpu, "inference", "large")
        added = changes.after_spans(threads, place, _copies(gpu), inside=False)
        cases.append(
            PairCase(
                name=f"{gpu.slug} copy after {place}",
                gpu=gpu,
                base=threads,
                target=added,
                causes=("layout_or_copy",),
                subject="contiguous",
            )
        )
    return cases


def _shapes() -> list[PairCase]:
    cases = []
    for gpu, kind in ((H100_SXM, "inference"), (A100_SXM_80, "inference"), (MI300X, "training")):
        doubled = Workload(gpu=gpu, layers=2, vocabulary=8000, steps=4, problems=frozenset(), **{**LARGE, "batch": 16})
        build = inference if kind == "inference" else training
        cases.append(
            PairCase(
                name=f"{gpu.slug} {kind} batch doubled",
                gpu=gpu,
                base=run(gpu, kind, "large"),
                target=build(doubled).threads,
                causes=("shape",),
                planted=False,
            )
        )
    return cases


def _copies(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def copy(number: int) -> Sequence[Instruction]:
        b = builder(gpu, f"copy {number}")
        with b.op("aten::contiguous", X), b.op("aten::clone", X):
            emit(b, "aten::copy_", kernels.cast_to_float(X), X, X, False)
        return b.instructions

    return copy


def _clock() -> list[PairCase]:
    rows = ((H100_SXM, "inference", 1.08), (A100_SXM_80, "training", 1.12), (MI300X, "inference", 1.06))
    return [
        PairCase(
            name=f"{gpu.slug} {kind} all kernels x {factor}",
            gpu=gpu,
            base=run(gpu, kind, "large"),
            target=changes.with_kernels(run(gpu, kind, "large"), "", factor),
            causes=("clock_or_power",),
        )
        for gpu, kind, factor in rows
    ]
