"""Findings about idle devices, one a cause. Times are µs in the drawings."""

from __future__ import annotations

import pytest

from rooftrace.analyzers import idle
from rooftrace.analyzers.idle_syncs import find_syncs
from rooftrace.contracts.base import Score
from tests.analyzers.workloads import workload_of
from tests.causes.runs import Run
from tests.patterns import fields
from tests.support.trace_builder import TraceBuilder


def drafts_of(builder):
    return idle.analyze(workload_of(builder))[1]


def evidence_of(builder, number=0):
    return drafts_of(builder)[number].finding.evidence


def waiting_for_data():
    """95 ms of data between two kernels of 5 ms; allocations of 2 ms leave gaps of 1 ms between five more."""
    #          0   5       100   104   106   … ms
    # host     [k] [data  ][k] [malloc][k]
    # kernels  [--]        [--]        [--]
    run = Run()
    run.python("train.py(1): main", 0, 150_000)
    run.run(at=0, dur=5000)
    run.annotation("enumerate(DataLoader)#_MultiIter.__next__", 5010, 95_000)
    run.python("data.py(9): read", 6000, 90_000)
    at = 100_020
    for _ in range(6):
        run.run(at=at, dur=5000)
        run.launch("cudaMalloc", ts=at + 4000, dur=2000)
        at += 6000
    return run


def test_every_cause_of_a_device_has_a_finding_the_largest_first():
    first, second = drafts_of(waiting_for_data())

    assert (first.finding.id, first.finding.subject) == ("idle.F1", "device 0 idle: waits for data")
    assert (second.finding.id, second.finding.subject) == ("idle.F2", "device 0 idle: allocator calls")
    assert (first.finding.tier, first.finding.category, first.finding.kind) == ("system", "idle", "measured")
    evidence = first.finding.evidence
    # busy 7 * 5,000; span 5 to 135,025; gaps 95,020 and five of 1,000
    assert (evidence["cause"], evidence["idle_ms"], evidence["all_idle_ms"]) == (
        "data_loading",
        95.0,
        100.02,
    )
    assert evidence["gaps_ms"] == 95.02  # of which the loading takes 95
    assert (evidence["idle_pct"], evidence["all_idle_pct"], evidence["busy_pct"]) == (70.36, 74.08, 25.92)
    assert (evidence["gaps_count"], evidence["max_gap_ms"], evidence["gaps_over_1ms_pct"]) == (
        1,
        95.02,
        100.0,
    )
    assert evidence["frame"] == "data.py(9): read"
    assert evidence["top_gap_annotation"] == "enumerate(DataLoader)#_MultiIter.__next__"
    assert first.finding.members == ["gap:0:5005000"]
    assert first.finding.score == Score(low=52.77, mid=61.56, high=70.36)  # 75, 87.5 and 100 % of 70.36


def test_a_finding_names_call_and_op_with_most_of_its_time():
    evidence = evidence_of(waiting_for_data(), 1)

    assert (evidence["call"], evidence["call_pct"]) == ("cudaMalloc", 99.5)  # 995 of 1,000 µs
    assert (evidence["gaps_count"], evidence["median_gap_us"]) == (5, 1000.0)


def test_removing_data_loading_cuts_the_loading_and_nothing_else():
    draft = drafts_of(waiting_for_data())[0]
    (cut,) = draft.edit.host

    assert list(zip(cut.start.tolist(), cut.end.tolist(), strict=True)) == [(5_010_000, 100_010_000)]
    assert not draft.edit.unblocked.size
    assert draft.most_ns == 100_020_000  # all idle time of the device


def test_removing_allocations_cuts_each_of_them():
    (cut,) = drafts_of(waiting_for_data())[1].edit.host

    assert cut.start.size == 6  # the sixth leads to no gap now, but might to one once the others are gone
    assert (cut.end - cut.start).tolist() == [2_000_000] * 6


@pytest.mark.parametrize(("gap", "count"), [(15.0, 0), (16.0, 1)])
def test_little_idle_time_is_a_finding_from_three_per_cent_in_one_cause(gap, count):
    # 500 µs of kernels; 15 of 515 are 2.91 %, 16 of 516 are 3.10 %
    run = Run()
    run.run(at=0, dur=250)
    run.run(at=10, start=255 + gap, dur=250)

    assert len(drafts_of(run)) == count


