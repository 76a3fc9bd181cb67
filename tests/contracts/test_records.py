"""The models: what they take, what they refuse, and that nothing is lost on the way to a file and back."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from pydantic import ValidationError

from rooftrace import opmodels
from rooftrace.contracts import store
from rooftrace.contracts.base import Category
from rooftrace.contracts.evidence import AnalyzerEvidence
from rooftrace.contracts.generate import MODELS
from rooftrace.contracts.ledger import DeviceLedger, LedgerParts
from rooftrace.contracts.report import Coverage, ReportFile
from rooftrace.errors import CheckFailed, InputError
from rooftrace.pack import KNOWLEDGE
from tests.contracts.written import WRITTEN

PARTS = {
    "carry_in_ns": 0,
    "span_ns": 100,
    "compute_ns": 60,
    "exposed_comm_ns": 10,
    "exposed_copy_ns": 5,
    "idle_ns": 25,  # 60 + 10 + 5 + 25 = 100
    "total_comm_ns": 20,
    "total_copy_ns": 5,
    "compute_by_category": {"gemm": 50, "elementwise": 10},
    "idle_by_cause": {"unattributed": 25},
}
COVERAGE = {
    "kernel_ns": 100,
    "comm_ns": 10,
    "copy_ns": 7,
    "carry_in_ns": 5,
    "lost_launch_ns": 5,
    "ratable_ns": 80,  # 10 + 5 + 5 + 80 = 100
    "shaped_ns": 70,
    "modelled_ns": 60,
    "rated_ns": 50,
    "reasons": {"no model": 20, "no shapes": 10},  # 80 - 50 = 30
}
EXAMPLES = {
    "manifest": "manifest.json",
    "report": "report.json",
    "ledger": "evidence/ledger.json",
    "evidence": "evidence/gemm.json",
    "replay": "evidence/replay.json",
    "model_evidence": "evidence/model.json",
}
KNOWN = {
    "fusion_pattern": "fusion/rms_norm.json",
    "equivalents": "equivalents.json",
    "compare_causes": "compare_causes.json",
    "platform": "platforms/h100-sxm.json",
    "pattern": "patterns/gemm/default.json",
    "library": "libraries/cublas.json",
    "kernel_category": "kernel_categories/gemm.json",
}
ALL = (*EXAMPLES, *KNOWN, *WRITTEN, "calibrated_platform")
# the pack holds no such file
CALIBRATED = {
    "schema_version": "1.0",
    "origin": "calibrated",
    "slug": "my-gpu",
    "names": ["NVIDIA Example"],
    "vendor": "nvidia",
    "product": "Example",
    "compute_units": 100,
    "measured_on": "2025-01-31",
    "software": "torch 2.6.0, CUDA 12.4",
    "memory": {
        "capacity_bytes": 1_000_000_000,
        "bandwidth": {"value_gbytes_per_s": 900.5, "statistic": "copy of 1 GiB, 20 batches", "spread_pct": 1.5},
    },
    "ceilings": [
        {
            "precision": "bfloat16",
            "unit": "matrix",
            "achievable": {"value_tflops": 250.0, "statistic": "8192 cubed, 20 batches", "spread_pct": 2.0},
        }
    ],
}


@pytest.fixture
def example(training):
    """Content of one file of each model, by the model's name."""

    def read(name: str) -> bytes:
        if name in WRITTEN or name == "calibrated_platform":
            return json.dumps(WRITTEN.get(name, CALIBRATED)).encode()
        return (training / EXAMPLES[name] if name in EXAMPLES else KNOWLEDGE / KNOWN[name]).read_bytes()

    return read


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_artifact_read_and_written_again_is_the_same_bytes(name, training, example):
    path = training / EXAMPLES[name]

    assert store.to_json(store.read_artifact(path, MODELS[name])) == example(name)


@pytest.mark.parametrize("name", [*KNOWN, *WRITTEN, "calibrated_platform"])
def test_a_file_written_by_hand_survives_the_way_through_its_model(name, example):
    once = MODELS[name].model_validate_json(example(name))

    assert MODELS[name].model_validate_json(once.model_dump_json()) == once
    assert json.loads(once.model_dump_json(exclude_unset=True)) == json.loads(example(name))


