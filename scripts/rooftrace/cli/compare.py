"""``compare``: two traces, where the time went, and whether that is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.analyze import RUNS, default_run, own_run
from rooftrace.cli.names import bounded
from rooftrace.cli.output import put, put_json_text, say
from rooftrace.cli.progress import progress
from rooftrace.cli.source import is_run
from rooftrace.cli.timings import timed
from rooftrace.compare.gate import read_metric
from rooftrace.contracts import store
from rooftrace.contracts.kinds import COMPARISON_PAGE
from rooftrace.errors import InputError, UsageError
from rooftrace.report.compare_gate import change_pct, describe_check, junit_text
from rooftrace.report.compare_parts import asked_of_pair, cause_words, ranked_findings
from rooftrace.units import format_ns
from rooftrace.workflow.compare import CompareOptions, Limit, compare_traces
from rooftrace.workflow.next_step import command

if TYPE_CHECKING:
    import argparse

    from rooftrace.contracts.compare import CompareEvidence, GateCheck

_MIN_STEPS = 3
_MAX_BYTES = 100  # of each name: two of them, and what tells files apart, have to fit in 255
_RECORDED = ("base_platform", "target_platform", "steps")


def run(options: argparse.Namespace) -> int:
    """Write a comparison and print where; 1 if a limit is violated."""
    base, target = Path(options.base), Path(options.target)
    for path in (base, target):
        if is_run(path):
            raise InputError(f"`{path}` is a run and keeps no call tree", hint="Give the trace file it was made from")
    limit = _limit(options)
    folder = Path(options.output) if options.output else _default_run(base, target, redact=options.redact)
    said = {} if options.quiet else {"base": progress(base), "target": progress(target)}
    with timed(options):
        result = compare_traces(
            base,
            target,
            folder,
            CompareOptions(
                base_platform=options.base_platform,
                target_platform=options.target_platform,
                steps=options.steps,
                limit=limit,
                given=_given(options) if options.prepare else None,
                progress=said,
                redact=options.redact,
                force=options.force,
                max_bytes=options.max_bytes,
            ),
        )
    say(summary_line(result))
    if options.json:
        put_json_text((folder / store.COMPARE).read_text(encoding="utf-8"))
    else:
        put(str(folder / COMPARISON_PAGE))
    if options.prepare:
        tasks = "1 task for a writer: compare" if asked_of_pair(result) else "no task for a writer: nothing to tell"
        say(f"{tasks}\nnext: {command('next', folder)}")
    return _judge(result.gate or [], options)


def _given(options: argparse.Namespace) -> dict[str, str]:
    """Options that are not their defaults, for whoever resumes."""
    return {name: str(getattr(options, name)) for name in _RECORDED if getattr(options, name) is not None}


def _limit(options: argparse.Namespace) -> Limit | None:
    """What may grow by how much; options of the gate mean nothing without it."""
    if options.fail_above is None:
        for name in ("metric", "min_steps", "junit", "github"):
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} needs --fail-above", hint="Add a limit: --fail-above 3%")
        return None
    metrics = [read_metric(text) for text in options.metric or ["span"]]
    return Limit(limit_pct=options.fail_above, metrics=metrics, min_steps=options.min_steps or _MIN_STEPS)


def _default_run(base: Path, target: Path, *, redact: bool) -> Path:
    names = [bounded(default_run(trace, redact=redact).name, _MAX_BYTES) for trace in (base, target)]
    return own_run(Path(RUNS) / "_vs_".join(names), base, target)


def summary_line(result: CompareEvidence) -> str:
    """The comparison in one line."""
    base, target = result.base.compared_ns, result.target.compared_ns
    first = next(iter(ranked_findings(result)), None)
    named = "" if first is None or first.subject == first.cause else f", {first.subject}"
    top = f"; first: {cause_words(first.cause, first.delta_ns)}{named}" if first else ""
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
