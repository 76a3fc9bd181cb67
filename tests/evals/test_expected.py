"""Real traces against what an expert reads off their timelines."""

from __future__ import annotations

import pytest

from evals.scoring.analyse import analyse
from evals.scoring.expected import TRACES, Sheet, leads_wrongly, sheets, verdicts
from evals.scoring.found import Found

SHEETS = {sheet.name: sheet for sheet in sheets()}


def test_there_are_six_sheets_with_reasons():
    assert len(SHEETS) == 6
    assert all(len(one.reason) > 80 and one.low < one.high for sheet in SHEETS.values() for one in sheet.expected)


@pytest.mark.real_traces
@pytest.mark.parametrize("name", sorted(SHEETS))
def test_a_report_says_what_an_expert_sees(name):
    sheet = SHEETS[name]
    if not (TRACES / sheet.trace).is_file():
        pytest.skip(f"not there: {sheet.trace}")
    findings = analyse(TRACES / sheet.trace)

    assert {one.what: one.problems for one in verdicts(sheet, findings) if one.problems} == {}
    assert leads_wrongly(sheet, findings) == ""


def test_a_finding_at_another_place_of_another_size_is_not_what_was_expected():
    sheet: Sheet = SHEETS["owlv2_h100"]
    said = Found(
        identity="idle.F1",
        analyzer="idle",
        subject="",
        cause="data_loading",
        low=1.0,
        mid=2.0,
        high=3.0,
        is_bound=False,
        activities=frozenset(),
        text="tokenizer.py",
    )
    loading, attention = verdicts(sheet, [said])

    assert loading.problems == ["place", "size 3.0 %"]  # it belongs at 35 to 48 %
    assert attention.problems == ["not found"]
    assert leads_wrongly(sheet, [said]) == ""
