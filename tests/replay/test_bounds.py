"""What no fix can exceed, on drawn runs: of one device, whose clocks agree with the host's.

With clocks that disagree, or several devices, a fix can move the first start of a device as well as its last end.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rooftrace.intervals import union
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.replay.run import Replay
from rooftrace.schedule import WaitKind
from tests.replay.drawn import possible_run
from tests.schedule.scenes import scene_of

LIMITS = settings(max_examples=40, deadline=None)
CLOSURES = (0.0, 0.25, 0.5, 0.75, 0.875, 1.0)


def replayed(data: st.DataObject, streams: int = 2, threads: int = 2) -> Replay:
    run = possible_run(streams=streams, threads=threads).filter(lambda program: "kernel" in str(program.document()))
    return scene_of(data.draw(run)).replay()


def shorter(data: st.DataObject, replay: Replay) -> Edit:
    """Some activities shorter."""
    count = replay.activities.row.size
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))), dtype=np.int64)
    shares = np.array([data.draw(st.sampled_from((0.1, 0.5, 1.0))) for _ in chosen.tolist()])
    return Edit(activities=chosen, saved_ns=np.floor(replay.activities.dur[chosen] * shares).astype(np.int64))


def cuts(data: st.DataObject, replay: Replay) -> tuple[HostCut, ...]:
    """All of some host time after the first launch."""
    lanes = [lane for lane in np.unique(replay.events.lane).tolist() if lane >= 0]
    first = int(replay.activities.start.min())
    found = []
    for lane in lanes:
        low, length = first + data.draw(st.integers(0, 300_000)), data.draw(st.integers(0, 200_000))
        found.append(HostCut(lane=lane, start=np.array([low]), end=np.array([low + length])))
    return tuple(found)


def cut_ns(host: tuple[HostCut, ...]) -> int:
    return sum(int((cut.end - cut.start).sum()) for cut in host)


def busy_ns(replay: Replay) -> int:
    return union(replay.activities.start, replay.activities.end).length


def saved_at(replay: Replay, edit: Edit, closures: tuple[float, ...] = CLOSURES) -> NDArray[np.int64]:
    base, *spans = replay.spans([(), *(((edit, closure),) for closure in closures)])
    return base - np.array(spans, dtype=np.int64)


@LIMITS
@given(st.data())
def test_shorter_kernels_save_no_more_than_they_give_and_never_cost(data):
    replay = replayed(data)
    edit = shorter(data, replay)
    (saved,) = saved_at(replay, edit, (1.0,)).tolist()

    assert 0 <= saved <= int(edit.saved_ns.sum())


@LIMITS
@given(st.data())
def test_the_more_of_a_fix_is_made_the_more_it_saves(data):
    replay = replayed(data)
    waits = replay.schedule.waits.node.size
    unblocked = np.array(sorted(data.draw(st.sets(st.integers(0, waits - 1)))) if waits else [], dtype=np.int64)
    kernels = shorter(data, replay)
    for edit in (kernels, Edit(unblocked=unblocked)):
        saved = saved_at(replay, edit)
        assert saved[0] == 0
        assert bool((np.diff(saved) >= 0).all())


@LIMITS
@given(st.data())
def test_host_cuts_save_no_more_than_they_cut_and_more_of_them_no_less(data):
    # A nanosecond of rounding for every event of a thread
    replay = replayed(data)
    edit = Edit(host=cuts(data, replay))
    rounding = replay.events.step.size
    saved = saved_at(replay, edit)

    assert int(saved[-1]) <= cut_ns(edit.host)
    assert int(saved.min()) >= -rounding
    assert bool((np.diff(saved) >= -rounding).all())


@LIMITS
@given(st.data())
def test_unblocked_calls_save_no_more_than_they_had_waited(data):
    replay = replayed(data)
    waits = replay.schedule.waits
    edit = Edit(unblocked=np.flatnonzero(waits.kind != int(WaitKind.QUEUE)))
    waited = (replay.tree.dur[waits.node] - waits.own_ns)[waits.waited]
    (saved,) = saved_at(replay, edit, (1.0,)).tolist()

    assert 0 <= saved <= int(waited.sum())


@LIMITS
@given(st.data())
def test_removed_kernels_save_their_time_the_idle_time_before_them_and_the_host_time_cut(data):
    replay = replayed(data)
    activities, schedule = replay.activities, replay.schedule
    count = activities.row.size
    removed = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))), dtype=np.int64)
    before = schedule.reach[removed]
    idle = np.where(before >= 0, activities.start[removed] - activities.end[before], 0)
    host = cuts(data, replay)
    (saved,) = saved_at(replay, Edit(removed=removed, host=host), (1.0,)).tolist()

    most = int(activities.dur[removed].sum() + np.maximum(idle, 0).sum()) + cut_ns(host)
    assert saved <= most + replay.events.step.size  # a nanosecond of rounding an event


@LIMITS
@given(st.data())
def test_on_one_stream_changes_of_the_host_save_idle_time_and_nothing_else(data):
    replay = replayed(data, streams=1)
    edit = Edit(host=cuts(data, replay), unblocked=np.arange(replay.schedule.waits.node.size))
    (saved,) = saved_at(replay, edit, (1.0,)).tolist()

    assert saved <= replay.measured_ns - busy_ns(replay)


@LIMITS
@given(st.data())
def test_no_run_is_shorter_than_the_work_of_its_busiest_stream(data):
    replay = replayed(data, streams=3)
    kernels = shorter(data, replay)
    edit = Edit(
        activities=kernels.activities,
        saved_ns=kernels.saved_ns,
        host=cuts(data, replay),
        unblocked=np.arange(replay.schedule.waits.node.size),
    )
    left = replay.activities.dur.copy()
    left[kernels.activities] -= kernels.saved_ns
    work = np.bincount(replay.schedule.queue, weights=left)
    (span,) = replay.spans([((edit, 1.0),)])

    assert span >= int(work.max())


@LIMITS
@given(st.data())
def test_one_fix_more_never_makes_a_run_longer(data):
    replay = replayed(data)
    edits = [shorter(data, replay) for _ in range(3)]
    edits.append(Edit(unblocked=np.arange(replay.schedule.waits.node.size)))
    scenarios = [tuple((edit, 0.875) for edit in edits[:count]) for count in range(len(edits) + 1)]
    spans = np.array(replay.spans(scenarios))

    assert bool((np.diff(spans) <= 0).all())
    assert int(spans.min()) >= 0


@LIMITS
@given(st.data())
def test_nothing_starts_before_its_launch_or_while_its_stream_is_busy(data):
    replay = replayed(data)
    edit = Edit(
        activities=np.arange(replay.activities.row.size),
        saved_ns=replay.activities.dur // 2,
        host=cuts(data, replay),
        unblocked=np.arange(replay.schedule.waits.node.size),
    )
    timeline = replay.timeline(((edit, 1.0),))
    reach = replay.schedule.reach
    inner = reach >= 0

    assert bool((timeline.start >= timeline.launched).all())
    assert bool((timeline.start[inner] >= timeline.end[reach[inner]]).all())
