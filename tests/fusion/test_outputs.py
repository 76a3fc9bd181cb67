from __future__ import annotations

import pytest

from rooftrace.fusion.outputs import outputs_of, reads_of
from rooftrace.fusion.views import view_outputs
from rooftrace.opmodels import NoCostError, Op, Tensor


def t(*shape, dtype="float32"):
    return Tensor(shape=shape, dtype=dtype)


def bf(*shape):
    return t(*shape, dtype="bfloat16")


def made(name, *args):
    return [(tensor.shape, tensor.dtype) for tensor in outputs_of(Op(name=name, args=args))]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("aten::add", (t(4, 1, 8), t(5, 8), "1"), [((4, 5, 8), "float32")]),
        ("aten::mul", (bf(4, 8), t(4, 1)), [((4, 8), "float32")]),
        ("aten::mul", (bf(4, 8), t()), [((4, 8), "bfloat16")]),
        ("aten::add_", (bf(4, 8), t(4, 8), "1"), [((4, 8), "bfloat16")]),
        ("aten::lt", (t(4, 8), t(8)), [((4, 8), "bool")]),
        ("aten::where", (t(4, 1, dtype="bool"), bf(4, 8), bf(1, 8)), [((4, 8), "bfloat16")]),
        ("aten::div", (t(4, dtype="int64"), t(4, dtype="int64")), [((4,), "float32")]),
        ("aten::gelu", (bf(4, 8), "none"), [((4, 8), "bfloat16")]),
        ("aten::mean", (t(4, 5, 8), "[-1]", "True", None), [((4, 5, 1), "float32")]),
        ("aten::mean", (t(4, 5, 8), "[0, 2]", "False", None), [((5,), "float32")]),
        ("aten::mean", (bf(4, 8), "[-1]", "True", "6"), [((4, 1), "float32")]),
        ("aten::sum", (t(4, 8), None), [((), "float32")]),
        ("aten::amax", (t(4, 8), "[1]", "True"), [((4, 1), "float32")]),
        ("aten::max", (t(4, 8), "1", "True"), [((4, 1), "float32"), ((4, 1), "int64")]),
        ("aten::max", (t(4, 8), t(1, 8)), [((4, 8), "float32")]),
        ("aten::var", (t(4, 8), "[-1]", "1", "True"), [((4, 1), "float32")]),
        ("aten::linalg_vector_norm", (t(4, 8), "2", "[-1]", "True", None), [((4, 1), "float32")]),
        ("aten::_softmax", (bf(4, 8), "-1", "False"), [((4, 8), "bfloat16")]),
        ("aten::_softmax", (bf(4, 8), "-1", "True"), [((4, 8), "float32")]),
        ("aten::mm", (bf(4, 8), bf(8, 3)), [((4, 3), "bfloat16")]),
        ("aten::addmm", (bf(3), bf(4, 8), bf(8, 3), "1", "1"), [((4, 3), "bfloat16")]),
        ("aten::bmm", (bf(2, 4, 8), bf(2, 8, 3)), [((2, 4, 3), "bfloat16")]),
        ("aten::linear", (bf(2, 4, 8), bf(3, 8), bf(3)), [((2, 4, 3), "bfloat16")]),
        (
            # (32 + 2*1 - 3) // 2 + 1 = 16
            "aten::convolution",
            (bf(2, 3, 32, 32), bf(8, 3, 3, 3), None, "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"),
            [((2, 8, 16, 16), "bfloat16")],
        ),
        (
            "aten::native_layer_norm",
            (bf(2, 5, 8), "[8]", bf(8), bf(8), "1e-5"),
            [((2, 5, 8), "bfloat16"), ((2, 5, 1), "float32"), ((2, 5, 1), "float32")],
        ),
        ("aten::native_dropout", (bf(4, 8), "0.1", "True"), [((4, 8), "bfloat16"), ((4, 8), "bool")]),
        ("aten::_to_copy", (bf(4, 8), "6", None, None, None, "False", None), [((4, 8), "float32")]),
        ("aten::copy_", (t(4, 8), bf(4, 8), "False"), [((4, 8), "float32")]),
        ("aten::clone", (bf(4, 8), "0"), [((4, 8), "bfloat16")]),
        ("aten::cat", ((bf(4, 8), bf(4, 3)), "-1"), [((4, 11), "bfloat16")]),
        ("aten::stack", ((bf(4, 8), bf(4, 8)), "1"), [((4, 2, 8), "bfloat16")]),
    ],
)  # fmt: skip
def test_a_call_makes_tensors_of_the_shape_and_type_that_its_op_defines(name, args, expected):
    assert made(name, *args) == expected


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("aten::view", (t(4, 6), "[2, -1]"), [(2, 12)]),
        ("aten::reshape", (t(4, 6), "[24]"), [(24,)]),
        ("aten::transpose", (t(4, 6, 8), "1", "-1"), [(4, 8, 6)]),
        ("aten::t", (t(4, 6),), [(6, 4)]),
        ("aten::permute", (t(4, 6, 8), "[0, 2, 1]"), [(4, 8, 6)]),
        ("aten::expand", (t(1, 6), "[5, 4, -1]"), [(5, 4, 6)]),
        ("aten::unsqueeze", (t(4, 6), "-1"), [(4, 6, 1)]),
        ("aten::squeeze", (t(4, 1, 6), "1"), [(4, 6)]),
        ("aten::slice", (t(4, 64), "1", "32", "9223372036854775807", "1"), [(4, 32)]),
        ("aten::slice", (t(4, 64), "1", "0", "-1", "2"), [(4, 32)]),
        ("aten::select", (t(4, 6), "0", "2"), [(6,)]),
        ("aten::narrow", (t(4, 6), "1", "0", "3"), [(4, 3)]),
        ("aten::chunk", (t(4, 7), "2", "-1"), [(4, 4), (4, 3)]),
        ("aten::split", (t(4, 7), "3", "1"), [(4, 3), (4, 3), (4, 1)]),
        ("aten::unbind", (t(3, 4), "0"), [(4,), (4,), (4,)]),
        ("aten::flatten", (t(2, 3, 4), "1", "-1"), [(2, 12)]),
        ("aten::as_strided", (t(4, 64), "[4, 32]", "[64, 1]", "32"), [(4, 32)]),
        ("aten::to", (t(4, 6), "6", "False", "False", None), [(4, 6)]),
    ],
)
def test_a_view_hands_on_the_shape_that_its_arguments_say(name, args, expected):
    assert [tensor.shape for tensor in view_outputs(Op(name=name, args=args))] == expected


