from __future__ import annotations

import pytest

from rooftrace.compare import compare_sides
from rooftrace.compare.gate import check, read_metric
from rooftrace.errors import UsageError
from tests.compare.sides import ADD, GEMM, Call, compared, side_of, trace_of


def calls(gemm: float) -> list[Call]:
    return [Call(op="aten::mm", kernels=[(GEMM, gemm)]), Call(op="aten::add", kernels=[(ADD, 50)])]


def checked(comparison, metric, limit=3.0, steps=3):
    (found,) = check(comparison, [read_metric(metric)], limit, steps)
    return found


def test_growth_of_the_span_is_held_against_the_limit():
    # a step of 100 + 50 becomes 110 + 50: 10 / 150 is 6.67 %
    found = checked(compared(calls(100), calls(110), steps=4), "span")
    assert (found.base_ns, found.target_ns, found.change_pct) == (150_000, 160_000, 6.67)
    assert found.bound_pct == 6.67  # steps are all alike, so resampling changes nothing
    assert found.violated
    assert not checked(compared(calls(100), calls(110), steps=4), "span", limit=7.0).violated


def test_a_metric_may_be_a_kernel_or_a_category():
    comparison = compared(calls(100), calls(110), steps=4)
    assert checked(comparison, "kernel:16816gemm").change_pct == 10
    assert checked(comparison, "category:gemm").change_pct == 10
    assert checked(comparison, "category:elementwise").change_pct == 0
    assert checked(comparison, "kernel:no such").change_pct == 0


def test_idle_time_grows_in_per_cent_of_the_base_step():
    base, target = (side_of(trace_of(calls(100), steps=4, gap=gap)) for gap in (0, 30))
    # two gaps of 30 in a step of 150: 40 %; the first step has no gap before its first kernel, the median step has both
    assert checked(compare_sides(base, target), "idle").change_pct == 40


def test_what_steps_differ_by_is_no_violation():
    scale = [1, 1.4, 0.7, 1.3, 0.8, 1.1]
    base = side_of(trace_of(calls(100), steps=6, scale=scale))
    target = side_of(trace_of(calls(104), steps=6, scale=scale[::-1]))
    found = checked(compare_sides(base, target), "kernel:16816gemm")
    assert found.change_pct == 4
    assert found.bound_pct is not None
    assert found.bound_pct < 3
    assert not found.violated


def test_with_too_few_steps_the_growth_itself_counts():
    found = checked(compared(calls(100), calls(110), steps=2), "span")
    assert (found.bound_pct, found.violated) == (None, True)
    whole = checked(compared(calls(100), calls(110)), "span")
    assert (whole.base_ns, whole.target_ns, whole.bound_pct) == (150_000, 160_000, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time", "error: unknown metric: `time`\n\nhint: Known: span, idle, category:SLUG, kernel:REGEX"),
        (
            "kernel:(",
            "error: `(` is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
    ],
    ids=["unknown", "no regular expression"],
)
def test_a_metric_that_there_is_not_is_refused(text, message):
    with pytest.raises(UsageError) as caught:
        read_metric(text)
    assert str(caught.value) == message


def test_an_unknown_category_names_the_nearest():
    with pytest.raises(UsageError, match="Did you mean `gemm`"):
        read_metric("category:gem")
