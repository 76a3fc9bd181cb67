"""Parts of calls that are findings of their own: layout copies, and forward work run again. Times are µs."""

from __future__ import annotations

import pytest

from rooftrace.contracts.base import Score
from tests.analyzers.test_compute import edits_of, findings_of
from tests.analyzers.workloads import BF16, NVJET, Program, product
from tests.support.trace_builder import TraceBuilder

CONVOLUTION = {
    "dims": [[8, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], [], [], []],
    "types": [BF16, BF16, "", *["ScalarList"] * 3, "Scalar", "ScalarList", "Scalar"],
    "strides": [[200704, 3136, 56, 1], [576, 9, 3, 1], [], [], [], [], [], [], []],
    "concrete": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
}
TRANSPOSE = "nchwToNhwcKernel"


def convolved(*kernels):
    """One convolution that launches kernels one after the other, from 20 µs on."""
    builder = TraceBuilder()
    builder.op("aten::convolution", 0, 20, **CONVOLUTION)
    at = 20
    for number, (name, dur) in enumerate(kernels):
        builder.kernel(name, ts=at, dur=dur, correlation=builder.launch(ts=1 + number))
        at += dur
    return builder


def test_layout_copies_in_convolutions_are_a_finding_of_their_own():
    # 8*64*56*56 outputs of 64*9 multiply-adds: 1.85e9 FLOP at 794.5e12: 2,328 ns. 100 in all, 30 of them copies, so
    # 70,000 - 2,328 = 67,672 are left for the convolution itself
    builder = convolved((TRANSPOSE, 20), (NVJET, 70), (TRANSPOSE, 10))
    layout, rest = sorted(findings_of(builder, "convolution"), key=lambda finding: finding.kind)
    edits = sorted(edits_of(builder, "convolution"), key=lambda edit: edit[1])

    assert (layout.kind, layout.subject, layout.patterns) == (
        "measured",
        "layout copies in convolution calls",
        ["layout_changes"],
    )
    assert layout.evidence["part"] == "layout"
    assert [layout.evidence[name] for name in ("time_ms", "layout_ms", "layout_pct", "calls_ms", "kernels_count")] == [
        0.03,
        0.03,
        30.0,
        0.1,
        2,
    ]
    assert (rest.evidence["time_ms"], rest.evidence["layout_ms"], rest.evidence["extra_kernels"]) == (0.07, 0.0, "")
    assert rest.evidence["efficiency_pct"] == 3.33  # 2,328 of 70,000
    assert edits[0] == ({TRANSPOSE: 30_000}, 30_000)
    assert edits[1] == ({NVJET: 67_672}, 67_672)


def test_zeroing_a_result_is_part_of_a_convolution():
    builder = convolved(("SubTensorOpWithScalar1d", 20), (NVJET, 70))

    assert [finding.kind for finding in findings_of(builder, "convolution")] == ["modelled"]
    assert edits_of(builder, "convolution")[0][1] == 87_671  # 90,000 - 2,328, rounded down for each kernel


def test_a_copy_inside_another_call_is_left_to_it():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9, **product(2000, 2000, 2000))
    for name, ts, dur in ((TRANSPOSE, 20, 20), (NVJET, 40, 80)):
        builder.kernel(name, ts=ts, dur=dur, correlation=builder.launch(ts=1))

    assert len(findings_of(builder)) == 1


def recomputing():
    """A product of 50 µs, and one of 30 that is run again below a frame of activation checkpointing."""
    builder = Program()
    builder.call("aten::mm", NVJET, 50, **product(2000, 2000, 2000))
    builder.python("torch/utils/checkpoint.py(100): recompute_fn", 5, 5)
    builder.call("aten::mm", NVJET, 30, **product(2000, 2000, 2000))
    return builder


def test_forward_work_run_again_is_a_finding_with_all_its_time():
    builder = recomputing()
    (finding,) = findings_of(builder, "generic")

    assert (finding.kind, finding.category, finding.patterns) == ("measured", "gemm", ["recomputation"])
    assert (finding.evidence["part"], finding.evidence["time_ms"]) == ("recomputation", 0.03)
    assert finding.evidence["ratable_pct"] == 37.5  # 30 of 80
    assert finding.score == Score(low=28.12, mid=32.81, high=37.5)
    assert edits_of(builder, "generic") == [({NVJET: 30_000}, 30_000)]
    assert len(findings_of(builder)) == 1  # its gap stays where it was