def test_of_much_idle_time_every_cause_of_one_per_cent_is_told():
    # 1,000 µs of kernels, 200 before a late launch (launch-bound or not), 15 between queued kernels: 1.2 %
    run = Run()
    run.run(at=0, dur=500)
    run.run(at=10, start=520, dur=250)
    run.run(at=965, start=970, dur=250)

    assert [draft.finding.evidence["cause"] for draft in drafts_of(run)] == ["host_code", "device"]


def test_what_nobody_can_explain_is_summed_and_no_finding():
    run = Run()
    run.kernel("carried", ts=0, dur=10)
    run.kernel("carried", ts=100, dur=10)
    run.run(at=150)
    run.kernel("lost", ts=400, dur=10)
    summary, drafts = idle.analyze(workload_of(run))

    assert (summary["before_window_ms"], summary["unknown_ms"]) == (0.09, 0.235)  # 10 to 100, 165 to 400
    assert summary["unknown_because"] == "no launch recorded"
    assert [draft.finding.evidence["cause"] for draft in drafts] == ["launch_bound"]


def test_gaps_between_queued_kernels_are_an_upper_bound_without_an_edit():
    run = Run()
    run.run(at=0, dur=100)
    run.run(at=10, start=205, dur=100)
    (draft,) = drafts_of(run)

    assert (draft.finding.kind, draft.finding.evidence["cause"]) == ("upper_bound", "device")
    assert draft.finding.score == Score(low=33.33, mid=33.33, high=33.33)  # 100 of 300
    assert (draft.edit.host, draft.edit.unblocked.size) == ((), 0)


def synchronising(reads=3, op="aten::item", host=60):
    """Steps of one kernel of 200 µs, after each of which the host reads a value back and launches again."""
    #          0         200    260
    # host     [k][item    ]    [k]
    # kernels   [---k-----]       [---k-----]
    run = Run()
    at = 0
    for _ in range(reads):
        run.run(at=at, dur=200)
        run.python("train.py(7): log", at + 10, 205)
        run.op(op, at + 11, 203)
        run.op("aten::_local_scalar_dense", at + 12, 201)
        run.launch("cudaStreamSynchronize", ts=at + 13, dur=199)
        at += 210 + host
    run.run(at=at, dur=200)
    return run


def test_blocking_calls_that_drain_the_queue_are_unblocked():
    (draft,) = drafts_of(synchronising())
    evidence = draft.finding.evidence

    assert (evidence["cause"], evidence["gaps_count"], evidence["idle_ms"]) == (
        "synchronisation",
        3,
        0.21,
    )  # 3 * 70
    assert (evidence["sync_op"], evidence["sync_class"]) == ("aten::item", "read")
    assert evidence["call"] == "cudaStreamSynchronize"
    assert (evidence["frame"], evidence["waits_count"]) == ("train.py(7): log", 3)
    assert evidence["blocked_ms"] == 0.576  # three times from 13 to 205
    # each gap, from 205 to 275: the call returns at 212, its op at 213, the frame at 215
    assert (evidence["call_pct"], evidence["call_gaps_pct"]) == (10.0, 100.0)  # 7 of 70
    assert (evidence["op"], evidence["op_pct"], evidence["op_gaps_pct"]) == ("aten::_local_scalar_dense", 11.43, 100.0)
    assert evidence["frame_pct"] == 14.29  # 10 of 70
    assert draft.edit.unblocked.tolist() == [0, 1, 2]
    (cut,) = draft.edit.host
    assert (cut.end - cut.start).tolist() == [203_000] * 3  # the ops that read; their waiting is no host time


def test_an_op_that_blocks_is_told_even_where_no_gap_follows():
    # the host reads back while other work is queued on a second stream: the device never idles
    run = Run()
    run.run(at=0, dur=1000, stream=9)
    run.run(at=10, dur=400)
    run.op("aten::nonzero", 20, 405)
    run.launch("cudaStreamSynchronize", ts=22, dur=400)
    run.run(at=440, dur=100)
    (draft,) = drafts_of(run)
    evidence = draft.finding.evidence

    assert draft.finding.subject == "host blocked in aten::nonzero"
    assert (evidence["inventory"], evidence["idle_ms"], evidence["blocked_ms"]) == (
        True,
        0.0,
        0.393,
    )  # 22 to 415
    assert draft.finding.members == []


