"""Results of rocprofv3 as JSON, in the layout of the rocprofiler-sdk tool."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from rooftrace.errors import NotATrace
from tests.trace.formats.reports import analysed, events_of
from tests.trace.reading import Folder

CPU_AGENT, GPU_AGENT = 1, 7
STRINGS = {
    "buffer_records": [
        {"kind": "NONE", "operations": ["NONE"]},
        {"kind": "KERNEL_DISPATCH", "operations": ["NONE", "ENQUEUE", "COMPLETE"]},
        {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
        {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipMemcpyAsync"]},
        {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxThreadRangeA"]},
    ],
    "marker_api": [{"key": 9, "value": "aten::mm, seq = 3, op_id = 5, sizes = [[4, 5], [5, 6]]"}],
}


def span(start: int, end: int, correlation: int, **rest: Any) -> dict[str, Any]:
    return {
        "size": 64,
        "start_timestamp": start,
        "end_timestamp": end,
        "correlation_id": {"internal": correlation, "external": 0},
        "thread_id": 33,
        **rest,
    }


def tool(**records: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata": {"pid": 22, "init_time": 1, "fini_time": 2},
        "agents": [
            {"id": {"handle": CPU_AGENT}, "type": 1, "name": "AMD EPYC"},
            {
                "id": {"handle": GPU_AGENT},
                "type": 2,
                "name": "gfx942",
                "product_name": "AMD Instinct MI300X",
                "logical_node_type_id": 0,
                "cu_count": 304,
                "gfx_target_version": 90402,
            },
        ],
        "strings": STRINGS,
        "kernel_symbols": [{"kernel_id": 11, "kernel_name": "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32.kd"}],
        "buffer_records": records,
    }


def kernel(start: int, end: int, correlation: int, queue: int = 4) -> dict[str, Any]:
    info = {
        "agent_id": {"handle": GPU_AGENT},
        "queue_id": {"handle": queue},
        "kernel_id": 11,
        "workgroup_size": {"x": 256, "y": 1, "z": 1},
        "grid_size": {"x": 1000, "y": 2, "z": 1},
    }
    return span(start, end, correlation, kind=1, operation=2, dispatch_info=info)


def document(*tools: dict[str, Any]) -> bytes:
    return json.dumps({"rocprofiler-sdk-tool": list(tools)}).encode()


ONE = document(
    tool(
        kernel_dispatch=[kernel(1_010_000, 1_030_000, 3)],
        memory_copy=[
            span(
                1_040_000,
                1_045_000,
                4,
                kind=2,
                operation=1,
                bytes=4096,
                src_agent_id={"handle": CPU_AGENT},
                dst_agent_id={"handle": GPU_AGENT},
            )
        ],
        hip_api=[
            span(1_002_000, 1_004_000, 3, kind=3, operation=0),
            span(1_006_000, 1_007_000, 4, kind=3, operation=1),
        ],
        marker_api=[span(1_000_000, 1_005_000, 9, kind=4, operation=1)],
    )
)


def test_kernels_copies_calls_and_markers_are_read(folder: Folder) -> None:
    trace, facts = folder.load(ONE)

    assert facts.format == "plain, rocprofv3"
    assert events_of(trace) == [
        ("KERNEL", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32", 10_000, 20_000),
        ("MEMCPY", "Memcpy HtoD (Host -> Device)", 40_000, 5_000),
        ("RUNTIME", "hipLaunchKernel", 2_000, 2_000),
        ("RUNTIME", "hipMemcpyAsync", 6_000, 1_000),
        ("CPU_OP", "aten::mm", 0, 5_000),
    ]
    assert trace.correlation.tolist() == [3, 4, 3, 4, -1]
    assert trace.nbytes.tolist() == [-1, 4096, -1, -1, -1]
    assert trace.grids == [(4, 2, 1)]  # 1000 work items in groups of 256 are 4 groups
    assert trace.signatures[trace.inputs[4]].dims == [[4, 5], [5, 6]]
    assert trace.header["deviceProperties"] == [
        {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304, "computeMajor": 9, "computeMinor": 4}
    ]


def test_a_result_is_analysed_with_its_gpu_and_ops(folder: Folder) -> None:
    result = analysed(folder, gzip.compress(ONE), "results.json.gz")

    # 10 to 45 µs: a kernel of 20, 10 of waiting, a copy of 5
    assert result.parts() == {
        "span_ns": 35_000,
        "compute_ns": 20_000,
        "exposed_copy_ns": 5_000,
        "idle_ns": 10_000,
    }
    assert result.platform == "mi300x"
    assert result.ops["aten::mm"] == 20_000


def test_ids_of_several_processes_are_told_apart(folder: Folder) -> None:
    one = tool(kernel_dispatch=[kernel(10, 20, 3)], hip_api=[span(1, 2, 3, kind=3, operation=0)])

    trace = folder.trace(document(one, one))

    assert trace.correlation.tolist() == [3, 3, (1 << 40) + 3, (1 << 40) + 3]
    assert len(trace.header["deviceProperties"]) == 1


def test_names_that_are_no_utf8_do_not_hide_the_kernels(folder: Folder) -> None:
    content = ONE.replace(b"roctxMarkA", b"roctx\xff\xfeA")

    assert len(folder.trace(content).kind) == 5


def test_a_result_cut_short_says_so(folder: Folder) -> None:
    with pytest.raises(NotATrace) as caught:
        folder.load(ONE[:900])

    assert str(caught.value) == (
        "error: `trace.json` is damaged or cut short: Input data was truncated\n\n"
        "hint: Let the profiler finish writing, or copy the file again"
    )
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    "value", [None, 1, "x", [], {}, [[1]], {"internal": "x"}, 1 << 70, -1, [{"kind": {}}]], ids=repr
)
def test_any_value_may_stand_in_any_field(folder: Folder, value: object) -> None:
    """A field of another type says nothing; what the others say stays."""
    for field in ("correlation_id", "thread_id", "dispatch_info", "stream_id", "kind", "operation"):
        record = kernel(10, 20, 3) | {field: value}
        trace = folder.trace(document(tool(kernel_dispatch=[record], hip_api=[record], marker_api=[record])))
        assert trace.dur.tolist() == [10, 10, 10]
    for field in ("agents", "strings", "kernel_symbols", "metadata"):
        assert len(folder.trace(document(tool(kernel_dispatch=[kernel(10, 20, 3)]) | {field: value})).kind) == 1


def test_a_result_without_records_holds_no_events(folder: Folder) -> None:
    with pytest.raises(NotATrace, match=r"`trace\.json` holds no events"):
        folder.load(document(tool()))
