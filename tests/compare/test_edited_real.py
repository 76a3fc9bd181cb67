"""Shared traces and their own copies with one thing changed: found, named, sized within 1 %."""

from __future__ import annotations

import pytest

from rooftrace.compare import compare_sides
from tests.compare import editor
from tests.compare.sides import assert_conserved, real_trace, side_of

pytestmark = pytest.mark.real_traces

VIDEO = "h100/facebook_timesformer-base-finetuned-k400__1016002.json.gz"
RESNET = "mi300/resnet_act_checkpoint.json.gz"
RANK = "ranks/megatron_tp8/rank0.json.gz"
ALEXNET = "nvidia/alexnet.json.gz"


def compared(document, name, folder):
    base = side_of(real_trace(name))
    comparison = compare_sides(base, side_of(editor.write(document, folder / "edited.json")))
    assert_conserved(comparison)
    return comparison


def sums(comparison, *causes):
    rows = zip(comparison.rows, comparison.causes, strict=True)
    return sum(row.delta_ns for row, cause in rows if cause in causes)


def found(comparison, *causes):
    return [item for item in comparison.findings if item.cause in causes]


@pytest.mark.parametrize("name", [VIDEO, RESNET, RANK], ids=["video", "resnet", "rank"])
def test_a_trace_and_itself_differ_nowhere(name):
    comparison = compare_sides(side_of(real_trace(name)), side_of(real_trace(name)))
    assert not [row for row in comparison.rows if row.delta_ns]
    assert comparison.findings == []
    assert comparison.aligned.least_pct == 100


@pytest.mark.parametrize(
    ("name", "kernel", "compared_share"),
    [
        (VIDEO, "GeluCUDAKernelImpl", 1),
        (RESNET, "batch_norm_backward", 3 / 4),  # a step before the first recorded one is not compared
        (RANK, "scaled_upper_triang_masked_softmax", 1),
    ],
    ids=["video", "resnet", "rank"],
)
def test_a_kernel_family_that_takes_three_times_as_long(name, kernel, compared_share, tmp_path):
    edited, planted = editor.slowed(editor.read(real_trace(name)), kernel, 3)
    comparison = compared(edited, name, tmp_path)
    assert planted > 0
    assert sums(comparison, "slower_kernel") == pytest.approx(planted * compared_share, rel=0.01)
    assert found(comparison, "slower_kernel")
    assert {item.cause for item in comparison.findings if item.score.high > 1} <= {"slower_kernel"}


@pytest.mark.parametrize(("name", "op"), [(VIDEO, "aten::gelu"), (RESNET, "aten::relu_")], ids=["video", "resnet"])
def test_an_op_that_is_gone(name, op, tmp_path):
    edited, planted = editor.removed(editor.read(real_trace(name)), op)
    comparison = compared(edited, name, tmp_path)
    assert planted > 0
    assert sums(comparison, "only_in_base") == pytest.approx(-planted, rel=0.01)
    assert found(comparison, "only_in_base")
    assert not found(comparison, "only_in_target", "different_work", "shape")


@pytest.mark.parametrize(
    ("name", "streams", "compared_share"),
    [(ALEXNET, (20, 7), 1), (RESNET, (4, 0), 3 / 4)],
    ids=["alexnet", "resnet"],
)
def test_a_stream_that_runs_after_the_other(name, streams, compared_share, tmp_path):
    edited, beside = editor.serialised(editor.read(real_trace(name)), *streams)
    comparison = compared(edited, name, tmp_path)
    assert beside > 0
    assert sums(comparison, "lost_overlap") == pytest.approx(beside * compared_share, rel=0.01)