def test_an_op_that_a_finding_tells_already_is_not_told_twice():
    assert len(drafts_of(synchronising())) == 1


def test_the_ops_that_block_longest_stand_in_the_summary():
    summary, _ = idle.analyze(workload_of(synchronising()))

    assert (summary["sync1_op"], summary["sync1_waits_count"]) == ("aten::item", 3)
    assert summary["synchronisation_ms"] == 0.21


def dispatching(names, gap=40, repeats=1):
    """Kernels of 5 µs, each launched `gap` µs after the one before by an op of that length."""
    run = Run()
    at = 0
    for name in names * repeats:
        run.op("aten::mm", at - gap + 6, gap - 2)
        run.run(name, at=at, dur=5, op=None)
        at += gap
    return run


def test_a_slow_host_without_repetition_loses_its_dispatch_time_but_for_one_launch():
    (draft,) = drafts_of(dispatching([f"k{n}" for n in range(5)]))
    evidence = draft.finding.evidence
    (cut,) = draft.edit.host

    assert (evidence["cause"], evidence["graph_candidate"]) == ("launch_bound", False)
    assert (evidence["gaps_count"], evidence["median_gap_us"], evidence["launch_us"]) == (4, 35.0, 40.0)
    # each gap, from 10 to 45, ends with a launch at 40 that takes 2; its op is open from 6 to 44
    assert (evidence["call"], evidence["call_pct"], evidence["call_gaps_pct"]) == ("cudaLaunchKernel", 5.71, 100.0)
    assert (evidence["op"], evidence["op_pct"], evidence["op_gaps_pct"]) == ("aten::mm", 97.14, 100.0)  # 34 of 35
    # each gap: 10 µs after a launch to the return of the next one, 42; of the first only up to its begin, 40
    assert (cut.end - cut.start).tolist() == [30_000, 32_000, 32_000, 32_000]


def test_launches_that_repeat_become_one_launch_a_sequence():
    names = [f"k{n}" for n in range(10)]
    (draft,) = drafts_of(dispatching(names, repeats=3))
    evidence = draft.finding.evidence
    (cut,) = draft.edit.host

    assert evidence["graph_candidate"] is True
    assert (evidence["repeats_count"], evidence["launches_per_sequence"]) == (3, 10)
    assert evidence["graph_idle_pct"] == 100.0
    # a sequence: from the begin of its first call to the return of its tenth, 9 * 40 + 2, less a call of 2
    assert (cut.end - cut.start).tolist() == [360_000] * 3


def test_a_blocking_call_inside_keeps_launches_from_being_a_sequence():
    run = dispatching([f"k{n}" for n in range(10)], repeats=3)
    for at in range(0, 1200, 160):
        run.launch("cudaStreamSynchronize", ts=at + 3, dur=6)

    assert evidence_of(run)["graph_candidate"] is False


def test_time_without_an_op_is_python_and_its_module_is_named():
    run = Run()
    for at in range(0, 400, 40):
        run.python("nn.Module: Linear_0", at - 20, 30)
        run.run(f"k{at}", at=at, dur=5)

    evidence = evidence_of(run)
    # 32 µs of the host's time precede the end of each launch, in 2 of which the op is open
    assert evidence["python_pct"] == 93.75
    assert evidence["python_module"] == "Linear"


def test_every_device_that_idles_has_findings_of_its_own():
    run = Run()
    for device in (0, 1):
        run.run(at=device, dur=100, device=device)
        run.run(at=500 + 200 * device, dur=100, device=device)

    found = [(draft.finding.id, draft.finding.evidence["device"]) for draft in drafts_of(run)]
    assert found == [("idle.F1", 1), ("idle.F2", 0)]


def starting(delays, *, warm=40):
    """Kernels that start so many µs after their launches; each found an empty queue."""
    run = Run()
    for number, delay in enumerate((*[5.0] * warm, *delays)):
        run.run(at=1000.0 * number, start=1000.0 * number + delay, dur=1)
    return run


def test_launch_latency_is_told_of_launches_that_found_an_empty_queue():
    evidence = evidence_of(starting([25.0] * 10))

    assert (evidence["empty_queue_pct"], evidence["host_bound"]) == (100.0, True)
    assert (evidence["launch_latency_p10_us"], evidence["launch_latency_us"]) == (5.0, 5.0)
    assert evidence["launch_latency_p90_us"] == 25.0
    assert (evidence["queue_depth_median"], evidence["queue_depth_max"]) == (1.0, 1)


