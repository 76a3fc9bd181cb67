from __future__ import annotations

from tests.compare.sides import (
    ADD,
    COPY,
    CUTLASS,
    GEMM,
    HIP_GEMM,
    MUL,
    Call,
    assert_conserved,
    cause_of,
    compared,
    row_of,
)

SHAPE = [[8, 64], [64, 64]]
TYPES = ["c10::BFloat16", "c10::BFloat16"]


def layer(number: int, *, linear: str = "aten::linear", name: str = "Layer", kernel: str = GEMM) -> list[Call]:
    modules = ("Model_0", f"{name}_{number}")
    return [
        Call(op=linear, kernels=[(kernel, 40)], modules=(*modules, f"Linear_{number}"), dims=SHAPE, types=TYPES),
        Call(op="aten::add", kernels=[(ADD, 5)], modules=modules, dims=SHAPE, types=TYPES),
    ]


def model(layers: int, **options: str) -> list[Call]:
    head = Call(op="aten::mul", kernels=[(MUL, 9)], modules=("Model_0",), dims=SHAPE, types=TYPES)
    return [call for number in range(layers) for call in layer(number, **options)] + [head]


def test_a_run_and_itself_differ_in_no_row():
    comparison = compared(model(3), model(3))
    assert comparison.level == "modules"
    assert [row.delta_ns for row in comparison.rows] == [0] * len(comparison.rows)
    assert set(comparison.causes) == {"unchanged"}
    assert comparison.findings == []
    assert comparison.aligned.least_pct == 100
    assert_conserved(comparison)


def test_rows_carry_phase_modules_and_op():
    comparison = compared(model(2), model(2))
    assert row_of(comparison, "Linear_1", "aten::linear").path == (
        "forward",
        "Model_0",
        "Layer_1",
        "Linear_1",
        "aten::linear",
    )


def test_renamed_modules_are_told_by_what_they_call():
    comparison = compared(model(3), model(3, name="Block"))
    assert comparison.aligned.least_pct == 100
    assert not [row for row in comparison.rows if row.delta_ns]


def test_another_dispatch_of_the_same_op_is_the_same_row():
    comparison = compared(model(2), model(2, linear="aten::addmm"))
    row = row_of(comparison, "Linear_0", "aten::addmm")
    assert (row.base.ns, row.target.ns) == (40_000, 40_000)


def test_further_layers_are_only_on_their_side():
    comparison = compared(model(2), model(4))
    alone = [row for row, cause in zip(comparison.rows, comparison.causes, strict=True) if cause == "only_in_target"]
    # two layers of a product and a sum, in modules that the base lacks as a whole
    assert sum(row.target.ns for row in alone) == 2 * (40_000 + 5_000)
    assert {row.scope[-1] for row in alone} == {"Layer_2", "Layer_3"}


def test_a_wrapper_round_the_model_changes_nothing():
    wrapped = [
        Call(
            op=call.op,
            kernels=call.kernels,
            modules=("OptimizedModule_0", *call.modules),
            dims=call.dims,
            types=call.types,
        )
        for call in model(2)
    ]
    comparison = compared(model(2), wrapped)
    assert comparison.aligned.least_pct == 100
    assert not [row for row in comparison.rows if row.delta_ns]


def test_without_stacks_on_one_side_ops_align():
    bare = [Call(op=call.op, kernels=call.kernels, dims=call.dims, types=call.types) for call in model(3)]
    comparison = compared(model(3), bare)
    assert comparison.level == "ops"
    assert comparison.aligned.least_pct == 100
    assert "no_modules" in {note.code for note in comparison.notes}


def test_kernels_of_another_vendor_align_by_the_op_that_launched_them():
    comparison = compared(model(2), model(2, kernel=HIP_GEMM))
    assert comparison.aligned.least_pct == 100
    assert not [cause for cause in comparison.causes if cause.startswith("only")]


def test_an_op_written_out_is_one_row_with_the_op_it_replaced():
    norm = Call(op="aten::rms_norm", kernels=[("rms_norm_kernel", 4)], modules=("Model_0",))
    parts = [Call(op=op, kernels=[(MUL, 3)], modules=("Model_0",)) for op in ("aten::pow", "aten::rsqrt", "aten::neg")]
    tail = Call(op="aten::add", kernels=[(ADD, 5)], modules=("Model_0",))
    comparison = compared([norm, tail], [*parts, tail])
    row = row_of(comparison, "aten::pow + aten::rsqrt + aten::neg")
    assert (row.kind, row.base.ns, row.target.ns) == ("block", 4_000, 9_000)
    assert cause_of(comparison, row.path[-1]) == "more_launches"


def test_a_compiled_region_is_matched_with_the_ops_it_stands_for():
    compiled = [
        Call(op="aten::addmm", kernels=[(GEMM, 40)], modules=("Model_0", "Layer_0"), dims=SHAPE, types=TYPES),
        Call(
            op="triton_poi_fused_add_mul_0",
            kernels=[("triton_poi_fused_add_mul_0", 7)],
            modules=("Model_0", "Layer_0"),
        ),
    ]
    eager = [
        *layer(0),
        Call(op="aten::mul", kernels=[(MUL, 9)], modules=("Model_0", "Layer_0"), dims=SHAPE, types=TYPES),
    ]
    comparison = compared(eager, compiled)
    row = row_of(comparison, "triton_poi_fused_add_mul_0")
    assert (row.kind, row.base.ns, row.target.ns) == ("block", 5_000 + 9_000, 7_000)
    assert cause_of(comparison, row.path[-1]) == "fewer_launches"
    assert comparison.aligned.least_pct == 100


def test_an_op_that_moved_to_another_module_keeps_its_row():
    first = [Call(op="aten::mul", kernels=[(MUL, 9)], modules=("Model_0", "Gate_0")), *layer(0)]
    second = [Call(op="aten::mul", kernels=[(MUL, 9)], modules=("Model_0",)), *layer(0)]
    comparison = compared(first, second)
    assert comparison.aligned.least_pct == 100


def test_a_copy_more_is_named_so():
    more = Call(op="aten::contiguous", kernels=[(COPY, 12)], modules=("Model_0",), dims=SHAPE, types=TYPES)
    comparison = compared(model(2), [*model(2)[:2], more, *model(2)[2:]])
    assert cause_of(comparison, "aten::contiguous") == "layout_or_copy"


def test_two_different_models_are_told_apart():
    other = [
        Call(op=f"aten::{name}", kernels=[(CUTLASS, 30)], modules=("Net_0",))
        for name in ("conv2d", "max_pool2d", "relu_", "batch_norm", "avg_pool2d")
    ]
    sums = [Call(op="aten::add", kernels=[(ADD, 5)], modules=("Model_0",), dims=SHAPE, types=TYPES)] * 5
    comparison = compared(sums, other)
    assert comparison.verdict == "not_comparable"
    assert_conserved(comparison)
