"""Copies, casts, fills and re-layouts: bytes only. Sources count at the size they have in memory."""

from __future__ import annotations

import math

from .op import NO_LIST_DTYPE, NO_SHAPES, Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, i64, itemsize, list_size, require, size
from .registry import Cost, Example, categorise, op_model


def moved(read: int, written: int, dtype: str | None) -> Cost:
    """Cost of moving bytes."""
    return Cost(flops=0, bytes_read=read, bytes_written=written, precision=dtype)


@op_model(
    "aten::copy_",
    category="memory",
    examples=(
        Example(
            args=(bf16(4, 5), f32(4, 5), "False"),
            bytes_read=80,
            bytes_written=40,
            why="slot 0 is the destination: writes 20*2; slot 1 the source: reads 20*4",
        ),
        Example(
            args=(f32(4, 5), f32(5), "False"),
            bytes_read=20,
            bytes_written=80,
            why="a broadcast source is read once at its own size: 5*4",
        ),
    ),
)
def copy_(op: Op) -> Cost:
    """Copy or cast into the first argument."""
    destination, source = op.tensor(0), op.tensor(1)
    return moved(size(source), size(destination), destination.dtype)


@op_model(
    "aten::clone", "aten::contiguous", "aten::_reshape_copy", "aten::view_copy", "aten::permute_copy",
    "aten::transpose_copy", "aten::expand_copy", "aten::t_copy", "aten::squeeze_copy", "aten::unsqueeze_copy",
    "aten::roll", "aten::flip", "aten::rot90", "aten::tril", "aten::triu", "aten::tril_", "aten::triu_",
    "aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::channel_shuffle", "aten::_conj_copy", "aten::alias_copy",
    "aten::_nested_tensor_from_mask", "aten::lift_fresh_copy", "aten::pin_memory", "aten::_pin_memory",
    "torch::distributed::reducer::mul_out", "fbgemm::permute_pooled_embs", "fbgemm::permute_pooled_embs_auto_grad",
    "fbgemm::permute_pooled_embs_split", "fbgemm::permute_pooled_embs_auto_grad_split",
    "fbgemm::recat_embedding_grad_output_mixed_D_batch",
    category="memory",
    patterns=(r"^torch::autograd::CppNode<.*PermutePooledEmbsFunction",),
    examples=(
        Example(
            args=(f32(4, 5), None),
            bytes_read=80,
            bytes_written=80,
            why="reads 20*4, writes 20*4",
        ),
    ),
)  # fmt: skip
def same_size(op: Op) -> Cost:
    """A dense result of the first tensor's shape and dtype."""
    source = op.tensor(0)
    return moved(size(source), fresh(source), source.dtype)


def _register_casts() -> None:
    example = Example(
        args=(f32(4, 5), "15", None),
        bytes_read=80,
        bytes_written=40,
        why="float32 to bfloat16 (ScalarType 15): reads 20*4, writes 20*2",
    )

    @op_model("aten::_to_copy", "aten::to", category="memory", claims_subtree=False, examples=(example,))
    def cast(op: Op) -> Cost:
        """A copy in another dtype, device or layout; the copy below it has the time."""
        source = op.tensor(0)
        dtype = op.dtype(1) or dtype_of(source)
        return moved(size(source), source.numel * itemsize(dtype), dtype)


_register_casts()


@op_model(
    "aten::fill_", "aten::zero_", "aten::uniform_", "aten::normal_", "aten::bernoulli_", "aten::random_",
    "aten::exponential_",
    "aten::log_normal_", "aten::cauchy_", "aten::geometric_", "aten::eye_",
    category="memory",
    examples=(Example(args=(f32(4, 5), None), bytes_written=80, why="writes 20*4; random bits are no FLOPs"),),
)  # fmt: skip
def fill(op: Op) -> Cost:
    """Writes every element of the first tensor with a value or random numbers."""
    target = op.tensor(0)
    return moved(0, size(target), target.dtype)


@op_model(
    "aten::ones_like", "aten::zeros_like", "aten::full_like", "aten::rand_like", "aten::randn_like",
    category="memory",
    claims_subtree=False,
    examples=(
        Example(args=(f32(4, 5), None, None), bytes_written=80, why="writes 20*4; what fills it lies below"),
    ),
)  # fmt: skip
def new_like(op: Op) -> Cost:
    """A new tensor like the first one, in the dtype that an argument names."""
    target = op.tensor(0)
    dtype = op.dtype(2 if op.name.startswith("aten::full") else 1) or dtype_of(target)
    return moved(0, target.numel * itemsize(dtype), dtype)