def test_a_queue_that_fills_is_deep_and_the_device_not_host_bound():
    #          0 1 2 3 4 … launches a µs apart, kernels of 100 µs with 20 between them
    run = Run()
    for number in range(10):
        run.run(at=number, start=5 + 120 * number, dur=100)
    evidence = evidence_of(run)

    assert (evidence["empty_queue_pct"], evidence["host_bound"]) == (10.0, False)  # the first of ten
    assert evidence["queue_depth_max"] == 9  # the first has begun when the tenth is launched


def test_gaps_between_steps_and_within_them_are_told_apart():
    #             0    10   20   30   40   50   60
    # steps      [----1------------][------2------]
    # kernels     [a]       [b]             [c]
    # gaps           [ 8   ]   [    17     ]
    builder = TraceBuilder()
    builder.annotation("ProfilerStep#1", 0, 30)
    builder.annotation("ProfilerStep#2", 30, 30)
    for name, start, launch in (("a", 2, 1), ("b", 12, 11), ("c", 31, 30.5)):
        builder.kernel(name, ts=start, dur=2, correlation=builder.launch(ts=launch, dur=0.2))

    assert evidence_of(builder)["in_step_pct"] == 32.0  # 8 of 25


@pytest.mark.parametrize(
    ("builder", "promised"),
    [
        (
            waiting_for_data(),
            fields.IDLE | fields.GAPS | fields.LATENCY | {"mean_kernel_us", "empty_queue_pct"},
        ),
        (dispatching(["a", "b", "c"]), fields.IDLE | fields.GAPS | fields.PACE),
        (dispatching([f"k{n}" for n in range(10)], repeats=3), fields.IDLE | fields.GAPS | fields.GRAPH),
        (synchronising(), fields.IDLE | fields.GAPS | fields.SYNC),
    ],
    ids=["data", "dispatch", "repetition", "synchronisation"],
)
def test_every_field_that_patterns_rely_on_is_there(builder, promised):
    evidence = evidence_of(builder)

    assert promised <= set(evidence)
    assert set(evidence) <= fields.IDLE | fields.IDLE_OPTIONAL


def test_a_trace_without_devices_has_no_findings():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5)

    assert idle.analyze(workload_of(builder)) == ({"time_ms": 0.0, "time_share_pct": 0.0}, [])


def test_a_device_that_only_copies_is_described_without_kernels():
    builder = TraceBuilder()
    for ts in (0, 100):
        launch = builder.launch("cudaMemcpyAsync", ts=ts)
        builder.memcpy("DtoD", ts=ts + 5, dur=5, correlation=launch)
    evidence = evidence_of(builder)

    assert evidence["kernels_count"] == 0
    assert not {"mean_kernel_us", "empty_queue_pct", "launch_latency_us"} & set(evidence)


@pytest.mark.parametrize(
    ("op", "inner", "named", "kind"),
    [
        ("aten::is_nonzero", "aten::item", "aten::is_nonzero", "read"),
        ("aten::index", "aten::nonzero", "aten::index", "shape"),
        ("aten::embedding_bag", "aten::nonzero", "aten::nonzero", "shape"),
        ("aten::linear", "aten::linalg_inv_ex", "aten::linalg_inv_ex", "op"),
        ("aten::to", "aten::copy_", "aten::to", "op"),
    ],
    ids=["read in read", "mask", "known in other", "other in other", "copy of unknown direction"],
)
def test_a_blocking_call_is_told_by_the_outermost_op_that_is_known_to_block(op, inner, named, kind):
    run = Run()
    run.run(at=0, dur=400)
    run.op(op, 20, 405)
    run.op(inner, 21, 403)
    run.launch("cudaStreamSynchronize", ts=22, dur=400)
    run.run(at=480, dur=100)
    evidence = evidence_of(run)

    assert (evidence["sync_op"], evidence["sync_class"]) == (named, kind)


