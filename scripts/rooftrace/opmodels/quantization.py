"""Quantise and dequantise: bytes of values and scales.

Operations an element: 2 with a given scale (product, round), 4 where the scale is found first (absolute value, max).
"""

from __future__ import annotations

import math

from .op import Op
from .parts import bf16, by_roles, dtype_of, f32, fp8, fresh, require, size, u8
from .registry import Cost, Example, categorise, op_model

# Output first: roles of the arguments, element count from argument 1, operations an element.
_INTO_FIRST = {
    "_C::static_scaled_fp8_quant": ("oii", 2),
    "_C::dynamic_scaled_fp8_quant": ("oio", 4),
    "_C::dynamic_per_token_scaled_fp8_quant": ("oioi", 4),
    "_C::static_scaled_int8_quant": ("oiii", 2),
    "_C::dynamic_scaled_int8_quant": ("oioo", 4),
    "_C::scaled_fp4_quant": ("oioi", 4),
    "aiter::static_per_tensor_quant": ("oii", 2),
    "aiter::dynamic_per_tensor_quant": ("oio", 4),
    "aiter::dynamic_per_token_scaled_quant": ("oio", 4),
    "aiter::dynamic_per_group_scaled_quant_fp4": ("oio", 4),
}
# Input first: (input, output, scales).
_INPUT_FIRST = {
    "sgl_kernel::sgl_per_token_group_quant_8bit": ("ioo", 4),
    "sgl_kernel::sgl_per_token_group_quant_fp8": ("ioo", 4),
    "sgl_kernel::sgl_per_token_group_quant_int8": ("ioo", 4),
    "sgl_kernel::sgl_per_tensor_quant_fp8": ("ioo", 4),
    "sgl_kernel::sgl_per_token_quant_fp8": ("ioo", 4),
    "_C::per_token_group_fp8_quant": ("ioo", 4),
    "_C::per_token_group_quant_int8": ("ioo", 4),
}


def _register(name: str, roles: str, flops: int, *, input_at: int) -> None:
    args = [bf16(4, 8), fp8(4, 8)] if input_at == 0 else [fp8(4, 8), bf16(4, 8)]
    args += [f32(4, 1)] * (len(roles) - 2)
    scales = roles[2:]
    example = Example(
        args=tuple(args),
        flops=32 * flops,
        bytes_read=64 + 16 * scales.count("i"),
        bytes_written=32 + 16 * scales.count("o"),
        why=f"{flops} on each of 32; reads 32*2, writes 32*1; scales of 4*4 read or written: {scales or 'none'}",
    )

    @op_model(name, category="quantization", examples=(example,))
    def quantise(op: Op) -> Cost:
        """Quantisation into an argument."""
        return by_roles(op, roles, main=input_at, flops_per_element=flops)


for _name, (_roles, _flops) in _INTO_FIRST.items():
    _register(_name, _roles, _flops, input_at=1)
for _name, (_roles, _flops) in _INPUT_FIRST.items():
    _register(_name, _roles, _flops, input_at=0)


