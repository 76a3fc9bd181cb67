"""Which call a kernel counts for, and what is inferred where the call's own record gives no cost. Times are µs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.calltree import Work, build_context, build_tree, collect_activities, group_ops
from rooftrace.opmodels import Cost, Unmodelled
from tests.support.trace_builder import TraceBuilder

FLOAT, HALF = "float", "c10::BFloat16"


def grouped(builder):
    trace = builder.build()
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    return activities, group_ops(trace, tree, build_context(trace, tree), activities)


def costs_of(builder):
    """FLOPs, bytes and notes of each group, by op name and first kernel, most time first."""
    activities, groups = grouped(builder)
    found = {}
    for group in groups:
        key = (group.name, activities.infos[group.kernel_codes[0]].name)
        cost = group.cost
        found[key] = (cost.flops, cost.bytes_total, cost.notes) if isinstance(cost, Cost) else cost and cost.reason
    return found


def launch(builder, ts, kernel, dur=5, tid=1, at=None):
    """A launch at `ts` of a kernel, 500 µs later or at `at`."""
    correlation = builder.launch(ts=ts, dur=0.5, tid=tid)
    builder.kernel(kernel, ts=at if at is not None else ts + 500, dur=dur, correlation=correlation)


def tensors(*shapes, types=None, concrete=()):
    """Recorded inputs: tensors, then scalars given as text."""
    return {
        "dims": [*map(list, shapes), *([],) * len(concrete)],
        "types": types or [*(FLOAT,) * len(shapes), *("Scalar",) * len(concrete)],
        "concrete": [*("",) * len(shapes), *concrete],
    }


UNRECORDED = {"dims": [[], [], []], "types": ["TensorList", "TensorList", "Scalar"], "concrete": ["", "", "1"]}


def test_a_call_without_a_cost_leaves_its_kernels_to_the_ops_below_it_that_have_one():
    # _foreach_add_ [add_   add_  ]   lists not recorded, each add_ has its shapes
    builder = TraceBuilder()
    builder.op("aten::_foreach_add_", 0, 20, **UNRECORDED)
    for ts, size in ((1, 10), (10, 30)):
        builder.op("aten::add_", ts, 8, **tensors((size,), (size,), concrete=("1",)))
        launch(builder, ts + 1, "add_kernel<float>")
    _, groups = grouped(builder)

    # 2 numbers read and one written of 4 bytes for each element
    assert sorted((g.name, g.count, g.cost.bytes_total) for g in groups) == [
        ("aten::add_", 1, 120),
        ("aten::add_", 1, 360),
    ]
    assert all(g.cost.notes == () for g in groups)


def test_a_call_with_a_cost_keeps_the_kernels_of_the_ops_below_it():
    builder = TraceBuilder()
    builder.op("aten::softmax", 0, 30, **tensors((4, 5), concrete=("1", "")))
    builder.op("aten::_softmax", 1, 20, **tensors((4, 5), concrete=("1", "False")))
    builder.op("aten::add", 2, 8, **tensors((4, 5), (4, 5), concrete=("1",)))
    launch(builder, 3, "add")
    launch(builder, 15, "softmax")
    _, (group,) = grouped(builder)

    assert (group.name, group.activities.size) == ("aten::_softmax", 2)


def test_kernels_that_no_op_below_costs_stay_with_the_call():
    builder = TraceBuilder()
    builder.op("aten::_foreach_add_", 0, 30, **UNRECORDED)
    builder.op("aten::add_", 1, 8, **tensors((10,), (10,), concrete=("1",)))
    launch(builder, 2, "add_kernel<float>")
    launch(builder, 20, "multi_tensor_apply<float>")

    assert costs_of(builder) == {
        ("aten::add_", "add_kernel<float>"): (10, 120, ()),
        ("aten::_foreach_add_", "multi_tensor_apply<float>"): "shapes not recorded",
    }


def test_a_file_without_element_types_has_those_that_the_kernels_spell():
    builder = TraceBuilder()
    builder.op("aten::add_", 0, 10, dims=[[10], [10], []], types=[])
    launch(builder, 1, "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>")
    builder.op("aten::mul_", 20, 10, dims=[[10], [10]], types=[])
    launch(builder, 21, "mixed<float, c10::Half>")
    found = costs_of(builder)

    # add_: 10 additions; 20 floats read, 10 written
    assert found["aten::add_", "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>"] == (
        10, 120, ("inferred: dtype float32 from the kernel's name",),
    )  # fmt: skip
    assert found["aten::mul_", "mixed<float, c10::Half>"] == "dtype not recorded"


CONV = ((2, 4, 10, 10), (8, 4, 3, 3))
UNTOLD = ("",) * 6  # stride and so on, in a file without concrete inputs


def test_a_convolutions_result_has_the_shape_of_the_gradient_with_its_sequence_number():
    #           convolution      ConvolutionBackward0
    # sequence  7                7, handed [2, 8, 5, 5]
    builder = TraceBuilder()
    builder.op("aten::convolution", 0, 10, dims=[*map(list, CONV), [], []], types=[FLOAT, FLOAT, "", ""], sequence=7)
    launch(builder, 1, "fprop<float>")
    builder.op("autograd::engine::evaluate_function: ConvolutionBackward0", 100, 20, tid=2, sequence=7)
    builder.op("ConvolutionBackward0", 101, 15, tid=2, sequence=7, dims=[[2, 8, 5, 5]], types=[FLOAT])

    # 400 results of 36 multiply-adds; 800 + 288 + 400 floats
    assert costs_of(builder) == {
        ("aten::convolution", "fprop<float>"): (
            28800, 5952, ("inferred: result's shape from the gradient that its backward call is handed",),
        )
    }  # fmt: skip


def test_a_number_that_two_forward_threads_gave_out_tells_nothing():
    builder = TraceBuilder()
    builder.op("aten::convolution", 0, 10, dims=[*map(list, CONV), [], []], types=[FLOAT, FLOAT, "", ""], sequence=7)
    launch(builder, 1, "fprop<float>")
    builder.op("aten::relu", 50, 10, tid=3, dims=[[4]], types=[FLOAT], sequence=7)
    builder.op("ConvolutionBackward0", 101, 15, tid=2, sequence=7, dims=[[2, 8, 5, 5]], types=[FLOAT])

    assert costs_of(builder) == {("aten::convolution", "fprop<float>"): "scalar arguments not recorded"}


def with_twins(*shapes):
    """A convolution of an old file without numbers, and backward calls with its operands and these gradients."""
    builder = TraceBuilder()
    builder.op("aten::convolution", 0, 10, dims=[*map(list, CONV), [], []], types=[FLOAT, FLOAT, "", ""])
    launch(builder, 1, "fprop<float>")
    for number, shape in enumerate(shapes):
        dims = [list(CONV[0]), list(shape), list(CONV[1]), *[[]] * 8]
        builder.op(
            "aten::cudnn_convolution_backward", 100 + 20 * number, 10, tid=2, dims=dims, types=[FLOAT] * 3 + [""] * 8
        )
    return builder


def test_without_numbers_backward_calls_on_the_same_operands_tell_the_result_if_they_agree():
    key = ("aten::convolution", "fprop<float>")

    assert costs_of(with_twins((2, 8, 5, 5), (2, 8, 5, 5)))[key][:2] == (28800, 5952)
    assert costs_of(with_twins((2, 8, 5, 5), (2, 8, 10, 10)))[key] == "scalar arguments not recorded"
    assert costs_of(with_twins())[key] == "scalar arguments not recorded"


def test_the_gradients_computed_are_those_with_an_op_below():
    builder = TraceBuilder()
    dims = [list(CONV[0]), [2, 8, 5, 5], list(CONV[1]), *[[]] * 8]
    builder.op("aten::cudnn_convolution_backward", 0, 20, dims=dims, types=[])
    builder.op("aten::cudnn_convolution_backward_weight", 1, 15, dims=[[], [2, 8, 5, 5], list(CONV[0])], types=[])
    launch(builder, 2, "wgrad_alg0_engine<float, 128>")
    (found,) = costs_of(builder).values()

    assert found == (
        28800, 5952,  # dW alone: 2*400*36; 400 + 800 read, 288 written
        ("inferred: output mask from the names of kernels and ops below the call",
         "inferred: dtype float32 from the kernel's name"),
    )  # fmt: skip


def test_a_backward_op_without_a_record_takes_its_shapes_from_the_forward_call():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10, sequence=3, **tensors((4, 5), (5, 6)))
    builder.op("MmBackward0", 100, 20, tid=2, sequence=3, dims=[[4, 6]], types=[FLOAT])
    builder.op("aten::mm", 101, 8, tid=2)
    launch(builder, 102, "sgemm", tid=2)

    assert costs_of(builder) == {
        ("aten::mm", "sgemm"): (240, (20 + 30 + 24) * 4, ("inferred: shapes from the forward call `aten::mm`",))
    }


CONV_SCALARS = ("[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")


def recorded_convolution():
    """`aten::convolution` as today's profilers record it: two tensors, no bias, six scalars."""
    return {
        "dims": [*map(list, CONV), *[[]] * 7],
        "types": [FLOAT, FLOAT, "", *("ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar")],
        "concrete": ["", "", "", *CONV_SCALARS],
    }


