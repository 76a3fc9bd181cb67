"""Arguments that a trace does not record, from what it does: names of kernels, an enclosing call, a forward call.

Nothing here is taken as usual: each function returns ``None`` (or the op as it was) unless the trace tells.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from .dtypes import dtypes_in_kernel_name
from .op import Arg, Op, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

# Arguments that PyTorch wants as int64 whatever the element type of the data.
_POSITIONS: Final = {
    "aten::max_pool2d_with_indices_backward": (7,),
    "aten::max_pool3d_with_indices_backward": (7,),
    "aten::nll_loss_forward": (1,),
    "aten::nll_loss_backward": (2,),
    "aten::nll_loss2d_forward": (1,),
    "aten::nll_loss2d_backward": (2,),
    "aten::embedding": (1,),
    "aten::embedding_dense_backward": (1,),
    "aten::index_select": (2,),
    "aten::gather": (2,),
    "aten::scatter_": (2,),
    "aten::scatter_add_": (2,),
    "aten::index_add_": (2,),
}


def with_dtype(op: Op, dtype: str) -> Op:
    """``op`` with ``dtype`` for those of its tensors that have none, and int64 for its positions."""
    integers = _POSITIONS.get(op.name, ())
    return replace(
        op,
        args=tuple(_typed(arg, "int64" if index in integers else dtype) for index, arg in enumerate(op.args)),
        output=op.output if op.output is None or op.output.dtype else replace(op.output, dtype=dtype),
    )


def _typed(arg: Arg, dtype: str) -> Arg:
    if isinstance(arg, Tensor):
        return arg if arg.dtype else replace(arg, dtype=dtype)
    if isinstance(arg, tuple):
        return tuple(tensor if tensor.dtype else replace(tensor, dtype=dtype) for tensor in arg)
    return arg


def lacks_dtype(op: Op) -> bool:
    """Whether a tensor of the call, or its known result, has no element type."""
    output = () if op.output is None else (op.output,)
    return any(tensor.dtype is None for tensor in (*op.tensors(), *output))


def spelled_dtype(kernels: Iterable[str], precisions: Iterable[str | None]) -> str | None:
    """The one floating-point type that the names of all kernels spell; ``None`` where they differ or say nothing.

    ``precisions`` is what is known of the kernels otherwise (``sgemm`` is float32); TF32 operands are float32.
    """
    found = {dtype for name in kernels for dtype in dtypes_in_kernel_name(name)}
    found |= {"float32" if dtype == "tfloat32" else dtype for dtype in precisions if dtype is not None}
    return found.pop() if len(found) == 1 else None


_GRADIENT_KERNEL = re.compile(r"gemm|conv|cutlass|cudnn|xmma|grad_engine|wgrad|dgrad|igemm|winograd", re.IGNORECASE)
_TO_INPUT = re.compile(r"dgrad|backward_(?:data|input)|bwd_?data|igemm_bwd|ConvBinWinograd.*Bwd", re.IGNORECASE)
_TO_WEIGHT = re.compile(r"wgrad|backward_(?:filter|weight)|bwd_?weight|igemm_wrw", re.IGNORECASE)


def _any(pattern: str, names: Collection[str]) -> bool:
    return any(re.search(pattern, name) for name in names)


def _either(yes: str, no: str) -> Callable[[Collection[str]], str | None]:
    """The text of a flag that names spell one way or the other."""

    def spelled(names: Collection[str]) -> str | None:
        says = _any(yes, names), _any(no, names)
        return str(says[0]) if says[0] != says[1] else None

    return spelled


def _library_mask(names: Collection[str]) -> str | None:
    """Which gradients of a library's convolution are computed: one op below for each."""
    to_input, to_weight = _any(r"_convolution_backward_input$", names), _any(r"_convolution_backward_weight$", names)
    return f"[{to_input}, {to_weight}]" if to_input or to_weight else None


def _convolution_mask(names: Collection[str]) -> str | None:
    """Which gradients of a convolution are computed, if every kernel that multiplies names its own."""
    working = [name for name in names if _GRADIENT_KERNEL.search(name)]
    told = [(bool(_TO_INPUT.search(name)), bool(_TO_WEIGHT.search(name))) for name in working]
    if not told or any(first == second for first, second in told):
        return None
    return f"[{any(first for first, _ in told)}, {any(second for _, second in told)}, False]"


