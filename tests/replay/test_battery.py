"""Hand-computed what-ifs: the simulator gives the literals, and so does the replay of the written trace."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from evals.workshop.hardware import MI300X
from evals.workshop.instructions import Await, Launch, Work
from evals.workshop.truth import span_ns
from evals.workshop.whatif.battery import battery
from evals.workshop.whatif.cases import Case
from evals.workshop.whatif.changes import Both, DropSpans, RemoveWaits, ScaleHost, ScaleKernels, changed
from evals.workshop.whatif.draws import draw
from tests.replay.adapter import replayed

BATTERY = battery()
EACH_CASE = pytest.mark.parametrize("case", BATTERY, ids=[case.name for case in BATTERY])


def named(name: str) -> Case:
    return next(case for case in BATTERY if case.name == name)


@EACH_CASE
def test_the_simulator_gives_the_spans_worked_out_by_hand(case: Case):
    assert (span_ns(case.before()), span_ns(case.after())) == (case.before_ns, case.after_ns)


@EACH_CASE
def test_the_replay_gives_the_spans_worked_out_by_hand_to_the_nanosecond(case: Case):
    answer = replayed(case)

    assert answer.measured_ns == case.before_ns
    assert answer.unchanged_ns == case.before_ns
    assert answer.changed_ns == case.after_ns


def sync_events(case: Case) -> list[dict[str, Any]]:
    return [row for row in json.loads(case.trace())["traceEvents"] if row.get("cat") == "cuda_sync"]


def test_a_recorded_stream_wait_names_both_streams_and_the_record_call():
    # Calls of a round: A 1, record 2, wait 3, B 4, record 5, D 6, wait 7, C 8; the next round goes on with 9
    rows = sync_events(named("two streams, B halved"))
    waits = [row["args"] for row in rows if row["name"] == "Stream Wait Event"]

    assert [(row["correlation"], row["stream"], row["wait_on_stream"]) for row in waits[:2]] == [(3, 13, 7), (7, 7, 13)]
    assert [row["wait_on_cuda_event_record_corr_id"] for row in waits] == [2, 5, 10, 13, 18, 21]
    assert [row["wait_on_cuda_event_id"] for row in waits] == [0, 1, 2, 3, 4, 5]


def test_a_recorded_synchronisation_names_what_the_host_waited_for():
    # Calls: A 1, record 2, B 3, event sync 4, and again 5 to 8
    event = [row["args"] for row in sync_events(named("event sync, A halved"))]
    stream = [row["args"] for row in sync_events(named("sync per step, no wait"))]

    assert [(row["cuda_sync_kind"], row["stream"]) for row in event] == [("Event Sync", -1)] * 2
    assert [(row["wait_on_stream"], row["wait_on_cuda_event_record_corr_id"]) for row in event] == [(7, 2), (7, 6)]
    assert [(row["cuda_sync_kind"], row["stream"]) for row in stream] == [("Stream Sync", 7)] * 4


def test_allocator_calls_and_traces_without_the_option_or_of_amd_hold_no_sync_events():
    streams = named("two streams, B halved")

    assert sync_events(named("memory freed, B halved")) == []
    assert sync_events(replace(streams, sync_events=False)) == []
    assert sync_events(replace(streams, gpu=MI300X)) == []


def test_removed_waits_are_those_of_the_named_operator_alone():
    case = named("blocking copy, no wait")
    rows = changed(case.threads, RemoveWaits(op="aten::copy_"))[0].instructions
    others = changed(case.threads, RemoveWaits(op="aten::item"))

    assert [row.is_blocking for row in rows if isinstance(row, Launch)] == [False] * 6
    assert others == case.threads


def test_halved_host_work_leaves_latencies_and_awakenings():
    case = named("autograd thread, no hook")
    main, engine = changed(case.threads, ScaleHost(factor=0.5))
    launches = [row for row in main.instructions if isinstance(row, Launch)]

    assert {(row.host_ns, row.latency_ns) for row in launches} == {(2_500, 6_000)}  # 5,000 / 2
    assert [row.wake_ns for row in engine.instructions if isinstance(row, Await)] == [10_000, 10_000]


def test_dropped_spans_lose_their_work_and_nothing_around_them():
    case = named("data loading, none")
    rows = changed(case.threads, DropSpans(name="enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"))
    work = [row.ns for row in rows[0].instructions if isinstance(row, Work)]

    # A step: 0, the batch, 0 inside the span; then two operators of 1,000 before and after their call
    assert work == [0, 0, 0, 1_000, 1_000, 1_000, 1_000] * 3


def test_two_changes_act_one_after_the_other():
    case = named("GPU-bound, kernels halved")
    half = ScaleKernels(name="big_kernel", factor=0.5)
    rows = changed(case.threads, Both(first=half, second=half))[0].instructions

    assert {row.activities[0].duration_ns for row in rows if isinstance(row, Launch)} == {12_500}  # 50,000 / 4


def test_a_seed_is_one_run_and_another_seed_another():
    assert draw(7).trace() == draw(7).trace()
    assert draw(7).threads != draw(9).threads
