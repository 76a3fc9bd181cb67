"""Formulas that a widely used trace analyser gets wrong, each with the case that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooftrace.opmodels import Cost, Op, Tensor, Unmodelled, cost_of, op_from_record
from rooftrace.opmodels.attention import ESTIMATE, LOWER_BOUND, paged_cost
from rooftrace.opmodels.parts import bf16, f32, fp8, i8, i32, i64, u8


def cost(name: str, *args: Tensor | tuple[Tensor, ...] | str | None) -> Cost:
    result = cost_of(Op(name=name, args=args))
    assert isinstance(result, Cost), result
    return result


def test_axes_given_as_text_reduce_along_them() -> None:
    # Not one result: 16*559 means of 1024.
    assert cost("aten::mean", bf16(16, 559, 1024), "[-1]", "True", None).bytes_written == 16 * 559 * 2


def test_a_bias_is_read_wherever_it_stands_and_in_bytes() -> None:
    args = (bf16(1, 3, 8, 8), bf16(4, 3, 1, 1))
    rest = ("[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1")

    with_bias, without = cost("aten::convolution", *args, bf16(4), *rest), cost("aten::convolution", *args, None, *rest)

    assert with_bias.bytes_read - without.bytes_read == 4 * 2
    assert with_bias.flops - without.flops == 4 * 8 * 8  # one addition an output


def test_a_first_layer_has_no_input_gradient() -> None:
    args = (
        f32(1, 4, 6, 6),
        f32(1, 3, 6, 6),
        f32(4, 3, 3, 3),
        "[0]",
        "[1, 1]",
        "[1, 1]",
        "[1, 1]",
        "False",
        "[0, 0]",
        "1",
    )

    assert cost("aten::convolution_backward", *args, "[True, True, False]").flops == 2 * 2 * 144 * 27
    assert cost("aten::convolution_backward", *args, "[False, True, False]").flops == 2 * 144 * 27


def test_a_transposed_convolution_has_all_groups_of_output_channels() -> None:
    args = (f32(1, 4, 4, 4), f32(4, 3, 1, 1), None, "[1, 1]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "2")

    assert cost("aten::convolution", *args).bytes_written == (3 * 2) * 16 * 4


@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("bfloat16", 2), ("float8_e4m3fn", 1)])
def test_attention_bytes_follow_the_element_type(dtype: str, width: int) -> None:
    q = Tensor(shape=(1, 2, 8, 4), dtype=dtype)

    assert (
        cost("aten::_scaled_dot_product_flash_attention", q, q, q, "0.", "False", "False").bytes_read == 3 * 64 * width
    )


def test_causal_attention_with_fewer_queries_than_keys_has_a_cost() -> None:
    q, k = bf16(1, 4, 2, 8), bf16(1, 16, 2, 8)

    # bottom right: 13 + 14 + 15 + 16 pairs
    assert cost("flash_attn::_flash_attn_forward", q, k, k, "0.", "1.", "True", "-1", "-1").flops == 2 * 58 * 2 * 16


def test_attention_backward_with_shared_keys_counts_every_query_head() -> None:
    q, k = bf16(1, 16, 8, 4), bf16(1, 16, 2, 4)
    args = (q, q, k, k, q, f32(1, 8, 16), None, None, None, "0.", "1.", "False", "-1", "-1")

    assert cost("flash_attn::_flash_attn_backward", *args).flops == 2 * 256 * 8 * (5 * 4)


def test_a_sliding_window_limits_the_pairs() -> None:
    q = bf16(1, 1024, 2, 8)
    window = ("0.", "1.", "True", "127", "0")

    # 128 keys a query, but 1 … 127 for the first 127: 1024*128 - 127*128/2
    assert cost("flash_attn::_flash_attn_forward", q, q, q, *window).flops == 2 * 122944 * 2 * 16


def test_packed_sequences_with_one_key_do_not_divide_by_zero() -> None:
    q, k = bf16(6, 2, 8), bf16(1, 2, 8)
    result = cost("flash_attn::_flash_attn_varlen_forward", q, k, k, i32(2), i32(2), "6", "1", "0.", "1.", "False")

    assert result.flops == 2 * 6 * 2 * 16
    assert result.notes == ()


def test_packed_sequences_of_unknown_lengths_are_flagged() -> None:
    q, k = bf16(10, 2, 8), bf16(30, 2, 8)
    rest = (i32(4), i32(4), "6", "20", "0.", "1.", "False")

    assert cost("flash_attn::_flash_attn_varlen_forward", q, q, q, *rest).notes == (LOWER_BOUND,)
    assert cost("flash_attn::_flash_attn_varlen_forward", q, k, k, *rest).notes == (ESTIMATE,)


def test_paged_attention_without_lengths_has_no_cost_and_with_them_has() -> None:
    op = Op(
        name="vllm::unified_attention_with_output", args=(bf16(3, 4, 8), bf16(3, 2, 8), bf16(3, 2, 8), bf16(3, 4, 8))
    )

    assert cost_of(op) == Unmodelled(reason="needs sequence lengths")
    # three decode steps over 10, 20 and 30 keys
    known = paged_cost(op, (3, 60, 60))
    assert known.flops == 2 * 60 * 4 * 16
    assert known.bytes_read == 3 * 32 * 2 + 3 * 2 * 16 * 2 + 57 * 2 * 16 * 2
    assert known.bytes_written == 3 * 32 * 2


@pytest.mark.parametrize(
    ("name", "causal_at"),
    [("aiter::mha_fwd", 5), ("aiter::_flash_attn_forward", 5), ("aiter::fmha_v3_fwd", 6), ("flash_attn_3::fwd", 24)],
)
def test_attention_of_every_library_names_its_precision(name: str, causal_at: int) -> None:
    q = bf16(1, 8, 2, 4)
    args: list[Tensor | str | None] = [q, q, q, *[None] * 24]
    args[causal_at] = "True"

    assert cost(name, *args).precision == "bfloat16"
    assert cost(name, *args).flops == 2 * 36 * 2 * 8


def test_an_int8_weight_of_rows_is_not_read_as_columns() -> None:
    # weight [N=2048, K=512]
    result = cost("bitsandbytes::int8_linear_matmul", i8(16, 512), i8(2048, 512))

    assert result.flops == 2 * 16 * 2048 * 512
    assert result.bytes_written == 16 * 2048 * 4
    assert result.precision == "int8"


def test_packed_fp4_weights_count_half_a_byte_a_value() -> None:
    result = cost("vllm::gemm_with_dynamic_quant", bf16(4, 64), u8(6, 32))

    assert result.flops == 2 * 4 * 6 * 64
    assert result.bytes_read == 4 * 64 * 2 + 6 * 32
    assert result.precision == "float4_e2m1fn_x2"


@pytest.mark.parametrize("dtype", ["float8_e5m2", "int8"])
def test_every_eight_bit_type_is_a_precision(dtype: str) -> None:
    a, b = Tensor(shape=(4, 16), dtype=dtype), Tensor(shape=(16, 8), dtype=dtype)

    assert cost("aten::_scaled_mm", a, b, f32(), f32(), None, None, "15", "False").precision == dtype


def test_operands_of_two_fp8_types_multiply() -> None:
    e4m3, e5m2 = fp8(4, 16), Tensor(shape=(16, 8), dtype="float8_e5m2")

    assert cost("aten::_scaled_mm", e4m3, e5m2, f32(), f32(), None, None, "15", "False").flops == 2 * 4 * 8 * 16


def test_false_is_false() -> None:
    args = (f32(2, 3, 8), f32(3), f32(3), f32(3), f32(3))

    training = cost("aten::native_batch_norm", *args, "True", "0.1", "1e-5")
    evaluation = cost("aten::native_batch_norm", *args, "False", "0.1", "1e-5")

    assert training.flops - evaluation.flops == 4 * 48
    assert training.bytes_written - evaluation.bytes_written == 4 * 3 * 4


def test_an_absent_weight_is_not_read() -> None:
    record = op_from_record(
        "aten::native_batch_norm",
        [[2, 3, 8], [], [], [], [], [], [], []],
        ["float", "", "", "", "", "Scalar", "Scalar", "Scalar"],
        None,
        ["", "", "", "", "", "True", "0.1", "1e-05"],
    )

    assert cost_of(record) == cost(
        "aten::native_batch_norm", f32(2, 3, 8), None, None, None, None, "True", "0.1", "1e-5"
    )
    assert cost(record.name, *record.args).bytes_read == 48 * 4


def test_layer_norm_statistics_are_one_a_row() -> None:
    result = cost("aten::native_layer_norm", f32(100, 8), "[8]", None, None, "1e-5")

    assert result.bytes_written == 800 * 4 + 2 * 100 * 4


def test_generated_kernels_count_float32_and_two_dimensional_grids() -> None:
    record = op_from_record(
        "triton_poi_fused_add_0",
        [[16, 32], [16, 32], [16, 32], [], []],
        ["float", "float", "float", "Scalar", "Scalar"],
        None,
        ["", "", "", "32", "16"],
    )
    result = cost(record.name, *record.args)

    assert (result.flops, result.bytes_read, result.bytes_written) == (512, 2 * 2048, 2048)
    assert result.precision == "float32"


def test_a_depthwise_filter_along_time_is_vector_work_and_its_backward_costs_more() -> None:
    x, w = bf16(2, 4, 16), bf16(4, 3)

    forward = cost("DaoAILab::_causal_conv1d_fwd_cpp", x, w, None)
    backward = cost("DaoAILab::_causal_conv1d_bwd_cpp", x, w, None, x)

    assert forward.unit == "vector"
    assert backward.flops == 2 * forward.flops


def test_moe_sizes_come_from_the_weights_and_the_ids() -> None:
    x, w1, w2, ids = bf16(8, 16), bf16(4, 64, 16), bf16(4, 16, 32), i32(8, 3)

    # N = 32 from w2, not K; top-k 3 from the ids; gate and up are 64 wide
    result = cost("vllm::outplace_fused_experts", x, w1, w2, f32(8, 3), ids)

    assert result.flops == 2 * 8 * 3 * 16 * 64 + 2 * 8 * 3 * 32 * 16
    assert result.notes == ("estimate: experts reached by uniform routing, E*(1 - (1 - k/E)^M)",)


def test_moe_without_weights_has_no_cost() -> None:
    assert cost_of(Op(name="vllm::moe_forward", args=(bf16(8, 16), bf16(8, 4), "layer"))) == Unmodelled(
        reason="expert weights not among the arguments"
    )


def test_scales_and_full_addends_are_read() -> None:
    blockscale = cost("aiter::gemm_a8w8_blockscale_ck", fp8(4, 256), fp8(128, 256), f32(4, 2), f32(1, 2), bf16(4, 128))
    addend = cost("aten::baddbmm", f32(2, 4, 6), f32(2, 4, 5), f32(2, 5, 6), "1", "1")

    assert blockscale.bytes_read == 1024 + 32768 + 32 + 8
    assert addend.bytes_read == 160 + 240 + 192


@pytest.mark.parametrize(
    ("name", "args", "moved"),
    [
        ("aten::fill_", (f32(4), "1"), 16),
        ("aten::gather", (f32(100), "0", i64(4), "False"), 16 + 32 + 16),
        ("_C_cache_ops::reshape_and_cache", (bf16(2, 1, 4), bf16(2, 1, 4), bf16(9), bf16(9), i64(2)), 32 + 16 + 32),
        ("MoEDispatch", (bf16(4, 8),), 64 + 64),
    ],
)
def test_ops_that_only_move_have_bytes_and_no_flops(
    name: str, args: tuple[Tensor | str | None, ...], moved: int
) -> None:
    assert (cost(name, *args).flops, cost(name, *args).bytes_total) == (0, moved)


def test_an_fp8_grouped_gemm_writes_sixteen_bit_values() -> None:
    assert cost("primus_turbo::grouped_gemm", fp8(8, 16), fp8(2, 16, 4)).bytes_written == 8 * 4 * 2


def test_the_text_of_a_trace_is_not_run(tmp_path: Path) -> None:
    target = tmp_path / "run"
    attack = f"__import__('pathlib').Path({str(target)!r}).touch()"
    args = (f32(1, 3, 8, 8), f32(4, 3, 3, 3), None, "[1, 1]", "[0, 0]", "[1, 1]", attack, "[0, 0]", "1")

    assert cost_of(Op(name="aten::convolution", args=args)) == Unmodelled(reason="arguments not as the op defines them")
    assert not target.exists()


def test_arguments_of_an_interpreter_stack_are_not_taken_for_the_ops_own() -> None:
    # TorchScript records its whole stack; the op's own arguments are the last ones.
    stack = (f32(512, 2842), f32(512), f32(2048, 1421), f32(2048, 1421), "2")

    assert isinstance(cost_of(Op(name="aten::pow", args=stack)), Unmodelled)
