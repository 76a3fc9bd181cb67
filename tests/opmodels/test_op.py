"""What a trace holds about a call becomes an ``Op``: spellings, lists, optionals, old and damaged records."""

from __future__ import annotations

import pytest

from rooftrace.opmodels import (
    NoCostError,
    Op,
    Tensor,
    dtype_in_kernel_name,
    normalise_dtype,
    op_from_record,
)
from rooftrace.opmodels.dtypes import dtype_of_scalar_type, promote
from rooftrace.opmodels.parts import bf16, broadcast, f32, i64, result_dtype


def test_a_record_gives_tensors_scalars_and_absent_optionals() -> None:
    op = op_from_record(
        "aten::convolution",
        [[4, 3, 224, 224], [768, 3, 16, 16], [], [], []],
        ["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "Scalar"],
        [[150528, 50176, 224, 1], [768, 256, 16, 1], [], [], []],
        ["", "", "", "[16, 16]", "False"],
    )

    assert op.args == (
        Tensor(shape=(4, 3, 224, 224), dtype="bfloat16", strides=(150528, 50176, 224, 1)),
        Tensor(shape=(768, 3, 16, 16), dtype="bfloat16", strides=(768, 256, 16, 1)),
        None,
        "[16, 16]",
        "False",
    )


def test_a_tensor_of_no_dimensions_is_a_tensor() -> None:
    op = op_from_record("aten::mul", [[1000], []], ["float", "double"], None, ["", ""])

    assert op.args[1] == Tensor(shape=(), dtype="float64")


def test_a_tensor_list_is_nested_one_deeper_and_has_no_dtypes() -> None:
    op = op_from_record("aten::cat", [[[4, 1], [4, 2]], []], ["TensorList", "Scalar"], None, ["", "1"])

    assert op.args == ((Tensor(shape=(4, 1), dtype=None), Tensor(shape=(4, 2), dtype=None)), "1")


def test_a_list_that_an_old_file_does_not_spell_out_is_empty() -> None:
    op = op_from_record("aten::cat", [[], []], ["TensorList", "Scalar"], None, None)

    assert op.args == ((), "")


def test_an_old_file_has_shapes_alone() -> None:
    op = op_from_record("aten::mm", [[4, 5], [5, 6]], [], None, None)

    assert op.args == (Tensor(shape=(4, 5), dtype=None), Tensor(shape=(5, 6), dtype=None))


def test_a_scalar_without_text_is_not_the_same_as_nothing() -> None:
    op = op_from_record("aten::sum", [[4, 5], [], []], ["float", "ScalarList", ""], None, ["", "", ""])

    assert op.args == (f32(4, 5), "", None)
    with pytest.raises(NoCostError, match="scalar arguments not recorded"):
        op.integers(1, (0,))
    assert op.integers(2, (0,)) == (0,)


def test_without_any_concrete_inputs_nothing_is_known_to_be_absent() -> None:
    op = op_from_record("aten::sum", [[4, 5], [], []], ["float", "", "Scalar"], None, None)

    assert op.args == (f32(4, 5), "", "")  # the axes may have been given: they are no list of all of them
    with pytest.raises(NoCostError, match="scalar arguments not recorded"):
        op.integers(1, ())


@pytest.mark.parametrize(
    "dims",
    [
        [None], [7], ["x"], [[-1, 2]], [[1.5]], [[True]], [{"a": 1}], [[[1, "x"]]], [[["x"]]],
    ],
    ids=str,
)  # fmt: skip
def test_entries_that_no_profiler_writes_are_no_tensors(dims: list[object]) -> None:
    op = op_from_record("aten::mm", dims, ["float"], None, None)

    assert op.tensors() == ()


def test_strides_that_do_not_fit_are_left_out() -> None:
    op = op_from_record("aten::mm", [[4, 5]], ["float"], [[1]], None)

    assert op.args == (f32(4, 5),)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        ("float", "float32"), ("double", "float64"), ("c10::Half", "float16"), ("Half", "float16"),
        ("c10::BFloat16", "bfloat16"), ("c10::Float8_e4m3fn", "float8_e4m3fn"),
        ("c10::Float8_e4m3fnuz", "float8_e4m3fnuz"), ("c10::Float8_e5m2", "float8_e5m2"),
        ("c10::Float8_e5m2fnuz", "float8_e5m2fnuz"), ("c10::Float8_e8m0fnu", "float8_e8m0fnu"),
        ("c10::Float4_e2m1fn_x2", "float4_e2m1fn_x2"), ("int", "int32"), ("long int", "int64"), ("long", "int64"),
        ("short int", "int16"), ("signed char", "int8"), ("unsigned char", "uint8"), ("bool", "bool"),
        ("c10::complex<float>", "complex64"), ("c10::complex<double>", "complex128"), ("unsigned short", "uint16"),
        ("torch.bfloat16", "bfloat16"), ("float32", "float32"), ("Scalar", None), ("", None), ("quint4x2", None),
    ],
)  # fmt: skip
def test_an_element_type_has_one_name_for_every_spelling(spelling: str, dtype: str | None) -> None:
    assert normalise_dtype(spelling) == dtype