def _layer_norm_mask(names: Collection[str]) -> str | None:
    """Which gradients of a layer norm are computed: weight and bias share a kernel."""
    to_input = _any(r"layer_norm_grad_input|cuComputeGradInput", names)
    affine = _any(r"GammaBeta", names)
    return f"[{to_input}, {affine}, {affine}]" if to_input or affine else None


_FLASH_FLAGS = re.compile(r"flash_(?:fwd|bwd)\w*<.*>\s*,\s*(?:true|false)\s*,\s*(true|false)")


def _flash_causal(names: Collection[str]) -> str | None:
    """Causal: the second flag after the traits of a FlashAttention 2 kernel (its csrc/flash_attn/src)."""
    flags = {match.group(1) for name in names if (match := _FLASH_FLAGS.search(name))}
    return flags.pop().capitalize() if len(flags) == 1 else None


_ACCUMULATE = _either(r"indexing_backward", r"index_put_kernel")
_TRAINING = _either(
    r"bn_fw_tr|batch_norm_collect_statistics|BatchNormFwdTrain", r"bn_fw_inf|BatchNormFwdInfer|batch_norm_elemt"
)
# Position of a scalar, what it is, and how the names of kernels and ops below the call spell it.
_SPELLED: Final[dict[str, tuple[int, str, Callable[[Collection[str]], str | None]]]] = {
    "aten::index_put_": (3, "accumulate", _ACCUMULATE),
    "aten::_index_put_impl_": (3, "accumulate", _ACCUMULATE),
    "aten::cudnn_batch_norm": (5, "training", _TRAINING),
    "aten::miopen_batch_norm": (5, "training", _TRAINING),
    "aten::native_batch_norm": (5, "training", _TRAINING),
    "aten::native_layer_norm_backward": (7, "output mask", _layer_norm_mask),
    "aten::cudnn_convolution_backward": (10, "output mask", _library_mask),
    "aten::convolution_backward": (10, "output mask", _convolution_mask),
    "aten::_scaled_dot_product_flash_attention": (4, "causal flag", _flash_causal),
    "aten::_flash_attention_forward": (8, "causal flag", _flash_causal),
    "flash_attn::_flash_attn_forward": (5, "causal flag", _flash_causal),
    "flash_attn::_flash_attn_backward": (11, "causal flag", _flash_causal),
    "FlashAttnFunc": (5, "causal flag", _flash_causal),
}


def spell_scalar(op: Op, names: Collection[str]) -> tuple[Op, str] | None:
    """``op`` with the scalar that the names of kernels and ops below it spell, and what it is.

    Only a scalar that is not recorded is filled in.
    """
    known = _SPELLED.get(op.name)
    if known is None or (op.arg(known[0]) not in {"", None}):
        return None
    index, what, spelled = known
    text = spelled(names)
    if text is None:
        return None
    args = [*op.args, *("",) * (index + 1 - len(op.args))]
    args[index] = text
    return replace(op, args=tuple(args)), what


def has_spelled_scalar(name: str) -> bool:
    """Whether names below a call of this op may spell one of its scalars."""
    return name in _SPELLED


_JOINS: Final = {"aten::cat": 1, "aten::_cat": 1, "aten::stack": 1}
_SPLITS = re.compile(r"^(?:Split|SplitWithSizes|UnsafeSplit|Chunk|Unbind)Backward\d*$")


def from_enclosing(name: str, outer: Op, *, same_family: bool) -> Op | None:
    """The call ``name`` with the arguments of the call around it, where that has the same or all of them.

    A gradient of a split is handed all the parts that it joins; a wrapper of the same family (a Python autograd
    function round a library's op) hands its leading arguments on.
    """
    if name in _JOINS:
        parts = tuple(arg for arg in outer.args if isinstance(arg, Tensor))
        return Op(name=name, args=(parts, "")) if _SPLITS.match(outer.name) and parts else None
    if not same_family or not outer.tensors():
        return None
    leading = outer.args[:6] if outer.name.startswith("FlashAttn") else outer.args  # beyond, the two differ
    return Op(name=name, args=leading)


