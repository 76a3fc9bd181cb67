"""``ledger``: the time ledger as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.cli.hiding import hider
from rooftrace.cli.output import put_json, put_table, say
from rooftrace.cli.source import own_models, prepare_trace, refuse_choices, run_folder
from rooftrace.contracts import store
from rooftrace.contracts.ledger import DeviceLedger, LedgerFile, LedgerParts
from rooftrace.units import format_ns, format_pct, pct

if TYPE_CHECKING:
    import argparse

    from rooftrace.trace import Trace

_HEADER = ("device", "stretch", "span", "compute", "exposed comm", "exposed copy", "idle", "idle %")


def run(options: argparse.Namespace) -> int:
    """Print each device and its steps."""
    devices, trace = _ledgers(options)
    hide = hider(options, trace)
    if options.json:
        put_json(hide([device.model_dump(mode="json") for device in devices]))
        return 0
    rows = []
    for device in devices:
        rows.append([str(device.device), "whole", *_parts(device)])
        if len(device.steps) > 1:
            rows += [["", step.name, *_parts(step)] for step in device.steps]
    put_table(_HEADER, hide(rows), right=range(2, 8))
    for device in devices:
        split = sorted(device.compute_by_category.items(), key=lambda item: (-item[1], item[0]))
        text = ", ".join(f"{name} {format_ns(ns)} ({format_pct(pct(ns, device.span_ns))})" for name, ns in split)
        say(f"device {device.device} compute by category: {text or 'none'}")
    if not devices:
        say("no GPU activity in this trace")
    return 0


def _ledgers(options: argparse.Namespace) -> tuple[list[DeviceLedger], Trace | None]:
    """The ledgers, and the trace that they were made of on the spot."""
    folder = run_folder(options.source)
    if folder is not None:
        refuse_choices(options, "models", "steps")
        return store.read_artifact(folder / store.LEDGER, LedgerFile).devices, None
    with own_models(options):
        workload = prepare_trace(options.source, steps=options.steps).workload
        return workload.ledgers, workload.trace


def _parts(part: LedgerParts) -> list[str]:
    times = (part.span_ns, part.compute_ns, part.exposed_comm_ns, part.exposed_copy_ns, part.idle_ns)
    return [*map(format_ns, times), format_pct(pct(part.idle_ns, part.span_ns))]
