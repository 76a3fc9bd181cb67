"""What surrounds a call and what its kernels are called tell of arguments that are not recorded."""

from __future__ import annotations

import pytest

from rooftrace.opmodels import Cost, Op, Tensor, Unmodelled, cost_of
from rooftrace.opmodels.hints import (
    from_enclosing,
    from_forward,
    lacks_dtype,
    spell_scalar,
    spelled_dtype,
    with_dtype,
)
from rooftrace.opmodels.parts import bf16, f32, i64


def bare(*shape: int) -> Tensor:
    """A tensor of a file that records no element types."""
    return Tensor(shape=shape, dtype=None)


@pytest.mark.parametrize(
    ("names", "precisions", "dtype"),
    [
        (("dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>",), (), "float32"),
        (("volta_sgemm_128x64_nt",), ("float32",), "float32"),
        (("ampere_s1688gemm_128x64",), ("tfloat32",), "float32"),
        (("bn_fw_tr_1C11_kernel_NCHW<__half, float, 512, true, 1>",), (), None),  # half data, float statistics
        (("kernel_a<float>", "kernel_b<c10::Half>"), (), None),
        (("computeOffsetsKernel", "implicit_convolve_sgemm<float, float, 128>"), (None, "float32"), "float32"),
        (("computeOffsetsKernel",), (None,), None),
        (("elementwise_kernel<128, 4, copy<OpaqueType<4>>>",), (), None),  # a width is no type
        (("index_kernel<long>",), (), None),
    ],
)
def test_an_element_type_counts_if_every_kernel_spells_the_same(names, precisions, dtype):
    assert spelled_dtype(names, precisions) == dtype


def test_a_type_fills_in_for_data_and_not_for_positions():
    op = Op(name="aten::nll_loss_forward", args=(bare(8, 50), bare(8), None, "1", "-100"))

    assert lacks_dtype(op)
    typed = with_dtype(op, "float32")
    assert typed.args[:2] == (f32(8, 50), i64(8))
    assert not lacks_dtype(typed)


FLASH = (
    "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, half_t>, false, {}, false, false, true>"
)


@pytest.mark.parametrize(
    ("name", "index", "names", "text"),
    [
        ("aten::_index_put_impl_", 3, ("indexing_backward_kernel<float, 4>", "DeviceRadixSort<long>"), "True"),
        ("aten::index_put_", 3, ("index_elementwise_kernel<128, index_put_kernel_impl<OpaqueType<4>>>",), "False"),
        ("aten::cudnn_batch_norm", 5, ("bn_fw_tr_1C11_kernel_NCHW<float>",), "True"),
        ("aten::cudnn_batch_norm", 5, ("bn_fw_inf_1C11_kernel_NCHW<float>",), "False"),
        ("aten::native_layer_norm_backward", 7, ("layer_norm_grad_input_kernel<float>",), "[True, False, False]"),
        (
            "aten::native_layer_norm_backward",
            7,
            ("layer_norm_grad_input_kernel<float>", "GammaBetaBackwardCUDAKernel<float>"),
            "[True, True, True]",
        ),
        (
            "aten::cudnn_convolution_backward",
            10,
            ("volta_sgemm", "aten::cudnn_convolution_backward_weight"),
            "[False, True]",
        ),
        ("aten::convolution_backward", 10, ("xmma_dgrad_f16", "xmma_wgrad_f16"), "[True, True, False]"),
        ("FlashAttnFunc", 5, (FLASH.format("true"),), "True"),
        ("flash_attn::_flash_attn_forward", 5, (FLASH.format("false"),), "False"),
    ],
)
def test_kernels_spell_a_scalar(name, index, names, text):
    found = spell_scalar(Op(name=name, args=(f32(4, 5),)), names)

    assert found is not None
    assert found[0].args[index] == text


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("aten::_index_put_impl_", ("DeviceRadixSort<long>",)),
        ("aten::cudnn_batch_norm", ("bn_fw_tr<float>", "bn_fw_inf<float>")),
        ("aten::convolution_backward", ("xmma_dgrad_f16", "ampere_sgemm_128x64")),  # of which gradient is the second?
        ("FlashAttnFunc", (FLASH.format("true"), FLASH.format("false"))),
        ("aten::mm", ("anything",)),
    ],
)
def test_kernels_that_say_nothing_or_both_spell_nothing(name, names):
    assert spell_scalar(Op(name=name, args=(f32(4, 5),)), names) is None


def test_a_recorded_scalar_is_kept():
    op = Op(name="aten::_index_put_impl_", args=(f32(4, 5), None, f32(2, 5), "False"))

    assert spell_scalar(op, ("indexing_backward_kernel",)) is None


def costs(op: Op | None) -> tuple[int, int]:
    assert op is not None
    cost = cost_of(op)
    assert isinstance(cost, Cost), cost
    return cost.flops, cost.bytes_total