@op_model(
    "aten::zeros", "aten::ones", "aten::rand", "aten::randn", "aten::eye", "aten::full", "aten::empty",
    category="memory",
    claims_subtree=False,
    examples=(
        Example(
            only="aten::zeros",
            args=("[4, 5]", "6", None, None, None),
            bytes_written=80,
            why="20 elements of float32 (ScalarType 6)",
        ),
        *(
            Example(
                only=f"aten::{name}",
                args=("[4, 5]", *middle, "15", None, None, None),
                bytes_written=40,
                why="20 elements of bfloat16 (ScalarType 15)",
            )
            for name, middle in (
                ("ones", ()), ("rand", ()), ("randn", ()), ("full", ("1.",)), ("eye", ()), ("empty", ()),
            )
        ),
    ),
)  # fmt: skip
def new_tensor(op: Op) -> Cost:
    """A new tensor of a size given as numbers; what fills it lies below."""
    dtype = op.dtype(2 if op.name == "aten::full" else 1) or "float32"
    return moved(0, math.prod(op.integers(0)) * itemsize(dtype), dtype)


@op_model(
    "aten::arange",
    "aten::range",
    "aten::linspace",
    category="memory",
    examples=(
        Example(
            args=("0", "10", "2", "4", None, None, None),
            only="aten::arange",
            bytes_written=40,
            why="0, 2, … 8: five int64",
        ),
        Example(args=("10", None, None, None, "False"), only="aten::arange", bytes_written=80, why="ten int64"),
        Example(
            args=("0", "9", "1", f32(10)),
            only="aten::range",
            bytes_written=40,
            why="the output has ten float32",
        ),
        Example(
            args=("0", "1", "10", None, None, None, "False"), only="aten::linspace", bytes_written=40, why="ten float32"
        ),
    ),
)
def arange(op: Op) -> Cost:
    """A ramp; arange has 1, 2 or 3 bounds before four options, or an output tensor behind them."""
    outputs = op.tensors()
    if outputs and outputs[-1].numel:
        return moved(0, fresh(outputs[-1]), outputs[-1].dtype)
    if op.name == "aten::linspace":
        dtype = op.dtype(3) or "float32"
        return moved(0, op.integer(2) * itemsize(dtype), dtype)
    require(op.name == "aten::arange")
    count = {5: 1, 6: 2, 7: 3, 2: 1, 4: 3}.get(len(op.args), 0)
    numbers = [op.number(i) for i in range(count)]
    require(bool(numbers))
    start, end = (0.0, numbers[0]) if count == 1 else (numbers[0], numbers[1])
    step = numbers[2] if count == 3 else 1.0
    require(step != 0)
    whole = all("." not in (op.text(i) or "") for i in range(len(numbers)))
    named = op.dtype(len(numbers)) if len(op.args) >= 5 else outputs[-1].dtype if outputs else None
    dtype = named or ("int64" if whole else "float32")
    return moved(0, max(math.ceil((end - start) / step), 0) * itemsize(dtype), dtype)


@op_model(
    "aten::cat", "aten::concat", "aten::stack", "aten::_chunk_cat", "aten::hstack",
    "aten::vstack", "aten::block_diag",
    category="memory",
    examples=(
        Example(
            args=((f32(4, 2), f32(4, 3)), "1"),
            bytes_read=80,
            bytes_written=80,
            why="reads (8 + 12)*4, writes the same",
        ),
        Example(
            args=((Tensor(shape=(4, 2), dtype=None),), "1"),
            unmodelled=NO_LIST_DTYPE,
            why="profilers do not record the element types of lists",
        ),
    ),
)  # fmt: skip
def cat(op: Op) -> Cost:
    """Tensors one after another; an output tensor, where there is one, gives the dtype.

    Every element of the result is one of an operand, so the result's shape alone gives the bytes.
    """
    parts = () if op.arg(0) == "" else op.tensor_list(0)
    if not parts and op.output is not None:
        return moved(fresh(op.output), fresh(op.output), op.output.dtype)
    require(bool(parts), NO_SHAPES)
    outs = [arg for arg in op.args[1:] if isinstance(arg, Tensor)]
    if outs and outs[-1].dtype is not None:
        width = itemsize(outs[-1].dtype)
        read = sum(part.stored * itemsize(part.dtype or outs[-1].dtype) for part in parts)
        return moved(read, sum(part.numel for part in parts) * width, outs[-1].dtype)
    read = list_size(parts)
    return moved(read, sum(fresh(part) for part in parts), parts[0].dtype)


@op_model(
    "aten::split_with_sizes_copy", "aten::split_copy", "aten::unbind_copy", "aten::unfold_copy",
    "fsdp::split_with_sizes_copy",
    category="memory",
    examples=(Example(args=(f32(4, 5), "[2, 2]"), bytes_read=80, bytes_written=80, why="reads and writes 20*4"),),
)  # fmt: skip
def split_copy(op: Op) -> Cost:
    """Parts of a tensor into tensors of their own."""
    source = op.tensor(0)
    return moved(size(source), fresh(source), source.dtype)


