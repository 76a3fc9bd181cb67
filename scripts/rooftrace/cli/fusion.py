"""``fusion``: what several kernels in a row could do as one, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.cli.hiding import hider
from rooftrace.cli.output import put_json, put_table, say
from rooftrace.cli.source import own_models, own_platform, prepare_trace, run_folder
from rooftrace.errors import UsageError
from rooftrace.units import format_ns

if TYPE_CHECKING:
    import argparse

    from rooftrace.fusion import Candidate, FusionInputs, FusionResult

_HEADER = ("pattern", "module", "instances", "kernels each", "time", "fused", "saving", "calls")

_MAX_INSTANCES = 50


def run(options: argparse.Namespace) -> int:
    """Print the candidates, most saved first, then those without a time to claim."""
    from rooftrace.analyzers.fusion import inputs_of
    from rooftrace.fusion import find_candidates

    if run_folder(options.source) is not None:
        raise UsageError("a run keeps no fusion candidates", hint="Give the trace file: `rooftrace fusion TRACE`")
    with own_models(options):
        own = own_platform(options)
        prepared = prepare_trace(options.source, platform=options.platform, own=own, steps=options.steps)
        inputs = inputs_of(prepared.workload)
        result = find_candidates(inputs)
    candidates = (*result.candidates, *result.unrated)
    hide = hider(options, prepared.workload.trace)
    rows = hide([row_of(result, candidate) for candidate in candidates])
    shown = rows[: options.limit]
    if options.json:
        located = zip(shown, candidates, strict=False)
        put_json([{**row, "first_instances": hide(places_of(inputs, result, candidate))} for row, candidate in located])
        return 0
    put_table(_HEADER, [_line(row) for row in shown], right=(2, 3, 4, 5, 6))
    if len(rows) > len(shown):
        say(f"{len(rows) - len(shown)} more candidates; use --limit")
    for item in result.rejected[: options.limit]:
        say(hide(f"not fused: {item.what}: {item.reason} ({item.count} calls, {format_ns(item.time_ns)})"))
    return 0


def row_of(result: FusionResult, candidate: Candidate) -> dict[str, str | int | None]:
    """A candidate as plain values; times in ns, of all instances."""
    from rooftrace.fusion import describe

    count = int(candidate.first.size)
    rated = candidate.estimate is not None
    return {
        "pattern": candidate.composition.identity if candidate.composition else "novel",
        "module": candidate.scope,
        "instances": count,
        "kernels_per_instance": int(result.activities(candidate).shape[1]),
        "time_ns": int(candidate.time_ns.sum()),
        "fused_ns": candidate.fused_ns * count if rated else None,
        "saving_ns": int(candidate.saving_ns.sum()) if rated else None,
        "calls": describe.op_chain(candidate),
        "shapes": describe.shapes(candidate),
        "unrated": candidate.reason,
    }


def places_of(inputs: FusionInputs, result: FusionResult, candidate: Candidate) -> list[dict[str, object]]:
    """Where the first instances ran; times in ns since the trace's first event."""
    from rooftrace.fusion import describe

    return [
        {
            "device": instance.device,
            "stream": instance.stream,
            "start_ns": instance.start_ns,
            "end_ns": instance.end_ns,
            "module_path": list(instance.module_path),
        }
        for instance in describe.instances(inputs, result, candidate)[:_MAX_INSTANCES]
    ]


def _line(row: dict[str, str | int | None]) -> list[str]:
    def time(name: str) -> str:
        value = row[name]
        return format_ns(value) if isinstance(value, int) else "-"

    return [
        str(row["pattern"]),
        str(row["module"]),
        str(row["instances"]),
        str(row["kernels_per_instance"]),
        time("time_ns"),
        time("fused_ns"),
        time("saving_ns"),
        str(row["calls"]) if row["unrated"] is None else str(row["unrated"]),
    ]
