"""When each idle pattern fires, and on what it does not."""

from __future__ import annotations

import pytest

from rooftrace.pack import KNOWLEDGE
from rooftrace.patterns import matching_patterns

GAPS = {
    "kind": "measured",
    "inventory": False,
    "idle_pct": 20.0,
    "all_idle_pct": 30.0,
    "in_step_pct": 100.0,
    "gaps_count": 50,
    "short_gaps_pct": 10.0,
    "gaps_over_1ms_pct": 0.0,
    "mean_kernel_us": 100.0,
    "stacks_recorded": False,
    "call": "",
    "call_pct": 0.0,
    "frame": "",
    "annotation": "",
    "generated": False,
    "warmup_pct": 0.0,
}
SYNC = {
    **GAPS,
    "cause": "synchronisation",
    "sync_op": "aten::item",
    "sync_class": "read",
    "copy_direction": "",
    "call": "cudaStreamSynchronize",
}
COPY = {**SYNC, "sync_op": "aten::to", "sync_class": "copy", "htod_waits_count": 3, "dtoh_waits_count": 2}
LAUNCH = {
    **GAPS,
    "cause": "launch_bound",
    "call": "cudaLaunchKernel",
    "python_pct": 10.0,
    "python_module": "",
}
EAGER = {**LAUNCH, "graph_candidate": False}
STACKS = {**EAGER, "stacks_recorded": True}
REPEATING = {**LAUNCH, "graph_candidate": True, "graph_idle_pct": 80.0}
HOST = {**GAPS, "cause": "host_code", "graph_candidate": False, "python_pct": 90.0}
FRAME = {"frame": "train.py(3): log"}
UNDER = {"annotation": "## backward ##", "at_begin_count": 4}
STALLED = {"cause": "host_code", "aspect": "host_stalls", "stalls_count": 27, "inventory": True, "frame": ""}


def of(cause, call="", **more):
    return {**GAPS, "cause": cause, "call": call, **more}