@pytest.mark.parametrize("recorded", ["aten::convolution", "aten::cudnn_convolution"])
def test_of_a_convolution_and_the_librarys_below_it_the_one_with_a_record_has_the_cost(recorded):
    library = {**recorded_convolution(), "concrete": ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", ""]}
    library["types"] = [FLOAT, FLOAT, *("ScalarList",) * 3, *("Scalar",) * 3, ""]
    builder = TraceBuilder()
    builder.op("aten::convolution", 0, 30, **(recorded_convolution() if recorded == "aten::convolution" else {}))
    builder.op("aten::cudnn_convolution", 1, 20, **(library if recorded == "aten::cudnn_convolution" else {}))
    launch(builder, 2, "fprop<float>")

    # 400 results of 36 multiply-adds; 800 + 288 + 400 floats
    assert costs_of(builder) == {(recorded, "fprop<float>"): (28800, 5952, ())}


def test_the_gradients_of_a_convolution_without_a_record_are_those_of_its_forward_call_that_the_kernels_name():
    builder = TraceBuilder()
    builder.op("aten::convolution", 0, 10, sequence=9, **recorded_convolution())
    builder.op("ConvolutionBackward0", 100, 30, tid=2, sequence=9, dims=[[2, 8, 5, 5]], types=[FLOAT])
    builder.op("aten::convolution_backward", 101, 25, tid=2)
    launch(builder, 102, "cudnn_dgrad_engine", tid=2)
    launch(builder, 110, "cudnn_wgrad_engine", tid=2)
    (found,) = costs_of(builder).values()

    # dX and dW: twice 28800; dY 400, w 288, x 800 read, dX 800 and dW 288 written
    assert found == (
        57600, (400 + 288 + 800 + 800 + 288) * 4,
        ("inferred: shapes from the forward call `aten::convolution`",
         "inferred: output mask from the names of kernels and ops below the call"),
    )  # fmt: skip


def test_a_library_op_without_a_record_takes_the_arguments_of_the_function_around_it():
    builder = TraceBuilder()
    q = (2, 16, 4, 8)
    builder.op("FlashAttnFunc", 0, 30, **tensors(q, q, q, types=[HALF] * 3))
    builder.op("flash_attn::_flash_attn_forward", 1, 20)
    causal = "flash_fwd_kernel<Flash_fwd_kernel_traits<8, 128, 128>, false, true, false, false>"
    launch(builder, 2, causal)

    # 136 causal pairs, 8 heads, two products of 8; Q, K, V, O of 2048 bytes and 128 float32
    assert costs_of(builder) == {
        ("flash_attn::_flash_attn_forward", causal): (
            2 * 8 * 136 * 16, 4 * 2048 + 512,
            ("inferred: shapes from the enclosing call `FlashAttnFunc`",
             "inferred: causal flag from the names of kernels and ops below the call"),
        )
    }  # fmt: skip


def test_a_causal_flag_that_nothing_tells_leaves_attention_without_a_cost():
    builder = TraceBuilder()
    q = (2, 16, 4, 8)
    builder.op("FlashAttnFunc", 0, 30, **tensors(q, q, q, types=[HALF] * 3))
    builder.op("flash_attn::_flash_attn_forward", 1, 20)
    launch(builder, 2, "some_attention_kernel")

    assert list(costs_of(builder).values()) == [None]


def test_a_call_around_of_another_family_tells_nothing():
    builder = TraceBuilder()
    builder.op("MyFunction", 0, 30, **tensors((4, 5), (5, 6)))
    builder.op("aten::mm", 1, 20)
    launch(builder, 2, "sgemm")

    assert costs_of(builder) == {("aten::mm", "sgemm"): None}


def test_the_parts_that_a_splits_gradient_is_handed_are_what_cat_joins():
    builder = TraceBuilder()
    builder.op("SplitWithSizesBackward0", 0, 30, sequence=5, **tensors((4, 2), (4, 3)))
    builder.op("aten::cat", 1, 20, dims=[[], []], types=["TensorList", "Scalar"])
    launch(builder, 2, "CatArrayBatchedCopy<float>")

    assert costs_of(builder) == {
        ("aten::cat", "CatArrayBatchedCopy<float>"): (
            0, 160, ("inferred: shapes from the enclosing call `SplitWithSizesBackward0`",),
        )
    }  # fmt: skip


def module_calls(*records):
    """aten::mm in the same module of successive layers; None: without a record."""
    builder = TraceBuilder()
    for number, (record, kernel) in enumerate(records):
        ts = 100 * number
        builder.python(f"nn.Module: Layer_{number}", ts, 50)
        builder.python("nn.Module: Linear_0", ts + 1, 40)
        builder.op("aten::mm", ts + 2, 20, **(record or {}))
        launch(builder, ts + 3, kernel, at=ts + 30)
    return builder


SMALL, LARGE = tensors((4, 5), (5, 6)), tensors((8, 5), (5, 6))


def test_a_call_without_a_record_is_what_all_calls_of_its_module_are():
    found = grouped(module_calls((SMALL, "sgemm"), (SMALL, "sgemm"), (None, "sgemm")))[1]

    inferred = [group for group in found if group.inputs is None]
    assert [(g.count, g.cost.flops, g.cost.notes) for g in inferred] == [
        (1, 240, ("inferred: shapes from other calls in the same module",))
    ]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(((SMALL, "sgemm"), (LARGE, "sgemm"), (None, "sgemm")), id="they differ"),
        pytest.param(((SMALL, "sgemm_a"), (None, "sgemm_b")), id="another kernel"),
        pytest.param(((None, "sgemm"), (None, "sgemm")), id="no record at all"),
    ],
)
def test_calls_of_the_module_that_do_not_agree_tell_nothing(records):
    found = grouped(module_calls(*records))[1]

    assert {group.cost for group in found if group.inputs is None} == {None}


