"""The host call tree: what was open inside what, on each thread."""

from __future__ import annotations

import time
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rooftrace.calltree import build_tree, check_tree
from rooftrace.calltree import tree as tree_module
from tests.support.trace_builder import TraceBuilder

NO_PARENT = None


def tree_of(*events):
    """The tree of host ops (name, start, duration in µs, thread)."""
    builder = TraceBuilder()
    for name, ts, dur, *tid in events:
        builder.op(name, ts, dur, *tid)
    trace = builder.build()
    return trace, build_tree(trace)


def parents(trace, tree):
    """Name of each node's parent, by name."""
    names = [trace.names[code] for code in tree.name.tolist()]
    return {
        name: names[above] if above >= 0 else NO_PARENT for name, above in zip(names, tree.parent.tolist(), strict=True)
    }


def test_an_event_is_the_child_of_the_innermost_event_that_contains_it():
    #    0    5    10   15   20
    # a  [--------a--------]
    # b   [---b---] [-d-]
    # c     [c]
    trace, tree = tree_of(("a", 0, 19), ("b", 1, 9), ("c", 3, 3), ("d", 11, 5))

    assert parents(trace, tree) == {"a": NO_PARENT, "b": "a", "c": "b", "d": "a"}
    assert tree.depth.tolist() == [0, 1, 2, 1]
    assert tree.self_time().tolist() == [5000, 6000, 3000, 5000]  # 19 - 9 - 5, 9 - 3, 3, 5


def test_of_two_that_start_together_the_longer_is_the_parent_whatever_their_order():
    trace, tree = tree_of(("short", 0, 5), ("long", 0, 9))

    assert parents(trace, tree) == {"long": NO_PARENT, "short": "long"}


def test_of_two_with_equal_times_the_first_in_the_file_is_the_parent():
    trace, tree = tree_of(("first", 0, 5), ("second", 0, 5), ("third", 0, 5))

    assert parents(trace, tree) == {"first": NO_PARENT, "second": "first", "third": "second"}


def test_events_that_touch_are_siblings():
    #    0    5    10
    # a  [--a-]
    # b       [--b-]
    trace, tree = tree_of(("a", 0, 5), ("b", 5, 5))

    assert parents(trace, tree) == {"a": NO_PARENT, "b": NO_PARENT}


def test_an_event_without_duration_lies_inside_what_is_open_and_holds_nothing():
    #    0    5    10
    # a  [----a---]
    # z       |
    # b       [-b-]
    trace, tree = tree_of(("a", 0, 10), ("z", 5, 0), ("b", 5, 4))

    assert parents(trace, tree) == {"a": NO_PARENT, "z": "b", "b": "a"}
    assert tree.clamped == 0


def test_an_event_without_duration_at_the_end_of_another_lies_beside_it():
    trace, tree = tree_of(("a", 0, 10), ("z", 10, 0), ("y", 10, 0))

    assert parents(trace, tree) == {"a": NO_PARENT, "z": NO_PARENT, "y": NO_PARENT}


def test_an_event_that_outlasts_the_one_it_began_in_is_cut_there_and_counted():
    #    0    5    10   15
    # a  [----a---]
    # b       [----b---]      cut at 10
    # c         [c]           still b's child
    # d              [d]      began after the cut: a root
    trace, tree = tree_of(("a", 0, 10), ("b", 5, 10), ("c", 7, 2), ("d", 12, 2))

    assert parents(trace, tree) == {"a": NO_PARENT, "b": "a", "c": "b", "d": NO_PARENT}
    assert tree.end.tolist() == [10_000, 10_000, 9_000, 14_000]
    assert tree.clamped == 1
    check_tree(tree)


def test_threads_do_not_nest_in_one_another():
    trace, tree = tree_of(("a", 0, 10, 1), ("b", 2, 3, 2), ("c", 3, 1, 1))

    assert parents(trace, tree) == {"a": NO_PARENT, "b": NO_PARENT, "c": "a"}


def test_all_kinds_of_host_events_nest_and_no_gpu_event_does():
    builder = TraceBuilder()
    builder.annotation("step", 0, 20)
    builder.python("train.py(3): main", 1, 18)
    builder.op("aten::mm", 2, 10)
    builder.launch(ts=3, dur=5)
    builder.launch("cuLaunchKernel", ts=4, dur=2, cat="cuda_driver")
    builder.kernel("k", ts=5, dur=3)
    builder.gpu_annotation("step", ts=5, dur=3)
    trace = builder.build()
    tree = build_tree(trace)

    assert parents(trace, tree) == {
        "step": NO_PARENT,
        "train.py(3): main": "step",
        "aten::mm": "train.py(3): main",
        "cudaLaunchKernel": "aten::mm",
        "cuLaunchKernel": "cudaLaunchKernel",
    }
    assert tree.row.tolist() == [0, 1, 2, 3, 4]  # neither the kernel nor the GPU annotation


