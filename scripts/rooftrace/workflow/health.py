"""Trace health: what a reader must know before trusting the numbers, found by looking, not from header flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rooftrace.calltree import Link, Work
from rooftrace.contracts import credentials
from rooftrace.contracts.base import BEFORE_FIRST_STEP
from rooftrace.contracts.report import Health, HealthNote
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind, envelope
from rooftrace.trace.salvage import TEXT_BETWEEN
from rooftrace.units import NS_PER_S, format_count, format_ns, format_pct, pct
from rooftrace.workflow import inflation
from rooftrace.workflow.capture import Recorder, recorder_of
from rooftrace.workflow.options import launches_per_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.analyzers import Workload
    from rooftrace.trace import FileFacts
    from rooftrace.workflow.findings import Results
    from rooftrace.workflow.prepare import Prepared

Severity = Literal["info", "limit", "severe"]
_ORDER: dict[str, int] = {"severe": 0, "limit": 1, "info": 2}
# A kernel may seem to precede its launch by the jitter between two clocks.
_CLOCK_JITTER_NS = 5_000
_FEW_KERNELS = 20
# Above this share of GPU time, work from before the window distorts what the span stands for.
_MUCH_CARRY_IN_PCT = 5.0
_WARM_UP_FACTOR = 1.5
_FEW_STEPS = 2
_SECRETS_NAMED = 3


def assess(prepared: Prepared, facts: FileFacts, results: Results | None = None) -> Health:
    """Verdict and notes, the most severe first; what the profiler's own cost changes is told where there are results.

    ``results``: findings scored by replay, and what the replay tells of the run.
    """
    workload = prepared.workload
    recorder = recorder_of(workload.trace)
    notes = [
        *_file_notes(workload, facts),
        *_secret_note(workload),
        *_gpu_notes(workload, facts, recorder),
        *_link_notes(workload),
        *_duration_notes(prepared),
        *_step_notes(workload),
        *_recording_notes(workload, recorder),
        *_inflation_note(workload, results, recorder),
        *_platform_notes(prepared),
    ]
    notes.sort(key=lambda note: _ORDER[note.severity])
    severities = {note.severity for note in notes}
    verdict: Literal["good", "limited", "unusable"] = "good"
    if severities & {"limit", "severe"}:
        verdict = "unusable" if "severe" in severities else "limited"
    return Health(
        verdict=verdict,
        notes=notes,
        recovered=sum(workload.trace.repaired.counts.values()),
        dropped=sum(count for reason, count in workload.trace.dropped.counts.items() if reason != TEXT_BETWEEN),
    )


def _note(code: str, severity: Severity, text: str, count: int | None = None) -> HealthNote:
    return HealthNote(code=code, text=text, count=count, severity=severity)


def _file_notes(workload: Workload, facts: FileFacts) -> Iterator[HealthNote]:
    trace = workload.trace
    if facts.truncated:
        yield _note(
            "truncated",
            "limit",
            f"The file is cut short ({facts.truncated}); the {format_count(trace.event_count)} intact events "
            "before are analysed.",
        )
    if len(facts.members) > 1:
        yield _note(
            "several_traces",
            "info",
            f"The archive holds {len(facts.members)} traces; `{facts.member}` is analysed. "
            "Unpack it to analyse the others.",
            len(facts.members),
        )
    if facts.unclear_fractions:
        yield _note(
            "clock_precision",
            "info",
            f"{format_count(facts.unclear_fractions)} times have fractions that may lack zeros (a fault of torch "
            "nightlies of March 2024): times may be wrong by up to a microsecond.",
            facts.unclear_fractions,
        )
    if trace.header.get(envelope.DAMAGED):
        yield _note("repaired", "info", "The header is damaged: what could be read of it is used, keys may be missing.")
    for code, tally in (("repaired", trace.repaired), ("dropped", trace.dropped)):
        for reason, count in sorted(tally.counts.items()):
            yield _tally_note(code, reason, count, tally.first_offset.get(reason))
    if workload.tree.clamped:
        yield _note(
            "host_overlap",
            "info",
            f"{format_count(workload.tree.clamped)} host events end after the event they began in; they are cut there.",
            workload.tree.clamped,
        )


def _tally_note(code: str, reason: str, count: int, offset: int | None) -> HealthNote:
    where = f", the first at byte {offset}" if offset is not None else ""
    if reason == TEXT_BETWEEN:
        text = f"What stands between events and is none was passed over: {format_count(count)} times{where}."
        return _note(code, "info", text, count)
    return _note(code, "limit", f"{format_count(count)} events {code}: {reason}{where}.", count)


def _secret_note(workload: Workload) -> Iterator[HealthNote]:
    """Names, never values, of what looks like credentials in the header of the file."""
    found = workload.trace.header.get(credentials.KEY, [])
    if found:
        more = f" and {len(found) - _SECRETS_NAMED} more" if len(found) > _SECRETS_NAMED else ""
        named = ", ".join(f"`{name}`" for name in found[:_SECRETS_NAMED])
        yield _note(
            "secrets_in_file",
            "info",
            f"The file's header holds what looks like credentials ({named}{more}): remove them before you share it, "
            "and replace them if you have shared it.",
            len(found),
        )


def _gpu_notes(workload: Workload, facts: FileFacts, recorder: Recorder) -> Iterator[HealthNote]:
    trace, count = workload.trace, int(workload.activities.row.size)
    if count == 0:
        yield _no_gpu_note(workload, recorder, cut=facts.truncated is not None)
    elif count < _FEW_KERNELS:
        yield _note("few_gpu_events", "info", f"Only {count} GPU events: too few to speak for a workload.", count)
    overhead = trace.of_kind(Kind.OVERHEAD)
    if overhead.size:
        total = int(trace.dur[overhead].sum())
        yield _note(
            "profiler_overhead",
            "info",
            f"The profiler itself recorded {format_ns(total)} of overhead in {overhead.size} events.",
            int(overhead.size),
        )


def _no_gpu_note(workload: Workload, recorder: Recorder, *, cut: bool) -> HealthNote:
    trace = workload.trace
    launches = _launch_rows(workload)
    captures = any("BeginCapture" in trace.names[code] for code in sorted_unique(workload.tree.name).tolist())
    if cut:
        text = "No GPU events in what is left of the file: it was cut before the part that would hold them."
    elif captures:
        text = "No GPU events: the trace covers the capture of a graph, not its replay."
    elif launches.size:
        text = (
            f"{format_count(launches.size)} kernel launches but no GPU events: the GPU activity was lost "
            f"(driver and profiler versions, or a missing {recorder.gpu})."
        )
    elif trace.header.get("deviceProperties"):
        text = f"A GPU is listed but neither launches nor GPU events were recorded: profile with {recorder.gpu}."
    else:
        text = f"No GPU events: a run on the CPU, or a profile without {recorder.gpu}."
    return _note("no_gpu_events", "severe" if launches.size and not captures else "limit", text, int(launches.size))


def _launch_rows(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of calls that launch a kernel or a graph."""
    trace = workload.trace
    rows = trace.of_kind(Kind.RUNTIME, Kind.DRIVER)
    codes = sorted_unique(trace.name[rows])
    launching = [c for c in codes.tolist() if "Launch" in trace.names[c] and "HostFunc" not in trace.names[c]]
    return rows[np.isin(trace.name[rows], launching)]


