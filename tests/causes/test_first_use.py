"""Allocator calls that belong to the first use of something, and those that do not. Times are µs."""

from __future__ import annotations

import pytest

from tests.causes.runs import Run, causes_of, longest


def allocating(*, op, dur=900, annotation=None):
    """A gap from 15 µs on, most of it in one `cudaFree` inside an op."""
    #          0    20                        dur + 40
    # host     [k]  [op: cudaFree           ]  [k]
    run = Run()
    run.warm_up()
    run.run(at=0)
    run.op(op, 18, dur + 10)
    run.launch("cudaFree", ts=20, dur=dur)
    if annotation is not None:
        run.annotation(annotation, 10, dur + 500)
    run.run(at=dur + 40)
    return run


@pytest.mark.parametrize(
    "op", ["aten::cudnn_convolution", "aten::miopen_convolution", "aten::addmm", "aten::_cudnn_rnn"]
)
def test_an_allocator_call_in_the_first_call_of_a_library_is_its_first_use(op):
    assert longest(allocating(op=op))["cause"] == "compilation"


def test_in_a_later_call_of_the_library_it_is_an_allocation():
    run = allocating(op="aten::cudnn_convolution")
    run.op("aten::cudnn_convolution", -110, 5)

    assert longest(run)["cause"] == "memory_management"


@pytest.mark.parametrize(("dur", "cause"), [(100_000, "compilation"), (99_000, "memory_management")])
def test_in_the_first_call_of_any_op_a_tenth_of_a_second_is_no_mere_allocation(dur, cause):
    assert longest(allocating(op="aten::max_pool2d", dur=dur))["cause"] == cause


@pytest.mark.parametrize("annotation", ["[net|0|warmup|forward]", "Warm-up", "warm_up step"])
def test_under_an_annotation_that_says_warm_up_it_is_a_first_use(annotation):
    assert longest(allocating(op="aten::empty", annotation=annotation))["cause"] == "compilation"
    assert longest(allocating(op="aten::empty", annotation="measure"))["cause"] == "memory_management"


def test_a_free_that_waits_for_the_device_in_a_first_use_is_told_as_that():
    #          0                        400      450
    # host     [k][cudnn: cudaFree      ]        [k]
    # kernels   [--------k-------------]          [k]
    run = Run()
    run.warm_up()
    run.run(at=0, dur=400)
    run.op("aten::cudnn_convolution", 20, 420)
    run.launch("cudaFree", ts=22, dur=415)
    run.run(at=470)

    assert longest(run)["cause"] == "compilation"


def test_slow_first_launches_and_allocations_of_a_first_use_count_together():
    # of a gap of 990 µs, 300 lie in a cudaFree of a first use and 300 in the first launch of a kernel
    run = Run()
    run.warm_up()
    run.run(at=0)
    run.op("aten::cudnn_convolution", 18, 990)
    run.launch("cudaFree", ts=20, dur=300)
    run.run("new", at=700, call_dur=300, start=1005, op=None)
    trace, _, found = causes_of(run)
    gap = int(found.dur.argmax())
    mine = found.pieces.gap == gap

    assert longest(run)["cause"] == "compilation"
    assert [trace.names[trace.name[row]] for row in found.pieces.row[mine].tolist()] == ["cudaFree", "cudaLaunchKernel"]
