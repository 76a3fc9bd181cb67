"""However a trace is written, its totals are those of the healthy one, and nothing is said that is not so."""

from __future__ import annotations

import pytest

from rooftrace.trace import Trace
from tests.trace.cases.runs import result_of
from tests.trace.healthy import EVENTS, NOTES, TOTALS, WITHOUT_HEADER, healthy, notes, totals
from tests.trace.reading import Folder, cut_often, names_of, times_of
from tests.trace.rewriting import HEADERLESS, HEALTHY, SAME, TOLD


def test_the_healthy_trace_has_the_totals_that_are_written_beside_it() -> None:
    outcome = result_of(HEALTHY)

    assert totals(outcome) == TOTALS
    assert [note.text for note in outcome.health.notes] == NOTES
    assert outcome.trace.event_count == EVENTS == len(healthy().document()["traceEvents"])


@pytest.mark.parametrize("case", SAME)
def test_another_form_of_the_same_events_changes_no_total_and_no_note(case: str) -> None:
    outcome = result_of(SAME[case])

    assert totals(outcome) == TOTALS
    assert notes(outcome) == []


@pytest.mark.parametrize("case", TOLD)
def test_a_form_that_costs_no_event_changes_no_total_and_is_told(case: str) -> None:
    content, told = TOLD[case]

    outcome = result_of(content)

    assert totals(outcome) == TOTALS
    assert notes(outcome) == told


@pytest.mark.parametrize("case", HEADERLESS)
def test_a_form_without_a_header_has_the_totals_but_no_gpu_and_no_rank(case: str) -> None:
    outcome = result_of(HEADERLESS[case])

    assert totals(outcome) == TOTALS | WITHOUT_HEADER
    assert notes(outcome) == []


def columns_of(trace: Trace) -> list[object]:
    """All that totals are made of, whatever the order of the events."""
    links = zip(trace.correlation.tolist(), trace.external_id.tolist(), trace.stream.tolist(), strict=True)
    rows = zip(trace.kind.tolist(), names_of(trace), times_of(trace), links, trace.nbytes.tolist(), strict=True)
    return [sorted(rows), sorted(trace.flows.ts.tolist()), trace.header, trace.layout]


@pytest.mark.parametrize("case", [*SAME, *TOLD, *HEADERLESS])
def test_no_form_reads_otherwise_where_its_text_is_cut(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    content = SAME.get(case) or HEADERLESS.get(case) or TOLD[case][0]
    whole = columns_of(folder.trace(content))

    for block in (64, 2000):
        cut_often(monkeypatch, block, block // 2)
        assert columns_of(folder.trace(content)) == whole