@op_model(
    "fsdp::all_gather_copy_in", "fsdp::chunk_cat",
    category="memory",
    examples=(
        Example(args=((f32(4), f32(6)),), bytes_read=40, bytes_written=40, why="packs 10 elements: 10*4 each way"),
    ),
)  # fmt: skip
def pack(op: Op) -> Cost:
    """A tensor list packed into one buffer."""
    lists = [arg for arg in op.args if isinstance(arg, tuple) and arg]
    require(bool(lists), NO_SHAPES)
    total = list_size(lists[0])
    return moved(total, total, lists[0][0].dtype)


@op_model(
    "aten::constant_pad_nd", "aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d",
    "aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d", "aten::_pad_circular",
    category="memory",
    examples=(
        Example(
            args=(f32(4, 5), "[1, 2]", "0."),
            bytes_read=80,
            bytes_written=128,
            why="the last axis grows by 3: reads 20*4, writes 4*8*4",
        ),
    ),
)  # fmt: skip
def pad(op: Op) -> Cost:
    """Padding: pairs of sizes for the axes, the last axis first."""
    source = op.tensor(0)
    amounts = op.integers(1)
    require(len(amounts) % 2 == 0 and len(amounts) // 2 <= len(source.shape))
    shape = list(source.shape)
    for axis, (before, after) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        shape[-1 - axis] += before + after
    require(all(n >= 0 for n in shape))
    return moved(size(source), math.prod(shape) * itemsize(dtype_of(source)), source.dtype)


@op_model(
    "aten::repeat",
    category="memory",
    claims_subtree=False,
    examples=(
        Example(args=(f32(4, 5), "[2, 1, 1]"), bytes_read=80, bytes_written=160, why="writes two copies of 20*4"),
    ),
)
def repeat(op: Op) -> Cost:
    """Copies along axes."""
    source = op.tensor(0)
    return moved(size(source), fresh(source) * math.prod(op.integers(1)), source.dtype)


@op_model(
    "aten::slice_backward", "aten::select_backward", "aten::diagonal_backward", "aten::unfold_backward",
    category="memory",
    claims_subtree=False,
    examples=(
        Example(
            args=(f32(4, 5), "[4, 10]", "1", "0", "5", "1"),
            bytes_read=80,
            bytes_written=160,
            why="zeros of 4x10 with the gradient copied in: reads 20*4, writes 40*4",
        ),
    ),
)  # fmt: skip
def slice_backward(op: Op) -> Cost:
    """A gradient set into zeros of the input's size; the fill and the copy below it have the time."""
    grad = op.tensor(0)
    return moved(size(grad), math.prod(op.integers(1)) * itemsize(dtype_of(grad)), grad.dtype)


@op_model(
    "aten::item", "aten::_local_scalar_dense", "aten::is_nonzero",
    category="memory",
    examples=(Example(args=(i64(1),), bytes_read=8, bytes_written=8, why="one int64 to the host"),),
)  # fmt: skip
def to_host(op: Op) -> Cost:
    """One element to the host."""
    width = itemsize(dtype_of(op.tensor(0)))
    return moved(width, width, op.tensor(0).dtype)


@op_model(
    "_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache", "aiter::reshape_and_cache",
    "aiter::reshape_and_cache_flash", "sglang::store_cache", "sgl_kernel::set_kv_buffer",
    category="memory",
    examples=(
        Example(
            args=(bf16(4, 2, 8), bf16(4, 2, 8), bf16(100, 16, 2, 8), bf16(100, 16, 2, 8), i64(4)),
            bytes_read=288,
            bytes_written=256,
            why="reads K and V of 64*2 each and four slots of 8; writes as much into the cache",
        ),
    ),
)  # fmt: skip
def write_cache(op: Op) -> Cost:
    """Keys and values (0, 1) into a paged cache (2, 3) at slots (4): the cache is touched where it is written."""
    key, value, cache, slots = op.tensor(0), op.tensor(1), op.tensor(2), op.tensor(4)
    return moved(size(key, value, slots), (key.numel + value.numel) * itemsize(dtype_of(cache)), cache.dtype)


categorise(
    "memory",
    "aten::reshape", "aten::view", "aten::expand", "aten::_unsafe_view", "aten::type_as", "aten::resize_", "aten::pad",
    "aten::flatten_dense_tensors",
    "aten::detach", "aten::scalar_tensor", "aten::tensor_split", "aten::lift_fresh", "aten::flatten", "aten::new_ones",
    "aten::new_full", "aten::new_zeros", "aten::new_empty", "aten::empty_like",
    "aten::cumulative_trapezoid", "aten::repeat_interleave",
    patterns=(r"^(cuda|hip)?Memcpy", r"^(cuda|hip)?Memset"),
    module=__name__,
)  # fmt: skip