def attention(query, key, *, causal="False"):
    """Inputs of the flash-attention op of aten: batch, heads, tokens, width."""
    return {
        "dims": [list(query), list(key), list(key), [], [], [], []],
        "types": [BF16, BF16, BF16, "Scalar", "Scalar", "Scalar", ""],
        "strides": [],
        "concrete": ["", "", "", "0.", causal, "False", ""],
    }


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        # 2 * 38 heads, ceil(4429 / 128) = 35 tiles each: 2,660 on 132 SMs
        pytest.param(
            attention((2, 38, 4429, 64), (2, 38, 4429, 64)),
            {"causal": "no", "heads_count": 76, "query_tokens": 4429, "key_tokens": 4429, "tiles_per_unit": 20.15},
            id="many tokens",
        ),
        # 8 heads, one tile each
        pytest.param(
            attention((1, 8, 100, 64), (1, 2, 4096, 64), causal="True"),
            {"causal": "yes", "heads_count": 8, "query_tokens": 100, "key_tokens": 4096, "tiles_per_unit": 0.06},
            id="few queries, causal",
        ),
        pytest.param(
            attention((1, 8, 100, 64), (1, 8, 100, 64)) | {"concrete": []},
            {"causal": "unknown", "heads_count": 8, "query_tokens": 100, "key_tokens": 100, "tiles_per_unit": 0.06},
            id="no scalars recorded",
        ),
    ],
)
def test_attention_tells_its_sizes_and_whether_it_is_causal(inputs, expected):
    program = Program()
    program.call("aten::_scaled_dot_product_flash_attention", "flash_fwd_kernel", 500, **inputs)
    evidence = findings_of(program, "attention")[0].evidence

    assert {name: evidence.get(name) for name in expected} == expected


def test_sequences_that_are_packed_have_no_one_size():
    dims = [[300, 8, 64], [300, 8, 64], [300, 8, 64], [4], [4], [], [], [], []]
    program = Program()
    program.call(
        "aten::_flash_attention_forward",
        "flash_fwd_kernel",
        500,
        dims=dims,
        types=[BF16, BF16, BF16, "int", "int", "Scalar", "Scalar", "Scalar", "Scalar"],
        strides=[],
        concrete=["", "", "", "", "", "100", "100", "0.", "True"],
    )
    evidence = findings_of(program, "attention")[0].evidence

    assert (evidence["causal"], "query_tokens" in evidence) == ("yes", False)


@pytest.mark.parametrize(("rows", "fits"), [(1_000_000, True), (20_000_000, False)])
def test_a_lookup_in_several_tables_tells_what_they_hold(rows, fits):
    # Two tables in fp32: 4 MB or 80 MB, against the 50 MB of L2 of an H100
    program = Program()
    program.call("fbgemm::split_embedding_codegen_lookup_sgd_function", "forward_kernel", 500, **lookup(rows, 4_000))
    (finding,) = findings_of(program, "generic")

    told = {name: finding.evidence[name] for name in ("tables_count", "indices_count", "stored_bytes", "fits_cache")}
    assert told == {"tables_count": 2, "indices_count": 4_000, "stored_bytes": 4 * rows, "fits_cache": fits}
    assert finding.patterns[0] == ("table_batched_in_cache" if fits else "table_batched")


def test_sizes_that_no_memory_holds_are_not_told():
    huge = 1 << 62
    program = Program()
    program.call("fbgemm::split_embedding_codegen_lookup_sgd_function", "forward_kernel", 500, **lookup(huge, 4_000))
    program.call(
        "aten::_scaled_dot_product_flash_attention",
        "flash_fwd_kernel",
        500,
        **attention((huge, 8, 4, 4), (huge, 8, 4, 4)),
    )

    assert "stored_bytes" not in findings_of(program, "generic")[0].evidence
    assert "heads_count" not in findings_of(program, "attention")[0].evidence


def lookup(elements, indices):
    """Inputs of FBGEMM's lookup: 2 tables of width 8, 4 samples."""
    return {
        "dims": [[0], [elements], [0], [0], [2], [2], [3], [], [], [3], [], [indices], [9]],
        "types": [*["float"] * 4, "int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long"],
        "strides": [],
        "concrete": [*[""] * 7, "16", "8", "", "7", "", ""],
    }
