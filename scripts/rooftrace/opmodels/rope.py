"""Rotary position embedding: 3 operations a rotated element (two products, a sum).

Cosines and sines are read once a position.
"""

from __future__ import annotations

from .op import Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, i64, itemsize, require, size
from .registry import Cost, Example, categorise, op_model


@op_model(
    "_C::rotary_embedding",
    "_C::batched_rotary_embedding",
    "vllm::rotary_embedding",
    "sgl_kernel::rotary_embedding",
    category="elementwise",
    examples=(
        Example(
            args=(i64(4), bf16(4, 16), bf16(4, 8), "8", bf16(100, 8), "True"),
            flops=288,
            bytes_read=288,
            bytes_written=192,
            why="3 on each of 64 + 32; reads positions 32, q 128, k 64 and 4 rows of 8*2; writes q and k",
        ),
        Example(
            args=(i64(4), bf16(4, 16), None, "8", bf16(100, 4), "True"),
            flops=96,
            bytes_read=128,
            bytes_written=64,
            why="half of each head is rotated: 3*32; reads positions 32, 32*2 and 4 rows of 4*2; writes 32*2",
        ),
    ),
)
def rotary_in_place(op: Op) -> Cost:
    """(positions, query, key, head size, cos-sin table, …): the table's width is what is rotated of each head."""
    positions, query, table = op.tensor(0), op.tensor(1), op.tensor(4)
    key = op.tensor_or_none(2)
    head, rotated = op.integer(3), table.shape[-1]
    require(0 < rotated <= head)
    elements = (query.numel + (key.numel if key else 0)) * rotated // head
    moved = elements * itemsize(dtype_of(query))
    rows = min(positions.numel * rotated, table.stored) * itemsize(dtype_of(table))
    return Cost(
        flops=3 * elements,
        bytes_read=moved + size(positions) + rows,
        bytes_written=moved,
        precision=dtype_of(query),
    )


@op_model(
    "FusedRoPEFunc",
    "LigerRopeFunction",
    "ApplyRotaryEmb",
    "FusedRoPEFuncBackward",
    category="elementwise",
    examples=(
        Example(
            args=(bf16(4, 1, 2, 8), f32(4, 1, 1, 8)),
            flops=192,
            bytes_read=256,
            bytes_written=128,
            why="3 on each of 64; reads 64*2 and angles 32*4; writes 64*2",
        ),
    ),
)
def rotary(op: Op) -> Cost:
    """(x, angles …): a tensor of the first one's rank and dtype beside it is rotated as well."""
    tensors = [arg for arg in op.args if isinstance(arg, Tensor)]
    x = op.tensor(0)
    rotated = [
        x,
        *(t for t in tensors[1:2] if t.dtype == x.dtype and t.shape[-1:] == x.shape[-1:] and t.numel > x.shape[-1]),
    ]
    return Cost(
        flops=3 * sum(t.numel for t in rotated),
        bytes_read=size(*tensors),
        bytes_written=sum(fresh(t) for t in rotated),
        precision=dtype_of(x),
    )


categorise(
    "elementwise",
    "aiter::rope_cached_positions_2c_fwd_impl", "aiter::fused_qk_rope_cat_and_cache_mla",
    "aiter::fused_qk_rope_concat_and_cache_mla",
    patterns=(r"(?i)(rope|rotary)",),
    module=__name__,
)  # fmt: skip