def test_a_products_gradients_cost_what_the_product_does():
    forward = Op(name="aten::addmm", args=(bf16(6), bf16(4, 5), bf16(5, 6), "1", "1"))

    # dA is [4,6] by [6,5], dB is [5,4] by [4,6]: 2*4*5*6, and 20 + 30 + 24 elements of 2 bytes
    assert costs(from_forward("aten::mm", forward, None)) == (240, 148)


def test_a_convolutions_gradients_take_their_shapes_from_the_forward_call_but_not_their_mask():
    forward = Op(
        name="aten::convolution",
        args=(f32(2, 4, 10, 10), f32(8, 4, 3, 3), None, "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"),
    )
    op = from_forward("aten::convolution_backward", forward, f32(2, 8, 5, 5))

    assert op is not None
    assert cost_of(op) == Unmodelled(reason="scalar arguments not recorded")
    spelled = spell_scalar(op, ("xmma_wgrad",))
    assert spelled is not None
    # dW alone: 2*400*36; reads 400 + 800, writes 288 floats
    assert costs(spelled[0]) == (28800, (400 + 800 + 288) * 4)


def test_flash_attentions_gradients_take_heads_tokens_and_mask_from_the_forward_call():
    q = bf16(2, 16, 4, 8)
    op = from_forward(
        "flash_attn::_flash_attn_backward", Op(name="FlashAttnFunc", args=(q, q, q, "0.", None, "True")), q
    )

    # 136 causal pairs, 8 heads, five products of 8; Q, K, V, O, dO in, dQ, dK, dV out, 2048 bytes each
    assert costs(op) == (2 * 8 * 136 * 40, 8 * 2048)


def test_a_wrapper_hands_on_what_it_was_handed():
    q = bf16(2, 16, 4, 8)
    outer = Op(name="FlashAttnFunc", args=(q, q, q, "0.", None, "True", "(-1, -1)"))
    op = from_enclosing("flash_attn::_flash_attn_forward", outer, same_family=True)

    # 6144 of Q, K, V, 2048 of O and 512 of the log-sum-exp
    assert costs(op) == (2 * 8 * 136 * 16, 6144 + 2560)
    assert from_enclosing("flash_attn::_flash_attn_forward", outer, same_family=False) is None


def test_the_gradient_of_a_split_joins_the_gradients_of_the_parts():
    parts = (f32(4, 2), f32(4, 3))

    # 20 numbers in, 20 out
    assert costs(from_enclosing("aten::cat", Op(name="SplitWithSizesBackward0", args=parts), same_family=False)) == (
        0,
        160,
    )
    assert from_enclosing("aten::cat", Op(name="MyFunction", args=parts), same_family=True) is None


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        # strides and padding lie in the result: 2*(2*8*25)*36; reads 800 + 288, writes 400
        (Op(name="aten::convolution", args=(f32(2, 4, 10, 10), f32(8, 4, 3, 3)), output=f32(2, 8, 5, 5)),
         (28800, 1488 * 4)),
        (Op(name="aten::cat", args=("", ""), output=f32(4, 5)), (0, 160)),
        # 12 elements read and written; the indices are not known
        (Op(name="aten::index", args=(f32(4, 5), ""), output=f32(3, 4)), (0, 96)),
        # one comparison a result at least; values of 4 and positions of 8
        (Op(name="aten::max_pool2d_with_indices", args=(f32(1, 1, 4, 4), "", "", "", "", ""), output=f32(1, 1, 2, 2)),
         (4, 64 + 48)),
        (Op(name="aten::sum", args=(f32(4, 5), "", "", ""), output=f32(4)), (20, 80 + 16)),
        # without the result, one number is written at least
        (Op(name="aten::sum", args=(f32(4, 5), "", "", "")), (20, 84)),
        # the weight has the normalised shape: 8*20; 20 in, 5 + 5, 20 out, two statistics of 4 rows
        (Op(name="aten::native_layer_norm", args=(f32(4, 5), "", f32(5), f32(5), "")), (160, (20 + 10 + 20 + 8) * 4)),
    ],
    ids=["convolution", "cat", "index", "pool", "sum", "sum without result", "layer norm"],
)  # fmt: skip
def test_what_a_scalar_would_tell_may_stand_in_the_result_or_in_another_operand(op, expected):
    assert costs(op) == expected


def test_a_result_that_cannot_be_the_convolutions_gives_no_cost():
    op = Op(name="aten::convolution", args=(f32(2, 4, 10, 10), f32(8, 4, 3, 3)), output=f32(2, 7, 5, 5))

    assert cost_of(op) == Unmodelled(reason="arguments not as the op defines them")


def test_a_lower_bound_says_so():
    cost = cost_of(Op(name="aten::index", args=(f32(4, 5), ""), output=f32(3, 4)))

    assert isinstance(cost, Cost)
    assert cost.notes == ("lower bound: indices not recorded",)
