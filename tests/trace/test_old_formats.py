"""What writers since 2020 called things is one vocabulary here."""

from __future__ import annotations

import pytest

from rooftrace.trace import Kind
from tests.trace.reading import Folder, document, kernel, times_of

CATEGORIES = {
    "Operator": Kind.CPU_OP,
    "cpu_op": Kind.CPU_OP,
    "python_function": Kind.PYTHON,
    "user_annotation": Kind.ANNOTATION,
    "Runtime": Kind.RUNTIME,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.DRIVER,
    "mtia_runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "Kernel": Kind.KERNEL,
    "kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "Memcpy": Kind.MEMCPY,
    "gpu_memcpy": Kind.MEMCPY,
    "Memset": Kind.MEMSET,
    "gpu_memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.GPU_ANNOTATION,
    "overhead": Kind.OVERHEAD,
    "cuda_sync": Kind.SYNC,
    "Trace": Kind.OTHER,
    "": Kind.OTHER,
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_category_has_one_kind_in_every_spelling(folder: Folder, category: str) -> None:
    event = f'{{"ph":"X","cat":"{category}","name":"x","pid":1,"tid":1,"ts":2,"dur":1}}'

    assert folder.trace(document(event)).kind.tolist() == [CATEGORIES[category]]


def test_an_event_without_a_category_is_of_another_kind(folder: Folder) -> None:
    assert folder.trace(document('{"ph":"X","name":"x","pid":1,"tid":1,"ts":2,"dur":1}')).kind.tolist() == [Kind.OTHER]


def test_a_trace_of_torch_1_8_is_read(folder: Folder) -> None:
    content = b"""[
  {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 97, "tid": "97", "ts": 1616175000000010, "dur": 30,
   "args": {"Device": 0, "External id": 4, "Input dims": [[4, 5], [5, 6]], "Input type": ["float", "float"]}},
  {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 97, "tid": "97", "ts": 1616175000000020, "dur": 5,
   "args": {"cbid": 211, "correlation": 12, "external id": 4, "external ts": 1616175000000010}},
  {"ph": "f", "id": 12, "pid": 97, "tid": "97", "ts": 1616175000000020, "cat": "async", "name": "launch", "bp": "e"},
  {"ph": "X", "cat": "Kernel", "name": "sgemm", "pid": 0, "tid": "stream 7", "ts": 1616175000000031, "dur": 18,
   "args": {"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 12, "external id": 4}},
  {"ph": "s", "id": 12, "pid": 0, "tid": "stream 7", "ts": 1616175000000031, "cat": "async", "name": "launch"},
  {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": "stream 7",
   "ts": 1616175000000055, "dur": 2, "args": {"stream": 7, "correlation": 13, "external id": 5, "bytes": 4096,
   "memory bandwidth (GB/s)": 2.048}}
]"""

    trace, facts = folder.load(content)

    assert facts.format == "plain, array"
    assert [Kind(kind) for kind in trace.kind] == [Kind.CPU_OP, Kind.RUNTIME, Kind.KERNEL, Kind.MEMCPY]
    base = 1_616_175_000_000_010_000
    assert times_of(trace) == [(base, 30_000), (base + 10_000, 5_000), (base + 21_000, 18_000), (base + 45_000, 2_000)]
    assert trace.external_id.tolist() == [4, 4, 4, 5]
    assert trace.correlation.tolist() == [-1, 12, 12, 13]
    assert trace.nbytes.tolist() == [-1, -1, -1, 4096]
    assert trace.signatures[trace.inputs[0]].dims == [[4, 5], [5, 6]]
    assert trace.lanes[trace.lane[2]] == (0, "stream 7")
    assert trace.flows.id.tolist() == [12, 12]
    assert trace.flows.is_start.tolist() == [False, True]


@pytest.mark.parametrize("category", ["ac2g", "async_cpu_to_gpu", "async_gpu", "async", "cpu_to_cuda"])
def test_a_launch_flow_of_any_category_is_kept(folder: Folder, category: str) -> None:
    flow = f'{{"ph":"s","id":3,"pid":1,"tid":1,"ts":5,"cat":"{category}","name":"x"}}'

    flows = folder.trace(document(kernel(), flow)).flows

    assert (flows.id.tolist(), flows.is_fwdbwd.tolist()) == ([3], [False])


def test_a_flow_from_forward_to_backward_is_told_apart(folder: Folder) -> None:
    flow = '{"ph":"s","id":3,"pid":1,"tid":1,"ts":5,"cat":"fwdbwd","name":"fwdbwd"}'

    assert folder.trace(document(kernel(), flow)).flows.is_fwdbwd.tolist() == [True]
