"""What findings tell of the heaviest kernel of their calls. Times are µs."""

from __future__ import annotations

import pytest

from tests.analyzers.test_compute import findings_of
from tests.analyzers.workloads import BF16, NVJET, Program, product
from tests.support.trace_builder import TraceBuilder

SM75 = "cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1"
SM80 = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8"
ALIGN16 = "cutlass_80_tensorop_s8_i16832gemm_s8_128x64_64x6_tn_align16"
FPROP = "cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8"
TRANSPOSE, MEMSET, BIAS = "nchwToNhwcKernel", "Memset (Device)", "vectorized_add_kernel"


def of_kernel(kernel, platform="h100-sxm"):
    program = Program()
    program.call("aten::mm", kernel, 1000, **product(2000, 2000, 2000))
    return findings_of(program, platform=platform)[0].evidence


def patches(channels=3, window=16, stride=16):
    """A convolution of 2 images of 224 x 224 as a vision transformer begins: four kernels of 90, 25, 9 and 1 µs."""
    builder = TraceBuilder()
    builder.op(
        "aten::convolution",
        0,
        20,
        dims=[[2, channels, 224, 224], [768, channels, window, window], [768], [], [], [], [], [], []],
        types=[BF16, BF16, BF16, *["ScalarList"] * 3, "Scalar", "ScalarList", "Scalar"],
        strides=[[], [], [], [], [], [], [], [], []],
        concrete=["", "", "", f"[{stride}, {stride}]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"],
    )
    at = 20
    for number, (name, dur) in enumerate(((FPROP, 90), (TRANSPOSE, 25), (BIAS, 9), (MEMSET, 1))):
        builder.kernel(name, ts=at, dur=dur, correlation=builder.launch(ts=1 + number))
        at += dur
    return builder


def test_the_heaviest_kernel_is_told_beside_the_mean_of_all():
    # 90, 9 and 1 without the layout copy of 25: a mean of 33.3, of which the heaviest is 90 % of the calls
    rest = next(f for f in findings_of(patches(), "convolution") if f.kind == "modelled")

    assert rest.evidence["mean_kernel_us"] == 33.333
    assert (rest.evidence["top_kernel_us"], rest.evidence["top_kernel_ms"]) == (90.0, 0.09)
    assert (rest.evidence["top_kernel_pct"], rest.evidence["beside_pct"]) == (90.0, 10.0)


def test_what_clears_is_no_layout_copy_and_layout_copies_apart_are_named():
    rest, layout = sorted(findings_of(patches(), "convolution"), key=lambda finding: finding.kind, reverse=True)

    assert (rest.kind, layout.kind) == ("modelled", "measured")
    assert (rest.evidence["layout_ms"], rest.evidence["cleared_ms"]) == (0.0, 0.001)
    assert rest.evidence["layout_apart_ms"] == 0.025
    assert (layout.evidence["layout_ms"], layout.evidence["layout_pct"]) == (0.025, 20.0)  # 25 of 125


@pytest.mark.parametrize(
    ("kernel", "platform", "spelled", "is_old"),
    [
        (SM80, "h100-sxm", "sm80", True),  # Hopper has instructions of its own (wgmma)
        (SM75, "h100-sxm", "sm75", True),
        (SM80, "a100-sxm-80", "sm80", False),
        (SM80, "l40s", "sm80", False),  # Ada multiplies with Ampere's instructions,
        (SM80, "rtx-5090", "sm80", False),  # and so does the Blackwell of workstations,
        (SM80, "b200", "sm80", True),  # but not that of servers
        (SM75, "t4", "sm75", False),
        ("volta_sgemm_128x64_nn", "a10", "volta", True),
        (NVJET, "h100-sxm", "", False),
    ],
)
def test_a_name_of_an_older_architecture_is_told_against_the_gpus_own(kernel, platform, spelled, is_old):
    evidence = of_kernel(kernel, platform)

    assert (evidence["kernel_arch"], evidence["old_arch_kernel"]) == (spelled, is_old)
    assert evidence["old_arch_ms"] == (1.0 if is_old else 0.0)


@pytest.mark.parametrize(("kernel", "expected"), [(SM75, True), (SM80, False), (ALIGN16, False)])
def test_an_alignment_of_one_element_is_read_from_the_name(kernel, expected):
    evidence = of_kernel(kernel)

    assert (evidence["align1"], evidence["align1_ms"]) == (expected, 1.0 if expected else 0.0)


@pytest.mark.parametrize(
    ("builder", "channels", "side_by_side"),
    [
        (patches(), 3, True),
        (patches(stride=8), 3, False),  # windows overlap
        (patches(window=1, stride=1), 3, False),  # a 1 x 1 convolution is no patch
        (patches(channels=64), 64, True),
    ],
)
def test_a_convolution_tells_whether_its_windows_are_patches(builder, channels, side_by_side):
    evidence = findings_of(builder, "convolution")[0].evidence

    assert (evidence["in_channels"], evidence["patches"]) == (channels, side_by_side)


def test_a_patch_embedding_on_a_slow_kernel_is_not_called_small():
    # 2 * 196 * 768 outputs of 768 multiply-adds: 0.46 GFLOP at 794.5e12: 0.58 µs; the shortest kernel takes 1 µs
    rest = next(f for f in findings_of(patches(), "convolution") if f.kind == "modelled")

    assert rest.evidence["bound"] == "latency"
    assert rest.patterns[:2] == ["patch_embedding", "slow_kernel"]
    assert "latency_bound" not in rest.patterns


def test_batched_products_and_products_with_a_weight_are_findings_of_their_own():
    program = Program()
    shape = {"types": [BF16, BF16], "strides": [[], []], "concrete": ["", ""]}
    program.call("aten::bmm", SM80, 900, dims=[[16, 1024, 64], [16, 64, 1024]], **shape)
    program.call("aten::mm", SM80, 300, dims=[[1024, 64], [64, 16384]], **shape)

    found = {finding.evidence["batched"]: finding.evidence["op_names"] for finding in findings_of(program)}

    assert found == {True: "aten::bmm", False: "aten::mm"}
    assert any(finding.subject.startswith("batched gemm kernels of CUTLASS") for finding in findings_of(program))


@pytest.mark.parametrize(
    ("model_class", "frame", "expected"),
    [
        ("Qwen2ForCausalLM", "train.py(7): main", (True, "")),
        ("Owlv2Model", "train.py(7): main", (False, "")),
        ("Block", "vllm/v1/worker/gpu_worker.py(7): run", (False, "vLLM")),
        ("Block", "sglang/srt/managers/scheduler.py(7): run", (False, "SGLang")),
    ],
)
def test_a_finding_tells_kind_of_model_and_engine_for_advice_that_holds_for_few(model_class, frame, expected):
    program = Program()
    program.python(frame, 0, 100)
    program.python(f"nn.Module: {model_class}_0", 0, 100)
    program.call("aten::mm", NVJET, 90, **product(2000, 2000, 2000))
    (finding,) = findings_of(program)

    assert (finding.evidence["causal_lm"], finding.evidence["engine"]) == expected
    assert finding.evidence["training"] is False
