"""``replay``: the run again, as recorded or with something changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.cli.hiding import hider
from rooftrace.cli.output import put_json, put_table, say
from rooftrace.cli.source import own_models, prepare_trace
from rooftrace.units import format_ns, format_pct, pct

if TYPE_CHECKING:
    import argparse

    from rooftrace.workflow.whatif import Answer

_PARTS = ("span_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")


def run(options: argparse.Namespace) -> int:
    """Print the span, the ledger and what bounds the run, as recorded and as asked."""
    from rooftrace.workflow.whatif import Questions, answer

    questions = Questions(
        scale=options.scale or (),
        scale_kernel=options.scale_kernel or (),
        without=options.without or (),
        host_scale=options.host_scale,
        no_launch_gaps=options.no_launch_gaps,
    )
    with own_models(options):
        workload = prepare_trace(options.source, steps=options.steps).workload
    if not workload.activities.row.size and not options.json:
        say("no GPU activity in this trace")
        return 0
    before, after = answer(workload, Questions()), answer(workload, questions)
    if options.json:
        put_json(hider(options, workload.trace)(_as_json(after)))
        return 0
    rows = [
        [name.removesuffix("_ns").replace("_", " "), format_ns(old), format_ns(new), format_pct(pct(new - old, old))]
        for name in _PARTS
        for old, new in ((_total(before, name), _total(after, name)),)
    ]
    put_table(("part", "recorded", "replayed", "change"), rows, right=(1, 2, 3))
    paths = [
        [resource, format_pct(pct(old, before.span_ns)), format_pct(pct(after.by_resource[resource], after.span_ns))]
        for resource, old in before.by_resource.items()
        if old or after.by_resource[resource]
    ]
    put_table(("critical path", "recorded", "replayed"), paths, right=(1, 2))
    error = format_pct(pct(abs(before.baseline_ns - before.measured_ns), before.measured_ns))
    say(f"unchanged, the replay is off by {error}; changed, the run takes {format_ns(after.span_ns)}")
    return 0


def _total(result: Answer, part: str) -> int:
    return sum(getattr(ledger, part) for ledger in result.ledgers)


def _as_json(result: Answer) -> dict[str, object]:
    return {
        "measured_ns": result.measured_ns,
        "baseline_ns": result.baseline_ns,
        "span_ns": result.span_ns,
        "critical_path": result.by_resource,
        "ledger": [ledger.model_dump(mode="json") for ledger in result.ledgers],
    }
