"""Elementwise ops of PyTorch, by operations per element.

Composite functions count their parts: sigmoid 1/(1 + exp(-x)) is negate, exp, add, divide: 4. Comparisons write bool.
"""

from __future__ import annotations

from .op import Op
from .parts import b8, bf16, dtype_of, f32, require
from .pointwise import pointwise, register
from .registry import Cost, Example, categorise, op_model

# One operand, one operation; the dtype stays.
register(
    "abs absolute neg negative positive ceil floor round trunc fix frac sign sgn square relu relu6 conj_physical "
    "bitwise_not real imag angle hardtanh threshold",
    inputs=1, flops=1,
)  # fmt: skip
# One operand, one elementary function; integers give float32.
register(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh arcsin arccos arctan erf erfc erfinv lgamma digamma i0 special_i0 special_i1 sinc deg2rad rad2deg "
    "special_erfcx special_log_ndtr special_ndtr special_ndtri special_entr",
    inputs=1, flops=1, result="float",
)  # fmt: skip
register("isnan isinf isfinite isneginf isposinf signbit logical_not", inputs=1, flops=1, result="bool")
register("nan_to_num", inputs=1, flops=3)  # three tests
register("logit", inputs=1, flops=3, result="float")  # 1 - x, divide, log
# Activations. silu x/(1 + exp(-x)): negate, exp, add, divide. gelu x/2*(1 + erf(x/sqrt 2)): scale, erf, add, products.
register("sigmoid", inputs=1, flops=4, result="float")
register("silu", inputs=1, flops=4)
register("gelu", inputs=1, flops=5)
register("mish", inputs=1, flops=4)  # exp, log1p, tanh, product
register("softplus", inputs=1, flops=3)  # exp, log1p, test
register("log_sigmoid log_sigmoid_forward", inputs=1, flops=4)
register("hardsigmoid", inputs=1, flops=4)  # add, two bounds, divide
register("hardswish", inputs=1, flops=5)
register("leaky_relu softshrink hardshrink", inputs=1, flops=2)  # test, product or difference
register("elu celu selu", inputs=1, flops=4)  # test, exp, subtract, product
register("rrelu rrelu_with_noise", inputs=1, flops=2)
# Two operands.
register("add sub subtract rsub mul multiply fmod remainder floor_divide __and__ __or__ __xor__", inputs=2, flops=1)
register("maximum minimum fmax fmin copysign nextafter gcd lcm heaviside ldexp hypot", inputs=2, flops=1)
register(
    "div divide true_divide atan2 arctan2 pow float_power xlogy special_xlog1py",
    inputs=2,
    flops=1,
    result="float",
)
register("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", inputs=2, flops=1)
register("__lshift__ __rshift__", inputs=2, flops=1)
register("logaddexp logaddexp2", inputs=2, flops=5, result="float")
register(
    "eq ne lt le gt ge greater greater_equal less less_equal not_equal logical_and logical_or logical_xor isclose",
    inputs=2, flops=1, result="bool",
)  # fmt: skip
register("_prelu_kernel prelu", inputs=2, flops=2, result="first")
register("dist", inputs=2, flops=3)
# Three operands, bounds or values among them.
register("clamp clip", inputs=3, flops=2, result="promote", tensors=(0,))
register("clamp_min clamp_max", inputs=2, flops=1)
register("addcmul addcdiv", inputs=3, flops=3)  # product or quotient, scale, add
register("lerp", inputs=3, flops=3)  # difference, product, sum
register("masked_fill", inputs=3, flops=1, result="first", tensors=(0, 1))
# Backward, (grad, saved) unless positions say otherwise; forward names: the derivative's parts times the gradient.
register("sigmoid_backward tanh_backward", inputs=2, flops=3)  # 1 - y, y*(1 - y) or y*y, times grad
register("silu_backward", inputs=2, flops=8)  # sigmoid 4, 1 + x*(1 - s) 3, products
register("gelu_backward", inputs=2, flops=10)  # erf and exp branches, combine
register("mish_backward", inputs=2, flops=10)
register("threshold_backward hardtanh_backward hardsigmoid_backward", inputs=2, flops=1)
register("leaky_relu_backward hardshrink_backward softshrink_backward", inputs=2, flops=2)
register("hardswish_backward softplus_backward logit_backward", inputs=2, flops=4)
register("log_sigmoid_backward", inputs=3, flops=5)
register("elu_backward", inputs=6, flops=3, tensors=(0, 5))
register("native_dropout_backward masked_scale", inputs=2, flops=2, result="first")
register("sgn_backward", inputs=2, flops=1)


@op_model(
    "aten::where",
    category="elementwise",
    examples=(
        Example(
            args=(b8(4, 1), bf16(4, 5), bf16(1, 5)),
            flops=20,
            bytes_read=54,
            bytes_written=40,
            why="a choice on each of 20; reads 4*1 + 20*2 + 5*2; writes 20*2",
        ),
    ),
)
def where(op: Op) -> Cost:
    """A choice between two operands; the condition does not take part in promotion."""
    require(len(op.args) >= 3, "the one-operand form returns indices of unknown number")
    return pointwise(op, inputs=3, flops=1, result="value")


@op_model(
    "aten::native_dropout",
    "aten::_fused_dropout",
    category="elementwise",
    examples=(
        Example(
            args=(bf16(4, 5), "0.1", "True"),
            flops=40,
            bytes_read=40,
            bytes_written=60,
            why="compare and scale on 20; reads 20*2; writes 20*2 and a mask of 20*1",
        ),
    ),
)
def dropout(op: Op) -> Cost:
    """Dropout that keeps its mask, one byte an element."""
    x = op.tensor(0)
    cost = pointwise(op, inputs=1, flops=2, result="first")
    return Cost(
        flops=cost.flops,
        bytes_read=cost.bytes_read,
        bytes_written=cost.bytes_written + x.numel,
        precision=dtype_of(x),
    )


@op_model(
    "aten::polar",
    "aten::complex",
    category="elementwise",
    examples=(
        Example(
            args=(f32(4), f32(4)),
            flops=16,
            bytes_read=32,
            bytes_written=32,
            why="sin, cos and two products on 4; reads 2*4*4; writes 4 of 8",
        ),
    ),
)
def to_complex(op: Op) -> Cost:
    """Two real operands to one complex result of twice the width."""
    wide = "complex128" if dtype_of(op.tensor(0)) == "float64" else "complex64"
    return pointwise(op, inputs=2, flops=4, result=wide)


categorise(
    "elementwise",
    "aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::alpha_dropout", "aten::glu_jvp",
    "torch::jit::fused", "aten::hann_window",
    patterns=(r"^fb::(convex_sum|clip|sigrid)",),
    module=__name__,
)  # fmt: skip
