"""Any text is a name: nothing raises, nothing takes long, nothing unprintable comes out."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooftrace.kernelnames import describe, describe_copy

HOSTILE = {
    "a megabyte of letters": "a" * 1_000_000,
    "a megabyte of open brackets": "<" * 1_000_000,
    "a megabyte of open parentheses": "(" * 1_000_000,
    "deep templates": "f" + "<a" * 100_000 + ">" * 100_000,
    "deep parentheses": "f" + "(" * 900 + ")" * 900,
    "operators": "operator()<>::" * 500,
    "lambdas": "at::native::f" + "::{lambda()#1}::operator()() const" * 300,
    "lambdas left open": "at::native::f" + "::{lambda(" * 300,
    "enable_if": "std::enable_if<" * 500,
    "tensile": "Cijk_Ailk_Bljk_SB_" * 500,
    "xmma": "sm80_xmma_gemm_" + "f16f16_f16f16_f16_" * 500,
    "cutlass 2": "cutlass_80_tensorop_s1688gemm_" + "1x1_" * 1_000,
    "cutlass 3": "cutlass3x_sm90_tensorop_s1x1x1gemm_f16_f16_f32_" * 200,
    "cudnn": "cudnn_generated_" + "sm1_knob_" * 500,
    "cudnn apart": "cudnn_generated_" + "_sm1_" * 300 + "knob_" * 300,
    "trtllm": "bmm_t1x1x1_s1_" * 500,
    "flash 3": "FlashAttnFwdSm90<" + "cute::C<1>, " * 500,
    "inductor": "triton_poi_fused_" + "add_" * 100_000,
    "torch types": "at::native::f<" + "bool, " * 1_000,
    "mangled nesting": "_Z1aI" * 500,
    "mangled substitutions": "_ZN1aI" + "1bIS_S_E" * 300,
    "mangled length": "_Z999999999999999999999a",
    "mangled prefixes": "_ZN" + "1a" * 1_000 + "E",
    "copies": "Memcpy HtoD (" * 10_000,
    "control characters": "a\nb\x00c\x1b[31m\r\td\u2028\ud800",
    "only control characters": "\n\x00",
    "nothing": "",
    "colons": "::" * 1_000,
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_described_quickly_and_printably(name):
    started = time.process_time()

    info = describe(name)
    describe_copy(name)

    # 0.02 s at most where this was written; a regex out of hand takes minutes.
    assert time.process_time() - started < 1.0
    assert info.short.isprintable()
    assert 0 < len(info.short) <= 80


@given(st.text(max_size=300))
def test_any_text_gives_a_printable_short_name(name):
    info = describe(name)

    assert info.short.isprintable()
    assert 0 < len(info.short) <= 80


@given(
    st.lists(
        st.sampled_from(["_ZN", "1a", "I", "E", "S_", "S0_", "Li3E", "J", "P", "Tn", "X", "St", "2ck", "DF16b", "v"]),
        max_size=60,
    )
)
def test_any_row_of_mangling_tokens_is_read_without_raising(tokens):
    assert describe("_Z" + "".join(tokens)).short != ""
