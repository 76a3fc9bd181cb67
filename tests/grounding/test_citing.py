"""GROUND002 and GROUND003: ids that exist, without a unit of the writer's own."""

from __future__ import annotations

import pytest

from tests.grounding.slots import told


@pytest.mark.parametrize(
    "text",
    [
        "{{gemm.F1.time_ms}} of {{ledger.span_ms}}",
        "`{{gemm.F1.top_op}}` and {{gemm.F1.m1.efficiency_pct}}",
        "{{idle.F1.idle_pct}} idle, {{ledger.idle_pct}} in all, {{gemm.time_ms}} of products",
    ],
)
def test_ids_of_the_run_can_be_cited(text, grounds):
    assert told("GROUND002", text, grounds) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{{gemm.F1.tme_ms}}",
            "`{{gemm.F1.tme_ms}}` cites nothing; near it: gemm.F1.time_ms, gemm.F1.m1.time_ms, gemm.F1.gap_ms",
        ),
        ("{{time_ms}}", "`{{time_ms}}` cites nothing; write {{gemm.F1.time_ms}}"),
        ("{{moe.F1.zzzzzz}}", "`{{moe.F1.zzzzzz}}` cites nothing; the ids are in the evidence of the task"),
        ("{{two words}}", "braces that cite nothing; a citation is {{id}} alone, also inside backticks"),
        ("`x {{gemm.F1.time_ms}} y`", "braces that cite nothing; a citation is {{id}} alone, also inside backticks"),
    ],
)
def test_other_ids_are_refused_with_those_near_them(text, problem, grounds):
    assert told("GROUND002", text, grounds) == [problem]


@pytest.mark.parametrize(
    "text",
    [
        "{{gemm.F1.kernels_count}} kernels, launched {{gemm.F1.instances_count}} times",
        "takes {{gemm.F1.time_ms}}, so much",
        "an efficiency of {{gemm.F1.efficiency_pct}} and a bandwidth of {{gemm.F2.achieved_gbps}}",
        "{{gemm.F1.time_ms}} a step",
    ],
)
def test_a_citation_alone_has_its_unit(text, grounds):
    assert told("GROUND003", text, grounds) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{gemm.F1.time_ms}} %", "`{{gemm.F1.time_ms}} %`: the report writes `3.200 ms` there; leave the unit out"),
        ("{{gemm.F1.time_ms}} ms", "`{{gemm.F1.time_ms}} ms`: the report writes `3.200 ms` there; leave the unit out"),
        (
            "{{gemm.F1.kernels_count}}x",
            "`{{gemm.F1.kernels_count}} x`: the report writes `4` there; leave the unit out",
        ),
        (
            "{{gemm.F1.efficiency_pct}} percent",
            "`{{gemm.F1.efficiency_pct}} percent`: the report writes `43.0 %` there; leave the unit out",
        ),
        ("an efficiency of {{gemm.F1.time_ms}}", "`gemm.F1.time_ms` is no efficiency: it measures time"),
        ("a bandwidth of {{gemm.F1.achieved_tflops}}", "`gemm.F1.achieved_tflops` is no bandwidth: it measures FLOP/s"),
        ("it takes {{gemm.F1.achieved_tflops}}", "`gemm.F1.achieved_tflops` is no duration: it measures FLOP/s"),
    ],
)
def test_a_unit_or_a_noun_that_contradicts_the_evidence_is_refused(text, problem, grounds):
    assert told("GROUND003", text, grounds) == [problem]


@pytest.mark.parametrize(
    ("text", "shown", "words"),
    [
        ("{{gemm.F1.time_ms}} falls.", "3.200 ms falls", "the time falls from {{gemm.F1.time_ms}}"),
        ("In a new trace {{gemm.F1.efficiency_pct}} then rises.", "43.0 % rises", "the efficiency rises from"),
        ("{{gemm.F1.kernels_count}} shrinks", "4 shrinks", "the kernels shrinks from {{gemm.F1.kernels_count}}"),
    ],
)
def test_a_value_does_not_fall_or_rise(text, shown, words, grounds):
    (problem,) = told("GROUND003", text, grounds, slot="verify")

    assert f"reads \u201c{shown}\u201d: name the quantity in words and cite its value" in problem
    assert words in problem


@pytest.mark.parametrize(
    "text",
    [
        "The time falls from {{gemm.F1.time_ms}}.",
        "The time of {{gemm.F1.time_ms}} falls.",
        "{{gemm.F1.top_kernel}} disappears.",
        "{{gemm.F1.time_ms}} is what the kernels take.",
    ],
)
def test_a_quantity_named_in_words_may_fall(text, grounds):
    assert told("GROUND003", text, grounds, slot="verify") == []
