"""GROUND005: what no trace shows."""

from __future__ import annotations

import pytest

from tests.grounding.slots import told

CLAIMS = {
    "occupancy": "Low occupancy slows it down.",
    "bank conflicts": "It suffers from bank conflicts.",
    "cache hits": "Most reads miss in L2; the cache hit rate is poor.",
    "register use": "The kernel spills registers.",
    "shared memory use": "Shared memory usage limits it.",
    "stalls and divergence": "Warp stalls and branch divergence cost time.",
    "access patterns": "Its uncoalesced loads waste bandwidth.",
    "use of the units": "Tensor core utilisation is low because of wave quantization.",
    "where a kernel keeps its data": "A fused kernel keeps it in registers.",
    "clocks and power": "The GPU is throttling.",
    "tile sizes": "The tile size is too small for this matrix.",
}


@pytest.mark.parametrize("what", CLAIMS)
def test_a_claim_about_the_inside_of_a_kernel_is_refused(what, grounds):
    found = told("GROUND005", CLAIMS[what], grounds)

    assert {problem.split(":")[0] for problem in found} == {what}


@pytest.mark.parametrize(
    "text",
    [
        "Nsight Compute could show whether occupancy or bank conflicts are the cause.",
        "Profile it with rocprof-compute to see the cache hit rate.",
        "Not visible in a trace: occupancy, stalls (Nsight Compute).",
        "{{gemm.F1.top_kernel}} has a small tile for such a matrix.",
        "`nvjet_tst_128x256_64x4_1x2_h_bz_TNT` spells its tile size.",
        "Each call has few tiles to share out.",
        "The cache of keys and values grows.",
        "Nsight Compute could show whether it stays in registers.",
        "The host stalls on the copy.",
        "Keep the values in the KV cache.",
    ],
)
def test_what_a_named_tool_could_show_may_be_named(text, grounds):
    assert told("GROUND005", text, grounds) == []


@pytest.mark.parametrize(
    "text",
    [
        "Nsight Compute showed low occupancy.",
        "It is slow because of bank conflicts, see Nsight Compute.",
        "Occupancy is low. Nsight Compute could show more.",
        "{{gemm.F2.top_kernel}} has a small tile.",  # the table has no tile for this kernel
    ],
)
def test_naming_a_tool_does_not_make_a_claim_true(text, grounds):
    assert len(told("GROUND005", text, grounds)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "One kernel would hold the row in shared memory.",
        "The tensor fits in L2.",
        "Its intermediate stays on chip.",
        "The reads stay in the cache.",
    ],
)
def test_where_data_lies_is_for_a_tool_to_show(text, grounds):
    assert [problem.split(":")[0] for problem in told("GROUND005", text, grounds)] == ["where a kernel keeps its data"]


def test_the_message_quotes_the_sentence(grounds):
    assert told("GROUND005", "All is well. Low occupancy slows `aten::mm` down.", grounds) == [
        "occupancy: no trace shows it (\u201cLow occupancy slows `aten::mm` down.\u201d); say which tool could show it"
    ]
