"""Attention ops by library: argument positions; the formulas are in ``attention``."""

from __future__ import annotations

from .attention import Form, attended_pairs, backward, forward
from .op import NO_LENGTHS, NoCostError, Op, Tensor
from .parts import bf16, dtype_of, f32, itemsize
from .registry import Cost, Example, categorise, op_model

_Q = (bf16(2, 3, 8, 4), bf16(2, 3, 8, 4), bf16(2, 3, 8, 4))  # batch 2, heads 3, 8 tokens, d 4
_WHY = "64 pairs a head (36 causal), 6 heads: 2*64*6*(4 + 4) = 6144 (3456); reads 3*192*2; writes 192*2 (+ 48 rows*4)"
_Q_BNHD = (bf16(2, 8, 3, 4), bf16(2, 8, 3, 4), bf16(2, 8, 3, 4))
_NO_CAUSAL = "causal flag not recorded"

# aten, in the layout [batch, heads, tokens, d]. Positions: torch/native_functions.yaml.
_ATEN = {
    "aten::_scaled_dot_product_flash_attention": Form(causal=4),
    "aten::_scaled_dot_product_efficient_attention": Form(causal=6, bias=3, lse_flag=4),
    "aten::_scaled_dot_product_cudnn_attention": Form(causal=6, bias=3, lse_flag=4),
    "aten::_scaled_dot_product_fused_attention_overrideable": Form(causal=5, bias=3),
    "aten::_scaled_dot_product_attention_math": Form(causal=5, bias=3, lse=False),
    "aten::scaled_dot_product_attention": Form(causal=5, bias=3, lse=False),
    "aten::_scaled_dot_product_flash_attention_for_cpu": Form(causal=4),
}
# In the layout [batch, tokens, heads, d], or [tokens, heads, d] with cumulative lengths. flash-attention:
# flash_attn/flash_attn_interface.py (2.7), hopper/flash_api.cpp (3); xformers: ops/fmha; AITER: aiter/ops/mha.py.
_BNHD = {
    "aten::_flash_attention_forward": Form(causal=8, bottom_right=True, window=(11, 12), cu=(3, 4), max_q=5, pages=15),
    "aten::_efficient_attention_forward": Form(mask_type=9, bias=3, lse_flag=10, cu=(4, 5), max_q=6),
    "aten::_cudnn_attention_forward": Form(causal=10, bias=3, lse_flag=8, cu=(4, 5), max_q=6),
    "flash_attn::_flash_attn_forward": Form(causal=5, bottom_right=True, window=(6, 7)),
    "flash_attn::_flash_attn_varlen_forward": Form(
        causal=9, bottom_right=True, window=(10, 11), cu=(3, 4), max_q=5, pages=15
    ),
    "xformers::efficient_attention_forward_cutlass": Form(mask_type=9, bias=3, lse_flag=8, cu=(4, 5), max_q=6),
    "xformers_flash::flash_fwd": Form(causal=10, bottom_right=True, window=(11, 12), cu=(3, 4), max_q=6, pages=14),
    "aiter::mha_fwd": Form(causal=5, bottom_right=True, window=(6, 7)),
    "aiter::_flash_attn_forward": Form(causal=5, bottom_right=True, window=(6, 7)),
    "aiter::wrapper_fmha_v3_fwd": Form(causal=6, bottom_right=True, window=(7, 8)),
    "aiter::fmha_v3_fwd": Form(causal=6, bottom_right=True, window=(7, 8)),
    "aiter::mha_varlen_fwd": Form(causal=12, bottom_right=True, cu=(3, 4), max_q=5, pages=18),
    "aiter::fmha_v3_varlen_fwd": Form(causal=12, bottom_right=True, cu=(3, 4), max_q=5, pages=18),
    "_vllm_fa2_C::varlen_fwd": Form(causal=15, bottom_right=True, cu=(4, 5), max_q=10, pages=8),
}
_FLASH3 = Form(causal=24, bottom_right=True, window=(25, 26), cu=(7, 8), max_q=12, pages=14)
_BNHD |= {
    name: _FLASH3
    for name in (
        "flash_attn_3::fwd", "flash_attn_3::_flash_attn_forward", "_vllm_fa3_C::fwd", "sgl_kernel::fwd",
    )
}  # fmt: skip
_BNHD = {name: form._replace(layout="bnhd") for name, form in _BNHD.items()}

_COMPOSITES = frozenset({"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math"})

