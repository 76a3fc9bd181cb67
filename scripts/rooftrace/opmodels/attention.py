"""Attention: what of the score matrix is computed, and the FLOPs and bytes of a forward and a backward pass.

Forward: 2·pairs·Hq·(d_qk + d_v) per batch, with ``pairs`` the query-key pairs that masks leave. Backward: five
products (scores again, dV, dP, dQ, dK), so 2·pairs·Hq·(3·d_qk + 2·d_v). Softmax is not counted. Bytes: Q, K, V, O and
the log-sum-exp (float32, one a row of scores) once each. Keys and values have their own, possibly fewer, heads.

``is_causal`` has two meanings when queries and keys differ in number: the diagonal starts at the top left (PyTorch's
``scaled_dot_product_attention``) or ends at the bottom right (flash-attention since 2.1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from .op import NO_LENGTHS, NoCostError, Op, Tensor
from .parts import dtype_of, fresh, itemsize, require, size
from .registry import Cost

LOWER_BOUND = "lower bound: sequence lengths unknown, taken as equal"
ESTIMATE = "estimate: sequence lengths unknown, taken as equal"


def attended_pairs(
    nq: int, nk: int, *, left: int | None = None, right: int | None = None, bottom_right: bool = True
) -> int:
    """Query-key pairs inside a window of ``left`` keys before and ``right`` after the diagonal; ``None``: no limit.

    Causal is ``right=0``. The sum over queries of the clamped window ends, in closed form.
    """
    offset = nk - nq if bottom_right else 0
    upper = nq * nk if right is None else _clamped_sum(offset + right + 1, nq, nk)
    lower = 0 if left is None else _clamped_sum(offset - left, nq, nk)
    return max(upper - lower, 0)


def _clamped_sum(first: int, count: int, limit: int) -> int:
    """Sum of ``min(max(first + i, 0), limit)`` for i in 0 … count-1."""
    below = min(max(-first, 0), count)  # terms at 0
    free = min(max(limit - first, 0), count)  # terms below the limit
    inside = max(free - below, 0)
    rising = inside * (first + below) + inside * (inside - 1) // 2
    return rising + (count - free) * limit


class Form(NamedTuple):
    """Where an attention op holds its arguments, and in which layout."""

    q: int = 0
    layout: str = "bhnd"  # or "bnhd"; a 3-D tensor is then [tokens, heads, d]
    causal: int | None = None  # position of the flag
    mask_type: int | None = None  # position of 0 none, 1 causal top left, 2 causal bottom right
    bottom_right: bool = False
    window: tuple[int, int] | None = None  # positions of the window's left and right
    bias: int | None = None
    lse_flag: int | None = None  # position of "return the log-sum-exp"; `None`: always written
    lse: bool = True
    cu: tuple[int, int] | None = None  # positions of cumulative lengths of queries and keys
    max_q: int | None = None
    pages: int | None = None  # position of a page table: lengths are then data


class Sizes(NamedTuple):
    """Sizes of one call: ``batch`` sequences of ``nq`` queries; ``pairs`` per head, over all of the batch."""

    hq: int
    d_qk: int
    d_v: int
    rows: int  # queries over all of the batch
    pairs: int
    notes: tuple[str, ...] = ()


def sizes(op: Op, form: Form, q: Tensor, k: Tensor, v: Tensor) -> Sizes:
    """The sizes of a call, masks and packed sequences taken into account."""
    if form.pages is not None and op.has_tensor(form.pages):
        raise NoCostError(NO_LENGTHS)
    if len(q.shape) == 3 and form.layout == "bnhd":
        return _packed_sizes(op, form, q, k, v)
    batch, nq, hq, d_qk = q.shape if form.layout == "bnhd" else (q.shape[0], q.shape[2], q.shape[1], q.shape[3])
    nk = k.shape[1] if form.layout == "bnhd" else k.shape[2]
    require(len(k.shape) == 4 and len(v.shape) == 4 and k.shape[3] == d_qk)
    lengths = form.cu is not None and op.has_tensor(form.cu[0])
    if lengths:
        require(batch == 1)
        return _packed_sizes(op, form, _without_batch(q), _without_batch(k), _without_batch(v))
    pairs = batch * _pairs(op, form, nq, nk)
    return Sizes(hq=hq, d_qk=d_qk, d_v=v.shape[3], rows=batch * nq, pairs=pairs)


def _without_batch(tensor: Tensor) -> Tensor:
    return Tensor(shape=tensor.shape[1:], dtype=tensor.dtype)


def _packed_sizes(op: Op, form: Form, q: Tensor, k: Tensor, v: Tensor) -> Sizes:
    """Sizes of sequences packed one after another: exact for one sequence, for equal ones and for single queries."""
    rows, hq, d_qk = q.shape
    require(len(k.shape) == 3 and len(v.shape) == 3 and k.shape[2] == d_qk)
    keys = k.shape[0]
    if form.cu is None:
        raise NoCostError(NO_LENGTHS)
    count = op.tensor(form.cu[0]).numel - 1
    require(count > 0)
    longest = op.integer(form.max_q, 0) if form.max_q is not None else 0
    pairs, exact = _packed_pairs(op, form, (rows, keys, count, longest))
    note = () if exact else (LOWER_BOUND if rows == keys else ESTIMATE,)
    return Sizes(hq=hq, d_qk=d_qk, d_v=v.shape[2], rows=rows, pairs=pairs, notes=note)


def _packed_pairs(op: Op, form: Form, packed: tuple[int, int, int, int]) -> tuple[int, bool]:
    """Pairs of packed sequences, and whether the shapes determine them.

    Unknown lengths are taken as equal: for self-attention the sum of squares is then least, hence a lower bound.
    """
    rows, keys, count, longest = packed
    if longest == 1 and rows == count and _right_limit(op, form) in {None, 0} and form.bottom_right:
        window_left, _ = _window(op, form)
        if window_left is None:
            return keys, True  # one query a sequence sees all of its keys
    one_q, more_q = divmod(rows, count)
    one_k, more_k = divmod(keys, count)
    pairs = sum(
        _pairs(op, form, one_q + (i < more_q), one_k + (i < more_k)) * n for i, n in _runs(count, more_q, more_k)
    )
    return pairs, count == 1 or (rows == keys and longest > 0 and longest * count == rows)


def _runs(count: int, *changes: int) -> list[tuple[int, int]]:
    """``range(count)`` cut at ``changes``: first index and length of each run."""
    edges = sorted({0, count, *changes})
    return [(a, b - a) for a, b in pairwise(edges)]


def _pairs(op: Op, form: Form, nq: int, nk: int) -> int:
    left, right = _window(op, form)
    aligned = form.bottom_right
    if form.mask_type is not None:
        aligned = op.integer(form.mask_type, 0) == 2
    return attended_pairs(nq, nk, left=left, right=right, bottom_right=aligned)


def _right_limit(op: Op, form: Form) -> int | None:
    return _window(op, form)[1]


def _window(op: Op, form: Form) -> tuple[int | None, int | None]:
    """Window left and right of the diagonal; causal is 0 to the right; negative or absent is no limit."""
    left = right = None
    if form.window is not None:
        left, right = (n if (n := op.integer(i, -1)) >= 0 else None for i in form.window)
    if form.causal is not None and op.boolean(form.causal):
        right = 0
    if form.mask_type is not None and op.integer(form.mask_type) in {1, 2}:
        right = 0
    return left, right


class Shape(NamedTuple):
    """Heads over the batch, queries and keys of each (None: they are data), and whether causal (None: not recorded)."""

    sizes: tuple[int, int, int] | None
    causal: bool | None


def call_shape(op: Op, form: Form) -> Shape:
    """What a call's record tells of its sizes and its mask; sequences that are packed have lengths of their own."""
    query, key = op.tensor_or_none(form.q), op.tensor_or_none(form.q + 1)
    dense = query is not None and key is not None and len(query.shape) == 4 == len(key.shape)
    packed = any(at is not None and op.has_tensor(at) for at in (form.pages, *(form.cu or ())))
    sizes = None
    if query is not None and key is not None and dense and not packed:
        heads, tokens = (2, 1) if form.layout == "bnhd" else (1, 2)
        sizes = (query.shape[0] * query.shape[heads], query.shape[tokens], key.shape[tokens])
    return Shape(sizes=sizes, causal=_is_causal(op, form))


