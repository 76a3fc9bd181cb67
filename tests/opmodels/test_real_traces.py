"""Check values that another tool printed for real traces, after the differences that have a name."""

from __future__ import annotations

import ast
import csv
import os
from math import prod
from pathlib import Path

import pytest

from rooftrace.opmodels import Cost, cost_of, op_from_record

TRACES = Path(os.environ.get("ROOFTRACE_TRACES", Path(__file__).parents[2] / ".." / "shared" / "traces"))
TABLES = sorted((TRACES / "reference").glob("*/*/unified_perf_summary.csv"))

pytestmark = [
    pytest.mark.real_traces,
    pytest.mark.skipif(not TABLES, reason=f"no reference tables under {TRACES}"),
]

# Sizes of gigabytes of text: one cell holds every kernel of a row.
csv.field_size_limit(2**30)


def _rows() -> list[dict[str, str]]:
    rows = []
    for table in TABLES:
        with table.open(newline="", encoding="utf-8") as file:
            rows += [row for row in csv.DictReader(file) if row["GFLOPS"] not in {"", "nan"}]
    return rows


def _lists(value: object) -> object:
    return [_lists(item) for item in value] if isinstance(value, tuple | list) else value


def _cost(row: dict[str, str]) -> Cost:
    columns = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    dims, types, strides, concrete = (_lists(ast.literal_eval(row[column])) for column in columns)
    cost = cost_of(op_from_record(row["name"], dims, types, strides, concrete))  # type: ignore[arg-type]
    assert isinstance(cost, Cost), (row["name"], cost)
    return cost


def _first_sizes(row: dict[str, str], index: int) -> tuple[int, ...]:
    return tuple(ast.literal_eval(row["Input Dims"])[index])


def _bias_additions(row: dict[str, str]) -> int:
    """One addition for each output of a convolution with a bias: its FLOPs without bias over 2 * taps."""
    if not _first_sizes(row, 2):
        return 0
    _, channels, *kernel = _first_sizes(row, 1)
    return round(float(row["GFLOPS"]) * 1e9 / (2 * channels * prod(kernel)))


def test_matrix_products_and_convolutions_agree_but_for_the_flops_of_a_bias() -> None:
    compared = 0
    for row in _rows():
        if row["name"] not in {"aten::mm", "aten::bmm", "aten::addmm", "aten::convolution"}:
            continue
        flops = _cost(row).flops
        if row["name"] == "aten::addmm":
            flops += _first_sizes(row, 1)[0] * _first_sizes(row, 2)[1]  # the peer counts it, we do not
        if row["name"] == "aten::convolution":
            flops -= _bias_additions(row)  # we count it, the peer does not
        assert flops == pytest.approx(float(row["GFLOPS"]) * 1e9, rel=1e-9), row["name"]
        compared += 1
    assert compared >= 60


def test_attention_agrees_but_for_the_diagonal_and_the_log_sum_exp() -> None:
    compared = 0
    for row in _rows():
        if row["name"] != "aten::_scaled_dot_product_flash_attention":
            continue
        cost = _cost(row)
        batch, heads, tokens, _ = _first_sizes(row, 0)
        causal = ast.literal_eval(row["Concrete Inputs"])[4] == "True"
        share = (tokens + 1) / tokens if causal else 1.0  # exact triangle against one half
        assert cost.flops == pytest.approx(float(row["GFLOPS"]) * 1e9 * share, rel=1e-9)
        without_lse = cost.bytes_total - batch * heads * tokens * 4
        assert without_lse == pytest.approx(float(row["Data Moved (MB)"]) * 2**20, rel=1e-9)
        compared += 1
    assert compared >= 4


def test_a_row_of_the_qwen_trace_has_the_published_figures() -> None:
    # 51.5816 GFLOP and 71.0078 MiB: bf16, M=8944, N=2816, K=1024
    record = op_from_record(
        "aten::mm",
        [[8944, 1024], [1024, 2816]],
        ["c10::BFloat16", "c10::BFloat16"],
        [[1024, 1], [1, 1024]],
        ["", ""],
    )
    cost = cost_of(record)

    assert isinstance(cost, Cost)
    assert cost.flops == 51_581_550_592
    assert cost.bytes_total / 2**20 == 71.0078125
