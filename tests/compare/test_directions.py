"""Words of change against the evidence: what is refused, and what is said rightly or cannot be told is let pass."""

from __future__ import annotations

import dataclasses

import pytest

from rooftrace.report.grounding.grounds import Slot
from rooftrace.report.grounding.pair import PairGrounds
from rooftrace.report.grounding.rules import RULES
from rooftrace.report.slots import SlotText

# compare.F1: 400 to 520 us, a slower kernel; compare.F2: 200 to 160 us; the whole: 680 to 760 us.


def told(text: str, grounds: PairGrounds, finding: str | None = "compare.F1", slot: str = "insight") -> list[str]:
    held = Slot(
        where="prose/compare.json::$.x",
        name=slot if finding else "summary",
        analyzer="compare",
        text=SlotText(raw=text),
        finding=grounds.findings[finding] if finding else None,
    )
    return list(RULES["GROUND009"](held, grounds))


WRONG = {
    "plain": ("compare.F1", "The products are faster in the target."),
    "of an improvement": ("compare.F2", "The additions have become slower."),
    "of the base": ("compare.F1", "The base is slower here."),
    "than the base": ("compare.F1", "It is faster than in the base."),
    "than the target": ("compare.F2", "This op is faster in the base than in the target."),
    "noun": ("compare.F2", "This regression lies in the additions."),
    "speed-up": ("compare.F1", "The target has a clear speed-up in the products."),
    "less time": ("compare.F1", "Against the base, the products take less time."),
    "summary that cites": (None, "The additions are slower by {{compare.F2.difference_ms}}."),
    "summary that cites T1": (None, "Products became faster by {{compare.T1.gemm.difference_ms}}."),
    "summary that cites T2": (None, "These are faster now: {{compare.T2.w1.target_ms}}."),
    "the run": (None, "The target is faster overall."),
    "the run, by its base": (None, "The base runs slower."),
    "another kernel": ("compare.F1", "A different kernel does the products in the target."),
    "precision": ("compare.F1", "The target runs them in lower precision."),
    "more launches": ("compare.F1", "The target needs fewer launches and loses time."),
    "efficiency": ("compare.F1", "In the target the kernel is more efficient."),
}
RIGHT = {
    "plain": ("compare.F1", "The products are slower in the target."),
    "of the base": ("compare.F1", "The base is faster here."),
    "in the base": ("compare.F2", "This was slower in the base."),
    "than": ("compare.F1", "The base is faster than the target."),
    "turned round": ("compare.F1", "It takes less time in the base than in the target."),
    "no longer": ("compare.F2", "The kernel no longer waits for the host."),
    "negated": ("compare.F1", "The products have not become faster."),
    "what would be": ("compare.F1", "A fused kernel would be faster."),
    "single calls": ("compare.F2", "Each call is slower, but there are fewer of them."),
    "both words": ("compare.F1", "Slower products eat up what the faster additions gave."),
    "another finding": ("compare.F1", "The additions are faster ({{compare.F2.difference_ms}})."),
    "summary of both": (
        None,
        "Products are slower ({{compare.F1.base_ms}}), additions faster ({{compare.F2.base_ms}}).",
    ),
    "the run": (None, "The target is slower overall."),
    "the run, by its base": (None, "The base runs faster."),
    "of what is not cited": (None, "Faster additions came with the new version."),
    "same kernel": ("compare.F1", "The same kernel takes more time on the same shapes."),
    "same launches": ("compare.F1", "There are no more launches than before."),
    "efficiency": ("compare.F1", "In the target the kernel is less efficient."),
    "noise": ("compare.F1", "The difference is beyond noise."),
    "gave way": ("compare.F2", "What the base used gave way to something faster."),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_evidence_contradicts_is_refused(case, grounds):
    finding, text = WRONG[case]

    assert len(told(text, grounds, finding)) == 1


@pytest.mark.parametrize("case", RIGHT)
def test_what_holds_or_cannot_be_told_passes(case, grounds):
    finding, text = RIGHT[case]

    assert told(text, grounds, finding) == []


def test_advice_is_not_held_to_what_is_the_case(grounds):
    assert told("Use the faster path of the library.", grounds, slot="action") == []


def test_beyond_noise_is_refused_where_noise_cannot_be_told(grounds):
    result = grounds.result
    first = result.findings[0].model_copy(update={"beyond_noise": None})
    changed = dataclasses.replace(grounds, result=result.model_copy(update={"findings": [first, *result.findings[1:]]}))

    assert told("It is slower beyond noise.", changed) == ["“beyond noise”, but there are too few steps to tell noise"]


def test_no_run_is_faster_where_two_workloads_were_compared(grounds):
    result = grounds.result
    sanity = result.sanity.model_copy(update={"verdict": "not_comparable"})
    changed = dataclasses.replace(grounds, result=result.model_copy(update={"sanity": sanity}))

    assert told("The target is slower.", changed, None) == [
        "“target is slower”, but these are two different workloads: neither is faster or slower"
    ]


def test_a_gpu_that_only_one_side_has_stands_for_that_side(grounds):
    result = grounds.result
    base, target = (
        side.model_copy(update={"platform": side.platform.model_copy(update={"product": product})})
        for side, product in ((result.base, "H100 SXM5 80 GB"), (result.target, "Instinct MI300X"))
    )
    changed = dataclasses.replace(grounds, result=result.model_copy(update={"base": base, "target": target}))

    assert told("The MI300X is slower here.", changed) == []
    assert told("The H100 is faster than the MI300X here.", changed) == []
    assert len(told("The H100 is slower than the MI300X here.", changed)) == 1
    assert len(told("The MI300X is faster overall.", changed, None)) == 1


def test_a_run_of_one_trace_is_not_held_to_it(grounds):
    single = dataclasses.replace(grounds)
    single.__dict__["values"] = {"gemm.F1.time_ms": 1.0}

    assert told("The products are faster in the target.", single) == []