def test_python_frames_that_enclose_no_other_event_are_left_out_and_counted():
    #              0    5    10   15
    # main         [------main-----]
    # helper        [help]             nothing but a frame inside
    # leaf            []
    # loss                 [-loss-]
    # aten::sum             [sum]
    # tail                          |  no duration
    builder = TraceBuilder()
    builder.python("main", 0, 16)
    builder.python("helper", 1, 6)
    builder.python("leaf", 3, 2)
    builder.python("loss", 9, 6)
    builder.op("aten::sum", 10, 4)
    builder.python("tail", 16, 0)
    builder.python("elsewhere", 9, 6, tid=2)
    trace = builder.build()
    tree = build_tree(trace)

    assert parents(trace, tree) == {"main": NO_PARENT, "loss": "main", "aten::sum": "loss"}
    assert tree.empty_frames == 4  # helper, leaf, tail, elsewhere
    assert tree.self_time().tolist() == [10_000, 2_000, 4_000]  # 16 - 6: time of left-out frames is their parent's


def test_frames_are_left_out_rightly_when_events_lie_decades_after_the_others():
    builder = TraceBuilder()
    for tid in range(1, 40):
        builder.python(f"keep {tid}", 0, 10, tid)
        builder.op(f"op {tid}", 2, 3, tid)
        builder.python(f"drop {tid}", 6, 3, tid)
    for number in range(9):  # fewer would be strays
        builder.op("late", 4.0e15 + number, 1, 40)
    trace = builder.build()
    tree = build_tree(trace)

    kept = {trace.names[code].split()[0] for code in tree.name.tolist()}
    assert (kept, tree.empty_frames) == ({"keep", "op", "late"}, 39)


def test_an_empty_frame_is_left_out_where_threads_times_nanoseconds_leave_64_bits():
    """From the first event on, the last ends at 2^62 - 5001 ns: 2 * (2^62 - 5000) + 10,000 is 2^63, amid the frame."""
    builder = TraceBuilder()
    builder.op("first", 1, 1, tid=1)
    builder.op("last", 4_611_686_018_427_381.0, 2.903, tid=1)
    builder.op("other", 1, 1, tid=2)
    builder.python("model.py(1): f", 1, 20, tid=3)

    assert build_tree(builder.build()).empty_frames == 1


def test_a_trace_without_host_events_has_an_empty_tree():
    builder = TraceBuilder()
    builder.kernel("k", ts=0, dur=3)
    tree = build_tree(builder.build())

    assert tree.row.size == 0
    assert tree.innermost(np.zeros(0, dtype=bool)).size == 0
    check_tree(tree)


DEPTH = 5_000


def test_a_nest_five_thousand_deep_is_built_and_searched():
    #  0                    [0 [1 [2 ... ] ] ]
    trace, tree = tree_of(*((f"n{level}", level, 2 * DEPTH - 2 * level) for level in range(DEPTH)))

    check_tree(tree)
    assert tree.depth.tolist() == list(range(DEPTH))
    marked = np.isin(np.arange(DEPTH), (10, 2_500))
    assert tree.innermost(marked)[[0, 9, 10, 2_499, 2_500, 4_999]].tolist() == [-1, -1, 10, 10, 2_500, 2_500]
    assert tree.outermost(marked)[[0, 9, 10, 2_499, 2_500, 4_999]].tolist() == [-1, -1, 10, 10, 10, 10]
    assert trace.names[tree.name[DEPTH - 1]] == "n4999"


def test_depth_costs_no_more_than_length():
    depth = 50_000
    builder = TraceBuilder()
    for level in range(depth):
        builder.op("n", level, 2 * depth - 2 * level)
    trace = builder.build()
    started = time.perf_counter()

    nearest = build_tree(trace).innermost(np.arange(depth) % 7 == 0)

    assert nearest[-1] == 49_994  # 7 * 7,142
    assert time.perf_counter() - started < 10  # takes 0.1 s; walking up from every node, 1.25e9 steps, takes minutes


EVENTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15), st.integers(1, 2)), min_size=1, max_size=14)


def random_tree(events):
    return tree_of(*((f"e{number}", *event) for number, event in enumerate(events)))