# Backward: form, position of O, of the log-sum-exp. dO is at 0.
_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": (Form(q=1, causal=11), 4, 5),
    "aten::_scaled_dot_product_efficient_attention_backward": (Form(q=1, causal=11, bias=4), 5, 6),
    "aten::_scaled_dot_product_cudnn_attention_backward": (Form(q=1, causal=14, bias=8), 4, 5),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": (Form(q=1, causal=13, bias=4), 6, 7),
}
_BACKWARD_BNHD = {
    "aten::_flash_attention_backward": (
        Form(q=1, layout="bnhd", causal=11, bottom_right=True, window=(15, 16), cu=(6, 7), max_q=8), 4, 5,
    ),
    "aten::_efficient_attention_backward": (
        Form(q=1, layout="bnhd", mask_type=14, bias=4, cu=(6, 7), max_q=8), 5, 10,
    ),
    "aten::_cudnn_attention_backward": (Form(q=1, layout="bnhd", causal=14, bias=8, cu=(9, 10), max_q=11), 4, 5),
    "flash_attn::_flash_attn_backward": (
        Form(q=1, layout="bnhd", causal=11, bottom_right=True, window=(12, 13)), 4, 5,
    ),
    "flash_attn::_flash_attn_varlen_backward": (
        Form(q=1, layout="bnhd", causal=15, bottom_right=True, window=(16, 17), cu=(9, 10), max_q=11), 4, 5,
    ),
    "flash_attn_3::bwd": (
        Form(q=1, layout="bnhd", causal=16, bottom_right=True, window=(17, 18), cu=(9, 10), max_q=13), 4, 5,
    ),
    "aiter::mha_bwd": (Form(q=1, layout="bnhd", causal=8, bottom_right=True, window=(9, 10)), 4, 5),
    "aiter::wrapper_fmha_v3_bwd": (Form(q=1, layout="bnhd", causal=9, bottom_right=True, window=(10, 11)), 4, 5),
    "aiter::_flash_attn_backward": (Form(q=1, layout="bnhd", causal=12, bottom_right=True, window=(13, 14)), 4, 5),
}  # fmt: skip


def form_of(name: str) -> Form | None:
    """Where an attention op with recorded arguments holds them; None for any other op."""
    backward_form = (_BACKWARD | _BACKWARD_BNHD).get(name)
    return backward_form[0] if backward_form else (_ATEN | _BNHD).get(name)


def _example(form: Form, *, causal: bool) -> Example:
    """Two batches, three heads, eight tokens, d = 4, without and with the causal flag."""
    args: list[Tensor | str | None] = [None] * 27
    args[:3] = _Q if form.layout == "bhnd" else _Q_BNHD
    if form.mask_type is not None:
        args[form.mask_type] = "2" if causal else "0"
    elif form.causal is not None:
        args[form.causal] = str(causal)
    if form.lse_flag is not None:
        args[form.lse_flag] = "False"
    lse = form.lse and form.lse_flag is None
    return Example(
        args=tuple(args),
        flops=3456 if causal else 6144,
        bytes_read=1152,
        bytes_written=576 if lse else 384,
        why=_WHY,
    )


def _backward_example(form: Form, out: int, lse: int) -> Example:
    q = _Q if form.layout == "bhnd" else _Q_BNHD
    args: list[Tensor | str | None] = [None] * 19
    args[0] = q[0]
    args[1:4] = q
    args[out], args[lse] = q[0], f32(2, 3, 8)
    args[form.causal or form.mask_type or 0] = "1" if form.mask_type is not None else "True"
    return Example(
        args=tuple(args),
        flops=8640,
        bytes_read=2112,
        bytes_written=1152,
        why="36 pairs, 6 heads, five products: 2*36*6*(3*4 + 2*4); reads dO, Q, K, V, O of 384 and LSE 48*4; "
        "writes dQ, dK, dV of 384",
    )


def _register_forward(name: str, form: Form) -> None:
    examples = (_example(form, causal=False), _example(form, causal=True))

    @op_model(name, category="attention", claims_subtree=name not in _COMPOSITES, examples=examples)
    def attention_forward(op: Op) -> Cost:
        """Cost of a forward pass."""
        return forward(op, form)


def _register_backward(name: str, form: Form, out: int, lse: int) -> None:
    @op_model(name, category="attention", examples=(_backward_example(form, out, lse),))
    def attention_backward(op: Op) -> Cost:
        """Cost of a backward pass."""
        return backward(op, form, out=out, lse=lse)


for _name, _form in (_ATEN | _BNHD).items():
    _register_forward(_name, _form)
for _name, (_form, _out, _lse) in (_BACKWARD | _BACKWARD_BNHD).items():
    _register_backward(_name, _form, _out, _lse)