def test_a_generated_kernel_writes_the_buffer_allocated_right_before_it():
    #  GeLUFunction(x, bias) [ empty [8, 16]   triton ]
    builder = TraceBuilder()
    builder.op("GeLUFunction", 0, 50, **tensors((8, 16), (16,), types=["c10::Half"] * 2))
    builder.op("aten::empty", 5, 5, dims=[[]] * 2, types=["ScalarList", "Scalar"], concrete=["[8, 16]", "5"])
    builder.op("triton_poi_fused_add_mul_tanh_0", 20, 20)
    launch(builder, 22, "triton__0d1d2d3de")
    (found,) = costs_of(builder).values()

    # 3 operations on 128; 128 + 16 in and 128 out, of 2 bytes
    assert found[:2] == (384, 544)
    assert (
        found[2][0] == "inferred: shapes from the buffer allocated for its result and the enclosing call `GeLUFunction`"
    )


def test_two_buffers_do_not_tell_which_is_written():
    builder = TraceBuilder()
    for ts in (0, 10):
        builder.op("aten::empty", ts, 5, dims=[[]] * 2, types=["ScalarList", "Scalar"], concrete=["[8, 16]", "5"])
    builder.op("triton_poi_fused_add_0", 20, 20)
    launch(builder, 22, "triton__0d1d2d3de")

    assert list(costs_of(builder).values()) == [None]