@pytest.mark.parametrize(("direction", "op"), [("HtoD", None), ("DtoH", "aten::copy_")])
def test_blocking_copies_are_told_apart_by_direction(direction, op):
    run = Run()
    run.run(at=0, dur=400)
    if op:
        run.op(op, 20, 440)
    launch = run.launch("cudaMemcpyAsync", ts=22, dur=430)
    run.memcpy(direction, ts=410, dur=40, correlation=launch)
    run.run(at=540, dur=100)
    evidence = evidence_of(run)

    assert (evidence["sync_class"], evidence["copy_direction"]) == ("copy", direction)
    assert evidence["blocking_copy"] is True


def test_a_value_that_is_not_read_is_neither_copied_nor_asked_for():
    #       0         200   220      300
    # host  [k][item        ]   [k]
    # GPU    [k-------][copy]     [k---]
    run = Run()
    run.run(at=0, dur=200)
    run.op("aten::item", 11, 214)
    run.op("aten::_local_scalar_dense", 12, 212)
    copied = run.launch("cudaMemcpyAsync", ts=14, dur=4)
    run.memcpy("DtoH", ts=206, dur=2, correlation=copied)
    run.launch("cudaStreamSynchronize", ts=20, dur=200)
    run.run(at=300, dur=100)
    workload = workload_of(run)
    (draft,) = idle.analyze(workload)[1]
    (cut,) = draft.edit.host

    assert workload.trace.names[workload.activities.name[draft.edit.removed[0]]].startswith("Memcpy DtoH")
    assert draft.edit.removed.size == 1
    assert list(zip(cut.start.tolist(), cut.end.tolist(), strict=True)) == [(11_000, 225_000)]


def test_gaps_that_several_ops_led_to_name_all_of_them_the_heaviest_first():
    run = Run()
    at = 0
    for op, host in (("aten::item", 90), ("aten::nonzero", 60), ("aten::item", 90)):
        run.run(at=at, dur=200)
        run.op(op, at + 11, 203)
        run.launch("cudaStreamSynchronize", ts=at + 13, dur=199)
        at += 210 + host
    run.run(at=at, dur=200)
    joint, *single = drafts_of(run)

    assert joint.finding.evidence["sync_ops"] == "aten::item, aten::nonzero"
    assert joint.finding.evidence["sync_op"] == "aten::item"
    assert sorted(draft.finding.evidence["sync_op"] for draft in single) == ["aten::item", "aten::nonzero"]
    assert all("sync_ops" not in draft.finding.evidence for draft in single)
    assert joint.edit.unblocked.size == 3


def test_the_allocators_waits_are_no_blocking_calls_of_an_op():
    run = Run()
    run.run(at=0, dur=400)
    run.op("aten::empty", 20, 420)
    run.launch("cudaFree", ts=22, dur=415)
    run.run(at=450, dur=100)
    (draft,) = drafts_of(run)

    assert draft.finding.evidence["cause"] == "memory_management"
    assert draft.edit.host
    assert draft.edit.unblocked.size == 1  # a free that is not made waits for nothing
    assert find_syncs(workload_of(run)) == []


def test_host_code_inside_an_op_is_told_from_host_code_between_ops():
    #          0        5        15 ms
    # host     [k] [sort]  [k]        [k]
    # gaps         [4,990 ]   [9,990 ]   µs
    run = Run()
    run.run(at=0)
    run.op("aten::sort", 20, 4900)
    run.run(at=5000)
    run.run(at=15_000)
    evidence = evidence_of(run)

    assert (evidence["cause"], evidence["call"]) == ("host_code", "aten::sort")
    assert evidence["stalled_pct"] == 33.31  # 4,990 of 14,980


def test_of_gaps_blamed_on_calls_what_lies_in_the_calls_counts():
    # a gap of 990 µs, 500 of them in an allocation: the finding is about 500
    run = Run()
    run.run(at=0)
    run.launch("cudaMalloc", ts=20, dur=200)
    run.launch("cudaFree", ts=300, dur=300)
    run.run(at=1000)
    evidence = evidence_of(run)

    assert (evidence["cause"], evidence["gaps_ms"], evidence["idle_ms"]) == ("memory_management", 0.99, 0.5)
    assert (evidence["call"], evidence["call_pct"]) == ("cudaFree", 30.3)  # 300 of 990


