"""The corpus: every pair is a run and the same run with one known change."""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evals.workshop import kernels
from evals.workshop.aten import Context, emit, gelu
from evals.workshop.blocks import read_scalar
from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X, Gpu
from evals.workshop.instructions import Instruction, RecordEvent, Thread, Timeline, WaitEvent, Work
from evals.workshop.kineto import Header, trace_text
from evals.workshop.pairs import changes
from evals.workshop.program import Draws, Tensor, ThreadBuilder
from evals.workshop.simulator import simulate
from evals.workshop.transformer import LOADER, MAIN_TID, Workload, inference, training

Threads = tuple[Thread, ...]
SIDE = 13
LARGE, SMALL = {"width": 1024, "batch": 8, "length": 1024}, {"width": 256, "batch": 1, "length": 64}
X = Tensor((8, 1024, 1024))


@dataclass(frozen=True, kw_only=True)
class PairCase:
    """``causes``: any of these names the change; ``subject``: part of what the finding is about.

    ``planted_ns``: what durations of GPU work grew by in the target, all steps together; None where the change is
    none of durations.
    """

    name: str
    gpu: Gpu
    base: Threads
    target: Threads
    causes: tuple[str, ...]
    subject: str = ""
    is_regression: bool = True
    planted: bool = True

    def timelines(self) -> tuple[Timeline, Timeline]:
        """Both runs."""
        return simulate(self.base), simulate(self.target)

    def traces(self) -> tuple[str, str]:
        """Both traces."""
        first, second = self.timelines()
        return self._text(first, self.base, "base"), self._text(second, self.target, "target")

    def _text(self, timeline: Timeline, threads: Threads, side: str) -> str:
        header = Header(
            gpu=self.gpu,
            threads={thread.tid: thread.name for thread in threads},
            trace_name=f"{self.name.replace(' ', '_')}_{side}.json",
            trace_id=hashlib.blake2b(f"{self.name} {side}".encode(), digest_size=16).hexdigest().upper(),
            sync_events=self.gpu.vendor == "nvidia",
        )
        return trace_text(timeline, header)


_BUILT: dict[tuple[str, str, str, frozenset[str], int], Threads] = {}


def run(gpu: Gpu, kind: str, size: str, problems: frozenset[str] = frozenset(), layers: int = 2) -> Threads:
    """A run of the decoder: ``training`` or ``inference``, ``large`` (GPU-bound) or ``small`` (host-bound)."""
    key = (gpu.slug, kind, size, problems, layers)
    if key not in _BUILT:
        sizes = LARGE if size == "large" else SMALL
        workload = Workload(gpu=gpu, layers=layers, vocabulary=8000, steps=4, problems=problems, **sizes)
        _BUILT[key] = (training if kind == "training" else inference)(workload).threads
    return _BUILT[key]


def corpus() -> list[PairCase]:
    """Every pair."""
    parts = (
        _slower(),
        _kernels(),
        _launches(),
        _types(),
        _moves(),
        _shapes(),
        _waits(),
        _overlap(),
        _clock(),
    )
    rest = (_alone(), _idle())
    return [case for part in (*parts, *rest) for case in part]


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
    turned = replace(
        faster, name=f"{faster.name}, turned", base=faster.target, target=faster.base, is_regression=False
    )
    return [*cases, turned]


def _kernels() -> list[PairCase]:
    def old(_: str) -> str:
        return (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_64x3_tn_align8>(Params)"
        )

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
        return (
            ["float" if entry == "c10::BFloat16" else entry for entry in value]
            if isinstance(value, list)
            else value
        )

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