LOOKUP = {
    "dims": [[0], [4000], [0], [0], [4], [4], [5], [], [], [5], [], [20], [9]],
    "types": [*[FLOAT] * 4, "int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long"],
}


def table_run(grad, sorted_indices):
    """A lookup of 20 indices in 4 tables by 2 samples, and an update that sorts so many."""
    builder = TraceBuilder()
    builder.op("fbgemm::split_embedding_codegen_lookup_sgd_function", 0, 10, **LOOKUP)
    launch(builder, 1, "forward_kernel")
    node = "torch::autograd::CppNode<SplitLookupFunction_sgd_Op>"
    builder.op(node, 100, 30, tid=2, dims=[list(grad)], types=[FLOAT], sequence=4)
    builder.op("aten::empty_like", 101, 2, tid=2, dims=[[sorted_indices]], types=["long"])
    launch(builder, 110, "backward_kernel", tid=2)
    return costs_of(builder), node


def test_a_lookup_and_its_update_tell_each_other_what_they_do_not_record():
    found, node = table_run((2, 16), 20)

    # rows of 16/4 = 4: 80 adds; 80 floats, 20 + 9 indices of 8, 2*16 floats out
    assert found["fbgemm::split_embedding_codegen_lookup_sgd_function", "forward_kernel"][:2] == (80, 320 + 232 + 128)
    # 80 adds and 2 on each; the gradient, the indices, the rows both ways
    assert found[node, "backward_kernel"][:2] == (240, 128 + 232 + 640)


