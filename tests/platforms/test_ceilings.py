"""The limit that an operation meets, and which figure it comes from."""

from __future__ import annotations

import pytest

from rooftrace.pack import KNOWLEDGE
from rooftrace.platforms import (
    bandwidth_ceiling,
    compute_ceiling,
    last_level_cache_bytes,
    latency_floor_ns,
    load_platform,
)
from rooftrace.platforms.table import markdown


def test_a_published_measurement_is_the_limit_and_the_datasheet_stands_beside_it():
    ceiling = compute_ceiling(load_platform("mi300x"), "bfloat16", "matrix")
    assert ceiling is not None
    assert (ceiling.flops_per_s, ceiling.datasheet, ceiling.kind) == (708e12, 1307.4e12, "achievable")
    assert ceiling.source.startswith("AMD ROCm blogs, Measuring Max-Achievable FLOPs")


def test_without_a_measurement_the_dense_datasheet_figure_is_the_limit():
    ceiling = compute_ceiling(load_platform("h100-sxm"), "float16", "matrix")
    assert ceiling is not None
    assert (ceiling.flops_per_s, ceiling.datasheet, ceiling.kind) == (989.4e12, 989.4e12, "datasheet-dense")


@pytest.mark.parametrize(
    ("slug", "dtype", "unit", "tflops"),
    [
        ("mi300x", "float8_e4m3fnuz", "matrix", 1273.0),
        ("mi325x", "float8_e5m2", "matrix", 1519.0),
        ("mi325x", "float16", "matrix", 794.0),
        ("h100-pcie", "float8_e4m3fn", "matrix", 1512.9),
        ("b200", "float4_e2m1fn_x2", "matrix", 9000.0),
        ("mi355x", "float6_e3m2fn", "matrix", 10100.0),
        ("a100-sxm-40", "tfloat32", "matrix", 156.0),
        ("a100-sxm-40", "torch.bfloat16", "matrix", 312.0),
        ("l4", "uint8", "matrix", 242.5),
        ("h100-pcie", "double", "vector", 25.6),
        ("a100-sxm-40", "half", "vector", 78.0),
    ],
)
def test_every_spelling_of_a_dtype_finds_its_rate(slug: str, dtype: str, unit: str, tflops: float):
    ceiling = compute_ceiling(load_platform(slug), dtype, unit)
    assert ceiling is not None
    assert ceiling.flops_per_s == pytest.approx(tflops * 1e12)


@pytest.mark.parametrize("dtype", ["bfloat16", "int64", "bool", "float8_e4m3fn"])
def test_vector_work_without_a_rate_of_its_own_counts_at_the_float32_rate_and_says_so(dtype: str):
    ceiling = compute_ceiling(load_platform("l4"), dtype, "vector")
    assert ceiling is not None
    assert ceiling.flops_per_s == 30.3e12
    name = "float8" if dtype.startswith("float8") else dtype
    assert ceiling.source.endswith(f"(no {name} vector rate is published, so float32 counts)")


def test_float64_vector_work_does_not_borrow_the_float32_rate():
    # GeForce cards run float64 at 1/64 of the float32 rate: a missing one must not become 64 times too high.
    assert compute_ceiling(load_platform("rtx-3060"), "float64", "vector") is None


def test_a_float32_product_uses_a_float32_matrix_rate_where_there_is_one():
    ceiling = compute_ceiling(load_platform("mi210"), "float32", "matrix")
    assert ceiling is not None
    assert ceiling.flops_per_s == 45.3e12  # the vector rate is 22.6


def test_a_float32_product_without_tf32_runs_on_the_vector_units_elsewhere_and_says_so():
    ceiling = compute_ceiling(load_platform("h100-sxm"), "float32", "matrix")
    assert ceiling is not None
    assert ceiling.flops_per_s == 66.9e12
    assert ceiling.source.endswith("(no float32 matrix rate is published, so its vector rate counts)")


@pytest.mark.parametrize(
    ("slug", "dtype"),
    [
        ("v100-sxm2-16", "bfloat16"),
        ("a100-sxm-80", "float8_e4m3fn"),
        ("h100-sxm", "float4_e2m1fn_x2"),
        ("mi355x", "tfloat32"),
        ("h100-sxm", "complex64"),
    ],
)
def test_a_matrix_product_in_a_type_the_part_lacks_has_no_ceiling(slug: str, dtype: str):
    assert compute_ceiling(load_platform(slug), dtype, "matrix") is None


def test_measured_bandwidth_is_the_limit_where_published():
    measured = bandwidth_ceiling(load_platform("h100-sxm"))
    assert (measured.bytes_per_s, measured.datasheet, measured.kind) == (3.18e12, 3.35e12, "achievable")
    published = bandwidth_ceiling(load_platform("l4"))
    assert (published.bytes_per_s, published.datasheet, published.kind) == (3.0e11, 3.0e11, "datasheet-dense")


def test_the_latency_floor_is_two_microseconds_where_a_platform_does_not_say():
    assert latency_floor_ns(load_platform("h100-sxm")) == 2000


@pytest.mark.parametrize(
    ("slug", "size"),
    [
        ("h100-sxm", 52_428_800),  # 50 x 2^20
        ("mi300x", 268_435_456),  # Infinity Cache, 256 x 2^20
        ("rtx-2080-ti", 5_767_168),  # 5.5 x 2^20
    ],
)
def test_the_last_level_cache_is_l2_or_the_infinity_cache(slug: str, size: int):
    assert last_level_cache_bytes(load_platform(slug)) == size


def test_the_table_of_platforms_is_up_to_date():
    # Rewritten by `python -m rooftrace.platforms.table`.
    assert (KNOWLEDGE / "platforms" / "README.md").read_text(encoding="utf-8") == markdown()


def test_a_row_of_the_table_shows_datasheet_and_measurement():
    row = next(line for line in markdown().splitlines() if line.startswith("| `mi300x` |"))
    assert row == (
        "| `mi300x` | Instinct MI300X | 304 | 192 GB HBM3 | 5325 / 4260 | 256 | 163.4 | 653.7 | 1307.4 / 654 "
        "| 1307.4 / 708 | 2614.9 / 1273 | 2614.9 | - | 163.4 |"
    )
