"""Pairs in which waits, streams, the host or the list of calls changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evals.workshop import kernels
from evals.workshop.aten import Context, emit, gelu
from evals.workshop.blocks import read_scalar
from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X, Gpu
from evals.workshop.instructions import Instruction, RecordEvent, WaitEvent, Work
from evals.workshop.pairs import changes
from evals.workshop.pairs.runs import PairCase, Threads, X, builder, run
from evals.workshop.program import Tensor
from evals.workshop.transformer import LOADER

SIDE = 13


def order_cases() -> list[PairCase]:
    """Every pair of this module."""
    return [case for part in (_waits(), _overlap(), _alone(), _idle()) for case in part]


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
                causes=("synchronisation",) if size == "large" else ("synchronisation", "launch_bound", "host_code"),
                planted=False,
            )
        )
    return cases


def _reads(gpu: Gpu) -> Callable[[int], Sequence[Instruction]]:
    def read(number: int) -> Sequence[Instruction]:
        b = builder(gpu, f"read {number}")
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
        b = builder(gpu, f"branch {number}", SIDE)
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
        b = builder(gpu, f"extra {number}")
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
    return PairCase(name=f"{gpu.slug} {name}", gpu=gpu, base=base, target=target, causes=causes, planted=False)