QUEUED = {"kind": "upper_bound"}
ITSELF = {"loader": "launching_thread"}
WORKERS = {"loader": "worker_processes"}
# Pattern: evidence on which it fires, evidence on which it does not.
CASES = {
    "sync_scalar_read": (SYNC, {**SYNC, "sync_class": "shape"}),
    "sync_data_dependent_shape": ({**SYNC, "sync_class": "shape"}, SYNC),
    "sync_copy_to_host": ({**COPY, "copy_direction": "DtoH"}, {**COPY, "copy_direction": "HtoD"}),
    "sync_copy_to_device": ({**COPY, "copy_direction": "HtoD"}, {**COPY, "copy_direction": "DtoH"}),
    "sync_explicit": ({**SYNC, "sync_class": "call"}, {**SYNC, "sync_class": "op"}),
    "sync_inside_op": ({**SYNC, "sync_class": "op"}, SYNC),
    "sync_costs_nothing_now": (
        {**SYNC, "inventory": True, "idle_pct": 0.4, "score_mid_pct": 0.9},
        {**SYNC, "inventory": True, "idle_pct": 0.4, "score_mid_pct": 1.0},
    ),
    "sync_copy_both_ways": (COPY, {**COPY, "dtoh_waits_count": 0}),
    "sync_wait_may_move": ({**SYNC, "wait_may_move": True}, {**SYNC, "wait_may_move": False}),
    "sync_frame": ({**SYNC, **FRAME}, SYNC),
    "sync_every_step": ({**SYNC, "waits_per_step": 1.0}, {**SYNC, "waits_per_step": 0.1}),
    "launch_bound_repeating": (REPEATING, {**REPEATING, "graph_candidate": False}),
    "launch_bound_eager": (EAGER, REPEATING),
    "launch_bound_python": ({**EAGER, "python_pct": 40.0}, {**EAGER, "python_pct": 39.9}),
    "launch_bound_module": (
        {**EAGER, "python_pct": 60.0, "python_module": "BertLayer"},
        {**EAGER, "python_pct": 60.0},
    ),
    "tiny_kernels": ({**EAGER, "mean_kernel_us": 9.9}, {**EAGER, "mean_kernel_us": 10.0}),
    "profiler_inflates_host": ({**STACKS, "profiler_sensitive": True}, {**STACKS, "profiler_sensitive": False}),
    "stacks_recorded": ({**STACKS, "profiler_sensitive": False}, {**STACKS, "profiler_sensitive": True}),
    "lone_host_gap": ({**EAGER, "lone_gap_ms": 0.1}, {**EAGER, "lone_gap_ms": 0.0}),
    "host_code_frame": ({**HOST, **FRAME}, HOST),
    "host_code_unplaced": (HOST, {**HOST, **UNDER}),
    "host_code_annotation": ({**HOST, **UNDER}, {**HOST, **UNDER, **FRAME}),
    "host_code_generated": ({**HOST, "generated": True}, HOST),
    "inductor_size_asserts": (
        {**REPEATING, "size_asserts_pct": 10.0, "size_asserts_count": 1200},
        {**REPEATING, "size_asserts_pct": 9.9, "size_asserts_count": 1200},
    ),
    "host_stalls": (STALLED, {**STALLED, "stalls_count": 0}),
    "host_code_stall": ({**HOST, "stalled_pct": 50.0}, {**HOST, "stalled_pct": 50.0, "generated": True}),
    "first_use_in_warmup": (of("compilation", warmup_pct=50.0), of("compilation", warmup_pct=49.0)),
    "host_code_repeating": (
        {**HOST, "graph_candidate": True, "graph_idle_pct": 60.0},
        {**HOST, "graph_candidate": False, "graph_idle_pct": 60.0},
    ),
    "data_loading_frame": (of("data_loading", **FRAME, **ITSELF), of("data_loading", **FRAME, **WORKERS)),
    "data_loading": (of("data_loading", **WORKERS), of("data_loading", **ITSELF)),
    "data_loading_unplaced": (of("data_loading", loader="unknown"), of("data_loading", **WORKERS)),
    "garbage_collection": (of("garbage_collection", "Python GC"), of("host_code")),
    "compilation_of_code": (
        of("compilation", "torch/_dynamo/convert_frame.py(500): __call__"),
        of("compilation", "cudaLaunchKernel"),
    ),
    "graph_capture_in_run": (
        of("compilation", "cudaGraphInstantiate"),
        of("compilation", "cuModuleLoadData"),
    ),
    "module_loading": (of("compilation", "cuModuleLoadData"), of("graph_launch", "cudaGraphLaunch")),
    "allocator_frees": (of("memory_management", "cudaFree"), of("memory_management", "cudaMalloc")),
    "pinned_allocation": (of("memory_management", "cudaHostAlloc"), of("memory_management", "cudaMalloc")),
    "allocator_grows": (of("memory_management", "hipMalloc"), of("memory_management", "cudaFree")),
    "profiler_overhead": (of("profiler", "Buffer Flush"), of("compilation", "Lazy Function Loading")),
    "graph_launch": (of("graph_launch", "hipGraphLaunch"), of("launch_bound", "hipGraphLaunch")),
    "waits_for_stream": (of("dependency", **QUEUED), of("device", **QUEUED)),
    "queued_short_gaps": (
        of("device", **QUEUED, short_gaps_pct=50.0),
        of("device", **QUEUED, short_gaps_pct=49.0),
    ),
    "queued_long_gaps": (
        of("device", **QUEUED, short_gaps_pct=49.0),
        of("device", **QUEUED, short_gaps_pct=50.0),
    ),
    "communicator_setup": (
        of("communication_setup", gaps_over_1ms_pct=50.0),
        of("communication_setup", gaps_over_1ms_pct=49.0),
    ),
    "collective_hand_over": (of("communication_setup", "c10d::allreduce_"), of("launch_bound")),
    "between_steps": ({**EAGER, "in_step_pct": 49.0}, EAGER),
    "idle_dominates": ({**EAGER, "all_idle_pct": 50.0}, EAGER),
    "unrated": (of("device", **QUEUED), of("device")),
}