def _link_notes(workload: Workload) -> Iterator[HealthNote]:
    activities, trace = workload.activities, workload.trace
    total = int(activities.dur.sum())
    carried = pct(int(activities.dur[activities.link == int(Link.CARRY_IN)].sum()), total)
    for link, code, severity, text in (
        (
            Link.CARRY_IN,
            "carry_in",
            "limit" if carried >= _MUCH_CARRY_IN_PCT else "info",
            "were launched before the recorded window; they count in the ledger and are not rated",
        ),
        (
            Link.LOST,
            "lost_launch",
            "limit",
            "have no recorded launch; they count in the ledger and have no op",
        ),
    ):
        mine = activities.link == int(link)
        if mine.any():
            share = format_pct(pct(int(activities.dur[mine].sum()), total))
            yield _note(
                code,
                severity,  # type: ignore[arg-type]
                f"{format_count(mine.sum())} of {format_count(activities.row.size)} GPU events "
                f"({share} of GPU time) {text}.",
                int(mine.sum()),
            )
    rows = _launch_rows(workload)
    known = trace.correlation[trace.of_kind(Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)]
    lonely = rows[~np.isin(trace.correlation[rows], known)]
    if activities.row.size and lonely.size:
        yield _note(
            "launch_without_kernel",
            "limit" if lonely.size > rows.size // 100 else "info",
            f"{format_count(lonely.size)} of {format_count(rows.size)} kernel launches have no GPU event: "
            "their kernels were captured into a graph, ran after the window, or were lost.",
            int(lonely.size),
        )
    yield from _unknown_kind_note(workload, rows)
    yield from _graph_note(workload, total)
    yield from _clock_note(workload)


