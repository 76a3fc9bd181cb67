"""GROUND001: numbers that no script wrote."""

from __future__ import annotations

import pytest

from tests.grounding.slots import told

FREE = {
    "citation": "It takes {{gemm.F1.time_ms}} in {{ gemm.F1.kernels_count }} kernels.",
    "rank and ids": "P1 is gemm.F1, whose heaviest member is op1.",
    "dtypes": "From fp32 to bf16, float8_e4m3fn, tf32 or an 8-bit format.",
    "product": "The NVIDIA H100 SXM5 80 GB has them, every H100 has.",
    "caches and versions of an API": "The L2 cache, HBM3, FlashAttention-3, ZeRO-2 and 2D convolutions.",
    "architecture of a GPU": "The name spells sm80, this GPU is an sm_90, the other a gfx942.",
    "alignment": "Sizes that are multiples of 8 or 16.",
    "recorded shape": "The operands are 4096x4096, or [16, 4096] for the other.",
    "words for dtypes": "TensorFloat-32, BFloat16 and FP8.",
    "shape that a name spells": "The name spells a tile of 128x256.",
    "settings": "`bucket_cap_mb=25`, `DataLoader(num_workers=8)`, `--max-num-seqs 256`, `NCCL_MIN_NCHANNELS=32`.",
    "name of the trace": "The nvjet_tst_128x256_64x4_1x2_h_bz_TNT kernel.",
}


@pytest.mark.parametrize("case", FREE)
def test_what_the_evidence_or_an_api_spells_is_free(case, grounds):
    assert told("GROUND001", FREE[case], grounds) == []
    assert told("GROUND004", FREE[case], grounds) == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It takes 9999 ms.", ["9999"]),
        ("It takes about 3.2ms, 32 % of the span.", ["3.2ms", "32"]),
        ("It would be 2x faster.", ["2x"]),
        ("The matrix is 1234x999.", ["1234x999"]),
        ("With M 16 rows.", ["16"]),
        ("**77** of them.", ["77"]),
        ("In the 1st step.", ["1st"]),
        (
            "Fullwidth \uff14\uff12, half \u00bd, squared \u00b2, Arabic \u0664\u0662.",
            ["\uff14\uff12", "\u00bd", "\u00b2", "\u0664\u0662"],
        ),
        ("PyTorch 2.1 does it.", ["2.1"]),
        ("op77 and gemm.F9 do it.", ["op77", "gemm.F9"]),
    ],
)
def test_digits_of_any_script_are_refused(text, numbers, grounds):
    found = told("GROUND001", text, grounds)

    assert [problem.split("`")[1] for problem in found] == numbers


@pytest.mark.parametrize(
    "text",
    [
        "It becomes three times as fast.",
        "It wastes ninety percent.",
        "Half of the time is lost.",
        "A tenfold gain.",
        "It is an order of magnitude too slow.",
        "This doubles the throughput.",
        "It lasts two milliseconds.",
    ],
)
def test_quantities_in_words_are_refused(text, grounds):
    assert len(told("GROUND001", text, grounds)) == 1


@pytest.mark.parametrize("text", ["Two launches follow one another.", "One of the three projections.", "Run it twice."])
def test_small_numbers_in_words_that_measure_nothing_are_free(text, grounds):
    assert told("GROUND001", text, grounds) == []


def test_the_message_offers_the_id_that_holds_the_number(grounds):
    assert told("GROUND001", "It runs at 43.0 % of the roofline.", grounds) == [
        "`43.0` is a number that no script wrote; if 43.0 % is meant, write {{gemm.F1.efficiency_pct}}"
    ]
    assert told("GROUND001", "It runs at 77.7 %.", grounds) == [
        "`77.7` is a number that no script wrote; cite the evidence id, or say it without a number"
    ]


@pytest.mark.parametrize("code", ["`9999 ms`", "`time=3.2`", "`speedup=3`", "`gain_pct=45`", "`run(3)`", "`-n 7`"])
def test_a_number_in_backticks_is_no_setting(code, grounds):
    assert told("GROUND004", f"As {code} says.", grounds)[0].startswith(f"{code} is neither in the trace nor an API")


def test_the_name_of_a_model_may_hold_digits(grounds):
    assert told("GROUND001", "Qwen1.5-0.5B", grounds, slot="name", finding=None) == []
    assert told("GROUND004", "Qwen1.5-0.5B", grounds, slot="family", finding=None) == []
