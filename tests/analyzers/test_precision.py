"""float32 products are scored by the precision that is their remedy. Times are µs.

H100: fp32 66.9, TF32 494.7, bf16 794.5 TFLOP/s. MI250X has no TF32; V100 neither that nor bf16.
"""

from __future__ import annotations

import pytest

from rooftrace.analyzers import compute
from rooftrace.analyzers.precision import faster_precision
from tests.analyzers.workloads import BF16, NVJET, Program, product, workload_of

SGEMM = "ampere_sgemm_128x128_tn"
TF32 = "cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4"


def run(kernel=SGEMM, dur=320, dtype="float", size=2000):
    program = Program()
    program.call("aten::mm", kernel, dur, **product(size, size, size, dtype))
    return program


def drafts_of(builder, platform="h100-sxm"):
    return compute.analyze(workload_of(builder, platform))["gemm"][1]


def test_a_float32_product_is_held_against_tf32_where_the_gpu_has_it():
    # 2 x 2000^3 = 16e9 FLOPs: 239,163 ns in fp32, 32,343 in TF32; the call takes 320,000
    (draft,) = drafts_of(run())
    evidence = draft.finding.evidence

    assert draft.finding.patterns[0] == "fp32_without_tf32"
    assert draft.edit.saved_ns.tolist() == [287_657]  # 320,000 - 32,343
    assert (evidence["gap_ms"], evidence["remedy_floor_ms"]) == (0.287657, 0.032343)
    assert evidence["remedy_precision"] == "tfloat32"
    assert evidence["efficiency_pct"] == 74.74  # 239,163 of 320,000: of the ceiling that it runs under
    assert "of the float32 ceiling" in draft.finding.subject


@pytest.mark.parametrize(
    ("platform", "precision"), [("mi250x", "bfloat16"), ("v100-sxm2-32", "float16"), ("a100-sxm-80", "tfloat32")]
)
def test_the_first_format_that_the_gpu_multiplies_faster_is_the_remedy(platform, precision):
    found = faster_precision(workload_of(run(dur=2000), platform), 0)

    assert found.precision == precision


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(run(TF32, 60), id="in TF32 already"),
        pytest.param(run(NVJET, 60, BF16), id="in bf16"),
        pytest.param(run(dur=5, size=64), id="bound by latency"),
    ],
)
def test_products_that_no_precision_helps_keep_their_own_floor(builder):
    assert faster_precision(workload_of(builder), 0) is None
    assert all("remedy_precision" not in draft.finding.evidence for draft in drafts_of(builder))


def test_products_with_and_without_the_remedy_are_findings_of_their_own():
    program = run()
    program.call("aten::mm", SGEMM, 80, **product(128, 128, 64, "float"))  # bound by latency
    program.call("aten::mm", "sm80_xmma_gemm_bf16bf16_bf16f32", 28, **product(2000, 2000, 2000))
    named = {draft.finding.patterns[0]: draft.finding.evidence["kernels_count"] for draft in drafts_of(program)}

    assert named["fp32_without_tf32"] == 1
    assert sum(named.values()) == 3