def _unknown_kind_note(workload: Workload, launches: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[HealthNote]:
    """Work of a category that no reader knows yet is seen by the launches that it names."""
    trace = workload.trace
    others = trace.of_kind(Kind.OTHER)
    launched = trace.correlation[launches]
    named = others[np.isin(trace.correlation[others], launched[launched > 0])]
    if named.size:
        yield _note(
            "dropped",
            "limit",
            f"{format_count(named.size)} events that name a launch are of a category that is not known: "
            "they are not counted.",
            int(named.size),
        )


def _graph_note(workload: Workload, total: int) -> Iterator[HealthNote]:
    activities = workload.activities
    if activities.graph.any():
        share = pct(int(activities.dur[activities.graph].sum()), total)
        yield _note(
            "graph_replay",
            "limit",
            f"{format_pct(share)} of GPU time is replayed from graphs ({format_count(activities.graph.sum())} events): "
            "it has kernel names but no ops and no shapes.",
            int(activities.graph.sum()),
        )


def _clock_note(workload: Workload) -> Iterator[HealthNote]:
    activities = workload.activities
    if activities.apart:
        hours = format_count(workload.trace.clocks_apart_ns / (3_600 * NS_PER_S))
        yield _note(
            "clocks_apart",
            "limit",
            f"Host and GPU have clocks of their own, {hours} hours apart: ops own the kernels that they launched, "
            "but why the GPU waited is not known.",
        )
    linked = np.flatnonzero(activities.link == int(Link.CORRELATION))
    early = activities.start[linked] < workload.tree.start[activities.launch[linked]] - _CLOCK_JITTER_NS
    if early.any():
        yield _note(
            "clock",
            "limit",
            f"{format_count(early.sum())} kernels start before their launch: host and GPU clocks disagree.",
            int(early.sum()),
        )


def _duration_notes(prepared: Prepared) -> Iterator[HealthNote]:
    durations = prepared.workload.activities.raw_dur
    empty = int((durations == 0).sum())
    if empty > durations.size // 2:
        yield _note(
            "impossible_duration",
            "severe" if empty == durations.size else "limit",
            f"{format_count(empty)} of {format_count(durations.size)} GPU events last 0 ns: their ends were not "
            "recorded, and how busy the GPU was is not known.",
            empty,
        )
    found = prepared.quarantined
    if found:
        raw, counted = sum(q.raw_ns for q in found), sum(q.counted_ns for q in found)
        yield _note(
            "impossible_duration",
            "limit",
            f"{len(found)} GPU events have impossible durations ({format_ns(raw)} recorded); "
            f"totals count {format_ns(counted)} of them.",
            len(found),
        )


def _step_notes(workload: Workload) -> Iterator[HealthNote]:
    steps = workload.steps
    if not workload.activities.row.size:
        return
    if steps.source == "whole trace":
        yield _note(
            "no_steps",
            "info",
            "No step markers and no repeating kernel sequence: the whole trace is one step.",
        )
        return
    launched = launches_per_step(steps)
    empty = launched.count(0)
    if empty and len(launched) > 1:
        yield _note("empty_steps", "limit", f"{empty} of {len(launched)} steps launched no GPU work.", empty)
    spans = [step.span_ns for step in workload.ledgers[0].steps if step.name != BEFORE_FIRST_STEP]
    usual = float(np.median(spans[1:])) if len(spans) > _FEW_STEPS else 0.0
    if usual > 0 and spans[0] > _WARM_UP_FACTOR * usual:
        ratio = spans[0] / usual
        yield _note(
            "warm_up",
            "limit",
            f"The first step takes {ratio:.1f} times the median of the others: it still warms up; "
            f"use `--steps {steps.first + 1}-{steps.first + len(spans) - 1}`.",
        )


def _recording_notes(workload: Workload, recorder: Recorder) -> Iterator[HealthNote]:
    trace = workload.trace
    ops = (trace.kind == int(Kind.CPU_OP)).any()
    if not ops:
        yield _note("no_ops", "limit", f"No host ops recorded: kernels are reported by name only.{recorder.ops}")
    elif not ((trace.inputs >= 0).any() and any(_has_size(inputs.dims) for inputs in trace.signatures)):
        flag = " although its header says so" if trace.header.get("record_shapes") else ""
        yield _note(
            "no_shapes",
            "limit",
            f"No input shapes recorded{flag}: kernels cannot be rated.{recorder.shapes}",
        )
    if ops and not (trace.kind == int(Kind.PYTHON)).any():
        flag = " although its header says so" if trace.header.get("with_stack") else ""
        yield _note(
            "no_stacks",
            "info",
            f"No Python stacks recorded{flag}: modules and source lines are unknown.{recorder.stacks}",
        )


def _has_size(dims: object) -> bool:
    """Whether any tensor of these has a shape: with dynamic shapes and replayed ops all may be empty."""
    return any(map(_has_size, dims)) if isinstance(dims, list) else isinstance(dims, int)


def _inflation_note(workload: Workload, results: Results | None, recorder: Recorder) -> Iterator[HealthNote]:
    changes = inflation.changes(workload, results) if results is not None else []
    if changes:
        yield _note(
            "profiler_inflated",
            "limit",
            f"With recorded host time halved {' and '.join(changes)}: what recording it cost the host may be what "
            f"makes the host look like the limit. {recorder.light}",
        )


def _platform_notes(prepared: Prepared) -> Iterator[HealthNote]:
    choice = prepared.choice
    if not (prepared.workload.activities.work == int(Work.COMPUTE)).any():
        return
    if choice.platform is None:
        reason = f" ({choice.warning})" if choice.warning else ""
        yield _note(
            "unknown_gpu",
            "limit",
            f"The GPU is unknown{reason}: no roofline. Name it with --platform or --platform-file.",
        )
    elif choice.warning:
        yield _note("platform_mismatch", "limit", f"{choice.warning}.".replace("..", "."))
