from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rooftrace.contracts.pattern import PatternFile
from rooftrace.pack import KNOWLEDGE
from rooftrace.patterns import matching_patterns
from tests.fusion.fields import FUSION, FUSION_RATED, FUSION_UNRATED
from tests.patterns import fields

PATTERNS = KNOWLEDGE / "patterns"
FILES = sorted(PATTERNS.glob("*/*.json"))
TEXTS = ("title", "insight", "action", "reasoning", "resolution", "verify", "cannot_see")
SYSTEM = {"idle", "multi_kernel", "fusion"}
ANALYZERS = (
    "gemm",
    "attention",
    "moe",
    "elementwise",
    "reduction",
    "normalization",
    "convolution",
    "triton",
    "generic",
    "idle",
    "multi_kernel",
    "fusion",
)
# What a condition on one field says about others: they come together.
TOGETHER = (
    fields.RATED - fields.SPELLED,
    fields.ATTENTION,
    fields.CONVOLUTION,
    fields.LOOKUPS,
    fields.LOOPS,
    fields.MESSAGES,
    fields.PEER_LINK,
    fields.WAITING,
    fields.COPIES_OPTIONAL,
    fields.COPY_LINK,
    fields.LARGE_PINNED,
    fields.GAPS,
    fields.SYNC,
    fields.TO_DEVICE,
    fields.TO_HOST,
    fields.LONE,
    fields.HALVED,
    fields.PACE,
    fields.ANNOTATED,
    fields.STALLS,
    fields.GRAPH,
)


def read(path: Path) -> PatternFile:
    return PatternFile.model_validate_json(path.read_bytes())


def known_fields(analyzer: str) -> frozenset[str]:
    if analyzer == "idle":
        return fields.OF_ALL | fields.IDLE | fields.IDLE_OPTIONAL
    if analyzer == "multi_kernel":
        return fields.OF_ALL.union(*fields.ASPECTS.values(), fields.MULTI_KERNEL_OPTIONAL)
    if analyzer == "fusion":
        return fields.OF_ALL | FUSION | FUSION_RATED | FUSION_UNRATED
    return fields.OF_ALL | fields.COMPUTE | fields.COMPUTE_OPTIONAL


def present_fields(pattern: PatternFile) -> frozenset[str]:
    """What is certainly in the evidence when the pattern holds."""
    present = set(fields.OF_ALL | fields.CITED_ONLY)
    present |= {"idle": fields.IDLE, "multi_kernel": frozenset(), "fusion": FUSION}.get(
        pattern.analyzer, fields.COMPUTE
    )
    if pattern.id == "default" and pattern.analyzer not in SYSTEM:
        present |= fields.RATED  # a finding without a rating is written by `unrated`
    if pattern.id == "unrated" and pattern.analyzer not in SYSTEM:
        present |= fields.UNRATED
    required = {condition.field for condition in pattern.when.all}
    for condition in pattern.when.all:
        if pattern.analyzer == "fusion" and condition.field == "kind":
            present |= FUSION_RATED if condition.value == "modelled" else FUSION_UNRATED
        if condition.field == "aspect":
            present |= fields.ASPECTS[str(condition.value)]
    for group in TOGETHER:
        if required & group:
            present |= group | (fields.SPELLED if group <= fields.RATED else frozenset())
    return frozenset(present | required)