def test_the_share_of_a_frame_is_the_time_for_which_it_is_open():
    # zoom is open for 85.86 % of a gap of 99,000 µs: 85,000
    run = Run()
    run.python("train.py(1): main", -100, 200_000)
    run.run(at=0)
    run.annotation("enumerate(DataLoader)#_MultiIter.__next__", 20, 98_900)
    run.python("zoom.py(739): zoom", 1000, 85_000)
    run.run(at=99_010, dur=1)
    evidence = evidence_of(run)

    assert (evidence["gaps_ms"], evidence["frame"], evidence["frame_pct"]) == (99.0, "zoom.py(739): zoom", 85.86)


def test_a_frame_round_the_whole_run_is_no_place_but_an_annotation_in_it_is():
    run = Run()
    run.python("train.py(1): main", -100, 3000)
    run.run(at=0, dur=985)
    run.annotation("## backward ##", 900, 900)
    run.run(at=1500, dur=985)
    evidence = evidence_of(run)

    assert (evidence["cause"], evidence["frame"]) == ("host_code", "")
    assert (evidence["annotation"], evidence["annotation_pct"]) == ("## backward ##", 100.0)
    assert (evidence["at_begin_count"], evidence["at_begin_pct"]) == (1, 100.0)  # 90 µs after its begin


def test_idle_time_in_a_warm_up_is_told_as_that():
    #           0     500         1000
    # warmup    [     ]
    # gap       [15              1005]   485 of 990
    run = Run()
    run.run(at=0)
    run.annotation("model|warmup", -10, 510)
    run.run(at=1000)

    assert evidence_of(run)["warmup_pct"] == 48.99


@pytest.mark.parametrize(("at", "causes"), [(495, ["launch_bound"]), (725, ["host_code", "launch_bound"])])
def test_one_short_stretch_of_glue_in_a_slow_run_is_no_finding(at, causes):
    # 20 gaps of 35 µs are 700; then one of 490 µs or of 720
    run = dispatching([f"k{n}" for n in range(21)])
    run.run("last", at=21 * 40 - 40 + at, dur=5)

    assert [draft.finding.evidence["cause"] for draft in drafts_of(run)] == causes


