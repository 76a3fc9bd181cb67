"""Stalls of the host: calls that stood still though they usually take no time, whatever the GPU did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.analyzers.idle_edits import cuts
from rooftrace.analyzers.idle_syncs import heaviest, name_of
from rooftrace.causes import find_stalls
from rooftrace.intervals import union
from rooftrace.replay.edits import Edit
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.causes import Stalls
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.ledger import DeviceLedger

# From this share of a device's span on, stalls are told.
MIN_STALLED_PCT = 2.0
# What holds a thread up hits any call; stalls of one or two ops are those ops' own work.
_FEWEST_OPS = 3
ASPECT = "host_stalls"


def stalls_worth_telling(workload: Workload) -> tuple[DeviceLedger, Stalls] | None:
    """The stalls of the run and the device that they keep from its work, if they take enough of its span."""
    activities = workload.activities
    stalls = find_stalls(workload.trace, workload.tree, activities, workload.schedule, workload.causes)
    if not stalls.node.size or not workload.ledgers:
        return None
    launched = activities.launch >= 0
    lanes = workload.tree.lane[activities.launch[launched]]
    mine = activities.device[launched][np.isin(lanes, stalls.lane)]
    device = int(np.bincount(mine).argmax())
    ledger = next(ledger for ledger in workload.ledgers if ledger.device == device)
    stalls = stalls.select(_of_run(workload, device, stalls))
    stood = union(stalls.start, stalls.end).length
    if (
        sorted_unique(workload.tree.name[stalls.node]).size < _FEWEST_OPS
        or pct(stood, ledger.span_ns) < MIN_STALLED_PCT
    ):
        return None
    return ledger, stalls


def _of_run(workload: Workload, device: int, stalls: Stalls) -> NDArray[np.bool_]:
    """Which stalls lie between the first launch to a device and the end of its last activity."""
    activities = workload.activities
    mine = (activities.device == device) & (activities.launch >= 0)
    first = int(workload.tree.start[activities.launch[mine]].min())
    inside: NDArray[np.bool_] = (stalls.start >= first) & (stalls.end <= int(activities.end[mine].max()))
    return inside


def stall_evidence(workload: Workload, ledger: DeviceLedger, stalls: Stalls) -> dict[str, EvidenceValue]:
    """How often and how long the host stood still, in what, and how much of it left the device idle."""
    tree, causes = workload.tree, workload.causes
    stood = union(stalls.start, stalls.end)
    gaps = causes.of_device(ledger.device)
    idle = int((stood.covered_before(causes.end[gaps]) - stood.covered_before(causes.start[gaps])).sum())
    names = tree.name[stalls.node]
    top = heaviest(names, stalls.dur)
    longest = int(stalls.dur.argmax())
    alike = tree.self_time()[tree.name == top]
    return {
        "device": ledger.device,
        "cause": "host_code",
        "aspect": ASPECT,
        "inventory": True,
        "idle_ms": ns_to_ms(idle),
        "idle_pct": pct(idle, ledger.span_ns),
        "all_idle_ms": ns_to_ms(ledger.idle_ns),
        "all_idle_pct": pct(ledger.idle_ns, ledger.span_ns),
        "stalls_count": int(stalls.node.size),
        "stalls_ms": ns_to_ms(stood.length),
        "stalls_pct": pct(stood.length, ledger.span_ns),
        "longest_stall_ms": ns_to_ms(int(stalls.dur[longest])),
        "longest_stall_op": name_of(workload, int(names[longest])),
        "median_stall_ms": ns_to_ms(float(np.median(stalls.dur))),
        "stalled_ops_count": int(sorted_unique(names).size),
        "call": name_of(workload, top),
        "call_count": int(alike.size),
        "call_median_us": ns_to_us(float(np.median(alike))),
        "call_max_ms": ns_to_ms(int(alike.max())),
        "frame": "",
    }


def stall_edit(stalls: Stalls) -> Edit:
    """Every stall gone, but for what its call usually takes."""
    return Edit(host=cuts(stalls.lane, stalls.start, stalls.end))
