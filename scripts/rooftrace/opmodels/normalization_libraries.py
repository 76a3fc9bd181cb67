"""Normalisation ops of other libraries: a row says which arguments are written (o), read (i), both (x).

Operations an element: RMS norm 4, a residual added before 1, quantisation after 2 (scale, round); layer norm 8.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .op import Op, Tensor
from .parts import bf16, by_roles, dtype_of, fresh, itemsize, require, size
from .registry import Cost, Example, categorise, op_model


class Form(NamedTuple):
    """Roles of the arguments, the one whose elements count, operations an element."""

    roles: str
    main: int
    flops: int


_RMS, _ADD_RMS = Form(roles="oii", main=1, flops=4), Form(roles="xxi", main=0, flops=5)
# Schemas: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel, AITER aiter/ops/rmsnorm.py.
_FORMS: dict[str, Form] = {
    "_C::rms_norm": _RMS,
    "_C::fused_add_rms_norm": _ADD_RMS,
    "_C::poly_norm": Form(roles="oiii", main=1, flops=12),
    "_C::rms_norm_static_fp8_quant": Form(roles="oiii", main=1, flops=6),
    "_C::fused_add_rms_norm_static_fp8_quant": Form(roles="oixii", main=1, flops=7),
    "_C::rms_norm_dynamic_per_token_quant": Form(roles="oiio--x", main=1, flops=7),
    "_C::rms_norm_per_block_quant": Form(roles="oiio--x", main=1, flops=7),
    "sgl_kernel::rmsnorm": _RMS,
    "sgl_kernel::gemma_rmsnorm": _RMS,
    "sgl_kernel::fused_add_rmsnorm": _ADD_RMS,
    "sgl_kernel::gemma_fused_add_rmsnorm": _ADD_RMS,
    "flashinfer::rmsnorm": _RMS,
    "flashinfer::fused_add_rmsnorm": _ADD_RMS,
    "aiter::rms_norm_cu": _RMS,
    "aiter::fused_add_rms_norm_cu": _ADD_RMS,
    "aiter::rmsnorm2d_fwd_with_add_ck": Form(roles="oiioi", main=1, flops=5),
    "aiter::rmsnorm2d_fwd_with_add": Form(roles="oiioi", main=1, flops=5),
    "aiter::rmsnorm2d_fwd_with_dynamicquant_ck": Form(roles="oioi", main=1, flops=7),
    "aiter::rmsnorm2d_fwd_with_dynamicquant": Form(roles="oioi", main=1, flops=7),
    "aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck": Form(roles="oiiooi", main=1, flops=8),
    "aiter::rmsnorm2d_fwd_with_add_dynamicquant": Form(roles="oiiooi", main=1, flops=8),
    "aiter::add_rmsnorm": Form(roles="oiioi", main=1, flops=5),
    "aiter::rmsnorm_quant": Form(roles="oioi", main=1, flops=7),
    "aiter::layernorm2d_fwd_with_add": Form(roles="oiioii", main=1, flops=9),
}


def _register(name: str, form: Form) -> None:
    full, row = bf16(4, 5), bf16(5)
    weights = 2 if form.flops == 9 or name == "_C::poly_norm" else 1
    args: list[Tensor | None] = [None if role == "-" else full for role in form.roles]
    inputs = [i for i, role in enumerate(form.roles) if role == "i"]
    for i in inputs[-weights:]:
        args[i] = row
    read = 40 * sum(role in "ix" for role in form.roles) - 30 * weights
    written = 40 * sum(role in "ox" for role in form.roles)
    example = Example(
        args=tuple(args),
        flops=20 * form.flops,
        bytes_read=read,
        bytes_written=written,
        why=f"{form.flops} on each of 20; every full operand is 20*2 each way, the last {weights} read a row of 5*2",
    )

    @op_model(name, category="normalization", examples=(example,))
    def normalisation(op: Op) -> Cost:
        """Cost by the roles of the arguments."""
        return by_roles(op, form.roles, main=form.main, flops_per_element=form.flops)


for _name, _form in _FORMS.items():
    _register(_name, _form)


@op_model(
    "aiter::rmsnorm", "aiter::rms_norm", "aiter::rmsnorm2d_fwd", "aiter::rmsnorm2d_fwd_ck", "aiter::rms_norm_",
    "LigerRMSNormFunction", "FusedRMSNormAffineFunction", "FusedRMSNormAffineMixedDtypesFunction", "RMSNormFunction",
    "fb::rms_norm", "vllm::rocm_aiter_rms_norm", "quack::_rmsnorm_fwd", "npu::npu_rms_norm",
    category="normalization",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(5)),
            flops=80,
            bytes_read=50,
            bytes_written=40,
            why="4 on each of 20; reads 20*2 + 5*2; writes 20*2",
        ),
    ),
)  # fmt: skip
def rms_norm(op: Op) -> Cost:
    """(x, weight) to a new tensor."""
    x, weight = op.tensor(0), op.tensor_or_none(1)
    require(weight is None or (bool(x.shape) and weight.numel == x.shape[-1]))
    return Cost(
        flops=(3 + (weight is not None)) * x.numel,
        bytes_read=size(x, weight),
        bytes_written=fresh(x),
        precision=dtype_of(x),
    )


@op_model(
    "vllm::rocm_aiter_rmsnorm2d_fwd_with_add", "vllm::rocm_aiter_rmsnorm2d_fwd_with_add_",
    "vllm::rocm_aiter_triton_add_rmsnorm_pad", "aiter::fused_add_rmsnorm_pad_",
    category="normalization",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(5), "1e-05", bf16(4, 5)),
            flops=100,
            bytes_read=90,
            bytes_written=80,
            why="add and 4 on each of 20; reads x, residual of 40, weight 10; writes result and residual",
        ),
    ),
)  # fmt: skip
def add_rms_norm(op: Op) -> Cost:
    """A full-size residual among the arguments is added and handed on."""
    full = [arg for arg in op.args if isinstance(arg, Tensor) and arg.shape == op.tensor(0).shape]
    rows = [arg for arg in op.args if isinstance(arg, Tensor) and arg.shape == op.tensor(0).shape[-1:]]
    require(len(full) >= 2)
    return Cost(
        flops=5 * full[0].numel,
        bytes_read=size(*full[:2], *rows[:1]),
        bytes_written=2 * fresh(full[0]),
        precision=dtype_of(full[0]),
    )


@op_model(
    "vllm::rocm_aiter_rmsnorm_fp8_group_quant", "vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant",
    category="normalization",
    examples=(
        Example(
            only="vllm::rocm_aiter_rmsnorm_fp8_group_quant",
            args=(bf16(4, 128), bf16(128)),
            flops=3584,
            bytes_read=1280,
            bytes_written=528,
            why="4 + 3 on each of 512; reads 512*2 + 128*2; writes 512*1 and 4 group scales of 4",
        ),
        Example(
            only="vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant",
            args=(bf16(4, 128), bf16(4, 128), bf16(128)),
            flops=4096,
            bytes_read=2304,
            bytes_written=1552,
            why="4 + 3 + 1 on each of 512; reads 2*1024 + 256; writes 512, 4 scales of 4, the residual 1024",
        ),
    ),
)  # fmt: skip
def rms_norm_group_quant(op: Op) -> Cost:
    """RMS norm to 8-bit values with a float32 scale for each group of 128."""
    x = op.tensor(0)
    added = op.name.endswith("with_add_fp8_group_quant")
    weight = op.tensor(2 if added else 1)
    groups = math.prod(x.shape[:-1]) * -(-x.shape[-1] // 128)
    return Cost(
        flops=(8 if added else 7) * x.numel,
        bytes_read=size(x, op.tensor(1) if added else None, weight),
        bytes_written=x.numel + 4 * groups + (fresh(x) if added else 0),
        precision=dtype_of(x),
    )


@op_model(
    "FusedLayerNormAffineFunction", "FusedLayerNormAffineMixedDtypesFunction", "LigerLayerNormFunction",
    "FastLayerNormFN", "aiter::layernorm2d_fwd",
    category="normalization",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(5), bf16(5)),
            flops=160,
            bytes_read=60,
            bytes_written=72,
            why="8 on each of 20; reads 20*2 and two of 5*2; writes 20*2 and mean and rstd of 4 rows",
        ),
    ),
)  # fmt: skip
def layer_norm(op: Op) -> Cost:
    """(x, weight, bias): the weight's shape is the normalised one; mean and rstd are float32."""
    x, weight, bias = op.tensor(0), op.tensor(1), op.tensor(2)
    require(weight.numel > 0 and x.shape[len(x.shape) - len(weight.shape) :] == weight.shape)
    rows = x.numel // weight.numel
    return Cost(
        flops=8 * x.numel,
        bytes_read=size(x, weight, bias),
        bytes_written=fresh(x) + 8 * rows,
        precision=dtype_of(x),
    )


