"""Every model carries worked examples, and they hold under every name of the model."""

from __future__ import annotations

import pytest

from rooftrace.opmodels import CATEGORIES, MODELS, Cost, Op, Unmodelled, cost_of, find_model, models

# A name that each pattern-only model answers to.
PATTERN_NAMES = {
    "rooftrace.opmodels.triton:generated_norm": "triton_red_fused_native_layer_norm_0",
    "rooftrace.opmodels.triton:generated_reduction": "triton_red_fused_sum_0",
    "rooftrace.opmodels.triton:generated_pointwise": "triton_poi_fused_mul_silu_2",
    "rooftrace.opmodels.triton:generated_gemm": "triton_tem_fused_mm_3",
    "rooftrace.opmodels.embedding_tables:split_lookup": (
        "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
    ),
}


def _names() -> list[str]:
    return sorted(MODELS) + sorted(PATTERN_NAMES.values())


@pytest.mark.parametrize("name", _names())
def test_every_worked_example_holds(name: str) -> None:
    model = find_model(name)
    assert model is not None
    examples = [example for example in model.examples if example.only in {None, name}]
    assert examples, f"add an Example(...) to the model of `{name}`"
    for example in examples:
        cost = cost_of(Op(name=name, args=example.args))
        if example.unmodelled is not None:
            assert cost == Unmodelled(reason=example.unmodelled)
            continue
        assert isinstance(cost, Cost), f"{cost}: {example.why}"
        expected = (example.flops, example.bytes_read, example.bytes_written)
        assert (cost.flops, cost.bytes_read, cost.bytes_written) == expected, example.why


def test_every_model_that_only_a_pattern_reaches_is_named_above() -> None:
    only_patterns = {f"{m.module}:{m.cost.__name__}" for m in models() if not m.names}

    assert only_patterns == set(PATTERN_NAMES)


def test_every_model_has_a_category_of_the_closed_list() -> None:
    assert {model.category for model in models()} <= set(CATEGORIES)


def test_an_example_restricted_to_a_name_names_one_of_its_model() -> None:
    for model in models():
        assert {example.only for example in model.examples} <= {None, *model.names}