def test_every_model_has_an_example_here():
    # tests/compare and tests/repro write and read these
    elsewhere = {"compare", "compare_evidence", "comparison_manifest", "chains"}

    assert sorted(ALL) == sorted(MODELS.keys() - elsewhere)


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_field_is_refused(name, example):
    content = json.loads(example(name)) | {"surprise": 1}

    with pytest.raises(ValidationError, match="surprise\n  Extra inputs are not permitted"):
        MODELS[name].model_validate(content)


@pytest.mark.parametrize("name", ALL)
def test_another_schema_version_is_refused(name, example):
    content = json.loads(example(name)) | {"schema_version": "2.0"}

    with pytest.raises(ValidationError, match=r"schema_version\n  Input should be '1\.0'"):
        MODELS[name].model_validate(content)


def test_parts_that_sum_up_are_taken():
    assert LedgerParts(**PARTS).idle_ns == 25
    assert Coverage(**COVERAGE).rated_ns == 50


@pytest.mark.parametrize(
    ("model", "content", "message"),
    [
        (LedgerParts, PARTS | {"span_ns": 101}, "the four parts sum to 100 ns, the span is 101 ns"),
        (
            LedgerParts,
            PARTS | {"compute_by_category": {"gemm": 59}},
            "compute_by_category sums to 59 ns instead of 60 ns",
        ),
        (LedgerParts, PARTS | {"idle_by_cause": {}}, "idle_by_cause sums to 0 ns instead of 25 ns"),
        (LedgerParts, PARTS | {"idle_ns": -1}, "idle_ns\n  Input should be greater than or equal to 0"),
        (
            DeviceLedger,
            PARTS | {"device": 0, "start_ns": 0, "carry_in_ns": 0, "steps": [PARTS | {"name": "0", "start_ns": 0}] * 2},
            "the steps' span_ns sum to 200, the device has 100",
        ),
        (
            Coverage,
            COVERAGE | {"kernel_ns": 99},
            "communication, carry-in, lost and ratable time sum to 100 ns, kernels to 99 ns",
        ),
        (
            Coverage,
            COVERAGE | {"reasons": {"no model": 29}},
            "the reasons do not sum to the time that is not rated",
        ),
    ],
)
def test_time_that_is_not_conserved_is_refused(model, content, message):
    with pytest.raises(ValidationError, match=re.escape(message)):
        model(**content)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused_before_it_becomes_null(value):
    with pytest.raises(ValidationError, match="Input should be a finite number"):
        AnalyzerEvidence(
            analyzer="gemm", summary={"time_ms": value}, findings=[], tool_version="0", source_sha256="0" * 64
        )


def test_problems_of_a_file_are_listed_by_json_path(tmp_path, training):
    content = json.loads((training / "report.json").read_bytes())
    content["ops"][0]["count"] = "2"
    content["health"]["verdict"] = "perfect"
    (tmp_path / "report.json").write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(CheckFailed) as caught:
        store.read_artifact(tmp_path / "report.json", ReportFile)
    assert str(caught.value) == (
        "error: `report.json` does not match its schema: 2 problems\n"
        "  report.json::$.health.verdict: Input should be 'good', 'limited' or 'unusable'\n"
        "  report.json::$.ops[0].count: Input should be a valid integer\n"
        "\n"
        "hint: Run `rooftrace analyze TRACE -o RUN` to make it again; it is generated and not to be edited"
    )


def test_a_missing_file_is_told_with_what_makes_it(tmp_path):
    with pytest.raises(InputError) as caught:
        store.read_bytes(tmp_path / "report.json")
    assert str(caught.value) == (
        f"error: `report.json` is missing from `{tmp_path}`\n\nhint: Run `rooftrace analyze TRACE -o RUN` to make it"
    )


def test_a_file_is_replaced_whole_and_leaves_no_temporary_file(tmp_path):
    store.write_bytes(tmp_path / "evidence/ops.csv", b"old")
    store.write_bytes(tmp_path / "evidence/ops.csv", b"new")

    assert [path.name for path in (tmp_path / "evidence").iterdir()] == ["ops.csv"]
    assert (tmp_path / "evidence/ops.csv").read_bytes() == b"new"


def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path):
    (tmp_path / "report.json").mkdir()  # a file cannot take a folder's place

    with pytest.raises(OSError, match=r"report\.json"):
        store.write_bytes(tmp_path / "report.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_the_categories_of_ops_and_of_files_are_one_list():
    # op models load no third-party module, so they cannot take the list from here
    assert get_args(Category) == opmodels.CATEGORIES