def fires(pattern, evidence):
    """Whether a pattern holds on some evidence."""
    return pattern in matching_patterns("idle", evidence)


@pytest.mark.parametrize("pattern", CASES)
def test_a_pattern_fires_on_its_evidence_and_on_no_other(pattern):
    yes, no = CASES[pattern]

    assert fires(pattern, yes)
    assert not fires(pattern, no)


def test_every_pattern_but_the_default_has_a_case():
    written = {path.stem for path in (KNOWLEDGE / "patterns" / "idle").glob("*.json")}

    assert written - set(CASES) == {"default"}


@pytest.mark.parametrize(
    ("evidence", "writer"),
    [
        (SYNC, "sync_scalar_read"),
        ({**SYNC, **FRAME, "waits_per_step": 2.0}, "sync_scalar_read"),
        ({**SYNC, "inventory": True, "idle_pct": 0.1, "score_mid_pct": 0.2}, "sync_costs_nothing_now"),
        (
            {**REPEATING, "python_pct": 60.0, "stacks_recorded": True, "mean_kernel_us": 5.0},
            "launch_bound_repeating",
        ),
        ({**EAGER, "python_pct": 60.0, "all_idle_pct": 70.0}, "launch_bound_eager"),
        ({**HOST, "call": "aten::sort", "stalled_pct": 80.0}, "host_code_stall"),
        (of("compilation", "triton/compiler/compiler.py(9): compile"), "compilation_of_code"),
        ({**HOST, **UNDER}, "host_code_annotation"),
        ({**HOST, **FRAME, "call": "Torch-Compiled Region", "generated": True}, "host_code_generated"),
        ({**EAGER, "generated": True, "size_asserts_pct": 60.0, "size_asserts_count": 9}, "inductor_size_asserts"),
        (STALLED, "host_stalls"),
        (of("compilation", "cudaFree", warmup_pct=99.0), "first_use_in_warmup"),
        (of("compilation", "hipLaunchKernel"), "module_loading"),
        (of("memory_management", "cudaHostAlloc"), "pinned_allocation"),
        (of("memory_management", "cudaFree"), "allocator_frees"),
        (of("memory_management", "torch/cuda/memory.py(212): empty_cache"), "allocator_frees"),
        (of("dependency", **QUEUED), "waits_for_stream"),
        (of("data_loading", **FRAME, loader="unknown"), "data_loading_frame"),
        (of("data_loading", **ITSELF), "data_loading_unplaced"),
        (of("data_loading", **FRAME, **WORKERS), "data_loading"),
        (of("data_loading", **FRAME, **ITSELF), "data_loading_frame"),
        ({**COPY, "copy_direction": "HtoD", "wait_may_move": True}, "sync_copy_to_device"),
        (of("communication_setup", gaps_over_1ms_pct=90.0), "communicator_setup"),
    ],
)
def test_the_most_specific_pattern_writes_the_finding(evidence, writer):
    assert matching_patterns("idle", evidence)[0] == writer


def test_no_cause_is_left_to_the_default_alone():
    causes = (
        "synchronisation",
        "launch_bound",
        "data_loading",
        "host_code",
        "memory_management",
        "compilation",
    )
    causes += ("garbage_collection", "graph_launch", "communication_setup", "profiler")
    complete = {"sync_op": "aten::item", "sync_class": "read", "graph_candidate": False, "call": "cudaMalloc"}
    complete |= {"python_pct": 90.0, "loader": "unknown"}

    for cause in causes:
        assert matching_patterns("idle", {**GAPS, "cause": cause, **complete})[0] not in (
            "default",
            "unrated",
        ), cause