def from_forward(name: str, forward: Op, grad: Tensor | None) -> Op | None:
    """The backward call ``name`` of a forward call, given the gradient that reaches it if that is recorded."""
    if _TABLE_UPDATE.match(name):
        return None if grad is None else Op(name=name, args=(grad, *forward.args))
    rule = _BACKWARD.get(name)
    return rule(name, forward, grad) if rule else None


_TABLE_UPDATE = re.compile(r"^torch::autograd::CppNode<.*SplitLookupFunction")


def _products(name: str, forward: Op, _grad: Tensor | None) -> Op | None:
    """Either product of a matrix product's backward pass touches the three matrices of the forward one.

    dA = dC B' and dB = A' dC: each does as many multiply-adds as A B and moves as many bytes.
    """
    matrices = [arg for arg in forward.args if isinstance(arg, Tensor) and len(arg.shape) >= 2]
    rank = 2 if name == "aten::mm" else 3
    if len(matrices) < 2 or any(len(matrix.shape) != rank for matrix in matrices[-2:]):
        return None
    return Op(name=name, args=tuple(matrices[-2:]))


def _convolution(name: str, forward: Op, grad: Tensor | None) -> Op | None:
    x, w = forward.tensor_or_none(0), forward.tensor_or_none(1)
    if grad is None or x is None or w is None:
        return None
    if forward.name in {"aten::convolution", "aten::_convolution"}:
        scalars = forward.args[3:9]
    elif forward.name.startswith("aten::conv_transpose"):
        scalars = ("", "", "", "True", "", "")
    else:
        scalars = ("", "", "", "False", "", "")
    return Op(name=name, args=(grad, x, w, "", *scalars, ""))


def _like_input(name: str, forward: Op, grad: Tensor | None) -> Op | None:
    """(gradient, input, …): an elementwise function's gradient is of the input's shape."""
    x = forward.tensor_or_none(0)
    return None if x is None else Op(name=name, args=(grad or replace(x, strides=None), x, *forward.args[1:]))


def _softmax(name: str, forward: Op, grad: Tensor | None) -> Op | None:
    """(gradient, result, axis, dtype): the result has the input's shape."""
    x = forward.tensor_or_none(0)
    result = None if x is None else grad or replace(x, strides=None)
    return None if result is None else Op(name=name, args=(result, result, *forward.args[1:2], ""))


def _layer_norm(name: str, forward: Op, grad: Tensor | None) -> Op | None:
    x = forward.tensor_or_none(0)
    if x is None:
        return None
    return Op(name=name, args=(grad or x, x, forward.arg(1), None, None, forward.arg(2), forward.arg(3), ""))


def _flash(name: str, forward: Op, grad: Tensor | None) -> Op | None:
    """(dO, Q, K, V, O, log-sum-exp, …) with the causal flag where the forward call holds it."""
    q, k, v = (forward.tensor_or_none(i) for i in range(3))
    if q is None or k is None or v is None:
        return None
    out = replace(q, shape=(*q.shape[:-1], v.shape[-1]), strides=None)
    aten = name.startswith("aten::")
    blanks = ("",) * 5
    causal = forward.arg(4 if aten else 5)
    return Op(name=name, args=(grad or out, q, k, v, out, None, *blanks, causal))


_BACKWARD: Final[dict[str, Callable[[str, Op, Tensor | None], Op | None]]] = {
    "aten::mm": _products,
    "aten::bmm": _products,
    "aten::convolution_backward": _convolution,
    "aten::native_layer_norm_backward": _layer_norm,
    "aten::_softmax_backward_data": _softmax,
    "aten::_log_softmax_backward_data": _softmax,
    "aten::_scaled_dot_product_flash_attention_backward": _flash,
    "flash_attn::_flash_attn_backward": _flash,
    **{
        f"aten::{name}_backward": _like_input
        for name in ("gelu", "silu", "threshold", "hardtanh", "leaky_relu", "elu", "hardswish", "mish", "softplus")
    },
}