def citations(pattern: PatternFile) -> set[str]:
    texts = [getattr(pattern, name) or "" for name in TEXTS]
    return {match for text in texts for match in re.findall(r"\{\{(.*?)\}\}", text)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
class TestEachPattern:
    def test_names_its_file_and_folder(self, path):
        pattern = read(path)

        assert (pattern.id, pattern.analyzer) == (path.stem, path.parent.name)

    def test_compares_only_fields_that_findings_carry(self, path):
        pattern = read(path)
        compared = {condition.field for condition in (*pattern.when.all, *pattern.when.any)}

        assert compared <= known_fields(pattern.analyzer)

    def test_cites_only_what_its_predicate_guarantees(self, path):
        pattern = read(path)

        assert citations(pattern) <= present_fields(pattern)

    def test_has_no_brace_outside_a_citation(self, path):
        pattern = read(path)
        rest = [re.sub(r"\{\{[a-z0-9_]+\}\}", "", getattr(pattern, name) or "") for name in TEXTS]

        assert not [text for text in rest if "{" in text or "}" in text]

    def test_names_a_source_and_keeps_each_text_to_one_paragraph(self, path):
        pattern = read(path)

        assert pattern.sources
        assert not [name for name in TEXTS if "\n" in (getattr(pattern, name) or "")]

    def test_has_a_predicate_unless_it_is_the_default(self, path):
        pattern = read(path)

        assert bool(pattern.when.all or pattern.when.any) == (pattern.id != "default")


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_every_analyzer_has_a_default_and_words_for_what_cannot_be_rated(analyzer):
    default, unrated = (read(PATTERNS / analyzer / f"{name}.json") for name in ("default", "unrated"))

    assert default.priority == 0
    assert unrated.priority == 50
    assert [condition.model_dump() for condition in unrated.when.all] == [
        {"field": "kind", "op": "eq", "value": "upper_bound"}
    ]


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_two_patterns_of_an_analyzer_never_share_a_title(analyzer):
    titles = [json.loads(path.read_bytes())["title"] for path in sorted((PATTERNS / analyzer).glob("*.json"))]

    assert len(titles) == len(set(titles))


# Evidence of a large batched product inside an attention module on a GPU with TF32 and bf16.
BATCHED = {
    "kind": "modelled",
    "category": "gemm",
    "batched": True,
    "attention_module": True,
    "misaligned": True,
    "odd_dims": "N, K",
    "m": 16,
    "n": 3137,
    "k": 3137,
    "bound": "memory",
    "efficiency_pct": 20.0,
    "precision": "bfloat16",
    "tf32": False,
    "gpu_vendor": "nvidia",
    "gpu_tf32": True,
    "gpu_bf16": True,
    "fused": False,
}
WEIGHT = {**BATCHED, "batched": False, "attention_module": False}


def test_products_of_activations_get_no_advice_about_weights():
    assert matching_patterns("gemm", BATCHED) == ["batched_attention", "default"]
    assert matching_patterns("gemm", {**BATCHED, "attention_module": False}) == [
        "batched_products",
        "default",
    ]
    assert matching_patterns("gemm", WEIGHT) == [
        "skinny_memory_bound",
        "misaligned",
        "memory_bound",
        "default",
    ]


def test_an_odd_number_of_rows_alone_is_no_size_of_the_model():
    rows = {**WEIGHT, "odd_dims": "M", "m": 141, "bound": "compute"}

    assert matching_patterns("gemm", rows) == ["misaligned_rows", "low_compute_efficiency", "default"]


@pytest.mark.parametrize(
    ("analyzer", "gpu", "expected"),
    [
        ("gemm", {"gpu_vendor": "nvidia", "gpu_tf32": True, "gpu_bf16": True}, "fp32_without_tf32"),
        ("gemm", {"gpu_vendor": "amd", "gpu_tf32": False, "gpu_bf16": True}, "fp32_on_bf16_units"),
        ("gemm", {"gpu_vendor": "nvidia", "gpu_tf32": False, "gpu_bf16": False}, "fp32_on_fp16_units"),
        ("convolution", {"gpu_vendor": "nvidia", "gpu_tf32": True, "gpu_bf16": True}, "fp32_without_tf32"),
        ("convolution", {"gpu_vendor": "amd", "gpu_tf32": False, "gpu_bf16": True}, "fp32_on_bf16_units"),
        ("convolution", {"gpu_vendor": "nvidia", "gpu_tf32": False, "gpu_bf16": False}, "fp32_on_fp16_units"),
    ],
)
@pytest.mark.parametrize("rating", [{"kind": "modelled", "bound": "compute"}, {"kind": "upper_bound"}])
def test_advice_for_fp32_names_only_formats_that_the_gpu_has(analyzer, gpu, expected, rating):
    found = matching_patterns(analyzer, {"precision": "float32", "tf32": False, **gpu, **rating})

    assert [name for name in found if name.startswith("fp32")] == [expected]


def test_an_unknown_gpu_gets_no_advice_about_formats():
    unknown = {"precision": "float32", "tf32": False, "kind": "upper_bound"}
    machine = {"gpu_name": "", "gpu_vendor": "", "gpu_tf32": False, "gpu_bf16": False}

    assert matching_patterns("gemm", {**unknown, **machine}) == ["unrated", "default"]


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ({"top_op": "aten::_foreach_add_", "op_names": "aten::_foreach_add_"}, ["optimizer_foreach"]),
        ({"top_op": "aten::_fused_adam_", "op_names": "aten::_fused_adam_"}, ["optimizer_fused"]),
        (
            {"top_op": "none", "op_names": "none", "top_kernel": "apply<AdamFunctor<float>>"},
            ["optimizer_fused"],
        ),
        ({"top_op": "aten::_foreach_copy_", "op_names": "aten::_foreach_copy_"}, []),
        (
            {"top_op": "aten::addcdiv_", "op_names": "aten::addcdiv_", "kernels_count": 400},
            ["optimizer_loop"],
        ),
    ],
)
def test_an_optimizer_is_told_to_fuse_only_what_is_not_fused(top, expected):
    known = {
        "kind": "modelled",
        "category": "optimizer",
        "phase": "optimizer",
        "top_kernel": "multi_tensor",
        **top,
    }

    assert [name for name in matching_patterns("elementwise", known) if name != "default"] == expected


