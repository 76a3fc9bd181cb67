from __future__ import annotations

import pytest

from rooftrace.causes import CAUSE_NAMES
from rooftrace.compare import CAUSES, compare_sides
from tests.compare.sides import ADD, COPY, CUTLASS, GEMM, MUL, Call, cause_of, compared, row_of, side_of
from tests.support.trace_builder import TraceBuilder

SHAPE, WIDE = [[64, 512], [512, 512]], [[128, 512], [512, 512]]
BF16, FP32 = ["c10::BFloat16"] * 2, ["float"] * 2
ROW, COLUMN = [[512, 1], [512, 1]], [[512, 1], [1, 512]]


def linear(kernels=((GEMM, 100),), dims=SHAPE, types=BF16, strides=ROW) -> Call:
    return Call(op="aten::mm", kernels=list(kernels), modules=("Model_0",), dims=dims, types=types, strides=strides)


REST = Call(op="aten::add", kernels=[(ADD, 50)], modules=("Model_0",), dims=SHAPE, types=BF16)


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        (linear(), "unchanged"),
        (linear([(GEMM, 130)]), "slower_kernel"),
        (linear([(CUTLASS, 130)]), "different_kernel"),
        (linear([(GEMM, 60), (ADD, 60)]), "more_launches"),
        (linear([(COPY, 20), (GEMM, 100)]), "layout_or_copy"),
        (linear([(CUTLASS, 130)], strides=COLUMN), "layout_or_copy"),
        (linear([(GEMM, 200)], dims=WIDE), "shape"),
        (linear([(GEMM, 200)], types=FP32), "precision"),
        (linear([("Memset (Device)", 1), (CUTLASS, 130)]), "different_kernel"),
    ],
    ids=[
        "the same",
        "the same kernel, slower",
        "another kernel",
        "a second kernel",
        "a copy before it",
        "another layout",
        "other shapes",
        "another element type",
        "another kernel that needs a cleared buffer",
    ],
)
def test_a_changed_call_has_this_cause(target, cause):
    assert cause_of(compared([linear(), REST], [target, REST]), "aten::mm") == cause


def test_fewer_launches_are_the_reverse_of_more():
    split = linear([(GEMM, 60), (ADD, 60)])
    assert cause_of(compared([split, REST], [linear(), REST]), "aten::mm") == "fewer_launches"


def test_work_that_only_one_side_has_is_named_after_it():
    mul = Call(op="aten::mul", kernels=[(MUL, 30)], modules=("Model_0",), dims=SHAPE, types=BF16)
    assert cause_of(compared([linear(), REST], [linear(), mul, REST]), "aten::mul") == "only_in_target"
    assert cause_of(compared([linear(), mul, REST], [linear(), REST]), "aten::mul") == "only_in_base"


def test_work_that_no_longer_runs_beside_other_work_lost_its_overlap():
    def run(second_at: float) -> TraceBuilder:
        builder = TraceBuilder()
        builder.device()
        for number, (op, name, stream, at) in enumerate(
            (("aten::mm", GEMM, 7, 100.0), ("aten::mul", MUL, 13, second_at)), start=1
        ):
            builder.op(op, 10.0 * number, 5)
            correlation = builder.launch(ts=10.0 * number + 1)
            builder.kernel(name, at, 60, stream=stream, correlation=correlation)
        return builder

    comparison = compare_sides(side_of(run(100.0)), side_of(run(160.0)))
    assert row_of(comparison, "aten::mul").base.ns == 30_000  # shared with the product: half of 60
    assert cause_of(comparison, "aten::mul") == cause_of(comparison, "aten::mm") == "lost_overlap"


def test_all_kernels_slower_alike_is_the_clock():
    def calls(factor: float) -> list[Call]:
        rows = (
            ("aten::mm", GEMM, 100),
            ("aten::add", ADD, 40),
            ("aten::mul", MUL, 30),
            ("aten::copy_", COPY, 20),
        )
        return [Call(op=op, kernels=[(name, us * factor)], modules=("M_0",)) for op, name, us in rows]

    comparison = compared(calls(1.0), calls(1.1))
    assert comparison.pace == pytest.approx(1.1)
    assert {cause_of(comparison, op) for op in ("aten::mm", "aten::add", "aten::mul", "aten::copy_")} == {
        "clock_or_power"
    }
    # one slow kernel among unchanged ones is no matter of the clock
    assert compared(calls(1.0), [*calls(1.0)[:3], calls(2.0)[3]]).pace is None


def test_the_contract_lists_the_causes_that_are_decided():
    assert CAUSES[-len(CAUSE_NAMES) :] == CAUSE_NAMES
