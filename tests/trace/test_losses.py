"""Damage that costs an event costs that one alone: totals are the healthy ones less what it held, and it is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.trace.cases.runs import result_of
from tests.trace.healthy import TOTALS, notes, totals
from tests.trace.reading import Folder, cut_often
from tests.trace.rewriting import EVENTS, HEALTHY, LINES

# The product of the second step: 39.875 µs of the 119.625, amid other work, so the span stays.
LOST = [number for number, event in enumerate(EVENTS) if event["name"] == "sgemm"][1]
EVENT = LINES[LOST]
PLACE = HEALTHY.index(EVENT)
LESS: dict[str, Any] = TOTALS | {
    "parts": TOTALS["parts"] | {"compute_ns": 79_750, "idle_ns": 128_125},  # 88.25 + 39.875
    "ops": {"aten::mm": 79_750},
    "links": ["CORRELATION"] * 8,
    "streams": [7] * 5 + [20] * 3,
    "rated_ns": 79_750,
}
LONELY = (
    "1 of 6 kernel launches have no GPU event: their kernels were captured into a graph, ran after the window, or "
    "were lost."
)
UNREADABLE = f"1 events dropped: unreadable event, the first at byte {PLACE}."
NO_TIME = "1 events dropped: event without a time."
NO_KIND = "1 events that name a launch are of a category that is not known: they are not counted."
NO_EVENT = f"What stands between events and is none was passed over: 1 times, the first at byte {PLACE}."
NAN = f"1 events repaired: not a finite number, the first at byte {PLACE}."


def sub(pattern: bytes, new: bytes) -> bytes:
    changed = re.sub(pattern, new, EVENT, count=1)
    assert changed != EVENT
    return changed


# what stands in the event's place, what is told
CASES: dict[str, tuple[bytes, list[str]]] = {
    "a colon missing": (sub(rb'"ts":', b'"ts"'), [UNREADABLE]),
    "a quote missing before a key": (sub(rb'"tid"', b'tid"'), [UNREADABLE]),
    "a bit flipped in a quote": (sub(rb'"name"', b'"name#'), [UNREADABLE]),
    "its first bracket missing": (EVENT[1:], [UNREADABLE]),
    "its last bracket missing": (EVENT[:-1], [UNREADABLE]),
    "a number with a plus": (sub(rb'"ts":', b'"ts":+'), [UNREADABLE]),
    "a number with a zero before it": (sub(rb'"ts":', b'"ts":0'), [UNREADABLE]),
    "a number that ends in a point": (sub(rb"\.125,", b".,"), [UNREADABLE]),
    "a decimal comma": (sub(rb"\.125,", b",125,"), [UNREADABLE]),
    "a word of Python": (sub(rb'"args":{', b'"args":{"x":None,'), [UNREADABLE]),
    "single quotes": (EVENT.replace(b'"', b"'"), [UNREADABLE]),
    "zeros in it": (EVENT[:40] + bytes(60) + EVENT[100:], [UNREADABLE]),
    "the beginning of another trace in it": (EVENT[:50] + HEALTHY[:300] + EVENT[50:], [UNREADABLE]),
    "a time of null": (sub(rb'"ts":[0-9.]+', b'"ts":null'), [NO_TIME]),
    "a time of words": (sub(rb'"ts":[0-9.]+', b'"ts":"soon"'), [NO_TIME]),
    "a time as text with a decimal comma": (sub(rb'"ts":(\d+)\.(\d+)', rb'"ts":"\1,\2"'), [NO_TIME]),
    "a time that is no number": (sub(rb'"ts":[0-9.]+', b'"ts":nan'), [NAN, NO_TIME]),
    "no time": (sub(rb'"ts":[0-9.]+,', b""), [NO_TIME]),
    "no category": (sub(rb'"cat":"kernel",', b""), [NO_KIND]),
    "a category of next year": (sub(rb'"cat":"kernel"', b'"cat":"concurrent_kernel"'), [NO_KIND]),
    "an array in its place": (b'["X",1,2]', [NO_EVENT]),
    "a text in its place": (b'"lost"', [NO_EVENT]),
}


@pytest.mark.parametrize("case", CASES)
def test_an_event_that_cannot_be_used_costs_itself_alone_and_is_told(case: str) -> None:
    event, told = CASES[case]

    outcome = result_of(HEALTHY.replace(EVENT, event, 1))

    assert totals(outcome) == LESS
    assert sorted(notes(outcome)) == sorted([*told, LONELY])
    assert outcome.health.verdict == "limited"


@pytest.mark.parametrize("case", CASES)
def test_an_event_that_cannot_be_used_is_the_same_wherever_the_text_is_cut(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    content = HEALTHY.replace(EVENT, CASES[case][0], 1)
    whole = folder.trace(content)

    for block in (64, 2000):
        cut_often(monkeypatch, block, block // 2)
        trace = folder.trace(content)
        assert (trace.dropped, trace.repaired) == (whole.dropped, whole.repaired)
        assert (trace.event_count, trace.start.tolist()) == (whole.event_count, whole.start.tolist())


def test_an_event_without_a_duration_is_kept_as_one_of_none() -> None:
    outcome = result_of(HEALTHY.replace(EVENT, sub(rb'"dur":[0-9.]+,', b""), 1))

    assert totals(outcome) == LESS | {"links": TOTALS["links"], "streams": TOTALS["streams"]}
    assert notes(outcome) == ["1 events repaired: event without a duration."]


def test_an_event_without_a_name_keeps_its_time_and_its_op() -> None:
    outcome = result_of(HEALTHY.replace(EVENT, sub(rb'"name":"sgemm",', b""), 1))

    assert totals(outcome) == TOTALS
    assert notes(outcome) == []


def test_every_prefix_of_the_healthy_trace_holds_the_kernels_that_are_whole_in_it() -> None:
    """Cut behind each event in turn: the GPU time is that of the GPU events before the cut, of 39.875, 8 and 10 µs."""
    ends = [HEALTHY.index(line) + len(line) for line in LINES]
    busy = {"kernel": 0, "gpu_memcpy": 0}
    for event, end in zip(EVENTS, ends, strict=True):
        if event.get("cat") in busy:
            busy[event["cat"]] += round(1000 * event["dur"])
            parts = result_of(HEALTHY[: end + 1]).parts()
            kernels = parts.get("compute_ns", 0) + parts.get("exposed_comm_ns", 0)
            assert (kernels, parts.get("exposed_copy_ns", 0)) == (busy["kernel"], busy["gpu_memcpy"])
    assert busy == {"kernel": 149_625, "gpu_memcpy": 24_000}  # 119.625 + 30; 24


def test_of_two_halves_one_behind_the_other_the_first_is_analysed_and_the_second_told() -> None:
    """The first 23 events: the first step and the second one up to its product."""
    from tests.trace.rewriting import with_events

    first, second = with_events(EVENTS[:23]), with_events(EVENTS[23:])
    joint = result_of(first + b"\n" + second)

    assert totals(joint) == totals(result_of(first))
    assert joint.parts()["compute_ns"] == 79_750
    place = len(first) + 1 + second.index(b'"traceEvents"')
    assert f"15 events dropped: second trace in the same file, the first at byte {place}." in notes(joint)  # not flows
