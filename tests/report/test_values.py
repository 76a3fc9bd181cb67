from __future__ import annotations

import pytest

from rooftrace.errors import CheckFailed
from rooftrace.report.values import fill, format_value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("time_ms", 3.2, "3.200 ms"),
        ("time_ms", 0.0457, "45.7 µs"),
        ("gemm.F1.time_ms", 12_345.0, "12.345 s"),
        ("mean_kernel_us", 800.0, "800.0 µs"),
        ("start_ns", 950, "950 ns"),
        ("efficiency_pct", 42.95, "43.0 %"),
        ("score_mid_pct", 0.25, "0.25 %"),
        ("gaps_count", 12_345, "12,345"),
        ("copy_bytes", 6_000_000, "6 MB"),
        ("achieved_gbps", 1_342.18, "1.34 TB/s"),
        ("achieved_tflops", 171.8, "172 TFLOP/s"),
        ("work_flops", 2_000, "2 kFLOP"),
        ("launches_per_ms", 2.4, "2.4 per ms"),
        ("m", 4_096, "4096"),
        ("kernels_per_instance", 1.0, "1"),
        ("kernels_per_instance", 6.43, "6.43"),
        ("tf32", True, "yes"),
        ("tf32", False, "no"),
        ("library", "cuBLASLt", "cuBLASLt"),
    ],
)
def test_the_ending_of_a_name_decides_unit_and_rounding(name, value, text):
    assert format_value(name, value) == text


def test_prose_cites_numbers_with_units_and_names_as_code():
    values = {"time_ms": 3.2, "top_op": "aten::mm", "library": "cuBLASLt"}

    filled = fill("{{top_op}} of {{ library }} takes {{time_ms}}", values, where="pattern `x`")

    assert filled == "`aten::mm` of cuBLASLt takes 3.200 ms"


def test_a_value_that_looks_like_a_citation_is_not_filled_in_again():
    values = {"top_op": "{{time_ms}}", "time_ms": 3.2}

    assert fill("{{top_op}}", values, where="pattern `x`") == "`{ {time_ms} }`"


def test_citing_what_the_evidence_lacks_is_an_error_that_names_pattern_and_field():
    with pytest.raises(CheckFailed) as caught:
        fill("{{gap_ms}}", {"time_ms": 3.2, "bound": "memory"}, where="pattern `gemm/default`")

    assert str(caught.value) == (
        "error: pattern `gemm/default` cites `gap_ms`, which the finding's evidence does not hold\n"
        "  known: bound, time_ms\n"
        "\n"
        "hint: Add a condition on the field to the pattern's `when`, or cite another field"
    )
