"""GROUND006: comparisons that the evidence contradicts.

Of the small run: gemm.F1 takes 32 % of the span (rank 2, compute-bound, 43 % of the roofline), reduction.F1 0.2 %,
idle.F1 25 % (rank 1); the GPU is idle for 25 % of the span.
"""

from __future__ import annotations

import dataclasses

import pytest

from tests.grounding.slots import told


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        ("gemm.F1", "It dominates the span."),
        ("gemm.F1", "It is compute-bound, not memory-bound."),
        ("gemm.F1", "It would be memory-bound once the tiles are larger."),
        ("gemm.F1", "It is far from the roofline."),
        ("gemm.F1", "{{gemm.F1.time_ms}} exceeds the floor of {{gemm.F1.floor_ms}}."),
        ("gemm.F1", "{{gemm.F1.gap_ms}} of {{gemm.F1.time_ms}} is above the floor."),
        ("gemm.F2", "Its memory-bound calls stream the weights."),
        ("idle.F1", "Idle time is the biggest problem."),
        ("reduction.F1", "Its share is negligible."),
        ("reduction.F1", "Among these the first is dominant."),
        ("reduction.F1", "Most of the blocked time passes here."),
    ],
)
def test_what_the_evidence_bears_out_passes(finding, text, grounds):
    assert told("GROUND006", text, grounds, finding=finding) == []


@pytest.mark.parametrize(
    ("finding", "text", "problem"),
    [
        (
            "reduction.F1",
            "It dominates the run.",
            "\u201cdominates\u201d of what takes 0.20 % of the span; cite the share and let it speak",
        ),
        (
            "gemm.F1",
            "Most of the GPU time goes here.",
            "\u201cMost of the GPU time\u201d of what takes 32.0 % of the span; cite the share and let it speak",
        ),
        (
            "elementwise.F1",
            "It is the main bottleneck.",
            "\u201cmain bottleneck\u201d of what takes 15.0 % of the span; cite the share and let it speak",
        ),
        (
            "gemm.F1",
            "The cost is negligible.",
            "\u201cnegligible\u201d of what takes 32.0 % of the span; cite the share and let it speak",
        ),
        (
            "gemm.F1",
            "It is memory-bound.",
            "\u201cmemory-bound\u201d, but the evidence's bound is compute; cite the finding's `bound`",
        ),
        (
            "gemm.F2",
            "It is compute-bound.",
            "\u201ccompute-bound\u201d, but the evidence's bound is memory; cite the finding's `bound`",
        ),
        (
            "gemm.F1",
            "It runs close to the roofline.",
            "\u201cclose to the roofline\u201d, but it runs at 43.0 % of the roofline",
        ),
        (
            "gemm.F1",
            "{{gemm.F1.floor_ms}} exceeds {{gemm.F1.time_ms}}.",
            "\u201c1.374 ms exceeds 3.200 ms\u201d is not so; turn the comparison round or cite others",
        ),
        (
            "gemm.F1",
            "{{gemm.F1.mean_kernel_us}} is more than {{gemm.F1.time_ms}}.",
            "\u201c800.0 \u00b5s is more than 3.200 ms\u201d is not so; turn the comparison round or cite others",
        ),
        (
            "gemm.F1",
            "{{gemm.F1.time_ms}} of {{gemm.F1.gap_ms}} is lost.",
            "\u201c3.200 ms of 1.826 ms\u201d is not so; turn the comparison round or cite others",
        ),
    ],
)
def test_what_the_evidence_contradicts_is_refused(finding, text, problem, grounds):
    assert told("GROUND006", text, grounds, finding=finding) == [problem]


def test_a_host_bound_run_is_not_gpu_bound(grounds):
    assert told("GROUND006", "The run is GPU-bound.", grounds, finding="idle.F1") == []
    assert told("GROUND006", "The run is GPU-bound.", grounds, finding="idle.F1", host_bound=True) == [
        "\u201cGPU-bound\u201d, but the GPU is idle for 25.0 % of the span: the evidence finds the host too slow"
    ]


