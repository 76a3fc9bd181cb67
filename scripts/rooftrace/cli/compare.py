"""``compare``: two traces, where the time went, and whether that is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.analyze import RUNS, default_run, progress
from rooftrace.cli.output import put, put_json_text, say
from rooftrace.cli.source import is_run
from rooftrace.compare.gate import read_metric
from rooftrace.contracts import store
from rooftrace.errors import InputError, UsageError
from rooftrace.units import format_ns
from rooftrace.workflow.compare import PAGE, CompareOptions, Limit, compare_traces
from rooftrace.workflow.compare_page import change_pct, describe_check, junit_text

if TYPE_CHECKING:
    import argparse

    from rooftrace.contracts.compare import CompareFile, GateCheck

_MIN_STEPS = 3


def run(options: argparse.Namespace) -> int:
    """Write a comparison and print where; 1 if a limit is violated."""
    base, target = Path(options.base), Path(options.target)
    for path in (base, target):
        if is_run(path):
            raise InputError(f"`{path}` is a run and keeps no call tree", hint="Give the trace file it was made from")
    limit = _limit(options)
    folder = Path(options.output) if options.output else _default_run(base, target)
    said = {} if options.quiet else {"base": progress(base.name), "target": progress(target.name)}
    result = compare_traces(
        base,
        target,
        folder,
        CompareOptions(
            base_platform=options.base_platform,
            target_platform=options.target_platform,
            steps=options.steps,
            limit=limit,
            progress=said,
        ),
    )
    say(_summary(result))
    if options.json:
        put_json_text((folder / store.COMPARE).read_text(encoding="utf-8"))
    else:
        put(str(folder / PAGE))
    return _judge(result.gate or [], options)


def _limit(options: argparse.Namespace) -> Limit | None:
    """What may grow by how much; options of the gate mean nothing without it."""
    if options.fail_above is None:
        for name in ("metric", "min_steps", "junit", "github"):
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} needs --fail-above", hint="Add a limit: --fail-above 3%")
        return None
    metrics = [read_metric(text) for text in options.metric or ["span"]]
    return Limit(limit_pct=options.fail_above, metrics=metrics, min_steps=options.min_steps or _MIN_STEPS)


def _default_run(base: Path, target: Path) -> Path:
    return Path(RUNS) / f"{default_run(base).name}_vs_{default_run(target).name}"


def _summary(result: CompareFile) -> str:
    base, target = result.base.compared_ns, result.target.compared_ns
    first = result.findings[0] if result.findings else None
    named = "" if first is None or first.subject == first.cause else f", {first.subject}"
    top = f"; first: {first.cause.replace('_', ' ')}{named}" if first else ""
    aligned = min(result.alignment.base_pct, result.alignment.target_pct)
    return (
        f"wrote comparison: {format_ns(base)} to {format_ns(target)} ({change_pct(result):+.2f} %), "
        f"{result.sanity.verdict.replace('_', ' ')}, {aligned:.1f} % of GPU time aligned, "
        f"{len(result.findings)} findings{top}"
    )


def _judge(checks: list[GateCheck], options: argparse.Namespace) -> int:
    """Say what is violated, in the forms asked for."""
    if options.junit:
        store.write_bytes(Path(options.junit), junit_text(checks).encode())
    violated = [check for check in checks if check.violated]
    for check in checks:
        text = describe_check(check)
        if check.violated:
            say(f"error: {text}")
        elif check.bound_pct is None:
            say(f"note: {text}")
        if options.github:
            level = "error" if check.violated else "notice"
            put(f"::{level} title=rooftrace compare::{_escaped(text)}")
    return 1 if violated else 0


def _escaped(text: str) -> str:
    """Text of a workflow command: its own escapes for per cent signs and line ends."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