@op_model(
    "aiter::_groupnorm_run",
    category="normalization",
    examples=(
        Example(
            args=(bf16(2, 6, 4), "3", bf16(6), bf16(6), "1e-06"),
            flops=384,
            bytes_read=120,
            bytes_written=96,
            why="8 on each of 48; reads 48*2 and two of 6*2; writes 48*2",
        ),
    ),
)
def group_norm(op: Op) -> Cost:
    """(x, groups, weight, bias, eps), statistics not kept."""
    x, weight, bias = op.tensor(0), op.tensor(2), op.tensor(3)
    return Cost(flops=8 * x.numel, bytes_read=size(x, weight, bias), bytes_written=fresh(x), precision=dtype_of(x))


@op_model(
    "primus::fused_ln_modulate",
    category="normalization",
    examples=(
        Example(
            args=(bf16(2, 4, 5), bf16(2, 5), bf16(2, 5)),
            flops=320,
            bytes_read=120,
            bytes_written=144,
            why="6 + scale and shift 2 on each of 40; reads 80 + 2*20; writes 80 and mean and rstd of 8 rows",
        ),
    ),
)
def layer_norm_modulate(op: Op) -> Cost:
    """``norm(x) * (1 + scale) + shift`` without affine weights."""
    x, first, second = op.tensor(0), op.tensor(1), op.tensor(2)
    require(bool(x.shape) and x.shape[-1] > 0)
    rows = x.numel // x.shape[-1]
    statistics = 2 * rows * itemsize("float32")
    return Cost(
        flops=8 * x.numel,
        bytes_read=size(x, first, second),
        bytes_written=fresh(x) + statistics,
        precision=dtype_of(x),
    )


categorise(
    "normalization",
    "FusedLayerNormAffineFunctionBackward", "FusedRMSNormAffineFunctionBackward", "LigerRMSNormFunctionBackward",
    "FusedLayerNormAffineMixedDtypesFunctionBackward", "primus::fused_ln_modulate_backward",
    "aiter::_fuse_rmsnorm_fp4_quant", "sglang_profiler::fused_mxfp4_quant_fused_rms_mxfp4_quant",
    "mamba_ssm::layer_norm_gated",
    patterns=(r"(?i)(rms|layer|batch|group|instance)_?norm",),
    module=__name__,
)  # fmt: skip
