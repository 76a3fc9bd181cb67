"""Facts, tables, commands and the questions that the report answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.report.cells import Cell, count, ident, ns, pct, shapes, share, spaced
from rooftrace.report.commands import profile_commands
from rooftrace.report.markdown import Safe, code, tail
from rooftrace.report.view import by_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooftrace.contracts.report import CpuOp, Finding, OpGroup
    from rooftrace.report.view import View

ROWS_SHOWN = 8
CPU_ROWS_BESIDE_GPU = 5
CPU_ROWS_ALONE = 20
# Shorter than a typical launch: such a kernel costs the host more than it gives the GPU to do.
TINY_KERNEL_NS = 5_000
# Only products and convolutions run on the units that TF32 is for.
TF32_ANALYZERS = ("gemm", "convolution")
# An op group whose instances spread this much runs at different speeds on equal shapes.
UNEVEN_COV = 0.25
# Kernels that a compiler joins.
_POINTWISE = ("elementwise", "normalization", "reduction")


class KernelFacts(Struct, frozen=True, kw_only=True):
    """What the table of kernels says as a whole."""

    launches: int
    total_ns: int
    largest_share_pct: float
    tiny_launches: int
    tiny_ns: int


def context(view: View) -> dict[str, object]:
    """Tables of the appendix."""
    report = view.report
    shown = CPU_ROWS_BESIDE_GPU if report.ledger.devices else CPU_ROWS_ALONE
    op_ns = sum(op.kernel_ns for op in report.ops)
    return {
        "trace": report.trace,
        "op_rows": [_op_row(op, op_ns) for op in report.ops[:ROWS_SHOWN]],
        "kernel_rows": _kernel_rows(view),
        "kernel_facts": _kernel_facts(view),
        "modules": _shares(view.time_by_module, op_ns),
        "phases": _shares(view.time_by_phase, op_ns),
        "precisions": _shares(view.time_by_precision, sum(view.time_by_precision.values())),
        "op_ns": op_ns,
        "cpu_rows": [_cpu_row(op) for op in report.cpu_ops[:shown]],
        "host_step_rows": [
            [code(step.name, 40), ns(step.end_ns - step.start_ns)] for step in report.trace.steps[:ROWS_SHOWN]
        ],
        "commands": profile_commands(view),
        "questions": _question_facts(view),
    }


def _op_row(op: OpGroup, op_ns: int) -> list[Cell]:
    return [
        Safe(f"{ident(op.id)} {code(op.name, 50)}"),
        shapes(op.shapes),
        count(op.count),
        ns(op.kernel_ns),
        share(op.kernel_ns, op_ns),
        op.bound,
        pct(op.efficiency_pct),
        code(tail(op.modules[0], 44), 50) if op.modules else None,
    ]


def _kernel_rows(view: View) -> list[list[Cell]]:
    kernels = [kernel for kernel in view.kernels if kernel.kind != "copy"]
    total = sum(kernel.total_ns for kernel in kernels)
    return [
        [
            code(kernel.short, 70),
            spaced(kernel.category),
            kernel.library or None,
            count(kernel.count),
            ns(kernel.total_ns),
            share(kernel.total_ns, total),
            ns(kernel.median_ns),
        ]
        for kernel in kernels[:ROWS_SHOWN]
    ]


def _cpu_row(op: CpuOp) -> list[Cell]:
    return [
        code(op.name, 80),
        count(op.count),
        ns(op.self_ns),
        ns(op.total_ns),
        None if op.median_ns is None else ns(op.median_ns),
        None if op.max_ns is None else ns(op.max_ns),
    ]


def _shares(times: dict[str, int], whole: int) -> list[tuple[str, Safe]]:
    """Names with time and share as one text, most time first."""
    return [(name, Safe(f"{ns(time)} ({share(time, whole)})")) for name, time in by_time(times)[:ROWS_SHOWN]]


def _kernel_facts(view: View) -> KernelFacts | None:
    kernels = [kernel for kernel in view.kernels if kernel.kind != "copy"]
    total = sum(kernel.total_ns for kernel in kernels)
    if not total:
        return None
    tiny = [kernel for kernel in kernels if kernel.median_ns < TINY_KERNEL_NS]
    return KernelFacts(
        launches=sum(kernel.count for kernel in kernels),
        total_ns=total,
        largest_share_pct=100 * kernels[0].total_ns / total,
        tiny_launches=sum(kernel.count for kernel in tiny),
        tiny_ns=sum(kernel.total_ns for kernel in tiny),
    )


def _question_facts(view: View) -> dict[str, object]:
    """What the table of questions needs beyond the report itself."""
    ops = view.report.ops
    uneven = [op for op in ops if op.count > 1 and op.cov > UNEVEN_COV]
    return {
        "causes": by_time(view.totals.idle_by_cause),
        "fusion": _listed(finding.id for finding in view.report.findings if finding.tier == "fusion"),
        "has_stacks": any(op.source for op in ops),
        "recompute_ns": sum(op.recompute_ns for op in ops),
        "graph_ns": sum(op.kernel_ns for op in ops if op.graph_replayed),
        "generated_ns": view.totals.compute_by_category.get("triton", 0),
        "memory_ns": view.totals.compute_by_category.get("memory", 0),
        "uneven": uneven[0] if uneven else None,
        "uneven_groups": len(uneven),
        "uneven_ns": sum(op.kernel_ns for op in uneven),
        "flops": sum((op.flops or 0) * op.count for op in ops if op.efficiency_pct is not None),
        "misaligned": _misaligned(view, is_batched=False),
        "misaligned_batched": _misaligned(view, is_batched=True),
        "has_backward": any(op.phase == "backward" for op in ops),
        "pointwise": _listed(finding.id for finding in view.report.findings if finding.category in _POINTWISE),
        "without_tf32": _without_tf32(view),
        "has_tf32": any(finding.evidence.get("gpu_tf32") is True for finding in view.all_findings),
        "host_bound": _ids(view, "host_bound"),
        "hidden_layout": _listed(
            finding.id for finding in view.all_findings if finding.evidence.get("extra_kernels") not in (None, "")
        ),
        "system": _of_system(view),
    }


def _of_system(view: View) -> dict[str, Safe]:
    """By category the best finding; of idle time the one with most of it, whatever fixing it is worth."""
    findings = view.of_tier("system")
    named = {finding.category: ident(finding.id) for finding in reversed(findings)}
    idle = [finding for finding in findings if finding.category == "idle"]
    if idle:
        named["idle"] = ident(max(idle, key=_idle_ms).id)
    return named


def _idle_ms(finding: Finding) -> float:
    value = finding.evidence.get("idle_ms")
    return float(value) if isinstance(value, int | float) else 0.0


def _ids(view: View, flag: str) -> Safe:
    return _listed(finding.id for finding in view.all_findings if finding.evidence.get(flag) is True)


def _misaligned(view: View, *, is_batched: bool) -> Safe:
    """Products with a weight, or batched ones, whose sizes are those of activations."""
    return _listed(
        finding.id
        for finding in view.all_findings
        if finding.evidence.get("misaligned") is True and (finding.evidence.get("batched") is True) is is_batched
    )


def _without_tf32(view: View) -> Safe:
    return _listed(
        finding.id
        for finding in view.all_findings
        if finding.id.partition(".")[0] in TF32_ANALYZERS
        and finding.evidence.get("precision") == "float32"
        and finding.evidence.get("tf32") is False
        and finding.evidence.get("gpu_tf32") is True
    )


def _listed(ids: Iterable[str]) -> Safe:
    """Ids in a row; empty where there are none."""
    return Safe(", ".join(ident(name) for name in ids))
