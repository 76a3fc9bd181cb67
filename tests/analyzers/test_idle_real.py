"""Numbers about idle devices of real traces, against a program that shares no code with the package.

It walked through the raw events: gaps between the union of GPU events, and of each the part that events of a name
cover; copies by direction; calls that synchronise by length.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rooftrace.analyzers import idle
from rooftrace.trace import load
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.findings import find_and_score
from rooftrace.workflow.prepare import prepare_workload

TRACES = Path(os.environ.get("ROOFTRACE_TRACES", Path(__file__).resolve().parents[3] / "shared" / "traces"))

pytestmark = [
    pytest.mark.real_traces,
    pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces at {TRACES.name}; set ROOFTRACE_TRACES"),
]
VIT = "h100/Falconsai_nsfw_image_detection__1016002"
OWL = "h100/google_owlv2-large-patch14-ensemble__1016001"


def workload_of(name):
    return prepare_workload(load(TRACES / f"{name}.json.gz")[0], AnalyzeOptions()).workload


def test_little_of_the_gaps_passes_in_the_launches_that_end_them():
    (draft,) = idle.analyze(workload_of(VIT))[1]
    evidence = draft.finding.evidence

    # of 6,182.887 us the 49 cuLaunchKernel cover 221.7, the 73 aten::addmm 2,058.7
    assert (evidence["call"], evidence["call_pct"], evidence["call_gaps_pct"]) == ("cuLaunchKernel", 3.59, 39.16)
    assert (evidence["op"], evidence["op_pct"], evidence["op_gaps_pct"]) == ("aten::addmm", 33.3, 61.32)
    # 147 of the 155 gaps are the launches'; one of 143.36 us, which is 1.9 % of 7,559.844, is host code
    assert (evidence["gaps_count"], evidence["lone_gap_ms"], evidence["lone_gap_pct"]) == (147, 0.14336, 1.9)


def test_copies_that_block_are_counted_by_direction_and_five_hold_nearly_all_of_the_time():
    loading, syncs = find_and_score(workload_of(OWL)).findings["idle"][:2]
    evidence = syncs.evidence

    # 25 copies of 30,897,080 bytes and 55 of 146,418,600; the calls last 73.3, 72.3, 72.3, 72.2, 68.4 ms, then 21 us
    assert (evidence["htod_waits_count"], evidence["htod_bytes"]) == (25, 30_897_080)
    assert (evidence["dtoh_waits_count"], evidence["dtoh_bytes"]) == (55, 146_418_600)
    assert (evidence["waits_count"], evidence["most_waits_count"]) == (80, 5)
    assert evidence["guessed_pct"] == 0.0  # there is one stream
    assert evidence["wait_may_move"] is True
    assert "sync_wait_may_move" in syncs.patterns
    # of 492,726 us of gaps zoom is open for 424,089; little is recorded in it, so halving it is no cost of recording
    assert (loading.evidence["frame_pct"], loading.evidence["loader"]) == (86.07, "launching_thread")
    assert loading.evidence["half_host_score_pct"] > 39.0
