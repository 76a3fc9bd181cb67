"""GROUND007: advice to do what is done."""

from __future__ import annotations

import pytest

from tests.grounding.slots import told

DONE = {
    "fused attention": (
        "Use `torch.nn.functional.scaled_dot_product_attention`.",
        {"fused": True},
        "\u201cscaled_dot_product_attention\u201d: the attention kernels are fused already; advise another backend or "
        "version by name, or other shapes",
    ),
    "TF32": (
        "Set `torch.backends.cuda.matmul.allow_tf32 = True`.",
        {"precision": "float32", "tf32": True},
        "\u201callow_tf32\u201d: TF32 is on: the kernel's name shows it",
    ),
    "TF32 for bf16": (
        "Enable TF32.",
        {"precision": "bfloat16"},
        "\u201cTF32\u201d: the products run in 16 bits already; TF32 would be a step back",
    ),
    "TF32 on a GPU without": (
        "Enable TF32.",
        {"precision": "float32", "gpu_tf32": False},
        "\u201cTF32\u201d: this GPU has no TF32, as far as the evidence tells",
    ),
    "bf16": (
        "Run it under `torch.autocast`.",
        {"precision": "bfloat16"},
        "\u201cautocast\u201d: it runs in 16 bits already",
    ),
    "channels last": (
        "Convert the model to channels-last.",
        {"top_kernel": "sm80_xmma_fprop_implicit_gemm_nhwc", "layout_ms": 0.0},
        "\u201cchannels-last\u201d: the kernels run on channels-last data and no layout change is among them",
    ),
    "graphs": (
        "Capture the step in CUDA graphs.",
        {"graph_replayed": True},
        "\u201cCUDA graphs\u201d: these kernels are launched by a graph already",
    ),
    "pinned memory": (
        "Use pinned memory for the input.",
        {"pageable_ms": 0.0},
        "\u201cpinned\u201d: no copy goes through pageable memory",
    ),
}
NOT_DONE = {
    "fused attention": {"fused": False},
    "TF32": {"precision": "float32", "tf32": False},
    "TF32 for bf16": {"precision": "float32"},
    "TF32 on a GPU without": {"precision": "float32", "gpu_tf32": True},
    "bf16": {"precision": "float32"},
    "channels last": {"top_kernel": "sm80_xmma_fprop_implicit_gemm_nhwc", "layout_ms": 0.4},
    "graphs": {"graph_replayed": False},
    "pinned memory": {"pageable_ms": 0.6},
    "pinned memory, where no name tells the kind": {"pageable_ms": 0.0, "memory": "unknown"},
}


def advised(case, evidence, grounds, slot="action"):
    if case == "fused attention":
        found = grounds.findings["gemm.F1"]
        grounds.findings["gemm.F1"] = found.model_copy(update={"category": "attention"})
    return told("GROUND007", DONE[case.split(",")[0]][0], grounds, slot=slot, **evidence)


@pytest.fixture
def grounds(grounds):
    """A copy whose findings a test may change."""
    return type(grounds)(run=grounds.run, report=grounds.report, values=grounds.values, summaries=grounds.summaries)


@pytest.mark.parametrize("case", DONE)
def test_advice_to_do_what_is_done_is_refused(case, grounds):
    assert advised(case, DONE[case][1], grounds) == [DONE[case][2]]


@pytest.mark.parametrize("case", DONE)
def test_the_same_advice_passes_where_it_is_not_done(case, grounds):
    assert advised(case, NOT_DONE[case], grounds) == []


@pytest.mark.parametrize("case", DONE)
def test_saying_it_outside_the_advice_is_no_advice(case, grounds):
    assert advised(case, DONE[case][1], grounds, slot="insight") == []


def test_advice_that_names_the_state_passes(grounds):
    text = "TF32 is on already; use bf16 for the rest."

    assert told("GROUND007", text, grounds, slot="action", precision="float32", tf32=True) == []


def test_a_fused_optimizer_is_known_by_its_pattern(grounds):
    found = grounds.findings["elementwise.F1"]
    text = "Pass `fused=True` to use the fused optimizer."

    assert told("GROUND007", text, grounds, finding="elementwise.F1", slot="action") == []
    grounds.findings["elementwise.F1"] = found.model_copy(update={"patterns": ["optimizer_fused"]})
    assert told("GROUND007", text, grounds, finding="elementwise.F1", slot="action") == [
        "\u201cfused=True\u201d: the optimizer is fused already"
    ]


def test_a_summary_may_advise_what_one_of_its_findings_lacks(grounds):
    grounds.findings["gemm.F1"] = grounds.findings["gemm.F1"].model_copy(
        update={"evidence": {**grounds.findings["gemm.F1"].evidence, "graph_replayed": True}}
    )

    assert told("GROUND007", "Use CUDA graphs.", grounds, finding=None, slot="summary") == []