def test_a_copy_reads_its_source_and_not_what_it_overwrites():
    assert reads_of(Op(name="aten::copy_", args=(t(4), bf(4), "False"))) == (bf(4),)


def test_numbers_in_tensors_are_no_operands_but_tensors_of_one_number_are():
    number = t(dtype="float64")

    assert reads_of(Op(name="aten::add", args=(t(4), number, "1"))) == (t(4),)
    assert reads_of(Op(name="aten::mul", args=(t(4), t()))) == (t(4), t())


def test_a_number_does_not_widen_a_tensor_of_one_number():
    # torch.tensor(2.0) + 1e-6 stays float32, torch.tensor(2) * 0.5 does not stay int32
    assert made("aten::add", t(), t(dtype="float64"), "1") == [((), "float32")]
    assert made("aten::mul", t(dtype="int32"), t(dtype="float64")) == [((), "float64")]


@pytest.mark.parametrize("args", [(), (bf(4), "0")])
def test_an_op_without_a_rule_says_so(args):
    with pytest.raises(NoCostError, match=r"not recorded|result of `aten::topk` not derived"):
        outputs_of(Op(name="aten::topk", args=args))


@pytest.mark.parametrize(
    "op",
    [
        Op(name="aten::mm", args=(bf(4), bf(4))),
        Op(name="aten::mean", args=(t(4), "[7]", "x")),
        Op(name="aten::cat", args=((), "0")),
        Op(name="aten::convolution", args=(bf(2, 3), bf(4, 3), None, "[]", "[]", "[]")),
    ],
)
def test_malformed_records_are_refused_not_guessed(op):
    with pytest.raises(NoCostError):
        outputs_of(op)
