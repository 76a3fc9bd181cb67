"""Scenarios: many at once give what each gives alone, and what edits of one scenario do to each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.replay import blocks, recurrence, run
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.replay.events import Step
from rooftrace.replay.gone import gone_of_threads
from rooftrace.replay.program import Recorded, compile_program
from rooftrace.replay.run import Replay
from rooftrace.replay.scenarios import Changes, Compiler
from tests.replay.drawn import possible_run
from tests.replay.stepwise import Stepwise
from tests.schedule.scenes import STREAM_SYNC, Program, any_run, scene_of

_SHARES = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))


@st.composite
def any_edit(draw: st.DrawFn, replay: Replay) -> Edit:
    """Any change of a run."""
    count, waits = replay.activities.row.size, replay.schedule.waits.node.size
    chosen = np.array(sorted(draw(st.sets(st.integers(0, count - 1), max_size=4))), dtype=np.int64)
    share = draw(_SHARES)
    cuts = []
    for lane in draw(st.sets(st.sampled_from([at for at in np.unique(replay.events.lane).tolist() if at >= 0] or [0]))):
        low, length = draw(st.integers(0, 300_000)), draw(st.integers(1, 200_000))
        cuts.append(HostCut(lane=lane, start=np.array([low]), end=np.array([low + length]), share=draw(_SHARES)))
    unblocked = sorted(draw(st.sets(st.integers(0, waits - 1), max_size=2))) if waits else []
    return Edit(
        activities=chosen,
        saved_ns=np.rint(replay.activities.dur[chosen] * share).astype(np.int64),
        removed=np.array(sorted(draw(st.sets(st.integers(0, count - 1), max_size=2))), dtype=np.int64),
        host=tuple(cuts),
        unblocked=np.array(unblocked, dtype=np.int64),
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_scenarios_together_give_what_each_gives_alone_in_any_order_and_in_any_number_at_once(data):
    replay = scene_of(data.draw(any_run())).replay()
    if not replay.activities.row.size:
        return
    edits = data.draw(st.lists(any_edit(replay), min_size=1, max_size=3))
    scenarios = [(), *(((edit, data.draw(_SHARES)),) for edit in edits), tuple((edit, 0.5) for edit in edits)]
    together = replay.spans(scenarios)

    assert together == [replay.spans([scenario])[0] for scenario in scenarios]
    assert together[::-1] == replay.spans(scenarios[::-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_TABLE_ENTRIES", 2 * replay.events.step.size)  # two scenarios at once
        assert replay.spans(scenarios) == together
        patch.setattr(run, "_TABLE_ENTRIES", 1)
        assert replay.spans(scenarios) == together


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_blocks_and_parts_of_any_size_give_every_time_that_one_event_after_another_gives(data):
    replay = scene_of(data.draw(st.one_of(any_run(), possible_run(streams=3, threads=3, most=25)))).replay()
    if not replay.activities.row.size:
        return
    edits = data.draw(st.lists(any_edit(replay), max_size=3))
    scenario = [(edit, data.draw(_SHARES)) for edit in edits]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MOST_EVENTS", data.draw(st.sampled_from((1, 3, 2_048))))
        patch.setattr(blocks, "_STRETCH", data.draw(st.sampled_from((1, 5, 8_192))))
        patch.setattr(recurrence, "_FEW", data.draw(st.sampled_from((0, 3, 12))))  # longer parts are computed at once
        timeline = Replay(replay.tree, replay.activities, replay.schedule).timeline(scenario)
    expected = Stepwise(replay, scenario)

    assert timeline.start.tolist() == [expected.starts[at] for at in range(timeline.start.size)]
    assert timeline.end.tolist() == [expected.ends[at] for at in range(timeline.end.size)]
    assert timeline.event.tolist() == expected.times
    assert timeline.held.tolist() == expected.held
    assert replay.spans([scenario]) == [expected.span]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_timeline_has_the_span_that_its_scenario_has(data):
    replay = scene_of(data.draw(any_run(devices=1))).replay()
    if not replay.activities.row.size:
        return
    edit = data.draw(any_edit(replay))
    if edit.removed.size:  # a removed activity has no start of its own
        return
    timeline = replay.timeline(((edit, 1.0),))

    assert replay.spans([((edit, 1.0),)]) == [int(timeline.end.max() - timeline.start.min())]


def one_thread() -> Replay:
    """Launches at 0, 10 and 20, and a call from 12 to 19 that waits for the first kernel, from 2 to 15."""
    program = Program()
    program.launched("a", ts=0, start=2, dur=13)
    program.launched("b", ts=10, start=16, dur=4)
    program.launch(STREAM_SYNC, ts=12, dur=7)
    program.launched("c", ts=20, start=26, dur=4)
    program.sync("Stream Sync", ts=12, stream=7, correlation=3)
    return scene_of(program).replay()


def compiled(replay: Replay, *scenarios) -> Changes:
    """The changes of a whole run that is short enough for one stretch."""
    recorded = Recorded(
        events=replay.events,
        activities=replay.activities,
        schedule=replay.schedule,
        constraints=replay.constraints,
        usual_lag=0,
    )
    program = compile_program(recorded)
    return Compiler(recorded, program, scenarios).stretch((0, program.threads.item.size), (0, program.queues.item.size))


def test_what_two_edits_take_from_one_activity_adds_up_to_its_duration_at_most():
    replay = one_thread()
    first = Edit(activities=np.array([0]), saved_ns=np.array([5_000]))
    second = Edit(activities=np.array([0, 1]), saved_ns=np.array([12_000, 1_000]))
    scenarios = [((first, 1.0),), ((first, 1.0), (second, 0.5)), ((first, 1.0), (second, 1.0))]
    changes = compiled(replay, *scenarios)

    # a loses 5; 5 + 6; 5 + 12. b loses nothing; half of 1; 1
    assert changes.saved[:2].tolist() == [[5_000, 11_000, 17_000], [0, 500, 1_000]]
    # a lasts 13 and cannot lose 17: at the third closure it takes no time
    lasts = [replay.timeline(scenario).end[0] - replay.timeline(scenario).start[0] for scenario in scenarios]
    assert lasts == [8_000, 2_000, 0]


def test_of_two_edits_that_unblock_a_call_the_larger_closure_counts():
    edit = Edit(unblocked=np.array([0]))
    changes = compiled(one_thread(), ((edit, 0.25), (edit, 0.75)), ())

    assert [shares.tolist() for shares in changes.unblocked.values()] == [[0.75, 0.0]]


def test_an_edit_without_a_part_changes_nothing_in_it():
    changes = compiled(one_thread(), ((Edit(), 1.0),))

    assert (changes.saved, changes.removed, changes.cut, changes.worked) == (None, None, None, None)
    assert changes.unblocked == {}


def cut_before(replay: Replay, *cuts: HostCut, closure: float = 1.0) -> dict[str, int]:
    """Host time gone before each event of the thread, by step and time in µs."""
    changes = compiled(replay, ((Edit(host=cuts), closure),))
    host = replay.events.step != int(Step.ACTIVITY)  # one thread: its events keep their order
    events = zip(replay.events.step[host].tolist(), replay.events.time[host].tolist(), strict=True)
    gone = [0] * int(host.sum()) if changes.cut is None else changes.cut[:, 0].tolist()
    return {f"{Step(step).name} {time // 1_000}": ns for (step, time), ns in zip(events, gone, strict=True) if ns}


def test_host_time_is_cut_before_the_event_that_ends_it_and_never_while_the_thread_waits():
    #    0        10   12       19 20
    #    a        b    [waits]     c      cut: all from 5 to 30
    # 5 gone before b; 2 before the call and 5 of what it takes without anything to wait for; 1 before c
    replay = one_thread()
    lane = int(replay.events.lane.max())
    cut = HostCut(lane=lane, start=np.array([5_000]), end=np.array([30_000]))

    assert cut_before(replay, cut) == {"LAUNCH 10": 5_000, "WAIT 19": 2_000 + 5_000, "LAUNCH 20": 1_000}
    # the call returns when a has ended, whatever is gone before: only c's launch is 1 earlier
    assert replay.spans([((Edit(host=(cut,)), 1.0),)]) == [28_000 - 1_000]


def test_a_share_of_a_cut_and_a_closure_multiply():
    replay = one_thread()
    lane = int(replay.events.lane.max())
    cut = HostCut(lane=lane, start=np.array([0]), end=np.array([10_000]), share=0.5)

    assert cut_before(replay, cut, closure=0.5) == {"LAUNCH 10": 2_500}


def test_a_cut_of_a_thread_without_launches_or_waits_is_no_change():
    replay = one_thread()
    cut = HostCut(lane=99, start=np.array([0]), end=np.array([10_000]))

    assert cut_before(replay, cut) == {}


def test_threads_that_are_cut_alike_are_looked_at_once_however_many_they_are():
    # every 100th thread has a cut of its own beside the one that all have: 10 contents of one kind, and one of another
    start, end = np.array([10]), np.array([30])
    alike = Edit(host=tuple(HostCut(lane=lane, start=start, end=end, share=0.5) for lane in range(1_000)))
    own = Edit(host=tuple(HostCut(lane=lane, start=start + lane, end=end + lane) for lane in range(0, 1_000, 100)))
    found = gone_of_threads([(), ((alike, 1.0),), ((alike, 1.0), (own, 0.5))], 1_000)

    assert [len(set(found.content[found.kind == kind].tolist())) for kind in (0, 1)] == [10, 1]
    assert len(found.gone) == 2
    # thread 1, of the second kind: half of 20 in both scenarios; threads 0 and 100: half of what both cut, 10 to 30
    # and own, 110 to 130
    (gone, scenarios), *others = found.gone[1]
    assert (scenarios.tolist(), others) == ([1, 2], [])
    assert gone.between(found.content[[1]], np.array([0]), np.array([99])).tolist() == [10]
    gone = next(gone for gone, scenarios in found.gone[0] if scenarios.tolist() == [2])
    threads, low = found.content[[0, 100, 100, 100]], np.array([0, 0, 0, 120])
    assert gone.between(threads, low, np.array([99, 99, 999, 999])).tolist() == [10, 10, 20, 5]
