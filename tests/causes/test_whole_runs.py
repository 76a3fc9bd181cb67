"""What holds of the causes of any run, and what they are in runs looked at by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace import calltree, causes
from rooftrace.causes import Cause
from rooftrace.schedule import build_schedule
from rooftrace.trace import Kind, load
from tests.causes.runs import Run, causes_of

TRACES = Path(os.environ.get("ROOFTRACE_TRACES", Path(__file__).resolve().parents[3] / "shared" / "traces"))
TIMES = st.integers(0, 400)
DURATIONS = st.integers(0, 60)
ACTIVITY = st.tuples(st.just("run"), TIMES, DURATIONS, st.integers(-10, 40), st.integers(1, 2), st.integers(7, 8))
HOST = st.tuples(
    st.sampled_from(("sync", "malloc", "data", "frame", "op", "graph", "lost")),
    TIMES,
    DURATIONS,
    st.integers(0, 40),
    st.integers(1, 2),
    st.integers(7, 8),
)


def drawn(events):
    """A run of random events; times in µs."""
    run = Run()
    for kind, at, dur, delay, tid, stream in events:
        if kind == "run":
            run.run(at=at, dur=dur, start=at + delay, tid=tid, stream=stream, device=stream - 7)
        elif kind == "sync":
            run.launch("cudaDeviceSynchronize", ts=at, dur=dur, tid=tid)
        elif kind == "malloc":
            run.launch("cudaMalloc", ts=at, dur=dur, tid=tid)
        elif kind == "data":
            run.annotation("enumerate(DataLoader)#_Iter.__next__", at, dur, tid=tid)
        elif kind == "frame":
            run.python("train.py(1): main", at, dur, tid=tid)
        elif kind == "op":
            run.op("aten::view", at, dur, tid=tid)
        elif kind == "graph":
            graph = run.launch("cudaGraphLaunch", ts=at, dur=dur, tid=tid)
            for number in range(3):
                run.kernel("g", ts=at + delay + 20 * number, dur=10, correlation=graph, stream=stream)
        else:
            run.kernel("lost", ts=at, dur=dur, stream=stream)
    return run


@settings(deadline=None, max_examples=150)
@given(st.lists(st.one_of(ACTIVITY, ACTIVITY, HOST), min_size=1, max_size=14))
def test_every_nanosecond_of_idle_time_lies_in_one_gap_with_one_cause(events):
    run = drawn(events)
    trace, _, found = causes_of(run)
    gpu = trace.of_kind(Kind.KERNEL)

    for device in set(trace.device[gpu].tolist()):
        rows = gpu[trace.device[gpu] == device]
        pairs = sorted(zip(trace.start[rows].tolist(), trace.end[rows].tolist(), strict=True))
        idle, reach = 0, pairs[0][0]
        for start, end in pairs:
            idle += max(0, start - reach)
            reach = max(reach, end)
        mine = found.of_device(device)
        assert int(found.dur[mine].sum()) == idle
        assert sum(found.idle_ns(device).values()) == idle
    assert (found.dur > 0).all()
    assert (found.cause < len(Cause)).all()
    assert ((found.reason > 0) == (found.cause == int(Cause.UNKNOWN))).all()


@settings(deadline=None, max_examples=100)
@given(st.lists(st.one_of(ACTIVITY, ACTIVITY, HOST), min_size=1, max_size=14))
def test_a_cause_on_the_host_names_stretches_and_synchronisation_names_waits(events):
    _, _, found = causes_of(drawn(events))
    on_host = {int(cause) for cause in causes.HOST_CAUSES}

    blamed = set(found.pieces.gap.tolist())
    waited = set(found.wait_gap.tolist())
    for gap, cause in enumerate(found.cause.tolist()):
        if cause in on_host:
            assert gap in blamed
        assert (cause == int(Cause.SYNCHRONISATION)) == (gap in waited)
    assert (found.pieces.end >= found.pieces.start).all()


def causes_of_file(name):
    path = TRACES / name
    if not path.is_file():
        pytest.skip("no traces found through ROOFTRACE_TRACES")
    trace, _ = load(path)
    tree = calltree.build_tree(trace)
    activities = calltree.collect_activities(trace, tree)
    calltree.quarantine(activities, trace.names)
    context = calltree.build_context(trace, tree)
    return trace, causes.attribute(trace, tree, context, activities, build_schedule(trace, tree, activities))


def named(trace, rows):
    return {trace.names[trace.name[row]] for row in rows.tolist() if row >= 0}


@pytest.mark.real_traces
def test_an_inference_loop_waits_for_its_data_loader():
    """Five batches are read on the launching thread, 121 to 128 ms each; four of them lie between two launches."""
    trace, found = causes_of_file("h100/google_owlv2-large-patch14-ensemble__1016001.json.gz")
    gaps = found.of_cause(0, Cause.DATA_LOADING)

    assert gaps.size == 4
    assert all(120e6 < dur < 130e6 for dur in found.dur[gaps].tolist())
    assert any("scipy/ndimage" in name for name in named(trace, found.frame[gaps]))


@pytest.mark.real_traces
def test_a_first_forward_pass_sets_its_libraries_up():
    """The first convolution spends 6 s in one `cudaFree` under `warmup`; the allocations outside of it are small."""
    trace, found = causes_of_file("nvidia/alexnet.json.gz")
    setting_up, allocating = found.of_cause(0, Cause.COMPILATION), found.of_cause(0, Cause.MEMORY_MANAGEMENT)

    assert found.dur[setting_up].max() > 10_000_000_000
    assert "cudaFree" in named(trace, found.row[setting_up])
    assert named(trace, found.row[allocating]) == {"cudaMalloc"}
    assert found.dur[allocating].max() < 20_000_000


@pytest.mark.real_traces
def test_a_first_step_loads_its_kernels():
    """Each first launch of a kernel takes 2 to 26 ms, later ones some µs."""
    trace, found = causes_of_file("nvidia/a100_switch_transformer.json.gz")
    gaps = found.of_cause(0, Cause.COMPILATION)

    assert named(trace, found.row[gaps]) == {"cudaLaunchKernel", "cudaFree"}
    assert int(found.dur[gaps].sum()) > 0.7 * int(found.dur.sum())


@pytest.mark.real_traces
def test_a_compiled_diffusion_model_cannot_launch_fast_enough():
    _, found = causes_of_file("serving/xdit_sd_3.5/profile_trace_rank_0.json.gz")
    spent = found.idle_ns(2)

    assert spent[Cause.LAUNCH_BOUND] > 0.8 * int(found.dur.sum())
    assert Cause.UNKNOWN not in spent


@pytest.mark.real_traces
@pytest.mark.parametrize(
    "name",
    [
        "h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "mi300/normalization_layer_test.json.gz",
        "mi300/resnet_act_checkpoint.json.gz",
        "nvidia/a100_switch_transformer.json.gz",
        "serving/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
        "serving/vllm_decode_full/graph_execution.json.gz",
    ],
)
def test_with_stacks_hardly_any_idle_time_stays_unknown(name):
    _, found = causes_of_file(name)
    within = int(found.dur[found.cause != int(Cause.BEFORE_WINDOW)].sum())

    assert int(found.dur[found.cause == int(Cause.UNKNOWN)].sum()) <= 0.05 * within


def test_gaps_come_by_device_whatever_the_order_in_the_file():
    run = Run()
    for device, at in ((2, 0), (0, 5), (1, 7), (2, 40), (0, 60), (1, 80), (0, 90)):
        run.run(at=at, dur=2, device=device)
    _, _, idle = causes_of(run)

    assert idle.device.tolist() == [0, 0, 1, 2]
    assert [idle.of_device(device).tolist() for device in (0, 1, 2, 3)] == [[0, 1], [2], [3], []]
