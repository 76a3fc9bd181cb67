"""One short word for what a call does, whatever its spelling: the alphabet that compositions are written in.

``aten::mul_``, ``aten::multiply`` and ``aten::__imul__`` are ``mul``. Arithmetic with a number, or with a tensor of one
element, ends in ``s``: ``adds`` adds an epsilon, ``add`` a tensor. A copy that changes the element type is a ``cast``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# What no fused kernel may contain: a call that is fused already, communicates, leaves the GPU, or is not understood.
BARRIER: Final = "|"
OPAQUE: Final = "opaque"

_ALIASES: Final = {
    "multiply": "mul", "subtract": "sub", "rsub": "sub", "divide": "div", "true_divide": "div", "negative": "neg",
    "absolute": "abs", "clip": "clamp", "clamp_min": "clamp", "clamp_max": "clamp", "hardtanh": "clamp",
    "softmax": "softmax", "_softmax": "softmax", "_safe_softmax": "softmax", "_log_softmax": "log_softmax",
    "softmax_backward_data": "softmax_backward", "_softmax_backward_data": "softmax_backward",
    "_log_softmax_backward_data": "log_softmax_backward",
    "to": "copy", "_to_copy": "copy", "clone": "copy", "contiguous": "copy", "copy": "copy", "_reshape_copy": "copy",
    "concat": "cat", "stack": "cat", "hstack": "cat", "vstack": "cat",
    "addmm": "mm", "linear": "mm", "matmul": "mm", "baddbmm": "bmm", "mv": "mm", "_addmm_activation": "mm",
    "_scaled_mm": "mm", "_int_mm": "mm", "einsum": "mm", "_trilinear": "mm",
    "convolution": "conv", "_convolution": "conv", "cudnn_convolution": "conv", "miopen_convolution": "conv",
    "conv1d": "conv", "conv2d": "conv", "conv3d": "conv", "convolution_overrideable": "conv",
    "native_layer_norm": "layer_norm", "_fused_rms_norm": "rms_norm", "native_group_norm": "group_norm",
    "native_batch_norm": "batch_norm", "cudnn_batch_norm": "batch_norm", "miopen_batch_norm": "batch_norm",
    "_native_batch_norm_legit": "batch_norm", "_native_batch_norm_legit_no_training": "batch_norm",
    "_batch_norm_with_update": "batch_norm", "_batch_norm_no_update": "batch_norm",
    "native_dropout": "dropout", "_fused_dropout": "dropout", "feature_dropout": "dropout",
    "nll_loss_forward": "nll_loss", "nll_loss2d_forward": "nll_loss", "nll_loss2d": "nll_loss",
    "linalg_vector_norm": "norm", "linalg_norm": "norm", "frobenius_norm": "norm", "nansum": "sum", "nanmean": "mean",
    "max": "amax", "min": "amin", "std": "std", "var_mean": "var", "std_mean": "std", "relu6": "relu",
    "arctan": "atan", "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "not_equal": "ne",
    "zero": "fill", "zeros_like": "fill", "ones_like": "fill", "full_like": "fill", "new_zeros": "fill",
    "masked_fill": "masked_fill", "index_select": "index", "threshold_backward": "relu_backward",
}  # fmt: skip
# Arithmetic whose word says whether the second operand is a number.
SCALAR_FORMS: Final = frozenset({"add", "sub", "mul", "div", "maximum", "minimum"})
_UNTOLD: Final = "~"

# Names that compositions use for several words.
SETS: Final[dict[str, tuple[str, ...]]] = {
    "gemm": ("mm", "bmm"),
    "square": ("pow", "square"),
    "anyadd": ("add", "adds"),
    "anysub": ("sub", "subs"),
    "anymul": ("mul", "muls"),
    "anydiv": ("div", "divs"),
    "move": ("copy", "cast"),
    "act": (
        "relu", "gelu", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid", "leaky_relu", "elu", "clamp", "mish",
    ),
    "layer": ("layer_norm", "rms_norm"),
    "update": (
        "add", "adds", "sub", "subs", "mul", "muls", "div", "divs", "addcmul", "addcdiv", "sqrt", "lerp", "neg", "fill",
        "copy", "cast", "maximum", "clamp", "pow", "sign", "rsqrt", "reciprocal",
    ),
}  # fmt: skip

# Words of single kernels' names, for runs of which no call is recorded; the first that matches counts.
_OF_KERNELS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (r"rsqrt", "rsqrt"),
        (r"softmax_?warp_?backward|softmaxbackward", "softmax_backward"),
        (r"backward", "backward"),
        (r"softmax", "softmax"),
        (r"layer_?norm", "layer_norm"),
        (r"rms_?norm", "rms_norm"),
        (r"batch_?norm|bn_fw|bn_bw", "batch_norm"),
        (r"group_?norm", "group_norm"),
        (r"CatArray", "cat"),
        (r"dropout", "dropout"),
        (r"gelu", "gelu"),
        (r"silu", "silu"),
        (r"sigmoid", "sigmoid"),
        (r"tanh_kernel|tanh_", "tanh"),
        (r"erf_kernel", "erf"),
        (r"neg_kernel", "neg"),
        (r"pow_tensor|pow_", "pow"),
        (r"MeanOps", "mean"),
        (r"sum_functor|SumOps|sum_kernel", "sum"),
        (r"NormTwoOps|NormOps", "norm"),
        (r"exp_kernel", "exp"),
        (r"addcmul", "addcmul"),
        (r"addcdiv", "addcdiv"),
        (r"sqrt_kernel", "sqrt"),
        (r"MulFunctor|mul_kernel", "mul"),
        (r"DivFunctor|div_true|div_kernel", "div"),
        (r"Functor(OnSelf)?_add|AddFunctor|add_kernel", "add"),
        (r"clamp|threshold|relu", "relu"),
        (r"masked_fill", "masked_fill"),
        (r"where_kernel", "where"),
        (r"direct_copy|copy_kernel|LoadWithCast|float16_copy|bfloat16_copy", "copy"),
    )
)


@lru_cache(maxsize=4096)
def base_word(name: str) -> str:
    """The word of an op's name, before its operands are looked at."""
    base = name.rpartition("::")[2]
    if base.startswith("__i") and base.endswith("__"):
        base = base[3:-2]
    base = base.removesuffix("_") if not base.endswith("__") else base
    return _ALIASES.get(base, base)


def untold(word: str) -> str:
    """The word of a call without shapes: where these decide between two words, one that stands for either."""
    return f"{word}{_UNTOLD}" if word in SCALAR_FORMS or word == "copy" else word


def either(word: str) -> tuple[str, ...]:
    """A word and the one that stands for it where no shapes are recorded."""
    base = "copy" if word == "cast" else word.removesuffix("s")
    return (word, f"{base}{_UNTOLD}") if base in SCALAR_FORMS or base == "copy" else (word,)


@lru_cache(maxsize=4096)
def kernel_word(name: str, category: str) -> str:
    """The word of a kernel's name; its category where the name has none."""
    if category in {"gemm", "convolution"}:
        return "mm" if category == "gemm" else "conv"
    return next((word for pattern, word in _OF_KERNELS if pattern.search(name)), f"<{category}>")