@pytest.mark.parametrize(("analyzer", "expected"), [("convolution", "layout_changes"), ("attention", "layout_copies")])
def test_layout_advice_is_for_layout_copies_alone(analyzer, expected):
    copies = {"kind": "measured", "part": "layout", "calls_ms": 2.0, "layout_pct": 100.0, "extra_kernels": "nchwToNhwc"}
    calls = {"kind": "modelled", "layout_pct": 40.0, "extra_kernels": "nchwToNhwc", "bound": "memory"}

    assert matching_patterns(analyzer, copies)[0] == expected
    assert expected not in matching_patterns(analyzer, calls)


def test_forward_work_run_again_has_its_own_advice():
    assert matching_patterns("generic", {"kind": "measured", "part": "recomputation", "ratable_pct": 20.0})[0] == (
        "recomputation"
    )


FUSED = {"fused": True, "efficiency_pct": 20.0, "bound": "compute", "gpu_vendor": "amd", "phase": "forward"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # 76 heads of 35 tiles of queries on 304 units: enough of them, and no backward pass
        pytest.param({"tiles_per_unit": 8.75}, ["fused_on_amd", "default"], id="many tiles"),
        pytest.param({"tiles_per_unit": 1.9}, ["few_tiles", "fused_on_amd", "default"], id="few tiles"),
        pytest.param({"phase": "backward"}, ["fused_backward", "fused_on_amd", "default"], id="backward"),
    ],
)
def test_advice_about_small_calls_and_backward_needs_them(change, expected):
    assert matching_patterns("attention", FUSED | change) == expected


LOOKUP = {"kind": "modelled", "category": "embedding", "top_op": "aten::embedding", "op_names": "aten::embedding"}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, "embedding"),
        ({"tables_count": 122, "fits_cache": False}, "table_batched"),
        ({"tables_count": 122, "fits_cache": True}, "table_batched_in_cache"),
    ],
)
def test_lookups_that_are_joined_already_are_not_told_to_join(tables, expected):
    assert matching_patterns("generic", LOOKUP | tables)[0] == expected


@pytest.mark.parametrize(("library", "expected"), [("Inductor", "generated_kernels"), ("vLLM", "unrated")])
def test_only_kernels_of_the_compiler_are_called_generated(library, expected):
    known = {
        "kind": "upper_bound",
        "category": "elementwise",
        "library": library,
        "op_names": "rotary_embedding_kernel, triton_poi_fused_add_0",
    }

    assert matching_patterns("elementwise", known)[0] == expected