def test_a_busy_run_is_not_host_bound(grounds):
    busy = dataclasses.replace(grounds, values={**grounds.values, "ledger.idle_pct": 4.0})

    assert told("GROUND006", "The run is host-bound.", grounds) == []
    assert told("GROUND006", "The run is host-bound.", busy) == [
        "\u201chost-bound\u201d, but the GPU is idle for only 4.0 % of the span"
    ]


def test_a_finding_about_launches_may_call_its_gaps_launch_bound(grounds):
    busy = dataclasses.replace(grounds, values={**grounds.values, "ledger.idle_pct": 4.0})
    text = "These gaps are launch-bound."

    assert told("GROUND006", text, busy, finding="idle.F1", cause="launch_bound") == []
    assert len(told("GROUND006", text, busy, finding="idle.F1", cause="data_loading")) == 1


# A run whose launches come late by one finding's cause, although the replay finds it bound by compute.
CAUSE_NAMED = [
    "Launch-bound gaps hold {{idle.F1.idle_ms}}.",
    "Its idle time is launch-bound, so fewer launches come first.",
    "The gaps between kernels are host-bound.",
    "In a new trace launch-bound idle time is gone.",
]
RUN_CLAIMED = [
    "The run is launch-bound.",
    "The whole step is clearly host-bound.",
    "These are launch-bound kernels.",
    "The kernels are CPU-bound.",
]


@pytest.mark.parametrize("finding", ["idle.F1", "gemm.F1", None])
@pytest.mark.parametrize("slot", ["summary", "insight", "reasoning", "verify"])
def test_the_cause_of_an_idle_finding_may_be_named_everywhere_and_the_run_is_judged(finding, slot, grounds):
    busy = dataclasses.replace(grounds, values={**grounds.values, "ledger.idle_pct": 4.0, "replay.bound_by": "compute"})
    idle = busy.findings["idle.F1"]
    busy.findings["idle.F1"] = idle.model_copy(update={"evidence": {**idle.evidence, "cause": "launch_bound"}})

    told_of = {text: told("GROUND006", text, busy, finding=finding, slot=slot) for text in CAUSE_NAMED + RUN_CLAIMED}

    assert {text: found for text, found in told_of.items() if found and text in CAUSE_NAMED} == {}
    assert [text for text, found in told_of.items() if len(found) != 1] == CAUSE_NAMED


def test_a_kernel_group_is_not_launch_bound_because_some_gaps_are(grounds):
    busy = dataclasses.replace(grounds, values={**grounds.values, "ledger.idle_pct": 4.0})
    idle = busy.findings["idle.F1"]
    busy.findings["idle.F1"] = idle.model_copy(update={"evidence": {**idle.evidence, "cause": "launch_bound"}})

    assert len(told("GROUND006", "It is launch-bound.", busy, finding="gemm.F1")) == 1
    assert told("GROUND006", "It is launch-bound.", busy, finding="idle.F1") == []


def test_a_summary_is_held_to_the_share_of_its_analyzer(grounds):
    small = dataclasses.replace(grounds, summaries={"gemm": {"time_share_pct": 3.0}})

    assert told("GROUND006", "They dominate the span.", small, finding=None, slot="summary") == [
        "\u201cdominate\u201d of what takes 3.0 % of the span; cite the share and let it speak"
    ]


@pytest.mark.parametrize(
    ("bound_by", "text", "problem"),
    [
        (
            "host",
            "The run is GPU-bound.",
            "\u201cGPU-bound\u201d, but the GPU is idle for 25.0 % of the span: the evidence finds the host too slow",
        ),
        ("compute", "It is CPU-bound.", "\u201cCPU-bound\u201d, but the replay finds the run bound by compute"),
    ],
)
def test_what_the_replay_says_of_the_run_counts(bound_by, text, problem, grounds):
    replayed = dataclasses.replace(grounds, values={**grounds.values, "replay.bound_by": bound_by})

    assert told("GROUND006", text, grounds) == []
    assert told("GROUND006", text, replayed) == [problem]