@op_model(
    "vllm::unified_attention",
    "vllm::unified_attention_with_output",
    "vllm::unified_mla_attention",
    "vllm::unified_mla_attention_with_output",
    "_C::paged_attention_v1",
    "_C::paged_attention_v2",
    "_rocm_C::paged_attention",
    "aiter::paged_attention_v1",
    "aiter::paged_attention_rocm",
    "aiter::paged_attention_ragged",
    "aiter::pa_fwd_asm",
    "aiter::pa_decode_gluon",
    "aiter::mha_batch_prefill",
    "aiter::mla_decode_stage1_asm_fwd",
    "aiter::mla_prefill_ps_asm_fwd",
    "aiter::pa_sparse_prefill_opus_fwd",
    "sglang::unified_attention_with_output",
    "sglang_profiler::attention_paged_attention_ragged",
    "sgl_kernel::cutlass_mla_decode",
    "trtllm::attn_custom_op_inplace",
    "trtllm::mla_custom_op_inplace",
    category="attention",
    patterns=(
        r"^flashinfer::\w*(prefill|decode|attention|mla)\w*",
        r"^vllm::\w*attention\w*",
        r"paged_attention",
    ),
    examples=(
        Example(
            args=(bf16(4, 3, 8), bf16(4, 1, 8), bf16(4, 1, 8), bf16(4, 3, 8)),
            unmodelled=NO_LENGTHS,
            why="how many cached keys each of the 4 queries sees is not in the shapes",
        ),
    ),
)
def cached_attention(_op: Op) -> Cost:
    """None: the lengths of the cached sequences are data (``attention.paged_cost`` takes them from a caller)."""
    raise NoCostError(NO_LENGTHS)


@op_model(
    "FlashAttnFunc",
    category="attention",
    claims_subtree=False,
    examples=(
        Example(
            args=_Q_BNHD,
            unmodelled=_NO_CAUSAL,
            why="an autograd function may record its tensors alone; causal halves the work",
        ),
        Example(
            args=(*_Q_BNHD, "0.", None, "False"),
            flops=6144,
            bytes_read=1152,
            bytes_written=576,
            why=_WHY,
        ),
        Example(
            args=(*_Q_BNHD, "0.", None, "True"),
            flops=3456,
            bytes_read=1152,
            bytes_written=576,
            why=_WHY,
        ),
    ),
)
def flash_function(op: Op) -> Cost:
    """(Q, K, V, dropout, scale, causal, …), [batch, tokens, heads, d]; writes O and the log-sum-exp."""
    if op.arg(5) in {None, ""}:
        raise NoCostError(_NO_CAUSAL)
    return forward(op, Form(layout="bnhd", causal=5, bottom_right=True))


@op_model(
    "FlashAttnVarlenFunc",
    "FlashAttnFuncBackward",
    "FusedAttnFunc",
    "FusedAttnFuncBackward",
    "EvoformerAttention",
    category="attention",
    claims_subtree=False,
    examples=(
        Example(
            args=_Q_BNHD,
            unmodelled=_NO_CAUSAL,
            why="an autograd function records its tensors alone; causal halves the work",
        ),
    ),
)
def autograd_function(_op: Op) -> Cost:
    """None: a Python autograd function records its tensors alone, and the causal flag halves the work."""
    raise NoCostError(_NO_CAUSAL)


@op_model(
    "ScaledUpperTriangMaskedSoftmax",
    category="reduction",
    examples=(
        Example(
            args=(bf16(2, 8, 8),),
            flops=360,
            bytes_read=144,
            bytes_written=256,
            why="36 of 64 scores are kept: 5*72 operations; reads 72*2; writes all of 128*2",
        ),
    ),
)
def causal_softmax(op: Op) -> Cost:
    """Softmax of scores ``[batch, q, k]`` under a causal mask: reads the lower triangle, writes everything."""
    scores = op.tensor(0)
    batch, nq, nk = scores.shape
    kept = batch * attended_pairs(nq, nk, right=0, bottom_right=False)
    width = itemsize(dtype_of(scores))
    return Cost(flops=5 * kept, bytes_read=kept * width, bytes_written=scores.numel * width, precision=scores.dtype)


categorise(
    "attention",
    "aten::_fused_sdp_choice",
    "aten::_scaled_dot_product_attention_math_for_mps",
    "_C_cache_ops::concat_and_cache_mla",
    "aiter::get_mla_metadata_v1",
    "aiter::indexer_score_topk",
    "flex_attention",
    module=__name__,
)