def _copies(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def copy(number: int) -> Sequence[Instruction]:
        b = _builder(gpu, f"copy {number}")
        with b.op("aten::contiguous", X), b.op("aten::clone", X):
            emit(b, "aten::copy_", kernels.cast_to_float(X), X, X, False)
        return b.instructions

    return copy


def _builder(gpu: Gpu, seed: str, stream: int | None = None) -> ThreadBuilder:
    default = 7 if gpu.vendor == "nvidia" else 0
    return ThreadBuilder(
        gpu, Draws(seed), tid=MAIN_TID, name="python3", stream=default if stream is None else stream
    )


def _shapes() -> list[PairCase]:
    cases = []
    for gpu, kind in ((H100_SXM, "inference"), (A100_SXM_80, "inference"), (MI300X, "training")):
        doubled = Workload(
            gpu=gpu, layers=2, vocabulary=8000, steps=4, problems=frozenset(), **{**LARGE, "batch": 16}
        )
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


def _waits() -> list[PairCase]:
    cases = []
    for gpu, size in ((H100_SXM, "large"), (A100_SXM_80, "large"), (MI300X, "large"), (H100_SXM, "small")):
        threads = run(gpu, "inference", size, frozenset(), 4)
        read = changes.after_spans(threads, "aten::gelu", _reads(gpu))
        cases.append(
            PairCase(
                name=f"{gpu.slug} {size} item in every layer",
                gpu=gpu,
                base=threads,
                target=read,
                causes=("synchronisation",)
                if size == "large"
                else ("synchronisation", "launch_bound", "host_code"),
                planted=False,
            )
        )
    return cases


def _reads(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def read(number: int) -> Sequence[Instruction]:
        b = _builder(gpu, f"read {number}")
        read_scalar(b, Tensor(()))
        return b.instructions

    return read


def _overlap() -> list[PairCase]:
    return [side_stream(gpu) for gpu in (H100_SXM, A100_SXM_80, MI300X)]


def side_stream(gpu: Gpu) -> PairCase:
    """A branch on a side stream, which in the target goes to the default one."""
    default = 7 if gpu.vendor == "nvidia" else 0
    threads = run(gpu, "inference", "large")
    beside = changes.after_spans(threads, "aten::layer_norm", _branches(gpu, default))
    return PairCase(
        name=f"{gpu.slug} side stream serialised",
        gpu=gpu,
        base=beside,
        target=changes.on_stream(beside, SIDE, default),
        causes=("lost_overlap",),
        planted=False,
    )


def _branches(gpu: Gpu, default: int) -> Callable[[int], Sequence[Instruction]]:
    def branch(number: int) -> Sequence[Instruction]:
        b = _builder(gpu, f"branch {number}", SIDE)
        fork, join = f"fork {number}", f"join {number}"
        b.instructions.append(RecordEvent(event=fork, stream=default, host_ns=1_000))
        b.instructions.append(WaitEvent(event=fork, stream=SIDE, host_ns=1_000))
        for _ in range(3):
            emit(b, "aten::mul", kernels.elementwise("mul", X, X, X), X, X)
        b.instructions.append(RecordEvent(event=join, stream=SIDE, host_ns=1_000))
        b.stream = default
        gelu(Context(b=b, tape=None), X)
        gelu(Context(b=b, tape=None), X)
        b.instructions.append(WaitEvent(event=join, stream=default, host_ns=1_000))
        return b.instructions

    return branch


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


def _alone() -> list[PairCase]:
    """Work that only one side has."""
    cases = []
    for gpu in (H100_SXM, A100_SXM_80, MI300X):
        threads = run(gpu, "inference", "large")
        added = changes.after_spans(threads, "aten::gelu", _extra(gpu))
        cases.append(
            PairCase(
                name=f"{gpu.slug} op added",
                gpu=gpu,
                base=threads,
                target=added,
                causes=("only_in_target",),
                subject="mul",
            )
        )
    for gpu, op in ((H100_SXM, "aten::gelu"), (A100_SXM_80, "aten::layer_norm")):
        threads = run(gpu, "inference", "large")
        cases.append(
            PairCase(
                name=f"{gpu.slug} {op} dropped",
                gpu=gpu,
                base=threads,
                target=changes.without_spans(threads, op),
                causes=("only_in_base",),
                is_regression=False,
            )
        )
    deeper = [
        PairCase(
            name=f"{gpu.slug} two layers more",
            gpu=gpu,
            base=run(gpu, "inference", "large", frozenset(), 2),
            target=run(gpu, "inference", "large", frozenset(), 4),
            causes=("only_in_target",),
            subject="Block",
            planted=False,
        )
        for gpu in (H100_SXM, MI300X)
    ]
    return [*cases, *deeper]


def _extra(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def extra(number: int) -> Sequence[Instruction]:
        b = _builder(gpu, f"extra {number}")
        emit(b, "aten::mul", kernels.elementwise("mul", X, X, X), X, X)
        return b.instructions

    return extra


def _idle() -> list[PairCase]:
    cases = []
    for gpu in (H100_SXM, MI300X):
        small = run(gpu, "inference", "small", frozenset(), 4)
        cases += [
            _idle_case(
                gpu,
                "host x 3",
                small,
                changes.with_host(small, 3.0),
                ("launch_bound", "host_code", "data_loading"),
            ),
            _idle_case(
                gpu,
                "late batches",
                small,
                changes.after_spans(small, LOADER, lambda _: [Work(ns=3_000_000)], inside=True),
                ("data_loading",),
            ),
            _idle_case(
                gpu,
                "Python in the loop",
                small,
                changes.after_spans(small, "aten::gelu", lambda _: [Work(ns=500_000)]),
                ("host_code",),
            ),
        ]
    return cases


def _idle_case(gpu: Gpu, name: str, base: Threads, target: Threads, causes: tuple[str, ...]) -> PairCase:
    return PairCase(
        name=f"{gpu.slug} {name}", gpu=gpu, base=base, target=target, causes=causes, planted=False
    )


def planted_ns(case: PairCase) -> int | None:
    """What durations of GPU work grew by, all steps together; None where the change is none of durations."""
    if not case.planted:
        return None
    first, second = case.timelines()
    spent = [sum(row.end_ns - row.start_ns for row in timeline.activities) for timeline in (first, second)]
    return spent[1] - spent[0]