def test_but_the_finding_about_the_slow_launches_names_it():
    # the span is from 5 to 1,305; the last kernel starts at 1,300, the one before it ends at 810
    run = dispatching([f"k{n}" for n in range(21)])
    run.run("last", at=1295, dur=5)
    evidence = evidence_of(run)

    assert (evidence["gaps_ms"], evidence["lone_gap_ms"], evidence["lone_gap_pct"]) == (0.7, 0.49, 37.69)
    assert (evidence["lone_gap_before"], evidence["lone_gap_after"]) == ("k20", "last")
    assert "lone_gap_ms" not in evidence_of(dispatching(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("iterator", "loader", "pattern"),
    [
        ("_SingleProcessDataLoaderIter", "launching_thread", "data_loading_unplaced"),
        ("_MultiProcessingDataLoaderIter", "worker_processes", "data_loading"),
        ("_MultiIter", "unknown", "data_loading_unplaced"),
    ],
)
def test_the_iterator_that_is_open_says_who_loads(iterator, loader, pattern):
    run = Run()
    run.run(at=0)
    run.annotation(f"enumerate(DataLoader)#{iterator}.__next__", 20, 900)
    run.run(at=1000)
    (draft,) = drafts_of(run)

    assert (draft.finding.evidence["cause"], draft.finding.evidence["loader"]) == ("data_loading", loader)
    assert draft.finding.patterns[0] == pattern


def test_an_iterator_that_is_open_elsewhere_does_not_say_who_loads():
    run = Run()
    run.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", -50, 10)
    run.run(at=0)
    run.annotation("enumerate(DataLoader)#_MultiIter.__next__", 20, 900)
    run.run(at=1000)

    assert evidence_of(run)["loader"] == "unknown"


def test_of_blocking_copies_count_size_and_direction_are_told_and_how_few_hold_the_time():
    #          0          10,000        10,100  10,200  10,300  µs
    # host     [k][to: HtoD         ]   [DtoH]  [DtoH]  [DtoH]
    # GPU       [---k---][copy]           [copy]  [copy]  [copy]
    run = Run()
    run.run(at=0, dur=10_000)
    copies = [("HtoD", 20, 10_038, 10_010, 1000)]
    copies += [("DtoH", at, 60, at + 10, 500) for at in (10_100, 10_200, 10_300)]
    for way, at, lasts, start, nbytes in copies:
        run.op("aten::to", at - 2, lasts + 4)
        run.memcpy(way, ts=start, dur=40, bytes=nbytes, correlation=run.launch("cudaMemcpyAsync", ts=at, dur=lasts))
    run.run(at=10_400, dur=2000)
    (draft,) = [draft for draft in drafts_of(run) if draft.finding.evidence.get("sync_op") == "aten::to"]
    evidence = draft.finding.evidence

    assert (evidence["htod_waits_count"], evidence["htod_bytes"]) == (1, 1000)
    assert (evidence["dtoh_waits_count"], evidence["dtoh_bytes"]) == (3, 1500)
    assert (evidence["waits_count"], evidence["most_waits_count"]) == (4, 1)  # the first one waits for k, too
    assert draft.finding.patterns[0] == "sync_copy_to_device"
    assert "sync_copy_both_ways" in draft.finding.patterns


def test_an_op_that_blocks_in_both_directions_has_one_finding():
    # copies to the device and back wait by turns; without those of one kind the others would wait
    run = Run()
    run.run(at=0, dur=2000, stream=9)
    for at, way in ((20, "HtoD"), (440, "DtoH"), (860, "HtoD")):
        run.op("aten::to", at - 2, 410)
        launch = run.launch("cudaMemcpyAsync", ts=at, dur=400)
        run.memcpy(way, ts=at + 350, dur=40, correlation=launch)
    run.run(at=1300, dur=800)
    (draft,) = drafts_of(run)
    evidence = draft.finding.evidence

    assert draft.finding.subject == "host blocked in aten::to"
    assert (evidence["copy_direction"], evidence["waits_count"]) == ("HtoD", 3)
    assert (evidence["htod_waits_count"], evidence["dtoh_waits_count"], evidence["most_waits_count"]) == (2, 1, 3)
    assert not {"htod_bytes", "dtoh_bytes"} & set(evidence)  # no size is recorded
    assert evidence["htod_blocked_ms"] == 2 * evidence["dtoh_blocked_ms"]
    assert draft.edit.unblocked.tolist() == [0, 1, 2]


def standing_still():
    """A busy device, and a host that stands still for 3 ms in each of three ops that usually take 10 µs."""
    run = Run()
    run.run(at=-20, dur=100_000)
    at = 0
    for op in ("aten::view", "aten::as_strided", "aten::expand"):
        for _ in range(10):
            run.op(op, at, 10)
            at += 20
        run.op(op, at, 3010)
        at += 3020
    run.run(at=at, start=100_000, dur=1000)
    return run


def test_stalls_of_the_host_are_told_though_the_device_is_busy():
    (draft,) = drafts_of(standing_still())
    evidence = draft.finding.evidence
    (cut,) = draft.edit.host

    assert (draft.finding.subject, evidence["aspect"], evidence["inventory"]) == ("host stalls", "host_stalls", True)
    assert (evidence["stalls_count"], evidence["stalls_ms"], evidence["longest_stall_ms"]) == (3, 9.0, 3.0)
    assert evidence["stalls_pct"] == 8.91  # 9 of 101.015 ms
    assert (evidence["call_median_us"], evidence["call_max_ms"], evidence["idle_ms"]) == (10.0, 3.01, 0.0)
    assert (cut.end - cut.start).tolist() == [3_000_000] * 3
    assert draft.most_ns == 9_000_000
    assert draft.finding.patterns[0] == "host_stalls"


def test_checks_of_sizes_that_fill_a_gap_are_counted():
    run = dispatching([f"k{n}" for n in range(5)])
    run.run("last", at=700, dur=5)
    for ts in range(200, 690, 10):
        run.python("<built-in function assert_size_stride>", ts, 2)
    host = next(draft.finding.evidence for draft in drafts_of(run) if draft.finding.evidence["cause"] == "host_code")

    assert (host["size_asserts_count"], host["size_asserts_pct"]) == (49, 100.0)


def test_findings_come_by_idle_time_and_inventories_of_blocking_calls_last():
    run = standing_still()
    run.op("aten::nonzero", 20_000, 81_010)
    run.launch("cudaStreamSynchronize", ts=20_010, dur=80_995)
    run.run(at=101_015, dur=10)

    assert [draft.finding.subject for draft in drafts_of(run)] == ["host stalls", "host blocked in aten::nonzero"]
