"""Kernels that Inductor generates: bytes from the tensors handed over, operations from the ops the name lists.

``triton_<poi|red|per>_fused_<ops>_<n>``: the name holds each fused op once, in alphabetical order, so operations are a
lower bound. The last scalars are the sizes of the iteration space. Which tensors are written is not recorded: the last
one is, unless it is too small to be; then the first is updated in place.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from .op import NO_SHAPES, Op, Tensor
from .parts import bf16, dtype_of, require, size
from .registry import Cost, Example, categorise, op_model

LOWER_BOUND: Final = "lower bound: operations from the kernel's name, a tensor updated in place counted once"

# Operations an element of ops as Inductor names them; 0 for those that move or that another kernel computes. A matrix
# product in the name stands for its bias.
_BY_OPERATIONS: Final[tuple[tuple[int, str], ...]] = (
    (
        1,
        "add sub rsub mul div pow neg abs relu maximum minimum clamp clamp_min clamp_max where eq ne lt le gt ge sum "
        "mean amax amin max min any all prod sqrt rsqrt exp exp2 log log1p log2 expm1 sin cos tan tanh erf reciprocal "
        "floor ceil round sign trunc remainder fmod logical_and logical_or logical_not bitwise_and bitwise_or "
        "bitwise_not bitwise_xor isnan isinf masked_fill threshold_backward cumsum argmax argmin square copysign addmm "
        "addbmm baddbmm floor_divide true_divide atan2 acos asin atan sinh cosh index_add scatter_add index_put "
        "embedding_dense_backward",
    ),
    (2, "native_dropout native_dropout_backward hardtanh leaky_relu norm linalg_vector_norm"),
    (3, "addcmul addcdiv lerp tanh_backward sigmoid_backward softplus mse_loss smooth_l1_loss"),
    (4, "sigmoid silu hardsigmoid elu var std var_mean std_mean logsumexp hardswish mish rms_norm _fused_rms_norm"),
    (4, "_softmax_backward_data _log_softmax_backward_data _native_batch_norm_legit_no_training"),
    (5, "_softmax _log_softmax softmax log_softmax gelu _safe_softmax"),
    (8, "silu_backward native_layer_norm layer_norm native_group_norm native_batch_norm _native_batch_norm_legit"),
    (8, "_native_batch_norm_legit_functional"),
    (9, "_fused_rms_norm_backward"),
    (10, "gelu_backward"),
    (13, "native_layer_norm_backward native_batch_norm_backward native_group_norm_backward"),
    (
        0,
        "view _unsafe_view clone slice transpose split split_with_sizes unsqueeze squeeze cat permute expand select "
        "_to_copy copy copy_ t mm bmm convolution convolution_backward arange full full_like zeros zeros_like ones "
        "ones_like index select_scatter slice_scatter slice_backward select_backward embedding gather scatter stack "
        "unbind repeat reshape _reshape_alias as_strided detach alias constant_pad_nd fill lift_fresh_copy iota "
        "new_zeros new_ones new_full empty convert_element_type prims tril triu flip roll view_as_complex view_as_real "
        "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention _scaled_mm scalar_tensor "
        "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_backward avg_pool2d bernoulli rand "
        "_scaled_dot_product_efficient_attention_backward max_pool2d_with_indices upsample_nearest2d _unsafe_index "
        "_unsafe_index_put randn _adaptive_avg_pool2d unfold diagonal chunk getitem all_gather_into_tensor wait_tensor "
        "nll_loss_forward nll_loss_backward sort topk inductor_random inductor_seeds inductor_lookup_seed",
    ),
)
_OPERATIONS: Final = {name: count for count, names in _BY_OPERATIONS for name in names.split()}
_PARTIAL_READS: Final = frozenset({"slice", "select", "index", "embedding", "gather", "_unsafe_index"})


@lru_cache(maxsize=4096)
def decode(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ops that a generated kernel's name lists, and the words of it that are none; longest op first."""
    words = name.split("_fused_", 1)[-1].split("_")
    if words and words[-1].isdigit():
        words = words[:-1]
    ops: list[str] = []
    unknown: list[str] = []
    start = 0
    while start < len(words):
        for end in range(len(words), start, -1):
            candidate = "_".join(words[start:end])
            if candidate in _OPERATIONS:
                ops.append(candidate)
                start = end
                break
        else:
            if words[start]:
                unknown.append(words[start])
            start += 1
    return tuple(ops), tuple(unknown)