def _is_causal(op: Op, form: Form) -> bool | None:
    try:
        if form.mask_type is not None:
            return op.integer(form.mask_type) in {1, 2}
        return op.boolean(form.causal) if form.causal is not None else None
    except NoCostError:
        return None


def forward(op: Op, form: Form) -> Cost:
    """Cost of a forward pass."""
    q, k, v = (op.tensor(form.q + i) for i in range(3))
    s = sizes(op, form, q, k, v)
    writes_lse = form.lse and (form.lse_flag is None or op.boolean(form.lse_flag, default=False))
    bias = op.tensor_or_none(form.bias) if form.bias is not None else None
    out = s.rows * s.hq * s.d_v * itemsize(dtype_of(q))
    return Cost(
        flops=2 * s.pairs * s.hq * (s.d_qk + s.d_v),
        bytes_read=size(q, k, v, bias),
        bytes_written=out + (4 * s.rows * s.hq if writes_lse else 0),
        unit="matrix",
        precision=dtype_of(q),
        notes=s.notes,
    )


def backward(op: Op, form: Form, *, out: int, lse: int) -> Cost:
    """Cost of a backward pass with scores computed again; dO is the argument at 0, dQ, dK, dV are new tensors."""
    q, k, v = (op.tensor(form.q + i) for i in range(3))
    s = sizes(op, form, q, k, v)
    bias = op.tensor_or_none(form.bias) if form.bias is not None else None
    return Cost(
        flops=2 * s.pairs * s.hq * (3 * s.d_qk + 2 * s.d_v),
        bytes_read=size(op.tensor(0), q, k, v, op.tensor(out), op.tensor_or_none(lse), bias),
        bytes_written=fresh(q) + fresh(k) + fresh(v),
        unit="matrix",
        precision=dtype_of(q),
        notes=s.notes,
    )


def paged_cost(op: Op, lengths: tuple[int, int, int], *, q: int = 0, cache_dtype: str | None = None) -> Cost:
    """Cost of attention over a paged cache when a caller knows the lengths: a step annotation, a scheduler log.

    ``lengths`` are sums over sequences: query tokens, key tokens in reach (those of this step included), attended
    query-key pairs (causal: sum of q·kv - q·(q-1)/2). Q, K, V stand at ``q`` … ``q + 2`` as ``[tokens, heads, d]``.
    """
    query, key, value = (op.tensor(q + i) for i in range(3))
    tokens, keys, pairs = lengths
    hq, d_qk = query.shape[-2:]
    hk, d_v = value.shape[-2:]
    kept = itemsize(cache_dtype or dtype_of(key))
    new = tokens * hk * (d_qk + d_v) * itemsize(dtype_of(key))
    return Cost(
        flops=2 * pairs * hq * (d_qk + d_v),
        bytes_read=tokens * hq * d_qk * itemsize(dtype_of(query)) + new + (keys - tokens) * hk * (d_qk + d_v) * kept,
        bytes_written=tokens * hq * d_v * itemsize(dtype_of(query)),
        unit="matrix",
        precision=dtype_of(query),
    )