@pytest.mark.parametrize("run", [((3, 16), 20), ((2, 16), 21)], ids=["samples", "indices"])
def test_an_update_of_another_lookup_tells_nothing(run):
    found, node = table_run(*run)

    assert found[node, "backward_kernel"] == "needs the forward lookup: tables and indices are no arguments"
    assert found["fbgemm::split_embedding_codegen_lookup_sgd_function", "forward_kernel"] == (
        "scalar arguments not recorded"
    )


CALLS = st.lists(
    st.tuples(
        st.sampled_from(("aten::_foreach_add_", "aten::convolution", "aten::cat", "mylib::op")),
        st.sampled_from((None, [[], [], []], [[2, 4, 10, 10], [8, 4, 3, 3], []])),
        st.lists(
            st.tuples(
                st.sampled_from((None, "aten::add_", "aten::mm", "mylib::inner")),
                st.booleans(),  # shapes
                st.sampled_from(("k<float>", "dgrad<float>", "ncclKernel_AllReduce()")),
                st.integers(0, 9),
            ),
            max_size=4,
        ),
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(CALLS)
def test_kernel_time_is_conserved_whatever_unit_is_chosen(calls):
    builder = TraceBuilder()
    for number, (outer, dims, inner) in enumerate(calls):
        ts = 100 * number
        builder.op(outer, ts, 90, dims=dims, types=[] if dims else None, sequence=number)
        for at, (name, shaped, kernel, dur) in enumerate(inner):
            start = ts + 1 + 20 * at
            if name:
                builder.op(name, start, 15, **(tensors((4, 4), (4, 4)) if shaped else {}))
            launch(builder, start + 1, kernel, dur=dur)
    builder.op("aten::end", 1000, 1)
    activities, groups = grouped(builder)

    compute = [index for index, work in enumerate(activities.work.tolist()) if work == Work.COMPUTE]
    assert sorted(index for group in groups for index in group.activities.tolist()) == compute
    assert sum(group.kernel_ns for group in groups) == int(activities.dur[compute].sum())
    assert all(group.cost is None or isinstance(group.cost, Cost | Unmodelled) for group in groups)
