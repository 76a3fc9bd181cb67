"""Small programs whose traces hold one composition each."""

from __future__ import annotations

from tests.repro.chains import BF16, F32, Program


def rms_norm(size=64):
    """As Transformers writes it: in bfloat16, computed in float32."""
    x, wide, row, weight = ([2, 8, size], BF16), ([2, 8, size], F32), ([2, 8, 1], F32), ([size], BF16)
    model = Program()
    with model.module("LlamaRMSNorm_0"):
        model.do("aten::copy_", wide, x, "False")
        model.do("aten::pow", wide, "2")
        model.do("aten::mean", wide, "[-1]", "True", None)
        model.do("aten::add", row, "number", "1")
        model.do("aten::rsqrt", row)
        model.do("aten::mul", wide, row)
        model.do("aten::copy_", x, wide, "False")
        model.do("aten::mul", weight, x)
    return model


def attention():
    """Two heads of size 16, 24 queries; the scores are divided by a number that is not recorded."""
    scores = ([1, 2, 24, 24], F32)
    model = Program()
    with model.module("SelfAttention_0"):
        model.do("aten::bmm", ([2, 24, 16], F32), ([2, 16, 24], F32, [384, 1, 16]))
        model.do("aten::_unsafe_view", ([2, 24, 24], F32), "[1, 2, 24, 24]", launches=False)
        model.do("aten::div", scores, "number")
        model.do("aten::add", scores, ([1, 1, 24, 24], F32), "1")
        model.do("aten::_softmax", scores, "-1", "False")
        model.do("aten::view", scores, "[2, 24, 24]", launches=False)
        model.do("aten::bmm", ([2, 24, 24], F32), ([2, 24, 16], F32))
    return model


def rope():
    """Queries, then keys, each times cosine, half of it negated and swapped, times sine, and added."""
    x, half, angle = ([1, 2, 8, 16], F32), ([1, 2, 8, 8], F32, [256, 128, 16, 1]), ([1, 1, 8, 16], F32)
    model = Program()
    with model.module("LlamaAttention_0"):
        for _ in range(2):
            model.do("aten::mul", x, angle)
            model.do("aten::slice", x, "3", "0", "8", "1", launches=False)
            model.do("aten::slice", x, "3", "8", "9223372036854775807", "1", launches=False)
            model.do("aten::neg", half)
            model.do("aten::cat", [([1, 2, 8, 8], F32), ([1, 2, 8, 8], F32)], "-1")
            model.do("aten::mul", x, angle)
            model.do("aten::add", x, x, "1")
    return model


def swiglu():
    """The gate's activation, the other projection, and their product."""
    wide = ([4, 8, 32], F32)
    model = Program()
    with model.module("LlamaMLP_0"):
        model.do("aten::silu", wide)
        model.do("aten::mm", ([32, 16], F32), ([16, 32], F32))
        model.do("aten::_unsafe_view", ([32, 32], F32), "[4, 8, 32]", launches=False)
        model.do("aten::mul", wide, wide)
    return model


def gelu():
    """By tanh, with numbers that are not recorded."""
    x = ([4, 64], F32)
    model = Program()
    with model.module("NewGELUActivation_0"):
        model.do("aten::mul", x, "number")
        model.do("aten::pow", x, "3.")
        model.do("aten::mul", x, "number")
        model.do("aten::add", x, x, "1")
        model.do("aten::mul", x, "number")
        model.do("aten::tanh", x)
        model.do("aten::add", x, "number", "1")
        model.do("aten::mul", x, x)
    return model


def gelu_epilogue():
    """A matrix product with its bias, seen as three axes, and the activation."""
    model = Program()
    with model.module("BertIntermediate_0"):
        model.do("aten::addmm", ([32], F32), ([16, 8], F32), ([8, 32], F32, [1, 8]), "1", "1")
        model.do("aten::view", ([16, 32], F32), "[2, 8, 32]", launches=False)
        model.do("aten::gelu", ([2, 8, 32], F32), None)
    return model


def layer_norm():
    """Mean, difference, mean of its square, division, factor and summand."""
    x, row, vector = ([8, 32], F32), ([8, 1], F32), ([32], F32)
    model = Program()
    with model.module("LayerNorm_0"):
        model.do("aten::mean", x, "[-1]", "True", None)
        model.do("aten::sub", x, row, "1")
        model.do("aten::pow", x, "2")
        model.do("aten::mean", x, "[-1]", "True", None)
        model.do("aten::add", row, "number", "1")
        model.do("aten::sqrt", row)
        model.do("aten::div", x, row)
        model.do("aten::mul", vector, x)
        model.do("aten::add", x, vector, "1")
    return model


def softmax():
    """Largest value, difference, exponential, sum, quotient."""
    x, row = ([8, 32], F32), ([8, 1], F32)
    model = Program()
    with model.module("Softmax_0"):
        model.do("aten::amax", x, "[-1]", "True")
        model.do("aten::sub", x, row, "1")
        model.do("aten::exp", x)
        model.do("aten::sum", x, "[-1]", "True", None)
        model.do("aten::div", x, row)
    return model


def adam():
    """Three parameters updated one after the other, eight calls each."""
    model = Program()
    model.annotation("Optimizer.step#Adam.step", ts=5, dur=400)
    for size in (64, 96, 128):
        p = ([size], F32)
        model.do("aten::lerp_", p, p, "0.1")
        model.do("aten::mul_", p, "0.999")
        model.do("aten::addcmul_", p, p, p, "0.001")
        model.do("aten::sqrt", p)
        model.do("aten::div", p, "0.5")
        model.do("aten::add_", p, "1e-08", "1")
        model.do("aten::mul_", p, "0.99")
        model.do("aten::addcdiv_", p, p, p, "-0.001")
    return model
