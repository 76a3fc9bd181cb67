"""Registration, lookup by name and pattern, categories, and what loading the package costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rooftrace
from rooftrace.opmodels import (
    MODELS,
    Cost,
    Op,
    Unmodelled,
    categorise,
    category_of,
    claims_subtree,
    cost_of,
    find_model,
    op_model,
    registry,
)
from rooftrace.opmodels.parts import f32


def test_a_second_model_for_a_name_is_refused_and_both_modules_are_named() -> None:
    register = op_model("aten::mm", category="gemm")

    with pytest.raises(
        ValueError, match=r"`aten::mm` has a model in rooftrace\.opmodels\.gemm already; .*test_registry"
    ):
        register(lambda _op: Cost(flops=0, bytes_read=0, bytes_written=0))


def test_a_name_given_twice_to_one_model_is_refused() -> None:
    register = op_model("my::twice", "my::twice", category="gemm")

    with pytest.raises(ValueError, match="my::twice"):
        register(lambda _op: Cost(flops=0, bytes_read=0, bytes_written=0))
    assert "my::twice" not in MODELS


def test_a_second_model_for_a_pattern_is_refused() -> None:
    register = op_model(category="elementwise", patterns=(r"^triton_(poi|for)_fused_",))

    with pytest.raises(ValueError, match=r"rooftrace\.opmodels\.triton"):
        register(lambda _op: Cost(flops=0, bytes_read=0, bytes_written=0))


def test_a_name_without_a_model_is_compared_with_the_patterns_of_categories_once(monkeypatch) -> None:
    asked = []
    matches = registry._matches
    monkeypatch.setattr(registry, "_matches", lambda pattern, name: asked.append(name) or matches(pattern, name))
    with registry.kept():
        first = [category_of("my::asked_often"), len(asked)]
        assert [category_of("my::asked_often"), len(asked)] == first
        categorise("gemm", patterns=("^my::asked_",))
        assert category_of("my::asked_often") == "gemm"

    assert category_of("my::asked_often") is None


def test_a_category_outside_the_closed_list_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown category `vision`"):
        op_model("my::op", category="vision")(lambda _op: Unmodelled(reason="none"))


def test_two_categories_for_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="aten::group_norm"):
        categorise("memory", "aten::group_norm")


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aten::mm", "gemm"),
        ("aten::einsum", "gemm"),
        ("aten::_scaled_mm", "gemm"),
        ("aten::_flash_attention_forward", "attention"),
        ("flashinfer::batch_prefill_with_paged_kv_cache", "attention"),
        ("vllm::unified_attention_with_output", "attention"),
        ("vllm::moe_forward", "moe"),
        ("_moe_C::moe_align_block_size", "moe"),
        ("aten::silu", "elementwise"),
        ("_C::silu_and_mul", "elementwise"),
        ("_C::rotary_embedding", "elementwise"),
        ("aten::_softmax", "reduction"),
        ("aten::cross_entropy_loss", "reduction"),
        ("aten::native_layer_norm", "normalization"),
        ("aten::group_norm", "normalization"),
        ("_C::fused_add_rms_norm", "normalization"),
        ("FusedLayerNormAffineFunctionBackward", "normalization"),
        ("aten::convolution_backward", "convolution"),
        ("ConvBiasReLU_", "convolution"),
        ("triton_poi_fused_add_0", "elementwise"),
        ("triton_red_fused_mean_mul_pow_rsqrt_1", "normalization"),
        ("triton_per_fused__softmax_2", "reduction"),
        ("triton_tem_fused_mm_3", "gemm"),
        ("triton_tem_fused_flex_attention_0", "attention"),
        ("triton_my_own_kernel", "triton"),
        ("aten::copy_", "memory"),
        ("aten::reshape", "memory"),
        ("aten::_foreach_add_", "optimizer"),
        ("aten::_foreach_something_new_", "optimizer"),
        ("aten::_fused_adamw_", "optimizer"),
        ("_C::dynamic_scaled_fp8_quant", "quantization"),
        ("aten::dequantize", "quantization"),
        ("aten::embedding", "embedding"),
        ("torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>", "embedding"),
        ("aten::topk", "sort"),
        ("MambaSplitConv1dScanCombinedFn", "ssm"),
        ("nccl:all_reduce", "communication"),
        ("c10d::allreduce_", "communication"),
        ("record_param_comms", "communication"),
        ("aten::_cudnn_rnn", "generic"),
        ("my::own_op", None),
    ],
)
def test_an_op_has_the_category_of_what_it_does(name: str, category: str | None) -> None:
    assert category_of(name) == category


@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("aten::convolution", True),
        ("aten::native_layer_norm", True),
        ("aten::_scaled_dot_product_flash_attention", True),
        ("aten::convolution_backward", True),
        ("aten::cat", True),
        ("aten::index", True),
        ("aten::mean", True),
        ("triton_poi_fused_add_0", True),
        ("aten::linear", False),
        ("aten::matmul", False),
        ("aten::softmax", False),
        ("aten::layer_norm", False),
        ("aten::batch_norm", False),
        ("aten::to", False),
        ("aten::_to_copy", False),
        ("aten::embedding", False),
        ("aten::scaled_dot_product_attention", False),
        ("aten::dropout", False),
        ("FlashAttnFunc", False),
        ("my::own_op", False),
    ],
)
def test_an_op_claims_the_kernels_below_it_unless_it_only_wraps_others(name: str, *, claims: bool) -> None:
    assert claims_subtree(name) is claims


def test_an_exact_name_wins_over_a_pattern() -> None:
    # `^vllm::\w*attention\w*` matches both.
    exact, matched = find_model("vllm::unified_attention"), find_model("vllm::some_new_attention_op")

    assert exact is not None
    assert exact is matched
    assert "vllm::unified_attention" in exact.names
    assert "vllm::some_new_attention_op" not in exact.names


def test_an_op_without_a_model_says_so() -> None:
    assert cost_of(Op(name="my::own_op", args=(f32(2),))) == Unmodelled(reason="no cost model")


def test_an_op_without_arguments_says_that_shapes_are_not_recorded() -> None:
    assert cost_of(Op(name="aten::mm", args=())) == Unmodelled(reason="shapes not recorded")


def test_intensity_is_flops_per_byte_and_none_where_nothing_moves() -> None:
    assert Cost(flops=240, bytes_read=100, bytes_written=20).intensity == 2.0
    assert Cost(flops=240, bytes_read=0, bytes_written=0).intensity is None


def test_loading_the_package_loads_no_module_of_others_but_that_of_records_and_no_io() -> None:
    program = (
        "import sys; import rooftrace.opmodels; "
        "print(sorted({'numpy', 'pydantic', 'orjson', 'json', 'logging', 'subprocess', 'pandas'} "
        "& set(sys.modules)))"
    )
    folder = Path(rooftrace.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(folder)},
    )

    assert done.stdout == "[]\n"


def test_a_file_dropped_into_the_folder_registers_itself(tmp_path: Path) -> None:
    package = tmp_path / "rooftrace"
    source = Path(rooftrace.__file__).parent
    (package / "opmodels").mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    for module in (source / "opmodels").glob("*.py"):
        (package / "opmodels" / module.name).write_text(module.read_text(encoding="utf-8"), encoding="utf-8")
    (package / "opmodels" / "dropped.py").write_text(
        "from .registry import Cost, op_model\n"
        "@op_model('my::dropped', category='generic')\n"
        "def dropped(op):\n"
        "    return Cost(flops=7, bytes_read=1, bytes_written=2)\n",
        encoding="utf-8",
    )
    program = (
        "from rooftrace.opmodels import *\n"
        "print(cost_of(op_from_record('my::dropped', [[2]], ['float'], None, None)).flops, category_of('my::dropped'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert done.stdout == "7 generic\n"
