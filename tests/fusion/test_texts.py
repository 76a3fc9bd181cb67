"""The words of findings, as a report has them."""

from __future__ import annotations

import re

import pytest

from rooftrace.analyzers.fusion import analyze
from rooftrace.report.prose import Knowledge, write_finding
from tests.analyzers.workloads import workload_of
from tests.fusion.programs import ADD, BF16, COPY, F32, GEMM, HALF, MUL, OTHER, Model, X, rms_norm

PRODUCT = (HALF, ([1024, 1024], BF16))


def written(model, platform="h100-sxm"):
    """The findings with words, first one first."""
    drafts = analyze(workload_of(model, platform))[1]
    knowledge = Knowledge()
    return [
        write_finding(draft.finding, analyzer="fusion", rank=rank, knowledge=knowledge)
        for rank, draft in enumerate(drafts, start=1)
    ]


def first(model):
    return written(model)[0]


def test_one_instance_reads_as_one():
    model = Model()
    rms_norm(model)
    finding = first(model)

    assert finding.insight.startswith("1 x 8 kernels (")
    assert not re.search(r"\b1 (times|launches)\b", " ".join([finding.insight, finding.reasoning, finding.verify]))


def test_a_score_beyond_the_kernels_time_is_explained_by_the_hosts_work():
    model = Model()
    rms_norm(model)
    evidence, reasoning = first(model).evidence, first(model).reasoning

    assert evidence["host_cut_ms"] == 0.056  # seven calls of 8 µs are made no more
    assert "The 7 launches that go cost the host 56.0 µs, which the score counts as well." in reasoning


def test_a_loop_that_saves_no_traffic_claims_none():
    model = Model()
    for _ in range(20):
        model.call("aten::add_", 2, ([1000], F32), ([1000], F32), kernel=ADD, scalars=("1",))
    finding = first(model)

    assert finding.evidence["inner_bytes"] == 0
    assert "240 kB and so does one multi-tensor call" in finding.reasoning  # 20 * 3 * 1000 * 4 bytes
    assert "0 B" not in re.sub(r"`[^`]*`", "", finding.reasoning).replace("240 kB", "")


def test_an_epilogue_without_operands_says_so_and_cites_no_nothing():
    model = Model()
    model.call("aten::mm", 100, *PRODUCT, kernel=GEMM)
    model.call("aten::relu", 60, HALF)
    finding = first(model)

    assert finding.patterns[0] == "gemm_epilogue_alone"
    assert "its epilogue has no further operand to read" in finding.reasoning
    assert " 0 B" not in finding.reasoning
    assert "The call in brackets stays" in finding.resolution
    assert finding.verify.endswith("no longer follows the product.")


def test_an_epilogue_with_an_operand_says_what_it_moves():
    model = Model()
    model.call("aten::mm", 100, *PRODUCT, kernel=GEMM)
    model.call("aten::add", 60, HALF, HALF, kernel=ADD, scalars=("1",))
    finding = first(model)

    assert finding.patterns[0] == "gemm_epilogue"
    assert "the calls move 16.8 MB" in finding.reasoning  # 8192 * 1024 * 2 bytes
    assert "torch.addmm" in finding.action


def test_a_gelu_after_a_product_is_told_that_libraries_have_the_other_form():
    model = Model()
    model.call("aten::addmm", 100, ([1024], BF16), *PRODUCT, kernel=GEMM)
    model.call("aten::gelu", 60, HALF, scalars=("none",))
    finding = first(model)

    assert finding.patterns[0] == "gemm_epilogue_gelu"
    assert "may be the tanh form, while `aten::gelu` is exact (erf)" in finding.resolution
    assert "torch.addmm" not in finding.action  # an addend is there already


def activation(*calls):
    model = Model()
    with model.module("Activation_0"):
        for name, operands, scalars in calls:
            model.call(f"aten::{name}", 30, *[X] * operands, kernel=MUL if name == "mul" else OTHER, scalars=scalars)
    return model


def test_quick_gelu_is_never_sent_to_gelu():
    finding = first(activation(("mul", 1, ("1.702",)), ("sigmoid", 1, ()), ("mul", 2, ())))

    assert finding.patterns[0] == "quick_gelu"
    assert "gelu(" not in finding.action
    assert finding.action.startswith("Compile the activation, or write it as one Triton kernel: `torch.compile, ")
    assert "another function" in finding.resolution


