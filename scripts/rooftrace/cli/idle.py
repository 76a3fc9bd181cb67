"""``idle``: why each device had nothing to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.cli.hiding import hider
from rooftrace.cli.output import put_json, put_table, say
from rooftrace.cli.source import own_models, prepare_trace
from rooftrace.units import format_count, format_ns, format_pct, pct

if TYPE_CHECKING:
    import argparse

    from rooftrace.analyzers import Workload

Rows = list[dict[str, str | int]]


def run(options: argparse.Namespace) -> int:
    """Print idle time by cause, the calls that blocked, and the longest gaps."""
    with own_models(options):
        workload = prepare_trace(options.source, steps=options.steps).workload
    if not workload.activities.row.size:
        say("no GPU activity in this trace")
        return 0
    hide = hider(options, workload.trace)
    causes, blocking, gaps = hide((_causes(workload), _blocking(workload), _gaps(workload, options.limit)))
    if options.json:
        put_json({"causes": causes, "blocking": blocking, "gaps": gaps})
        return 0
    span = workload.span_ns
    put_table(
        ("device", "cause", "gaps", "idle", "of the span"),
        [[str(row["device"]), str(row["cause"]), *_counted(row, "gaps", span)] for row in causes],
        right=(2, 3, 4),
    )
    if blocking:
        put_table(
            ("blocked under", "call", "in", "calls", "blocked", "of the span"),
            [
                [str(row["op"]), str(row["call"]), str(row["frame"]), *_counted(row, "calls", span)]
                for row in blocking[: options.limit]
            ],
            right=(3, 4, 5),
        )
    put_table(
        ("device", "gap", "cause", "next", "op", "in"),
        [
            [
                str(row["device"]),
                format_ns(int(row["ns"])),
                *(str(row[name]) for name in ("cause", "next", "op", "frame")),
            ]
            for row in gaps
        ],
        right=(1,),
    )
    return 0


def _counted(row: dict[str, str | int], count: str, span: int) -> list[str]:
    time = int(row["ns"])
    return [format_count(int(row[count])), format_ns(time), format_pct(pct(time, span))]


def _causes(workload: Workload) -> Rows:
    idle = workload.causes
    return [
        {
            "device": ledger.device,
            "cause": cause.name.lower(),
            "gaps": int(idle.of_cause(ledger.device, cause).size),
            "ns": time,
        }
        for ledger in workload.ledgers
        for cause, time in idle.idle_ns(ledger.device).items()
    ]


def _blocking(workload: Workload) -> Rows:
    from rooftrace.analyzers.idle_syncs import find_syncs

    return [
        {
            "op": kind.op,
            "call": kind.call,
            "frame": kind.frame or "-",
            "calls": int(kind.waits.size),
            "ns": kind.blocked_ns,
        }
        for kind in find_syncs(workload)
    ]


def _gaps(workload: Workload, limit: int) -> Rows:
    from rooftrace.causes import CAUSE_NAMES

    idle, names = workload.causes, workload.trace.names
    longest = np.argsort(-idle.dur, kind="stable")[:limit]
    return [
        {
            "device": int(idle.device[gap]),
            "ns": int(idle.dur[gap]),
            "cause": CAUSE_NAMES[int(idle.cause[gap])],
            "next": workload.activities.infos[int(workload.activities.name[idle.after[gap]])].short,
            "op": names[workload.tree.name[idle.op[gap]]] if idle.op[gap] >= 0 else "-",
            "frame": names[workload.trace.name[idle.frame[gap]]] if idle.frame[gap] >= 0 else "-",
        }
        for gap in longest.tolist()
    ]
