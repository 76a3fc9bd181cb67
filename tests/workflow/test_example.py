"""The report on the example trace against the simulator's own records of what ran."""

from __future__ import annotations

import json

import pytest

from rooftrace.pack import ROOT
from rooftrace.workflow import analyze

TRACE = ROOT / "examples" / "transformer_training_h100.json.gz"
PARTS = ("span_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
# The simulator's clock has an absolute time; the report counts from the trace's first event.
EPOCH_NS = 1_240_000_000_000_000


@pytest.fixture(scope="module")
def truth():
    return json.loads(TRACE.with_suffix("").with_suffix(".truth.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    run = tmp_path_factory.mktemp("example") / "run"
    analyze(TRACE, run)
    return json.loads((run / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def device(report):
    (device,) = report["ledger"]["devices"]
    return device


def test_the_ledger_is_what_ran(truth, device):
    whole = truth["whole"]

    assert {part: device[part] for part in PARTS} == {part: whole[part] for part in PARTS}
    assert device["start_ns"] == whole["start_ns"] - EPOCH_NS
    assert device["carry_in_ns"] == whole["carry_in_ns"]


def test_each_steps_ledger_is_what_ran_in_it(truth, device):
    def told(step, epoch):
        return step["name"], step["start_ns"] - epoch, [step[part] for part in PARTS]

    assert [told(step, 0) for step in device["steps"]] == [told(step, EPOCH_NS) for step in truth["steps"]]


def test_every_kernel_and_copy_is_counted_with_its_time(truth, report):
    whole, coverage = truth["whole"], report["coverage"]

    assert report["trace"]["gpu_events"] == whole["kernel_count"] + whole["copy_count"]
    assert sum(kernel["count"] for op in report["ops"] for kernel in op["kernels"]) == whole["kernel_count"]
    assert coverage["kernel_ns"] == sum(op["kernel_ns"] for op in report["ops"]) == whole["kernel_ns"]
    assert coverage["ratable_ns"] == coverage["modelled_ns"] == whole["kernel_ns"]  # all are linked, shaped, modelled


def test_matrix_products_are_counted_with_their_flops(truth, report):
    products = [op for op in report["ops"] if op["category"] == "gemm"]

    assert sum(op["count"] for op in products) == truth["whole"]["gemm_calls"]
    assert sum(op["count"] * op["flops"] for op in products) == truth["whole"]["gemm_flops"]


def test_the_gpu_and_the_steps_are_recognised(truth, report):
    assert report["platform"]["slug"] == truth["workload"]["gpu"]
    assert [step["name"] for step in report["trace"]["steps"]] == [step["name"] for step in truth["steps"]]
    assert report["trace"]["workload"] == "training"
    assert report["health"]["verdict"] == "good"


def test_the_slow_product_is_the_finding_with_the_largest_gap_among_products(report):
    # planted: the second linear of every MLP, 12 calls of aten::addmm on an old small-tile kernel
    first = next(finding for finding in report["findings"] if finding["id"] == "gemm.F1")
    ops = {op["id"]: op for op in report["ops"]}
    top = ops[first["members"][0]]

    assert (top["name"], top["count"], top["phase"]) == ("aten::addmm", 12, "forward")
    assert top["shapes"][1:3] == [[8192, 4096], [4096, 1024]]
    assert top["efficiency_pct"] < 40