def test_gelu_by_erf_and_by_tanh_are_each_offered_their_own_form():
    by_erf = first(
        activation(("mul", 1, ("0.5",)), ("div", 1, ("1.414",)), ("erf", 1, ()), ("add", 1, ("1", "1")), ("mul", 2, ()))
    )
    by_tanh = first(
        activation(
            ("mul", 1, ("0.5",)),
            ("pow", 1, ("3",)),
            ("mul", 1, ("0.044715",)),
            ("add", 2, ("1",)),
            ("mul", 1, ("0.797",)),
            ("tanh", 1, ()),
            ("add", 1, ("1", "1")),
            ("mul", 2, ()),
        )
    )

    assert by_erf.action.endswith("`torch.nn.functional.gelu, torch.compile`.")
    assert by_tanh.action.endswith('`torch.nn.functional.gelu(approximate="tanh"), torch.compile`.')


def attention(*, bias):
    model = Model()
    query, key, scores = ([64, 256, 64], BF16), ([64, 64, 256], BF16), ([64, 256, 256], BF16)
    with model.module("T5Attention_0"):
        model.call("aten::bmm", 50, query, key, kernel=GEMM)
        if bias:
            model.call("aten::add_", 50, scores, scores, kernel=ADD, scalars=("1",))
        model.call("aten::_softmax", 50, scores, scalars=("-1", "False"))
        model.call("aten::bmm", 50, scores, query, kernel=GEMM)
    return first(model)


def test_attention_names_the_fused_call_once_and_the_setting_only_where_it_is_offered():
    action = attention(bias=False).action

    assert action.count("scaled_dot_product_attention") == 1
    assert 'attn_implementation="sdpa" where the class offers it, flash_attn_func' in action


def test_attention_with_a_bias_goes_to_an_op_that_takes_one():
    finding = attention(bias=True)

    assert "flash_attn_func" not in finding.action
    assert "a relative position bias (T5), goes in as `attn_mask`" in finding.resolution


def several(count):
    """A model with as many different chains."""
    model = Model()
    with model.module("Head_0"):
        for name in ("cos", "sin", "exp", "abs")[:count]:
            with model.module(f"{name.title()}_0"):
                model.call(f"aten::{name}", 30, X)
                model.call("aten::tanh", 30, X)
    return model


def test_several_fusions_of_an_eager_model_have_one_move_in_the_first():
    three, two = written(several(3)), written(several(2))
    sentence = "Also: One move covers the fusions of this model and many of its launches: `torch.compile of the model"

    assert [sentence in finding.resolution for finding in three] == [True, False, False]
    assert [sentence in finding.resolution for finding in two] == [False, False]


def of_transformers(model_class):
    """Three chains, and a copy inside a model of Transformers."""
    model = several(3)
    with model.frame("transformers/models/some/modeling_some.py(55): forward"), model.module(f"{model_class}_0"):
        model.call("aten::copy_", 1, X, X, kernel=COPY, scalars=("False",))
    return model


@pytest.mark.parametrize(
    ("model_class", "expected"),
    [
        ("LlamaForCausalLM", "torch.compile of the model, an inference engine, or Liger patches"),
        # Liger has no patches for models of images: a classifier is told what holds for any model
        ("ViTForImageClassification", "torch.compile of the model or an inference engine"),
    ],
)
def test_one_move_is_in_the_summary_and_names_liger_only_for_language_models_of_transformers(model_class, expected):
    assert analyze(workload_of(several(3)))[0]["one_move"] == "torch.compile of the model or an inference engine"
    assert analyze(workload_of(of_transformers(model_class)))[0]["one_move"] == expected
    assert "one_move" not in analyze(workload_of(several(2)))[0]


def test_a_model_with_generated_kernels_does_not_run_eagerly():
    model = several(3)
    model.call("triton_poi_fused_add_0", 5, X, X, kernel="triton_poi_fused_add_0")

    assert "one_move" in analyze(workload_of(model))[0]  # outside the model

    model = several(2)
    with model.module("Head_0"):
        with model.module("Abs_0"):
            model.call("aten::abs", 30, X)
            model.call("aten::tanh", 30, X)
        model.call("triton_poi_fused_add_0", 5, X, X, kernel="triton_poi_fused_add_0")

    assert "one_move" not in analyze(workload_of(model))[0]


@pytest.mark.parametrize(
    ("functor", "shown"),
    [
        ("at::native::CUDAFunctor_add<c10::BFloat16>", "vectorized_elementwise_kernel<… CUDAFunctor_add>"),
        ("at::native::GeluCUDAKernelImpl", "vectorized_elementwise_kernel<… GeluCUDAKernelImpl>"),
    ],
)
def test_a_long_kernel_name_keeps_the_functor_that_tells_it(functor, shown):
    model = Model()
    kernel = f"void at::native::vectorized_elementwise_kernel<4, {functor}, std::array<char*, 3ul> >"
    with model.module("Head_0"):
        model.call("aten::cos", 30, X, kernel=kernel)
        model.call("aten::tanh", 30, X)

    assert first(model).evidence["kernel_chain"].split(" -> ")[0] == shown