@pytest.mark.parametrize(("share", "expected"), [(50.0, "concatenation"), (49.9, "casts_and_copies")])
def test_a_finding_is_named_after_an_op_that_has_most_of_it(share, expected):
    known = {
        "kind": "modelled",
        "category": "memory",
        "top_op": "aten::cat",
        "op_names": "aten::cat, aten::clone",
        "top_share_pct": share,
    }

    assert matching_patterns("elementwise", known)[0] == expected


@pytest.mark.parametrize(("vendor", "expected"), [("nvidia", "fused_on_nvidia"), ("amd", "fused_on_amd")])
def test_advice_for_fused_attention_is_of_the_vendor(vendor, expected):
    known = {"fused": True, "efficiency_pct": 20.0, "bound": "compute", "gpu_vendor": vendor}

    assert matching_patterns("attention", known) == [expected, "default"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "softmax"),
        ({"attention_module": True}, "softmax_in_attention"),
        ({"top_share_pct": 40.0}, "softmax_among_others"),
        ({"top_op": "aten::sum", "op_names": "aten::sum, aten::_softmax"}, "default"),
    ],
)
def test_a_finding_is_called_softmax_only_where_softmax_is_most_of_it(change, expected):
    known = {
        "top_op": "aten::_softmax",
        "op_names": "aten::_softmax",
        "top_share_pct": 90.0,
        "attention_module": False,
    }

    assert matching_patterns("reduction", {**known, **change})[0] == expected


def test_no_text_sets_something_at_a_share_of_a_floor():
    texts = [text for path in FILES for text in (getattr(read(path), name) or "" for name in TEXTS)]

    assert not [text for text in texts if re.search(r"at \{\{\w+\}\} of (its|their|the)( \w+)? floor", text)]


VIT_GEMM = {
    **WEIGHT,
    "misaligned": False,
    "odd_dims": "",
    "m": 788,
    "bound": "latency",
    "efficiency_pct": 18.2,
    "top_efficiency_pct": 18.1,
    "old_arch_kernel": True,
    "align1": False,
}


def test_a_small_product_far_above_a_kernels_latency_is_told_so_with_its_old_kernel():
    # 788 x 768 x 768 in 8.3 µs on a kernel for Ampere, on an H100
    assert matching_patterns("gemm", VIT_GEMM)[0] == "small_and_slow"
    assert "older_kernels" in matching_patterns("gemm", VIT_GEMM)
    assert "older_kernels" not in matching_patterns("gemm", VIT_GEMM | {"old_arch_kernel": False})
    assert matching_patterns("gemm", VIT_GEMM | {"efficiency_pct": 90.0})[0] == "latency_bound"


def test_unfused_attention_on_kernels_for_odd_sizes_names_both():
    assert matching_patterns("gemm", BATCHED | {"align1": True})[:2] == [
        "batched_attention_unaligned",
        "batched_attention",
    ]


@pytest.mark.parametrize("analyzer", ["gemm", "elementwise", "normalization", "attention", "convolution"])
@pytest.mark.parametrize(("whole", "top"), [(79.9, 90.0), (90.0, 62.6)], ids=["all below", "a large member below"])
def test_only_kernels_at_four_fifths_of_a_ceiling_are_near_it(analyzer, whole, top):
    known = {"category": analyzer, "fused": True, "batched": False, "gpu_vendor": "nvidia"}
    known |= {"efficiency_pct": whole, "top_efficiency_pct": top}
    near = [
        name
        for bound in ("memory", "compute")
        for name in matching_patterns(analyzer, known | {"bound": bound})
        if name.startswith("near")
    ]

    assert near == []


@pytest.mark.parametrize("analyzer", ["gemm", "attention", "convolution", "normalization", "reduction", "elementwise"])
def test_settings_of_one_vendor_are_in_no_advice_for_another(analyzer):
    of_amd = re.compile(r"MIOPEN|ROCM|HIPBLASLT|rocm_fa|Instinct")
    told = {
        path.stem: [name for name in TEXTS if of_amd.search(getattr(read(path), name) or "")]
        for path in sorted((PATTERNS / analyzer).glob("*.json"))
        if not any(c.field == "gpu_vendor" and c.value == "amd" for c in read(path).when.all)
    }

    assert {name: texts for name, texts in told.items() if texts} == {}
