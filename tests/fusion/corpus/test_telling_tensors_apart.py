"""Shapes that coincide, numbers that are too small, and what ops wrap: cases that the planted corpus brought up."""

from __future__ import annotations

import pytest

from rooftrace.fusion import find_candidates
from rooftrace.fusion.flow import trace_flow
from rooftrace.fusion.meaning import Meaning
from rooftrace.fusion.tokens import kernel_word
from rooftrace.opmodels import Tensor
from tests.fusion.programs import ADD, BF16, COPY, F32, GEMM, HALF, MUL, OTHER, ROWS, Model, X, inputs_of, rms_norm

FLAT = Tensor(shape=(32, 8), dtype="float32")  # 1,024 bytes
DEEP = Tensor(shape=(4, 8, 8), dtype="float32")  # the same as a result in three dimensions
TURNED = Tensor(shape=(8, 32), dtype="float32")


def step(word, reads, writes, **more):
    return Meaning(name=f"aten::{word}", word=word, reads=tuple(reads), writes=tuple(writes), **more)


def view(source, target, name="aten::view"):
    return Meaning(name=name, word="view", reads=(source,), writes=(target,))


def listed(model):
    return [
        (c.composition.identity if c.composition else "novel", int(c.first.size), " ".join(m.word for m in c.replaced))
        for c in find_candidates(inputs_of(model)).candidates
    ]


def test_a_weight_of_the_shape_of_a_result_does_not_make_it_read_again():
    # tokens x width = features x width: what the next linear transposes is its weight
    steps = [
        step("mm", [FLAT, Tensor(shape=(8, 8), dtype="float32")], [FLAT]),
        view(FLAT, DEEP),
        step("add", [DEEP, DEEP], [DEEP]),
        view(FLAT, TURNED, "aten::t"),
        step("mm", [FLAT, TURNED], [Tensor(shape=(32, 32), dtype="float32")]),
    ]
    flow = trace_flow(steps, frozenset({0, 2}))

    assert [value.maker for value in flow.written] == [2]
    assert flow.forced == ()


def test_a_result_seen_in_another_shape_is_not_the_second_operand():
    steps = [
        step("mm", [FLAT], [FLAT]),
        view(FLAT, DEEP),
        step("muls", [DEEP], [DEEP]),
        step("add", [DEEP, DEEP], [DEEP]),
    ]
    flow = trace_flow(steps, frozenset({0, 2, 3}))

    assert [value.readers for value in flow.external] == [[0], [3]]


MADE = step("batch_norm", [FLAT], [FLAT])
SIGMOID = [step("sigmoid", [FLAT], [FLAT]), step("mul", [FLAT, FLAT], [FLAT])]
SILU = [step("silu", [FLAT], [FLAT]), step("mul", [FLAT, FLAT], [FLAT])]


@pytest.mark.parametrize(
    ("before", "calls", "tensors"),
    [
        ([MADE], SIGMOID, 1),
        ([MADE, step("mm", [TURNED], [FLAT])], SIGMOID, 2),
        ([], SIGMOID, 2),
        ([step("|", [], [], reason="already fused"), MADE], SIGMOID, 2),
        ([MADE], SILU, 2),
        ([MADE], [step("sigmoid", [FLAT], [FLAT]), step("add", [FLAT, FLAT], [FLAT])], 2),
    ],
    ids=["x * sigmoid(x)", "two tensors wait", "nothing in sight", "an unknown call", "a whole activation", "a sum"],
)
def test_a_product_with_a_sigmoid_is_of_one_tensor_only_where_one_waits_to_be_read(before, calls, tensors):
    flow = trace_flow(calls, frozenset({0, 1}), before=before)

    assert flow.read_bytes == 1024 * tensors


def test_parts_of_one_tensor_are_two_operands_of_a_gate():
    both, half = Tensor(shape=(32, 16), dtype="float32"), FLAT
    before = [step("mm", [TURNED], [both]), view(both, half), view(both, half)]

    assert trace_flow(SIGMOID, frozenset({0, 1}), before=before).read_bytes == 2 * 1024


def test_a_list_whose_element_type_is_not_recorded_takes_that_of_what_flows_into_it():
    half = Tensor(shape=(32, 8), dtype="float16")
    unknown = Tensor(shape=(32, 8), dtype=None)
    joined = Tensor(shape=(32, 16), dtype=None)
    steps = [
        step("neg", [half], [half]),
        step("cat", [unknown, unknown], [joined], likely_dtype="bfloat16"),
        step("mul", [Tensor(shape=(32, 16), dtype="float16")], [Tensor(shape=(32, 16), dtype="float16")]),
    ]
    flow = trace_flow(steps, frozenset({0, 1, 2}))

    assert flow.edges == ((0, 1), (1, 2))
    assert (flow.unknown, {value.dtype for value in (*flow.external, *flow.written)}) == (None, {"float16"})


def test_a_list_of_unknown_type_alone_is_of_the_width_that_was_found():
    unknown = Tensor(shape=(32, 8), dtype=None)
    flow = trace_flow([step("cat", [unknown], [unknown], likely_dtype="bfloat16")], frozenset({0}))

    assert (flow.read_bytes, flow.written_bytes, flow.unknown) == (512, 512, None)