@settings(deadline=None)
@given(EVENTS)
def test_no_event_is_lost_and_children_lie_inside_their_parents(events):
    trace, tree = random_tree(events)

    check_tree(tree)
    assert sorted(trace.names[code] for code in tree.name.tolist()) == sorted(f"e{n}" for n in range(len(events)))
    assert (tree.end >= tree.start).all()
    assert (tree.self_time() >= 0).all()


@settings(deadline=None)
@given(EVENTS)
def test_self_times_of_a_thread_sum_to_the_time_in_which_its_roots_are_open(events):
    _, tree = random_tree(events)

    for lane in set(tree.lane.tolist()):
        mine = tree.lane == lane
        roots = [(a, b) for a, b, p in zip(tree.start[mine], tree.end[mine], tree.parent[mine], strict=True) if p < 0]
        assert int(tree.self_time()[mine].sum()) == sum(int(b - a) for a, b in roots)
        assert all(first[1] <= second[0] for first, second in pairwise(roots))


def walked(events):
    """Parent, depth and end (µs) of each event by name, found by asking of each what is open when it starts."""
    ordered = sorted(range(len(events)), key=lambda n: (events[n][2], events[n][0], -sum(events[n][:2]), n))
    found = {}
    for at, number in enumerate(ordered):
        start, dur, lane = events[number]
        is_open = [n for n in ordered[:at] if events[n][2] == lane and found[n][2] > start]
        above = is_open[-1] if is_open else None
        found[number] = (above, len(is_open), start + dur if above is None else min(start + dur, found[above][2]))
    return {f"e{number}": (at if at is None else f"e{at}", depth, end) for number, (at, depth, end) in found.items()}


@pytest.mark.parametrize("few", [0, 200])
@settings(deadline=None, max_examples=300)
@given(events=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(1, 2)), min_size=1, max_size=14))
def test_events_that_overlap_in_chains_are_cut_one_after_the_other(few, events):
    with mock.patch.object(tree_module, "_FEW", few):
        trace, tree = random_tree(events)

    names = [trace.names[code] for code in tree.name.tolist()]
    assert {
        name: (names[above] if above >= 0 else None, depth, int(end + trace.base_ns) // 1000)
        for name, above, depth, end in zip(
            names, tree.parent.tolist(), tree.depth.tolist(), tree.end.tolist(), strict=True
        )
    } == walked(events)
    assert tree.clamped == sum(walked(events)[f"e{n}"][2] < sum(event[:2]) for n, event in enumerate(events))


NESTED = st.recursive(
    st.just([]), lambda inner: st.lists(st.tuples(st.integers(0, 3), inner), max_size=3), max_leaves=10
)


def laid_out(children, start):
    """Properly nested events (start, duration): each child one µs after the last, with a tail of its own."""
    events, at = [], start + 1
    for tail, inner in children:
        below, end = laid_out(inner, at)
        events += [(at, end + tail - at), *below]
        at = end + tail + 1
    return events, at


@settings(deadline=None)
@given(NESTED)
def test_properly_nested_events_keep_their_times_and_the_threads_time_is_conserved(children):
    events, end = laid_out(children, 0)
    trace, tree = tree_of(("root", 0, end), *((f"e{n}", *event) for n, event in enumerate(events)))

    assert tree.clamped == 0
    assert (tree.end == trace.end[tree.row]).all()
    assert int(tree.self_time().sum()) == 1000 * end  # the root covers all


@settings(deadline=None)
@given(EVENTS, st.data())
def test_innermost_and_outermost_agree_with_a_walk_up_the_tree(events, data):
    _, tree = random_tree(events)
    own = np.array(data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events))))

    for node in range(len(events)):
        path, at = [], node
        while at >= 0:
            path += [at] if own[at] else []
            at = int(tree.parent[at])
        assert int(tree.innermost(own)[node]) == (path[0] if path else -1)
        assert int(tree.outermost(own)[node]) == (path[-1] if path else -1)


@pytest.mark.parametrize(
    ("column", "node", "value", "message"),
    [
        pytest.param("parent", 0, 1, "a parent does not precede its child", id="order"),
        pytest.param("lane", 1, 9, "a child runs on another thread", id="thread"),
        pytest.param("start", 0, 4_000, "a child starts before its parent", id="start"),
        pytest.param("end", 1, 99_000, "a child ends after its parent", id="end"),
        pytest.param("depth", 1, 5, "a depth is not its parent's plus one", id="depth"),
    ],
)
def test_the_check_names_what_is_broken(column, node, value, message):
    _, tree = tree_of(("a", 0, 10), ("b", 2, 3))
    broken = getattr(tree, column).copy()
    broken[node] = value

    with pytest.raises(ValueError, match=message):
        check_tree(replace(tree, **{column: broken}))