def _iteration_space(op: Op) -> int:
    """Elements that the kernel iterates over; sizes of dynamic shapes among the scalars make the product too large."""
    largest = max(tensor.numel for tensor in op.tensors())
    trailing: list[int] = []
    for arg in reversed(op.args):
        if not isinstance(arg, str) or not arg.isdigit():
            break
        trailing.append(int(arg))
    return min(math.prod(trailing), largest) if trailing else largest


@op_model(
    category="normalization",
    patterns=(
        r"^triton_(poi|red|per|mix)_fused_\w*(layer_norm|batch_norm|group_norm|rms_norm|mean_mul_pow_rsqrt|pow_rsqrt)",
    ),
    examples=(
        Example(
            args=(bf16(4, 8), bf16(8), bf16(4, 8), "4", "8"),
            flops=256,
            bytes_read=80,
            bytes_written=64,
            why="triton_red_fused_native_layer_norm_0: 8 on each of 4*8; reads 32*2 + 8*2; writes the last, 32*2",
        ),
    ),
)
def generated_norm(op: Op) -> Cost:
    """A generated normalisation: its name holds a norm, or the parts of an RMS norm."""
    return _generated(op)


@op_model(
    category="reduction",
    patterns=(r"^triton_(red|per|mix|split_scan)_fused_",),
    examples=(
        Example(
            args=(bf16(4, 8), bf16(4), "4", "8"),
            flops=32,
            bytes_read=64,
            bytes_written=8,
            why="triton_red_fused_sum_0: one add on each of 4*8; reads 32*2; writes the last, 4*2",
        ),
    ),
)
def generated_reduction(op: Op) -> Cost:
    """A generated reduction."""
    return _generated(op)


@op_model(
    category="elementwise",
    patterns=(r"^triton_(poi|for)_fused_",),
    examples=(
        Example(
            args=(bf16(4, 8), bf16(8), "32"),
            flops=160,
            bytes_read=80,
            bytes_written=64,
            why="triton_poi_fused_mul_silu_2: 1 + 4 on each of 32; the last has 8 of 32 elements, so the first is "
            "updated: reads 64 + 16, writes 64",
        ),
    ),
)
def generated_pointwise(op: Op) -> Cost:
    """A generated elementwise kernel."""
    return _generated(op)


def _generated(op: Op) -> Cost:
    tensors = op.tensors()
    require(bool(tensors), NO_SHAPES)
    elements = _iteration_space(op)
    ops, unknown = decode(op.name)
    partial = bool(_PARTIAL_READS & set(ops))
    last = tensors[-1]
    in_place = len(tensors) == 1 or (op.name.startswith("triton_poi") and last.numel < elements)
    output = tensors[0] if in_place else last
    inputs = tensors if in_place else tensors[:-1]
    notes = [LOWER_BOUND]
    if unknown:
        notes.append(f"not decoded: {' '.join(unknown)}")
    return Cost(
        flops=elements * sum(_OPERATIONS[name] for name in ops),
        bytes_read=sum(_read(tensor, elements, partial=partial) for tensor in inputs),
        bytes_written=size(output),
        precision=dtype_of(tensors[0]),
        notes=tuple(notes),
    )


def _read(tensor: Tensor, elements: int, *, partial: bool) -> int:
    """Bytes of an input; a kernel that slices or looks up reads at most one element for each it iterates over."""
    whole = size(tensor)
    return whole * elements // tensor.stored if partial and tensor.stored > elements else whole


@op_model(
    category="gemm",
    patterns=(r"^triton_tem_fused_\w*(mm|linear)",),
    examples=(
        Example(
            args=(bf16(4, 5), bf16(5, 6), bf16(4, 6)),
            flops=240,
            bytes_read=100,
            bytes_written=48,
            why="2*4*6*5; reads (20 + 30)*2; writes 24*2",
        ),
    ),
)
def generated_gemm(op: Op) -> Cost:
    """A matrix product from a template: two operands, then the result last, whose sizes must fit."""
    tensors = op.tensors()
    require(len(tensors) >= 3, NO_SHAPES)
    a, b, out = tensors[0], tensors[1], tensors[-1]
    require(len(a.shape) == len(b.shape) and len(a.shape) in {2, 3})
    (m, k), (k2, n) = a.shape[-2:], b.shape[-2:]
    require(k == k2 and out.numel == math.prod(a.shape[:-2]) * m * n)
    return Cost(
        flops=2 * out.numel * k,
        bytes_read=size(*tensors[:-1]),
        bytes_written=size(out),
        unit="matrix",
        precision=dtype_of(a),
    )


categorise("attention", patterns=(r"^triton_tem_fused_\w*(flex_attention|sdpa|attention)",), module=__name__)
categorise("triton", patterns=(r"^triton_",), module=__name__)
