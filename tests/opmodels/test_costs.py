"""FLOPs and bytes of single calls, derived by hand: the arithmetic is the expected value."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rooftrace.opmodels import Arg, Cost, Op, Tensor, cost_of
from rooftrace.opmodels.parts import b8, bf16, f32, fp8, i8, i32, i64, u8


class Row(NamedTuple):
    name: str
    args: tuple[Arg, ...]
    flops: int
    read: int
    written: int


def f16(*shape: int) -> Tensor:
    return Tensor(shape=shape, dtype="float16")


def f64(*shape: int) -> Tensor:
    return Tensor(shape=shape, dtype="float64")


def fp4(*shape: int) -> Tensor:
    return Tensor(shape=shape, dtype="float4_e2m1fn_x2")


def strided(tensor: Tensor, *strides: int) -> Tensor:
    return Tensor(shape=tensor.shape, dtype=tensor.dtype, strides=strides)


GEMM = [
    Row("aten::mm", (bf16(8944, 2816), bf16(2816, 1024)),
        2 * 8944 * 1024 * 2816, (8944 + 1024) * 2816 * 2, 8944 * 1024 * 2),
    Row("aten::mm", (f32(1, 7), f32(7, 1)), 14, 56, 4),
    Row("aten::mm", (f64(3, 4), f64(4, 5)), 2 * 3 * 5 * 4, (12 + 20) * 8, 15 * 8),
    Row("aten::mm", (bf16(3, 4), bf16(4, 5), bf16(3, 5)), 120, (12 + 20) * 2, 30),
    Row("aten::mm", (bf16(0, 4), bf16(4, 5)), 0, 40, 0),
    # an expanded row is in memory once: 5 elements of 4
    Row("aten::mm", (strided(f32(8, 5), 0, 1), f32(5, 2)), 2 * 8 * 2 * 5, 20 + 40, 64),
    Row("aten::addmm", (bf16(768), bf16(788, 768), bf16(768, 768), "1", "1"),
        2 * 788 * 768 * 768, (788 * 768 + 768 * 768 + 768) * 2, 788 * 768 * 2),
    Row("aten::addmm", (f32(4, 6), f32(4, 5), f32(5, 6), "0.", "1"), 240, (20 + 30) * 4, 96),
    Row("aten::addmm", (f32(1), f32(4, 5), f32(5, 6), "1", "1"), 240, (20 + 30) * 4 + 4, 96),
    Row("aten::addmm", (f32(6), f32(4, 5), f32(5, 6), "", ""), 240, 200 + 24, 96),  # old trace: a vector is a bias
    Row("aten::bmm", (bf16(192, 8, 64), bf16(192, 64, 8)), 2 * 192 * 8 * 8 * 64, 2 * 192 * 512 * 2, 192 * 64 * 2),
    Row("aten::bmm", (strided(f32(3, 4, 5), 0, 5, 1), f32(3, 5, 6)), 2 * 3 * 4 * 6 * 5, 80 + 360, 288),
    Row("aten::baddbmm", (f16(32, 16, 16), f16(32, 16, 8), f16(32, 8, 16), "0.", "0.125"),
        2 * 32 * 16 * 16 * 8, 2 * 32 * 128 * 2, 32 * 256 * 2),
    Row("aten::baddbmm", (f32(1, 1, 6), f32(2, 4, 5), f32(2, 5, 6), "1", "1"), 480, 400 + 24, 192),
    Row("aten::linear", (bf16(2, 3, 4), bf16(5, 4), bf16(5)), 2 * 6 * 5 * 4, (24 + 20 + 5) * 2, 60),
    Row("aten::linear", (bf16(4), bf16(5, 4), None), 40, (4 + 20) * 2, 10),
    Row("aten::matmul", (f32(5), f32(5, 3)), 30, 20 + 60, 12),
    Row("aten::matmul", (f32(7, 4, 5), f32(5, 3)), 2 * 7 * 4 * 3 * 5, (140 + 15) * 4, 84 * 4),
    Row("aten::mv", (f32(100, 50), f32(50)), 10000, 20000 + 200, 400),
    Row("aten::dot", (f64(100), f64(100)), 200, 1600, 8),
    Row("aten::addmv", (f32(4), f32(4, 5), f32(5), "0", "1"), 40, 100, 16),
    Row("aten::_int_mm", (i8(32, 16), i8(16, 8)), 2 * 32 * 8 * 16, 32 * 16 + 16 * 8, 32 * 8 * 4),
    # fp8 with per-tensor scales to bf16
    Row("aten::_scaled_mm", (fp8(64, 128), fp8(128, 32), f32(), f32(), None, None, "15", "True"),
        2 * 64 * 32 * 128, 64 * 128 + 128 * 32 + 8, 64 * 32 * 2),
    # fp8 with scales a row and a column to float32
    Row("aten::_scaled_mm", (fp8(64, 128), fp8(128, 32), f32(64, 1), f32(1, 32), None, None, "6", "True"),
        2 * 64 * 32 * 128, 8192 + 4096 + 256 + 128, 64 * 32 * 4),
    # packed fp4: K of 64 bytes is 128 values; scales a block of 16, fp8
    Row("aten::_scaled_mm", (fp4(64, 64), fp4(64, 32), fp8(64, 8), fp8(32, 8), None, None, "15", "False"),
        2 * 64 * 32 * 128, 64 * 64 + 64 * 32 + 512 + 256, 4096),
    # no dtype argument: the result has operand 0's dtype
    Row("aten::_scaled_mm", (fp8(4, 16), fp8(16, 8), f32(), f32(), None, None, None, "True"), 1024, 64 + 128 + 8, 32),
    Row("aten::_grouped_mm", (bf16(16, 16), bf16(2, 16, 8), i32(2), None, None),
        2 * 16 * 8 * 16, 16 * 16 * 2 + 2 * 16 * 8 * 2 + 8, 16 * 8 * 2),
    Row("aten::_grouped_mm", (bf16(3, 4, 5), bf16(3, 5, 6), None, None, None), 2 * 3 * 4 * 6 * 5, 60 * 2 + 90 * 2, 144),
    Row("vllm::rocm_unquantized_gemm", (bf16(32, 2880), bf16(1000, 2880), None),
        2 * 32 * 1000 * 2880, (32 + 1000) * 2880 * 2, 32 * 1000 * 2),
    Row("aiter::gemm_a8w8_ck", (fp8(4, 32), fp8(6, 32), f32(4, 1), f32(1, 6), bf16(4, 6)),
        2 * 4 * 6 * 32, 128 + 192 + 16 + 24, 48),
    Row("_C::cutlass_scaled_mm", (bf16(4, 6), fp8(4, 32), fp8(32, 6), f32(1), f32(1), None),
        2 * 4 * 6 * 32, 128 + 192 + 8, 48),
    Row("sgl_kernel::fp8_scaled_mm", (fp8(4, 32), fp8(32, 6), f32(4), f32(6), "5", None), 1536, 320 + 16 + 24, 48),
    Row("fbgemm::f8f8bf16_rowwise", (fp8(4, 32), fp8(6, 32), f32(4), f32(6)), 1536, 320 + 40, 48),
]  # fmt: skip

Q = bf16(2, 4, 16, 8)  # batch 2, heads 4, 16 tokens, d 8
QT = bf16(2, 16, 4, 8)
NONE = (None,) * 20
ATTENTION = [
    # 2*(2*4)*16*16*(8 + 8); LSE 2*4*16 float32
    Row("aten::_scaled_dot_product_flash_attention", (Q, Q, Q, "0.", "False", "False", None),
        2 * 8 * 256 * 16, 3 * 1024 * 2, 1024 * 2 + 128 * 4),
    # causal: 16*17/2 = 136 pairs
    Row("aten::_scaled_dot_product_flash_attention", (Q, Q, Q, "0.", "True", "False", None),
        2 * 8 * 136 * 16, 6144, 2048 + 512),
    Row("aten::_flash_attention_forward",
        (QT, QT, QT, None, None, "16", "16", "0.", "True", "False", "0.35"), 2 * 8 * 136 * 16, 6144, 2048 + 512),
    # a window of 4 before the diagonal, causal: 5 keys each, fewer for the first four: 16*5 - (4+3+2+1)
    Row("aten::_flash_attention_forward",
        (QT, QT, QT, None, None, "16", "16", "0.", "True", "False", "0.35", "4", "0"),
        2 * 8 * 70 * 16, 6144, 2048 + 512),
    # grouped queries: 2 heads of K and V
    Row("aten::_scaled_dot_product_flash_attention", (Q, bf16(2, 2, 16, 8), bf16(2, 2, 16, 8), "0.", "False", "False"),
        2 * 8 * 256 * 16, 2048 + 2 * 1024, 2048 + 512),
    # values of another width: 2*8*256*(8 + 4)
    Row("aten::_scaled_dot_product_efficient_attention",
        (Q, Q, bf16(2, 4, 16, 4), None, "False", "0.", "False"), 2 * 8 * 256 * 12, 2 * 2048 + 1024, 1024),
    # a mask of one head, expanded over batch and heads, is read once
    Row("aten::_scaled_dot_product_efficient_attention",
        (Q, Q, Q, strided(bf16(2, 4, 16, 16), 0, 0, 16, 1), "True", "0.", "False"),
        2 * 8 * 256 * 16, 6144 + 512, 2048 + 512),
    # causal from the top left with 16 queries, 4 keys: 1+2+3+4 then 12 times 4 = 58
    Row("aten::_scaled_dot_product_efficient_attention",
        (Q, bf16(2, 4, 4, 8), bf16(2, 4, 4, 8), None, "False", "0.", "True"), 2 * 8 * 58 * 16, 2048 + 1024, 2048),
    # mask type 2 is bottom right: the last 4 queries see 1+2+3+4 = 10
    Row("aten::_efficient_attention_forward",
        (QT, bf16(2, 4, 4, 8), bf16(2, 4, 4, 8), None, None, None, "16", "4", "0.", "2", "False"),
        2 * 8 * 10 * 16, 2048 + 1024, 2048),
    # mask type 1 is top left
    Row("aten::_efficient_attention_forward",
        (QT, bf16(2, 4, 4, 8), bf16(2, 4, 4, 8), None, None, None, "16", "4", "0.", "1", "False"),
        2 * 8 * 58 * 16, 2048 + 1024, 2048),
    # one query against 16 keys, bottom right: it sees all of them
    Row("flash_attn::_flash_attn_forward",
        (bf16(2, 1, 4, 8), QT, QT, "0.", "0.35", "True", "-1", "-1"), 2 * 8 * 16 * 16, 128 + 2 * 2048, 128 + 32),
    # three packed sequences of one query each: every key is seen once
    Row("flash_attn::_flash_attn_varlen_forward",
        (bf16(3, 4, 8), bf16(30, 4, 8), bf16(30, 4, 8), i32(4), i32(4), "1", "20", "0.", "0.35", "True", "-1", "-1"),
        2 * 4 * 30 * 16, 192 + 2 * 1920, 192 + 48),
    # two sequences, the longest 8 of 16 tokens: both are 8; 36 causal pairs each
    Row("flash_attn::_flash_attn_varlen_forward",
        (bf16(16, 4, 8), bf16(16, 4, 8), bf16(16, 4, 8), i32(3), i32(3), "8", "8", "0.", "0.35", "True", "-1", "-1"),
        2 * 4 * 72 * 16, 3 * 1024, 1024 + 256),
    # backward: five products, 2*pairs*heads*(3*8 + 2*8)
    Row("aten::_scaled_dot_product_flash_attention_backward",
        (Q, Q, Q, Q, Q, f32(2, 4, 16), None, None, "16", "16", "0.", "False", i64(), i64()),
        2 * 8 * 256 * 40, 5 * 2048 + 512, 3 * 2048),
    Row("aten::_flash_attention_backward",
        (QT, QT, QT, QT, QT, f32(2, 4, 16), None, None, "16", "16", "0.", "False", i64(), i64()),
        2 * 8 * 256 * 40, 5 * 2048 + 512, 3 * 2048),
    Row("aten::_scaled_dot_product_efficient_attention_backward",
        (Q, Q, Q, Q, None, Q, f32(2, 4, 16), i64(), i64(), "0.", "[True, True, True, False]", "True"),
        2 * 8 * 136 * 40, 5 * 2048 + 512, 3 * 2048),
    # backward with 2 heads of K and V: dK and dV have 2 heads
    Row("flash_attn::_flash_attn_backward",
        (QT, QT, bf16(2, 16, 2, 8), bf16(2, 16, 2, 8), QT, f32(2, 4, 16), None, None, None, "0.", "0.35", "False",
         "-1", "-1"),
        2 * 8 * 256 * 40, 3 * 2048 + 2 * 1024 + 512, 2048 + 2 * 1024),
    # fp8 operands: one byte an element, and the output follows the query
    Row("aten::_scaled_dot_product_flash_attention",
        (fp8(2, 4, 16, 8), fp8(2, 4, 16, 8), fp8(2, 4, 16, 8), "0.", "False", "False"),
        2 * 8 * 256 * 16, 3 * 1024, 1024 + 512),
]  # fmt: skip

CONVOLUTION = [
    # 14*14 patches of 16x16x3, 768 kernels, 4 images; the bias adds once to each of the 4*768*196 outputs
    Row("aten::convolution",
        (bf16(4, 3, 224, 224), bf16(768, 3, 16, 16), bf16(768), "[16, 16]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"),
        2 * (4 * 768 * 14 * 14) * (3 * 16 * 16) + 4 * 768 * 196,
        (4 * 3 * 224 * 224 + 768 * 768 + 768) * 2, 4 * 768 * 196 * 2),
    # stride 2, padding 1: (10 + 2 - 3)//2 + 1 = 5
    Row("aten::cudnn_convolution",
        (f32(2, 4, 10, 10), f32(8, 4, 3, 3), "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"),
        2 * (2 * 8 * 25) * 36, (800 + 288) * 4, 400 * 4),
    # the same through MIOpen, where padding stands at 3
    Row("aten::miopen_convolution",
        (f32(2, 4, 10, 10), f32(8, 4, 3, 3), None, "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False"),
        2 * (2 * 8 * 25) * 36, (800 + 288) * 4, 400 * 4),
    # depthwise: 8 groups, one input channel each; 8x8 stays
    Row("aten::convolution",
        (f32(1, 8, 8, 8), f32(8, 1, 3, 3), None, "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "8"),
        2 * (8 * 64) * 9, (512 + 72) * 4, 512 * 4),
    # dilation 2: a 3x3 kernel reaches 5: 8 - 5 + 1 = 4
    Row("aten::convolution",
        (f32(1, 2, 8, 8), f32(3, 2, 3, 3), None, "[1, 1]", "[0, 0]", "[2, 2]", "False", "[0, 0]", "1"),
        2 * (3 * 16) * 18, (128 + 54) * 4, 48 * 4),
    # one dimension, and a bias for each of the 108 outputs
    Row("aten::convolution",
        (f32(2, 4, 9), f32(6, 4, 3), f32(6), "[1]", "[1]", "[1]", "False", "[0]", "1"),
        2 * (2 * 6 * 9) * 12 + 108, (72 + 72 + 6) * 4, 108 * 4),
    # transposed, 2 groups: out channels 3*2 = 6; (4-1)*2 - 0 + 3 = 9; multiply-adds in 1*4*16 times 3*9
    Row("aten::convolution",
        (f32(1, 4, 4, 4), f32(4, 3, 3, 3), None, "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "2"),
        2 * (4 * 16) * 27, (64 + 108) * 4, 6 * 81 * 4),
    # three dimensions: 4^3 outputs of 2*27
    Row("aten::convolution",
        (f32(1, 2, 4, 4, 4), f32(5, 2, 3, 3, 3), None, "[1, 1, 1]", "[1, 1, 1]", "[1, 1, 1]", "False", "[0]", "1"),
        2 * (5 * 64) * 54, (128 + 270) * 4, 320 * 4),
    Row("aten::convolution_backward",
        (bf16(10, 512, 7, 7), bf16(10, 512, 7, 7), bf16(512, 512, 3, 3), "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False",
         "[0, 0]", "1", "[True, True, False]"),
        2 * 2 * (10 * 512 * 49) * (512 * 9), (2 * 250880 + 2359296) * 2, (250880 + 2359296) * 2),
]  # fmt: skip

ELEMENTWISE = [
    Row("aten::add", (bf16(4, 197, 768), bf16(1, 197, 768), "1"), 605184, (605184 + 151296) * 2, 605184 * 2),
    Row("aten::add", (bf16(4, 5), f32(4, 5), "1"), 20, 40 + 80, 80),
    Row("aten::add", (f32(4, 5), "1.5", "1"), 20, 80, 80),
    Row("aten::add_", (f32(4, 5), f32(5), "1"), 20, 80 + 20, 80),
    Row("aten::mul", (f32(4, 1), f32(5)), 20, 16 + 20, 80),
    Row("aten::mul", (bf16(1000), f64(), bf16(1000)), 1000, 2000 + 8, 2000),
    Row("aten::mul_", (bf16(4, 5), bf16(4, 5)), 20, 80, 40),
    Row("aten::div", (i64(4, 5), i64(4, 5)), 20, 320, 80),  # true division of integers gives float32
    Row("aten::sub", (i64(4), "2", "1"), 4, 32, 32),
    Row("aten::rsub", (f32(4), "1.", "1"), 4, 16, 16),
    Row("aten::pow", (f32(16, 559), "2"), 8944, 8944 * 4, 8944 * 4),
    Row("aten::neg", (bf16(4, 5),), 20, 40, 40),
    Row("aten::exp", (i64(4),), 4, 32, 16),
    Row("aten::rsqrt", (f32(16, 559, 1),), 8944, 35776, 35776),
    Row("aten::sigmoid", (bf16(4, 5),), 80, 40, 40),
    Row("aten::silu", (bf16(4, 5),), 80, 40, 40),
    Row("aten::gelu", (bf16(4, 5), None), 100, 40, 40),
    Row("aten::relu", (f32(4, 5),), 20, 80, 80),
    Row("aten::relu_", (f32(4, 5),), 20, 80, 80),
    Row("aten::clamp_min_", (bf16(4, 5), "0"), 20, 40, 40),
    Row("aten::clamp", (f32(4, 5), "0", "1"), 40, 80, 80),
    Row("aten::eq", (i64(4, 5), "1"), 20, 160, 20),
    Row("aten::lt", (i64(5), i64(5, 1)), 25, 80, 25),
    Row("aten::logical_and", (b8(2048), b8(2048), b8(2048)), 2048, 4096, 2048),
    Row("aten::bitwise_not", (b8(8, 8),), 64, 64, 64),
    Row("aten::isnan", (f32(4, 5),), 20, 80, 20),
    Row("aten::where", (b8(1, 1, 1), "-3.4e+38", bf16(1, 5184, 1)), 5184, 1 + 10368, 10368),
    Row("aten::masked_fill", (bf16(1, 1, 5, 5), b8(1, 1, 5, 5), "0"), 25, 50 + 25, 50),
    Row("aten::masked_fill_", (f32(5, 5), b8(1, 5), "0"), 25, 100 + 5, 100),
    Row("aten::addcmul_", (f32(8), f32(8), f32(8), "1"), 24, 96, 32),
    Row("aten::lerp", (f32(8), f32(8), "0.5"), 24, 64, 32),
    Row("aten::threshold_backward", (bf16(4, 5), bf16(4, 5), "0"), 20, 80, 40),
    Row("aten::tanh_backward", (f32(8), f32(8)), 24, 64, 32),
    Row("aten::native_dropout", (f32(4, 5), "0.1", "True"), 40, 80, 80 + 20),
    Row("aten::native_dropout_backward", (f32(4, 5), b8(4, 5), "1.1"), 40, 80 + 20, 80),
    Row("aten::elu_backward", (f32(8), "1", "1", "1", "False", f32(8)), 24, 64, 32),
    Row("_C::silu_and_mul", (bf16(32, 2880), bf16(32, 5760)), 5 * 92160, 184320 * 2, 92160 * 2),
    Row("sgl_kernel::gelu_tanh_and_mul", (bf16(4, 5), bf16(4, 10)), 200, 80, 40),
    Row("LigerSiLUMulFunction", (bf16(4, 5), bf16(4, 5)), 100, 80, 40),
    Row("_C::rotary_embedding", (i64(7), bf16(7, 32), bf16(7, 8), "8", bf16(4096, 8), "True"),
        3 * (224 + 56), (224 + 56) * 2 + 56 + 7 * 8 * 2, (224 + 56) * 2),
    # a transposed view touches all of its elements, an expanded one a part
    Row("aten::mul", (strided(f32(4, 5), 1, 4), strided(f32(4, 5), 1, 0)), 20, 80 + 16, 80),
]  # fmt: skip

MEMORY = [
    Row("aten::copy_", (f32(4, 5), bf16(4, 5), "False"), 0, 40, 80),
    Row("aten::copy_", (bf16(3, 4), strided(bf16(3, 4), 0, 1), "False"), 0, 8, 24),
    Row("aten::clone", (bf16(1, 768, 8), "0"), 0, 12288, 12288),
    Row("aten::clone", (strided(bf16(8, 16), 0, 1), "0"), 0, 32, 256),
    Row("aten::contiguous", (f32(4, 5), "0"), 0, 80, 80),
    Row("aten::_to_copy", (f32(5, 5), "15", None, None, None, "False", None), 0, 100, 50),
    Row("aten::to", (f32(5, 5), "5", "False", "False", None), 0, 100, 50),
    Row("aten::fill_", (bf16(5, 5), "1"), 0, 0, 50),
    Row("aten::zero_", (f32(5, 128),), 0, 0, 2560),
    Row("aten::zeros", ("[3, 4]", "4", None, None, None), 0, 0, 96),
    Row("aten::full", ("[5, 5]", "-1.5", None, None, None, "False"), 0, 0, 100),
    Row("aten::arange", ("0", "8192", None, None, None, "False"), 0, 0, 65536),
    Row("aten::arange", ("0", "10", "3", "6", None, None, "False"), 0, 0, 16),  # 0 3 6 9 as float32
    Row("aten::cat", ((bf16(4, 1, 768), bf16(4, 196, 768)), "1"), 0, 605184 * 2, 605184 * 2),
    Row("aten::stack", ((f32(8, 4), f32(8, 4)), "-1"), 0, 256, 256),
    Row("aten::constant_pad_nd", (bf16(1, 77, 2048), "[0, 2048]", "0."), 0, 77 * 2048 * 2, 77 * 4096 * 2),
    Row("aten::constant_pad_nd", (f32(4, 5), "[-1, 0, 2, 0]", "0."), 0, 80, 6 * 4 * 4),
    Row("aten::repeat", (bf16(1, 1, 768), "[1, 8, 1]"), 0, 1536, 12288),
    Row("aten::tril", (f32(1, 2048, 2048), "0"), 0, 16777216, 16777216),
    Row("aten::normal_", (f32(8, 16, 32, 32), "0.", "1.", None), 0, 0, 524288),
    Row("aten::slice_backward", (f32(2, 6), "[4, 6]", "0", "0", "2", "1"), 0, 48, 96),
    Row("_C_cache_ops::reshape_and_cache_flash",
        (bf16(3, 2, 8), bf16(3, 2, 8), fp8(10, 16, 2, 8), fp8(10, 16, 2, 8), i64(3)), 0, 96 * 2 + 24, 96),
]  # fmt: skip

REDUCTION = [
    Row("aten::sum", (f32(5, 128), "[0]", "True", None), 640, 2560, 512),
    Row("aten::sum", (f32(5, 128), None), 640, 2560, 4),
    Row("aten::sum", (b8(5, 128), "[1]", "False", None), 640, 640, 40),  # bool sums to int64
    Row("aten::sum", (bf16(5, 128), "[1]", "False", "6"), 640, 1280, 20),  # dtype float32
    Row("aten::mean", (bf16(1, 8, 768), "[1]", "True", None), 6144, 12288, 1536),
    Row("aten::mean", (f32(16, 559, 1024), "[-1]", "True", None), 9158656, 36634624, 35776),
    Row("aten::mean", (f32(5, 128), "[]", "False", None, f32()), 640, 2560, 4),
    Row("aten::mean", (f32(2, 3, 4, 5), "[2, 3]", "True", None), 120, 480, 24),
    Row("aten::max", (f32(4, 6), "-1", "False"), 24, 96, 4 * 12),
    Row("aten::max", (f32(4, 6),), 24, 96, 4),
    Row("aten::max", (f32(4, 6), f32(4, 6)), 24, 192, 96),
    Row("aten::amax", (f32(4, 6), "[0]", "True"), 24, 96, 24),
    Row("aten::argmax", (i32(1, 5), "-1", "False"), 5, 20, 8),
    Row("aten::argmax", (f32(4, 6), None, "False"), 24, 96, 8),
    Row("aten::any", (b8(4, 6), "1", "False"), 24, 24, 4),
    Row("aten::all", (b8(1, 141),), 141, 141, 1),
    Row("aten::var_mean", (f32(4, 6), "[0]", "1", "False"), 96, 96, 48),
    Row("aten::linalg_vector_norm", (bf16(1, 768), "2", "[-1]", "True", None), 1536, 1536, 2),
    Row("aten::norm", (f32(4, 6), "2"), 48, 96, 4),
    Row("aten::logsumexp", (f32(4, 6), "[1]", "False"), 96, 96, 16),
    Row("aten::cumsum", (i32(32), "0", None), 32, 128, 256),  # int32 accumulates in int64
    Row("aten::_softmax", (bf16(37632, 8, 8), "-1", "False"), 5 * 2408448, 4816896, 4816896),
    Row("aten::_log_softmax", (bf16(4, 6), "1", "True"), 120, 48, 96),
    Row("aten::_softmax_backward_data", (f32(2, 8), f32(2, 8), "-1", "6"), 64, 128, 64),
    Row("aten::nll_loss_forward", (f32(128, 1000), i64(128), None, "1", "-100"), 128, 512 + 1024, 8),
    Row("aten::nll_loss_forward", (f32(128, 1000), i64(128), None, "0", "-100"), 128, 512 + 1024, 512 + 4),
    Row("aten::nll_loss_backward", (f32(), f32(128, 1000), i64(128), None, "1", "-100", f32()),
        128, 4 + 1024 + 4, 512000),
    Row("aten::mse_loss", (f32(5, 128), f32(5, 128), "1"), 1920, 5120, 4),
    Row("aten::mse_loss_backward", (f32(), f32(5, 128), f32(5, 128), "1", f32(5, 128)), 1920, 4 + 5120, 2560),
    # 112x112, kernel 3, stride 2, padding 1: (112 + 2 - 3)//2 + 1 = 56
    Row("aten::max_pool2d_with_indices", (bf16(10, 64, 112, 112), "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False"),
        9 * 2007040, 8028160 * 2, 2007040 * 10),
    Row("aten::_adaptive_avg_pool2d", (bf16(10, 512, 7, 7), "[1, 1]"), 250880, 501760, 10240),
    Row("aten::topk", (f32(8, 128, 4), "1", "-1", "True", "True"), 0, 16384, 1024 * 12),
    Row("aten::sort", (f32(4, 6), "-1", "False"), 0, 96, 24 * 12),
]  # fmt: skip

BN = (f32(2, 3, 8), f32(3), f32(3), f32(3), f32(3))
NORMALIZATION = [
    Row("aten::native_layer_norm", (bf16(4, 197, 768), "[768]", bf16(768), bf16(768), "1e-12"),
        8 * 605184, 605184 * 2 + 2 * 1536, 605184 * 2 + 788 * 8),
    Row("aten::native_layer_norm", (f32(4, 6), "[6]", None, None, "1e-5"), 6 * 24, 96, 96 + 32),
    Row("aten::native_layer_norm_backward",
        (f32(4, 6), f32(4, 6), "[6]", f32(4, 1), f32(4, 1), f32(6), None, "[True, False, False]"),
        10 * 24, 2 * 96 + 32 + 24, 96),
    Row("aten::native_batch_norm", (*BN, "True", "0.1", "1e-05"), 8 * 48, 192 + 48, 192 + 24 + 24),
    Row("aten::native_batch_norm", (*BN, "False", "0.1", "1e-05"), 4 * 48, 192 + 48, 192),
    Row("aten::miopen_batch_norm", (*BN, "True", "0.1", "1e-05"), 8 * 48, 192 + 48, 192 + 24 + 24),
    Row("aten::cudnn_batch_norm", (*BN, "True", "0.1", "1e-05"), 8 * 48, 192 + 48, 192 + 24 + 24),
    Row("aten::native_group_norm", (f32(8, 16, 1024), f32(16), f32(16), "8", "16", "1024", "4", "1e-05"),
        8 * 131072, 524288 + 128, 524288 + 2 * 32 * 4),
    Row("aten::_fused_rms_norm", (f32(8, 16, 32, 32), "[32, 32]", f32(32, 32), None),
        4 * 131072, 524288 + 4096, 524288 + 128 * 4),
    Row("aten::_fused_rms_norm_backward",
        (f32(4, 6), f32(4, 6), "[6]", f32(4, 1), None, "[True, False]"), 6 * 24, 192 + 16, 96),
    Row("_C::rms_norm", (bf16(4, 6), bf16(4, 6), bf16(6), "1e-6"), 96, 48 + 12, 48),
    Row("_C::fused_add_rms_norm", (bf16(4, 6), bf16(4, 6), bf16(6), "1e-6"), 120, 96 + 12, 96),
    Row("sgl_kernel::rmsnorm", (bf16(4, 6), bf16(4, 6), bf16(6), "1e-6", "False"), 96, 48 + 12, 48),
    Row("FusedLayerNormAffineFunction", (f16(2048, 4, 64), f16(64), f16(64)),
        8 * 524288, 1048576 + 256, 1048576 + 65536),
]  # fmt: skip

EMBEDDING = [
    Row("aten::index_select", (bf16(30522, 512), "0", i64(141)), 0, 141 * 1024 + 1128, 141 * 1024),
    Row("aten::index_select", (f32(4, 100), "1", i64(3)), 0, 48 + 24, 48),
    Row("aten::embedding", (bf16(30522, 512), i64(1, 141), "0", "False", "False"), 0, 141 * 1024 + 1128, 141 * 1024),
    # an index expanded over 768 columns is in memory once
    Row("aten::gather", (bf16(49408, 768), "0", strided(i64(77, 768), 1, 0), "False"),
        0, 59136 * 2 + 77 * 8, 59136 * 2),
    Row("aten::scatter_add_", (f32(50), "0", i64(1000), f32(1000)), 1000, 200 + 8000 + 4000, 200),
    Row("aten::index_add_", (f32(755000), "0", i32(1024), f32(1024), "1"), 1024, 3 * 4096, 4096),
    Row("aten::embedding_dense_backward", (f32(4, 8, 16), i64(4, 8), "1000", "-1", "False"),
        512, 2048 + 256, 64000),
    Row("aten::_embedding_bag", (f32(1000, 16), i64(40), i64(11), "False", "0", "False", None, "True", "-1"),
        640, 2560 + 320 + 88, 640),
]  # fmt: skip

OTHERS = [
    Row("aten::_foreach_add_", ((f32(128, 128), f32(128)), (f32(128, 128), f32(128)), "-0.001"),
        16512, 2 * 66048, 66048),
    Row("aten::_foreach_mul_", ((f32(10), f32(6)), "0.9"), 16, 64, 64),
    Row("aten::_fused_adamw_", ((f32(10),), (f32(10),), (f32(10),), (f32(10),), (), (f32(),)), 140, 160, 120),
    Row("aten::_fused_adam_", ((f32(10),), (f32(10),), (f32(10),), (f32(10),), (f32(10),), (f32(),)), 150, 200, 160),
    Row("aten::_fused_sgd_", ((f32(10),), (f32(10),), ()), 70, 80, 40),
    Row("_C::dynamic_per_token_scaled_fp8_quant", (fp8(4, 64), bf16(4, 64), f32(4, 1), None), 1024, 512, 256 + 16),
    Row("fbgemm::FloatToFP8RowwiseQuantized", (f32(100, 256), "True"), 102400, 102400, 100 * 264),
    Row("DaoAILab::_causal_conv1d_fwd_cpp", (bf16(2, 4, 16), bf16(4, 3), None), 2 * 128 * 3, 256 + 24, 256),
    # 8 tokens, top 2 of 4 experts: all but 4*(1/2)^8 of them are reached: 4 - 1/64
    Row("vllm::outplace_fused_experts",
        (bf16(8, 16), bf16(4, 64, 16), bf16(4, 16, 32), f32(8, 2), i32(8, 2)),
        2 * 16 * 16 * 64 + 2 * 16 * 32 * 16, 256 + 12288 - 48 + 128, 256),
    Row("_moe_C::moe_sum", (bf16(8, 2, 16), bf16(8, 16)), 256, 512, 256),
    Row("triton_poi_fused__unsafe_view_mul_silu_2", (bf16(4, 8), bf16(4, 8), bf16(4, 8), "32"), 5 * 32, 128, 64),
    # slice: at most the 32 elements of the iteration are read of the 4096
    Row("triton_poi_fused_add_slice_1", (f32(4096), f32(32), "32"), 32, 128, 128),
    Row("bitsandbytes::dequantize_4bit", (u8(32, 1), f32(1), "64", "nf4", "[8, 8]", "5"), 64, 36, 128),
]  # fmt: skip

MORE_GEMM = [
    # a scale a row and a column beside the operands: 8*4 + 12*4
    Row("aiter::gemm_a8w8_ck", (fp8(8, 64), fp8(12, 64), f32(8, 1), f32(1, 12), bf16(8, 12)),
        2 * 8 * 12 * 64, 8 * 64 + 12 * 64 + 32 + 48, 8 * 12 * 2),
    # blocks of 128 by 128: one scale a row and block of K for A, one a block for B
    Row("vllm::w8a8_triton_block_scaled_mm_func", (fp8(8, 256), fp8(128, 256), f32(8, 2), f32(1, 2)),
        2 * 8 * 128 * 256, 8 * 256 + 128 * 256 + 64 + 8, 8 * 128 * 2),
    Row("sgl_kernel::int8_scaled_mm", (i8(4, 32), i8(32, 6), f32(4), f32(6), "15", None), 1536, 320 + 40, 48),
    # packed fp4: 16 bytes hold K = 32
    Row("_C::cutlass_scaled_fp4_mm", (bf16(4, 6), u8(4, 16), u8(6, 16), None, None, f32(1)),
        2 * 4 * 6 * 32, 64 + 96 + 4, 48),
    # groups along the rows of A: every row passes one 16x8 matrix; all 3 matrices are read
    Row("aten::_grouped_mm", (bf16(30, 16), bf16(3, 16, 8), i32(3), None, None),
        2 * 30 * 8 * 16, (480 + 384) * 2 + 12, 240 * 2),
    # int8 weights of 16 rows, one bf16 scale a row
    Row("aten::_weight_int8pack_mm", (bf16(8, 64), i8(16, 64), bf16(16)),
        2 * 8 * 16 * 64, 512 * 2 + 1024 + 32, 128 * 2),
    Row("aten::addmm", (bf16(4, 6), bf16(4, 5), bf16(5, 6), "1", "2"), 240, (20 + 30 + 24) * 2, 48),
    Row("aten::baddbmm", (bf16(2, 4, 6), bf16(2, 4, 5), bf16(2, 5, 6), "1", "1"), 480, (40 + 60 + 48) * 2, 96),
    Row("aten::bmm", (f32(2, 1, 5), f32(2, 5, 1)), 20, 80, 8),
    Row("aten::mm", (strided(f32(5, 4), 1, 5), f32(4, 3)), 120, 80 + 48, 60),  # a transposed operand is dense
]  # fmt: skip

MORE_ATTENTION = [
    Row("FlashAttnFunc", (QT, QT, QT, "0.", None, "True"), 2 * 8 * 136 * 16, 6144, 2048 + 512),
    # causal from the bottom right with 4 queries of 16 keys: 13 + 14 + 15 + 16 = 58
    Row("flash_attn::_flash_attn_forward",
        (bf16(2, 4, 4, 8), QT, QT, "0.", "0.35", "True", "-1", "-1"), 2 * 8 * 58 * 16, 512 + 4096, 512 + 128),
    # more queries than keys: the first 12 of 16 see nothing, the last 4 see 1 + 2 + 3 + 4
    Row("flash_attn::_flash_attn_forward",
        (QT, bf16(2, 4, 4, 8), bf16(2, 4, 4, 8), "0.", "0.35", "True", "-1", "-1"),
        2 * 8 * 10 * 16, 2048 + 1024, 2048 + 512),
    # varlen, 2 equal sequences of 8 tokens, not causal: 64 pairs each
    Row("flash_attn::_flash_attn_varlen_forward",
        (bf16(16, 4, 8), bf16(16, 4, 8), bf16(16, 4, 8), i32(3), i32(3), "8", "8", "0.", "0.35", "False", "-1", "-1"),
        2 * 4 * 128 * 16, 3 * 1024, 1024 + 256),
    # varlen backward, the same two sequences, causal: 36 pairs each, five products
    Row("flash_attn::_flash_attn_varlen_backward",
        (bf16(16, 4, 8), bf16(16, 4, 8), bf16(16, 4, 8), bf16(16, 4, 8), bf16(16, 4, 8), f32(4, 16), None, None, None,
         i32(3), i32(3), "8", "8", "0.", "0.35", "True", "-1", "-1"),
        2 * 4 * 72 * 40, 5 * 1024 + 256, 3 * 1024),
    # flash backward, causal: 136 pairs a head
    Row("aten::_flash_attention_backward",
        (QT, QT, QT, QT, QT, f32(2, 4, 16), None, None, "16", "16", "0.", "True", i64(), i64()),
        2 * 8 * 136 * 40, 5 * 2048 + 512, 3 * 2048),
    Row("aten::_scaled_dot_product_cudnn_attention",
        (Q, Q, Q, None, "True", "0.", "False", "False"), 2 * 8 * 256 * 16, 6144, 2048 + 512),
    # FlashAttention 3: the causal flag stands at 24
    Row("flash_attn_3::fwd", (QT, QT, QT, *(None,) * 21, "True", "-1", "-1"), 2 * 8 * 136 * 16, 6144, 2048 + 512),
    # float16 and half the keys: 16*8 pairs
    Row("aten::_scaled_dot_product_flash_attention",
        (f16(2, 4, 16, 8), f16(2, 4, 8, 8), f16(2, 4, 8, 8), "0.", "False", "False"),
        2 * 8 * 128 * 16, 2048 + 2 * 1024, 2048 + 512),
]  # fmt: skip

DY, X, W = f32(2, 8, 5, 5), f32(2, 4, 10, 10), f32(8, 4, 3, 3)
GEOMETRY = ("[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")
PASS = 2 * (2 * 8 * 25) * 36  # as the forward pass: 400 results of 4*3*3 multiply-adds
MORE_CONVOLUTION = [
    Row("aten::convolution_backward", (DY, X, W, *GEOMETRY, "[True, True, True]"),
        2 * PASS, (400 + 288 + 800) * 4, (800 + 288 + 8) * 4),
    Row("aten::convolution_backward", (DY, X, W, *GEOMETRY, "[True, False, False]"), PASS, (400 + 288) * 4, 3200),
    Row("aten::convolution_backward", (DY, X, W, *GEOMETRY, "[False, True, False]"), PASS, (400 + 800) * 4, 1152),
    Row("aten::convolution_backward", (DY, X, W, *GEOMETRY, "[False, False, True]"), 0, 1600, 32),
    # transposed: 4*16 inputs of 3*9 multiply-adds; dY is 6 channels of 9x9
    Row("aten::convolution_backward",
        (f32(1, 6, 9, 9), f32(1, 4, 4, 4), f32(4, 3, 3, 3), "[6]", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "2",
         "[True, True, False]"),
        2 * 2 * 64 * 27, (486 + 108 + 64) * 4, (64 + 108) * 4),
    # depthwise, 8 groups: 512 results of 9
    Row("aten::convolution_backward",
        (f32(1, 8, 8, 8), f32(1, 8, 8, 8), f32(8, 1, 3, 3), "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "8",
         "[True, True, False]"),
        2 * 2 * 512 * 9, (512 + 72 + 512) * 4, (512 + 72) * 4),
    Row("aten::cudnn_convolution_backward", (X, DY, W, *(None,) * 7, "[False, True]"), PASS, (400 + 800) * 4, 1152),
    # convolution and bias and relu in one: the bias adds to each of 400
    Row("aten::cudnn_convolution_relu", (X, W, f32(8), "[2, 2]", "[1, 1]", "[1, 1]", "1"),
        PASS + 400, (800 + 288 + 8) * 4, 1600),
]  # fmt: skip

MORE_POINTWISE = [
    Row("aten::gelu_backward", (bf16(4, 5), bf16(4, 5), "none"), 200, 80, 40),
    Row("aten::silu_backward", (bf16(4, 5), bf16(4, 5)), 160, 80, 40),
    Row("aten::sqrt", (f32(4, 5),), 20, 80, 80),
    Row("aten::div_", (f32(4, 5), f32()), 20, 80 + 4, 80),
    Row("aten::add", (f32(3, 1), f32(1, 4), "1"), 12, 12 + 16, 48),
    # half-rotation: 3 operations on q and k; 4 positions, 4 rows of the table of 8*2
    Row("vllm::rotary_embedding", (i64(4), bf16(4, 32), bf16(4, 16), "8", bf16(2048, 8), "True"),
        3 * (128 + 64), (128 + 64) * 2 + 32 + 64, (128 + 64) * 2),
    # only 4 of each head's 8 are rotated: the table is 4 wide
    Row("_C::rotary_embedding", (i64(4), bf16(4, 32), bf16(4, 16), "8", bf16(2048, 4), "False"),
        3 * (64 + 32), (64 + 32) * 2 + 32 + 32, (64 + 32) * 2),
    Row("FusedRoPEFunc", (bf16(8, 2, 4, 16), f32(8, 1, 1, 16)), 3 * 1024, 2048 + 512, 2048),
]  # fmt: skip

MORE_MEMORY = [
    # one on each side of both axes: 6 by 7
    Row("aten::constant_pad_nd", (bf16(4, 5), "[1, 1, 1, 1]", "0."), 0, 40, 84),
    Row("aten::cat", ((f32(2, 3), f32(2, 5)), "1"), 0, 64, 64),
    Row("aten::upsample_nearest2d", (f32(1, 3, 4, 4), "[8, 8]", None, None), 0, 192, 768),
    # bilinear: 4 multiply-adds on each of 1*2*36
    Row("aten::upsample_bilinear2d", (f32(1, 2, 3, 3), "[6, 6]", "False"), 8 * 72, 72, 288),
    Row("aten::upsample_bilinear2d_backward", (f32(1, 2, 6, 6), "[6, 6]", "[1, 2, 3, 3]", "False"), 8 * 72, 288, 72),
    # bicubic: 16 multiply-adds
    Row("aten::upsample_bicubic2d", (f32(1, 2, 3, 3), "[6, 6]", "False"), 32 * 72, 72, 288),
    Row("aten::scatter_", (f32(8, 8), "0", i64(2, 8), f32(2, 8)), 0, 128 + 64, 64),
    # out of place the other 62 rows are copied, too
    Row("aten::scatter", (f32(64, 8), "0", i64(2, 8), f32(2, 8)), 0, 2048 + 128 + 64, 2048),
    Row("aten::gather", (bf16(8, 32), "1", i64(8, 4), "False"), 0, 64 + 256, 64),
    Row("aten::index_select", (bf16(16, 4), "-1", i64(2)), 0, 64 + 16, 64),  # 2 of each row's 4
    Row("aten::index_copy_", (bf16(16, 4), "0", i64(2), bf16(2, 4)), 0, 16 + 16, 16),
    Row("aten::index", (f32(6, 8), (i64(3), i64(3))), 0, 12 + 48, 12),  # both axes: one element each
    Row("aten::index_put_", (bf16(6, 8), (i64(3),), bf16(3, 8), "True"), 24, 48 + 24 + 48, 48),
    Row("aten::index_select", (f32(100), "", i64(4)), 0, 16 + 32, 16),  # a vector has one axis
]  # fmt: skip

MORE_REDUCTION = [
    # (8 + 0 - 2)//2 + 1 = 4 along both axes: 32 results of 4
    Row("aten::avg_pool2d", (f32(1, 2, 8, 8), "[2, 2]", "[2, 2]", "[0, 0]", "False", "True", None), 128, 512, 128),
    # rounding up: ceil((7 - 2)/2) + 1 = 4
    Row("aten::max_pool2d_with_indices", (f32(1, 1, 7, 7), "[2, 2]", "[2, 2]", "[0, 0]", "[1, 1]", "True"),
        16 * 4, 196, 16 * 12),
    Row("aten::_adaptive_avg_pool2d", (f32(2, 4, 6, 6), "[3, 3]"), 288, 1152, 72 * 4),
    # cross entropy over 50 classes: log-softmax, then one of each row
    Row("aten::_log_softmax", (f32(8, 50), "1", "False"), 5 * 400, 1600, 1600),
    Row("aten::_log_softmax_backward_data", (f32(8, 50), f32(8, 50), "1", "6"), 4 * 400, 3200, 1600),
    Row("aten::nll_loss_backward", (f32(), f32(8, 50), i64(8), None, "1", "-100", f32()), 8, 4 + 64 + 4, 1600),
    # fused: 5 on each of 8*50, one loss a row
    Row("LigerCrossEntropyFunction", (bf16(8, 50), i64(8)), 2000, 800 + 64, 32),
    Row("aten::binary_cross_entropy", (f32(8), f32(8), None, "0"), 56, 64, 32),
    Row("aten::topk", (bf16(4, 64), "8", "-1", "True", "True"), 0, 512, 32 * 10),
]  # fmt: skip

LIST = (f32(6, 4), f32(8))  # 32 numbers
MORE_OTHERS = [
    Row("aten::_fused_adagrad_", (LIST, LIST, LIST), 9 * 32, 3 * 128, 2 * 128),
    Row("aten::_foreach_addcdiv_", (LIST, LIST, LIST, "1"), 3 * 32, 3 * 128, 128),
    Row("aten::_foreach_lerp_", (LIST, LIST, "0.1"), 3 * 32, 2 * 128, 128),
    Row("aten::_foreach_sqrt", (LIST,), 32, 128, 128),
    Row("aten::_foreach_norm", (LIST, "2"), 64, 128, 8),
    # 4 tokens, top 2 of 2 experts: both are reached, but for (1 - 2/2)^4 = 0
    Row("vllm::fused_experts", (bf16(4, 8), bf16(2, 12, 8), bf16(2, 8, 6), f32(4, 2), i32(4, 2)),
        2 * 8 * 8 * 12 + 2 * 8 * 6 * 8, 64 + (192 + 96) * 2 + 32 + 32, 64),
    Row("_moe_C::topk_softmax", (f32(16, 2), i32(16, 2), i32(16, 2), bf16(16, 4)), 5 * 64, 128, 256),
    # one token through Mamba: 6 on each of 1*4*8 states
    Row("mamba_ssm::selective_state_update", (f32(1, 4, 8), bf16(1, 4), bf16(1, 4), f32(4, 8), bf16(1, 8), bf16(1, 8)),
        192, 128 + 16 + 128 + 32, 128 + 8),
    # 9 on each of 1*2*4*8 states and one on 8 results
    Row("SelectiveScanFn", (bf16(1, 2, 4), bf16(1, 2, 4), f32(2, 8), bf16(1, 8, 4), bf16(1, 8, 4)),
        9 * 64 + 8, 2 * 16 + 64 + 2 * 64, 16),
    Row("DaoAILab::_causal_conv1d_bwd_cpp", (bf16(1, 4, 8), bf16(4, 3), None, bf16(1, 4, 8)),
        2 * 2 * 32 * 3, 2 * 64 + 24, 64 + 24),
    Row("_C::static_scaled_fp8_quant", (fp8(8, 64), bf16(8, 64), f32(1)), 2 * 512, 1024 + 4, 512),
    Row("_C::dynamic_scaled_int8_quant", (i8(8, 64), bf16(8, 64), f32(8, 1), None), 4 * 512, 1024, 512 + 32),
    # groups of 64: 8 scales
    Row("aiter::per_group_quant_fp8", (bf16(4, 128), "64"), 4 * 512, 1024, 512 + 32),
    Row("aten::fake_quantize_per_tensor_affine", (f32(4, 8), "0.1", "0", "0", "255"), 64, 128, 128),
    # rows of 16/4 = 4 in 4 tables, 2 samples: 20 indices, 80 elements
    Row("fbgemm::split_embedding_codegen_lookup_sgd_function",
        (f32(0), f32(4000), f32(0), f32(0), i32(4), i64(4), i32(5), "16", "4", i64(5), "9", i64(20), i64(9)),
        80, 320 + 160 + 72, 2 * 16 * 4),
    # the same backward with SGD: 80 adds, 2 on each; gradient 128, indices 232; rows read and written
    Row("torch::autograd::CppNode<SplitLookupFunction_sgd_Op>",
        (f32(2, 16), f32(0), f32(4000), f32(0), f32(0), i32(4), i64(4), i32(5), "16", "4", i64(5), "9", i64(20),
         i64(9)),
        80 + 160, 128 + 232 + 320, 320),
    # Adagrad keeps a number an element: 7 on each, rows and squares read and written
    Row("torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>",
        (f32(2, 16), f32(0), f32(4000), f32(0), f32(0), i32(4), i64(4), i32(5), "16", "4", i64(5), "9", i64(20),
         i64(9)),
        80 + 560, 128 + 232 + 640, 640),
    # dense: a gradient of the whole table of 112
    Row("torch::autograd::CppNode<SplitLookupFunction_Dense_Op>",
        (f32(2, 16), f32(112), i64(4), i32(5), "16", "4", i64(5), "9", i64(20), i64(9)), 80, 128 + 232, 448),
]  # fmt: skip

ROWS = [*GEMM, *ATTENTION, *CONVOLUTION, *ELEMENTWISE, *MEMORY, *REDUCTION, *NORMALIZATION, *EMBEDDING, *OTHERS]
ROWS += [*MORE_GEMM, *MORE_ATTENTION, *MORE_CONVOLUTION, *MORE_POINTWISE, *MORE_MEMORY, *MORE_REDUCTION, *MORE_OTHERS]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.name}-{i}" for i, row in enumerate(ROWS)])
def test_a_call_costs_what_the_arithmetic_says(row: Row) -> None:
    cost = cost_of(Op(name=row.name, args=row.args))

    assert isinstance(cost, Cost), cost
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (row.flops, row.read, row.written)


@pytest.mark.parametrize(
    ("name", "args", "unit", "precision"),
    [
        ("aten::mm", (bf16(4, 5), bf16(5, 6)), "matrix", "bfloat16"),
        ("aten::_int_mm", (i8(4, 5), i8(5, 6)), "matrix", "int8"),
        ("aten::_scaled_mm", (fp4(4, 8), fp4(8, 6), fp8(4, 1), fp8(6, 1)), "matrix", "float4_e2m1fn_x2"),
        ("aiter::batched_gemm_a16wfp4_", (bf16(2, 4, 32), u8(2, 6, 16)), "matrix", "float4_e2m1fn_x2"),
        ("fbgemm::bf16i4bf16_rowwise", (bf16(4, 32), i8(6, 16)), "matrix", "bfloat16"),
        ("aten::_scaled_dot_product_flash_attention", (Q, Q, Q, "0.", "False", "False"), "matrix", "bfloat16"),
        ("aten::add", (bf16(4), f32(4)), "vector", "float32"),
        ("aten::eq", (f32(4), "1"), "vector", "float32"),
        ("aten::_softmax", (bf16(4, 5), "-1", "False"), "vector", "bfloat16"),
        ("DaoAILab::_causal_conv1d_fwd_cpp", (bf16(2, 4, 16), bf16(4, 3)), "vector", "bfloat16"),
    ],
)
def test_the_ceiling_is_named_by_unit_and_element_type(
    name: str, args: tuple[Arg, ...], unit: str, precision: str
) -> None:
    cost = cost_of(Op(name=name, args=args))

    assert isinstance(cost, Cost), cost
    assert (cost.unit, cost.precision) == (unit, precision)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (
            Op(
                name="aten::convolution",
                args=(f32(2, 4, 10, 10), f32(8, 4, 3, 3), None, "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"),
            ),
            Op(
                name="aten::cudnn_convolution",
                args=(f32(2, 4, 10, 10), f32(8, 4, 3, 3), "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"),
            ),
        ),
        (
            Op(name="aten::_scaled_dot_product_flash_attention", args=(Q, Q, Q, "0.", "True", "False", None)),
            Op(
                name="aten::_flash_attention_forward",
                args=(QT, QT, QT, None, None, "16", "16", "0.", "True", "False", None),
            ),
        ),
        (
            Op(name="aten::batch_norm", args=(*BN, "True", "0.1", "1e-05", "True")),
            Op(name="aten::miopen_batch_norm", args=(*BN, "True", "0.1", "1e-05")),
        ),
        (
            Op(name="aten::layer_norm", args=(f32(4, 6), "[6]", f32(6), f32(6), "1e-5", "True")),
            Op(name="aten::native_layer_norm", args=(f32(4, 6), "[6]", f32(6), f32(6), "1e-5")),
        ),
        (
            Op(name="aten::linear", args=(bf16(8, 4), bf16(5, 4), None)),
            Op(name="aten::mm", args=(bf16(8, 4), bf16(4, 5))),
        ),
    ],
    ids=["convolution", "attention", "batch norm", "layer norm", "linear"],
)
def test_a_wrapper_costs_what_the_op_below_it_costs(outer: Op, inner: Op) -> None:
    assert cost_of(outer) == cost_of(inner)
