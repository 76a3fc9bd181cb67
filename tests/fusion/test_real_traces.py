"""Candidates of real traces against a reading of their JSON that shares no code with the package."""

from __future__ import annotations

from functools import cache

import pytest

from rooftrace import platforms
from rooftrace.calltree import build_context, build_tree, collect_activities
from rooftrace.fusion import FusionInputs, find_candidates
from rooftrace.fusion.owners import DDP_COPIES
from rooftrace.trace import load
from tests.fusion.raw import Raw, total
from tests.truth.traces import missing_reason, traces_root

pytestmark = pytest.mark.real_traces

QWEN = "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
TIMESFORMER = "h100/facebook_timesformer-base-finetuned-k400__1016002.json.gz"
OWL = "h100/google_owlv2-large-patch14-ensemble__1016001.json.gz"
RESNET = "mi300/resnet_act_checkpoint.json.gz"
RECOMMENDER = "ranks/dlrm8/rank4.json.gz"
NORMS = "mi300/normalization_layer_test.json.gz"
COMPILED = "mi300/torch_compile_triton.json.gz"
SWITCH = "nvidia/a100_switch_transformer.json.gz"
SGLANG = "serving/sglang_decode/sglang_Qwen3-8B_decode.json.gz"
VLLM = "serving/vllm_decode_full/graph_execution.json.gz"


def needs(relative):
    if reason := missing_reason(relative):
        pytest.skip(reason)
    return traces_root() / relative


@cache
def result_of(relative, platform):
    trace, _ = load(needs(relative))
    tree = build_tree(trace)
    return find_candidates(
        FusionInputs(
            trace=trace,
            tree=tree,
            context=build_context(trace, tree),
            activities=collect_activities(trace, tree),
            platform=platforms.load_platform(platform),
        )
    )


@cache
def raw_of(relative):
    return Raw(needs(relative))


def of_pattern(result, identity):
    return [c for c in result.candidates if c.composition is not None and c.composition.identity == identity]


def time_of(candidates):
    return sum(int(candidate.time_ns.sum()) for candidate in candidates)


def test_qwens_norms_are_one_candidate_of_49_instances_with_just_their_kernels_time():
    (norm,) = of_pattern(result_of(QWEN, "mi300x"), "rms_norm")
    frames = raw_of(QWEN).frames("nn.Module: Qwen2RMSNorm_")
    inside = [kernels for frame in frames if (kernels := raw_of(QWEN).inside(frame))]

    assert [len(kernels) for kernels in inside] == [8] * 49
    assert (int(norm.first.size), len(norm.members)) == (49, 8)
    assert time_of([norm]) == sum(total(kernels) for kernels in inside) == 5_674_205


def test_qwens_norms_of_before_the_window_are_counted_apart_by_their_rsqrt():
    result = result_of(QWEN, "mi300x")
    (norm,) = of_pattern(result, "rms_norm")

    assert sum("rsqrt" in kernel["name"] for kernel in raw_of(QWEN).unlinked) == 22
    assert result.before_window[norm.example] == 22


def test_qwens_rotary_embedding_is_found_once_with_every_call():
    (rope,) = of_pattern(result_of(QWEN, "mi300x"), "rope")
    inside = [raw_of(QWEN).inside(frame) for frame in raw_of(QWEN).frames(": apply_rotary_pos_emb")]

    assert [len(kernels) for kernels in inside] == [10] * 24
    assert (int(rope.first.size), len(rope.members)) == (24, 10)
    assert time_of([rope]) == sum(total(kernels) for kernels in inside) == 4_523_117


def test_timesformers_attention_claims_products_and_softmax_and_no_projection():
    cores = of_pattern(result_of(TIMESFORMER, "h100-sxm"), "attention_core")
    inside = [raw_of(TIMESFORMER).inside(f) for f in raw_of(TIMESFORMER).frames("nn.Module: TimesformerSelfAttention_")]
    expected = [core for kernels in inside for core in around_softmax(kernels)]

    assert [len(core) for core in expected] == [5] * 24  # product, scaling, softmax, copy of the values, product
    assert sum(int(core.first.size) for core in cores) == 24
    assert time_of(cores) == sum(total(core) for core in expected)


def test_owls_attention_is_found_for_every_softmax():
    cores = of_pattern(result_of(OWL, "h100-sxm"), "attention_core")
    expected = around_softmax([kernel for _, _, kernel in raw_of(OWL).kernels])

    assert sorted(len(core) for core in expected) == [3] * 120 + [5] * 60  # vision without mask, text with two masks
    assert sum(int(core.first.size) for core in cores) == 180
    assert time_of(cores) == sum(total(core) for core in expected)