@op_model(
    "vllm::triton_per_token_group_quant_fp8",
    "vllm::rocm_aiter_group_fp8_quant",
    "aiter::per_group_quant_fp8",
    category="quantization",
    examples=(
        Example(
            args=(bf16(4, 256), "128"),
            flops=4096,
            bytes_read=2048,
            bytes_written=1056,
            why="4 on each of 1024; reads 1024*2; writes 1024*1 and 4*2 scales of 4",
        ),
    ),
)
def group_quant(op: Op) -> Cost:
    """(x, group size): 8-bit values and a float32 scale a group, 128 unless given."""
    x = op.tensor(0)
    group = op.integer(1, 128)
    require(bool(x.shape) and group > 0)
    groups = math.prod(x.shape[:-1]) * -(-x.shape[-1] // group)
    return Cost(flops=4 * x.numel, bytes_read=size(x), bytes_written=x.numel + 4 * groups, precision=dtype_of(x))


@op_model(
    "primus_turbo::quantize_fp8_tensorwise",
    "primus_turbo_cpp_extension::quantize_fp8_tensorwise",
    category="quantization",
    examples=(
        Example(
            args=(bf16(4, 8),),
            flops=128,
            bytes_read=64,
            bytes_written=36,
            why="4 on each of 32; reads 32*2; writes 32*1 and a scale of 4",
        ),
    ),
)
def tensorwise_quant(op: Op) -> Cost:
    """8-bit values with one scale."""
    x = op.tensor(0)
    return Cost(flops=4 * x.numel, bytes_read=size(x), bytes_written=x.numel + 4, precision=dtype_of(x))


@op_model(
    "aten::quantize_per_tensor",
    "aten::fake_quantize_per_tensor_affine",
    category="quantization",
    examples=(
        Example(
            only="aten::quantize_per_tensor",
            args=(f32(4, 8), "0.1", "0", "12"),
            flops=64,
            bytes_read=128,
            bytes_written=32,
            why="2 on each of 32; reads 32*4; writes 32*1",
        ),
        Example(
            only="aten::fake_quantize_per_tensor_affine",
            args=(f32(4, 8), "0.1", "0", "0", "255"),
            flops=64,
            bytes_read=128,
            bytes_written=128,
            why="stays float32: writes 32*4",
        ),
    ),
)
def quantize_per_tensor(op: Op) -> Cost:
    """(x, scale, zero point, …): 8-bit values, or the input's dtype when faked."""
    x = op.tensor(0)
    written = fresh(x) if "fake" in op.name else x.numel
    return Cost(flops=2 * x.numel, bytes_read=size(x), bytes_written=written, precision=dtype_of(x))


@op_model(
    "fbgemm::FloatToFP8RowwiseQuantized",
    "fbgemm::FP8RowwiseQuantizedToFloat",
    "fbgemm::FloatToFused8BitRowwiseQuantized",
    "fbgemm::Fused8BitRowwiseQuantizedToFloat",
    category="quantization",
    examples=(
        *(
            Example(
                only=f"fbgemm::FloatTo{kind}RowwiseQuantized",
                args=(f32(4, 8), "True"),
                flops=128,
                bytes_read=128,
                bytes_written=64,
                why="4 on each of 32; reads 32*4; writes rows of 8 bytes and 8 of scale and offset",
            )
            for kind in ("FP8", "Fused8Bit")
        ),
        *(
            Example(
                only=f"fbgemm::{kind}RowwiseQuantizedToFloat",
                args=(u8(4, 16), "True"),
                flops=32,
                bytes_read=64,
                bytes_written=128,
                why="one product on each of 4*(16 - 8); reads 64; writes 32*4",
            )
            for kind in ("FP8", "Fused8Bit")
        ),
    ),
)
def rowwise(op: Op) -> Cost:
    """Rows of 8-bit values with 8 bytes of scale and offset at the end, from or to float32."""
    x = op.tensor(0)
    rows, width = x.shape
    if op.name.startswith("fbgemm::FloatTo"):
        return Cost(flops=4 * x.numel, bytes_read=size(x), bytes_written=rows * (width + 8), precision=dtype_of(x))
    require(width >= 8)
    values = rows * (width - 8)
    return Cost(flops=values, bytes_read=size(x), bytes_written=4 * values, precision="float32")


@op_model(
    "fbgemm::FloatToHFP8Quantized",
    "fbgemm::HFP8QuantizedToFloat",
    category="quantization",
    examples=(
        Example(
            only="fbgemm::FloatToHFP8Quantized",
            args=(f32(32), "4", "14", "0.9"),
            flops=64,
            bytes_read=128,
            bytes_written=32,
            why="2 on each of 32; 32*4 in, 32*1 out",
        ),
        Example(
            only="fbgemm::HFP8QuantizedToFloat",
            args=(u8(32), "4", "14"),
            flops=64,
            bytes_read=32,
            bytes_written=128,
            why="2 on each of 32; 32*1 in, 32*4 out",
        ),
    ),
)
def hybrid_fp8(op: Op) -> Cost:
    """float32 from or to one byte an element."""
    x = op.tensor(0)
    written = x.numel if op.name.startswith("fbgemm::FloatTo") else 4 * x.numel
    return Cost(flops=2 * x.numel, bytes_read=size(x), bytes_written=written, precision="float32")


@op_model(
    "bitsandbytes::dequantize_4bit",
    category="quantization",
    examples=(
        Example(
            args=(u8(32, 1), f32(1), "64", "nf4", "[8, 8]", "15"),
            flops=64,
            bytes_read=36,
            bytes_written=128,
            why="one product on each of 64; reads 32 packed bytes and a scale of 4; writes 64*2",
        ),
    ),
)
def dequantize_4bit(op: Op) -> Cost:
    """(packed, scales, block, type, shape, dtype)."""
    packed, scales = op.tensor(0), op.tensor(1)
    n = math.prod(op.integers(4))
    width = 4 if op.dtype(5) == "float32" else 2
    return Cost(flops=n, bytes_read=size(packed, scales), bytes_written=n * width, precision=op.dtype(5) or "bfloat16")


categorise(
    "quantization",
    "aten::quantize_per_channel", "aten::dequantize", "aten::_fused_moving_avg_obs_fq_helper", "aten::int_repr",
    "primus_turbo::quantize_mxfp4_dual", "aiter::fused_dynamic_mx_quant_moe_sort_hip",
    "aiter::fused_dynamic_mxfp4_quant_moe_sort_hip",
    patterns=(r"(?i)(quantize|_quant\b|quant_fp|mxfp4_quant|dequant)",),
    module=__name__,
)  # fmt: skip