def test_bytes_follow_the_strides_of_a_view() -> None:
    #                                 rows expanded: one row of 5       a window of 3 that slides over 6 elements
    expanded = Tensor(shape=(4, 5), dtype="float32", strides=(0, 1))
    sliding = Tensor(shape=(4, 3), dtype="float32", strides=(1, 1))

    assert (expanded.numel, expanded.nbytes) == (20, 20)
    assert (sliding.numel, sliding.nbytes) == (12, 24)
    assert Tensor(shape=(4, 5), dtype="float32", strides=(1, 4)).nbytes == 80
    assert Tensor(shape=(0, 5), dtype="float32", strides=(5, 1)).nbytes == 0
    assert Tensor(shape=(4, 5), dtype=None).nbytes is None


def test_scalars_are_parsed_and_never_evaluated() -> None:
    op = Op(name="x", args=("-1", "0.10000000000000001", "False", "[1, -2]", "[]", "3", "__import__('os')", "nan"))

    assert op.integer(0) == -1
    assert op.number(1) == 0.1
    assert op.boolean(2) is False
    assert op.integers(3) == (1, -2)
    assert op.integers(4) == ()
    assert op.integers(5) == (3,)
    for read in (op.integer, op.number, op.boolean, op.integers):
        with pytest.raises(NoCostError, match="arguments not as the op defines them"):
            read(6)
    with pytest.raises(NoCostError):
        op.number(7)
    with pytest.raises(NoCostError, match="scalar arguments not recorded"):
        op.integer(8)


def test_dtype_arguments_are_numbers_of_scalar_type() -> None:
    assert [dtype_of_scalar_type(n) for n in (4, 5, 6, 11, 15, 24)] == [
        "int64", "float16", "float32", "bool", "bfloat16", "float8_e4m3fn",
    ]  # fmt: skip
    assert Op(name="x", args=("15", None, "float32")).dtype(0) == "bfloat16"
    assert Op(name="x", args=("15", None, "float32")).dtype(1) is None
    assert Op(name="x", args=("15", None, "float32")).dtype(2) == "float32"


def test_operands_broadcast_from_the_right() -> None:
    assert broadcast([(3, 1, 5), (4, 1), ()]) == (3, 4, 5)
    with pytest.raises(NoCostError):
        broadcast([(3,), (4,)])


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        (("bfloat16", "float32"), "float32"), (("bfloat16", "float16"), "float32"), (("int64", "bfloat16"), "bfloat16"),
        (("bool", "int8"), "int8"), (("uint8", "int8"), "int16"), (("int32", "int64"), "int64"),
        (("float64", "complex64"), "complex64"), (("bool", "bool"), "bool"),
    ],
)  # fmt: skip
def test_element_types_promote_as_in_pytorch(dtypes: tuple[str, str], result: str) -> None:
    assert promote(dtypes) == result
    assert promote(reversed(dtypes)) == result


def test_a_number_or_a_zero_dim_tensor_promotes_only_across_categories() -> None:
    double = Tensor(shape=(), dtype="float64")

    assert result_dtype([bf16(4), double]) == "bfloat16"
    assert result_dtype([i64(4), double]) == "float64"
    assert result_dtype([i64(4)], ["1.5"]) == "float32"
    assert result_dtype([i64(4)], ["2"]) == "int64"
    assert result_dtype([bf16(4)], ["1.5"]) == "bfloat16"


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("void at::native::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 2, 64, 64>", "bfloat16"),
        ("void multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2, 2, 0>>", "float32"),
        ("void f<c10::BFloat16, float>()", "bfloat16"),
        ("void f<c10::Half>()", "float16"),
        ("void f<double>()", "float64"),
        ("ncclDevKernel_AllReduce", None),
    ],
)
def test_a_kernel_name_tells_the_element_type_of_a_list(kernel: str, dtype: str | None) -> None:
    assert dtype_in_kernel_name(kernel) == dtype