def around_softmax(kernels):
    """Kernels from the matrix product before each softmax to the one behind it."""
    found = []
    for at, kernel in enumerate(kernels):
        if "softmax" not in kernel["name"].lower():
            continue
        low, high = at - 1, at + 1
        while "elementwise" in kernels[low]["name"]:
            low -= 1
        while "elementwise" in kernels[high]["name"]:
            high += 1
        found.append(kernels[low : high + 1])
    return found


def test_resnets_batch_norms_are_ops_already_and_no_candidate():
    result = result_of(RESNET, "mi300x")
    words = {call.word for candidate in result.candidates for call in candidate.calls}

    assert "batch_norm" not in words
    assert not of_pattern(result, "batch_norm")
    # The modules' 4.0 ms stay with their ops; extrapolating the first instance would claim 19.3 ms of them.
    inside = [k for frame in raw_of(RESNET).frames("nn.Module: BatchNorm2d_") for k in raw_of(RESNET).inside(frame)]
    assert total(inside) > 3 * time_of(of_pattern(result, "add_act")) > 0


@pytest.mark.parametrize(("relative", "platform"), [(NORMS, "mi300x"), (COMPILED, "mi300x")])
def test_norms_that_are_one_op_and_code_that_is_compiled_leave_nothing_to_fuse(relative, platform):
    assert result_of(relative, platform).candidates == ()


def test_switch_transformers_activations_join_their_products_and_leave_these_alone():
    result = result_of(SWITCH, "a100-pcie-80")
    (gelu,) = of_pattern(result, "gemm_epilogue")

    assert (int(gelu.first.size), gelu.replaced[0].name, gelu.calls[0].name) == (
        40,
        "aten::gelu",
        "aten::addmm",
    )
    gelus = [k for _, _, k in raw_of(SWITCH).kernels if "GeluCUDA" in k["name"] or "gelu" in k["name"].lower()]
    assert (len(gelus), total(gelus)) == (40, 687_000)
    assert time_of([gelu]) == 687_000


@pytest.mark.parametrize(("relative", "platform"), [(SGLANG, "mi300x"), (VLLM, "mi300x")])
def test_replayed_graphs_claim_no_time(relative, platform):
    result = result_of(relative, platform)
    graphs = result.calls.order[result.calls.bounds[:-1][result.calls.node < 0]]
    claimed = [result.activities(candidate).reshape(-1).tolist() for candidate in result.candidates]
    assert graphs.size > 300
    assert not set(graphs.tolist()) & {activity for part in claimed for activity in part}


def test_a_recommenders_step_is_adagrads_with_five_passes_over_its_parameters():
    result = result_of(RECOMMENDER, "v100-sxm2-32")
    (step,) = of_pattern(result, "adagrad_loop")
    sizes = [call.writes[0].numel for call in step.replaced if call.word == "addcdiv"]

    assert of_pattern(result, "adam_loop") == []
    assert (step.scope, int(step.first.size), len(step.members)) == ("Optimizer.step#Adagrad.step", 1, 64)
    assert len(sizes) == 16
    assert step.estimate.nbytes == 5 * 4 * sum(sizes)  # weight, gradient, sum read; weight, sum written; f32
    assert 12_400_000 < step.estimate.nbytes < 12_500_000


def test_resnets_copies_of_buffers_and_buckets_are_data_parallelisms_own():
    result = result_of(RESNET, "mi300x")
    (copies,) = [one for one in result.rejected if one.reason == DDP_COPIES]
    buckets = [event for event in raw_of(RESNET).complete if event["name"].endswith("reducer::copy_bucket_to_grad")]

    assert of_pattern(result, "same_op_loop") == []
    assert len(buckets) == 186
    assert copies.count == 186 + 180  # 3 steps of 60 buffers


def test_owls_activation_is_quick_gelu_and_no_gelu():
    result = result_of(OWL, "h100-sxm")
    inside = [raw_of(OWL).inside(f) for f in raw_of(OWL).frames("nn.Module: QuickGELUActivation_")]

    assert of_pattern(result, "gelu") == []
    assert sum(int(one.first.size) for one in of_pattern(result, "quick_gelu")) == 180
    assert time_of(of_pattern(result, "quick_gelu")) == sum(total(kernels) for kernels in inside)