def test_ops_that_only_wrap_a_call_do_not_part_a_chain_where_no_module_is_recorded():
    model = Model()
    for _ in range(2):
        for name in ("aten::_to_copy", "aten::to"):  # around the copy that follows
            model.op(name, model.host - 0.5, 9, dims=[[8192, 1024]], types=[BF16], concrete=[""])
        model.call("aten::copy_", 20, X, HALF, kernel=COPY, scalars=("False",))
        model.call("aten::pow", 20, X, scalars=("2",))
        model.op(
            "aten::mean",
            model.host,
            8,
            dims=[[8192, 1024], [], [], []],
            types=[F32, "ScalarList", "Scalar", ""],
            concrete=["", "[-1]", "True", ""],
        )
        model.kernel(OTHER, ts=model.gpu, dur=10, correlation=model.launch(ts=model.host + 2, dur=3))
        model.gpu, model.host = model.gpu + 10, model.host + 10
        model.call("aten::add", 2, ROWS, kernel=ADD, scalars=("1e-6", "1"))
        model.call("aten::rsqrt", 2, ROWS)
        model.call("aten::mul", 20, X, ROWS, kernel=MUL)
        model.call("aten::mm", 50, X, ([1024, 16], F32), kernel=GEMM)

    assert listed(model) == [("rms_norm", 2, "cast pow mean adds rsqrt mul")]


def test_a_saving_within_the_error_of_the_estimate_is_not_claimed():
    # a cosine and a tangent in one kernel: 2 * 33,554,432 B / 3.18 TB/s = 21.1 µs and little more
    def of(each):
        model = Model()
        with model.module("Head_0"):
            model.call("aten::cos", each, X)
            model.call("aten::tanh", each, X)
        return listed(model)

    assert of(11.0) == []  # 22 µs: about 2 % to save
    assert of(13.0) == [("novel", 1, "cos tanh")]  # 26 µs: about a sixth


def test_a_number_added_by_a_kernel_is_an_add_by_its_name():
    functor = "at::native::CUDAFunctorOnSelf_add<float>"

    assert kernel_word(f"void at::native::vectorized_elementwise_kernel<4, {functor} >(int)", "elementwise") == "add"


def test_sgd_with_momentum_reads_three_tensors_and_writes_two():
    model = Model()
    start = model.host
    for _ in range(4):
        tensor = ([1000, 1000], F32)
        model.call("aten::mul_", 8, tensor, scalars=("0.9",), kernel=MUL)
        model.call("aten::add_", 8, tensor, tensor, scalars=("1",), kernel=ADD)
        model.call("aten::add_", 8, tensor, tensor, scalars=("-0.01",), kernel=ADD)
    model.annotation("Optimizer.step#SGD.step", start - 1, model.host - start + 2)

    (candidate,) = find_candidates(inputs_of(model)).candidates

    assert (candidate.composition.identity, candidate.length) == ("sgd_loop", 12)
    assert candidate.estimate.nbytes == 5 * 4 * 4 * 1_000_000  # four parameters, five tensors each, f32


def test_a_residual_added_before_a_written_out_norm_joins_it_and_is_written():
    model = Model()
    with model.module("Block_0"):
        model.call("c10d::allreduce_", 30, kernel="ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
        model.call("aten::add", 30, HALF, HALF, kernel=ADD, scalars=("1",))
        rms_norm(model)

    (candidate,) = find_candidates(inputs_of(model)).candidates

    assert (candidate.composition.identity, candidate.length) == ("add_norm", 9)
    # two summands in, sum and normal out, 16,777,216 each; a weight of 1024 bf16
    assert candidate.estimate.nbytes == 4 * 16_777_216 + 2_048


@pytest.mark.parametrize(("name", "identity"), [("LayerNorm_0", "layer_norm"), ("GroupNorm_0", "group_norm")])
def test_of_two_compositions_that_fit_the_one_counts_that_the_module_names(name, identity):
    model = Model()
    with model.module(name):
        for word, rest in (("mean", ("[-1]", "True", "")), ("var", ("[-1]", "1", "True"))):
            model.op(
                f"aten::{word}",
                model.host,
                8,
                dims=[[8192, 1024], [], [], []],
                types=[F32, "ScalarList", "Scalar", "Scalar"],
                concrete=["", *rest],
            )
            model.kernel(OTHER, ts=model.gpu, dur=10, correlation=model.launch(ts=model.host + 2, dur=3))
            model.gpu, model.host = model.gpu + 10, model.host + 10
        model.call("aten::sub", 30, X, ROWS, scalars=("1",))
        model.call("aten::add", 2, ROWS, kernel=ADD, scalars=("1e-6", "1"))
        model.call("aten::rsqrt", 2, ROWS)
        model.call("aten::mul", 30, X, ROWS, kernel=MUL)
        model.call("aten::mul", 30, X, ([1024], F32), kernel=MUL)
        model.call("aten::add", 30, X, ([1024], F32), kernel=ADD, scalars=("1",))

    assert listed(model) == [(identity, 1, "mean var sub adds rsqrt mul mul add")]
