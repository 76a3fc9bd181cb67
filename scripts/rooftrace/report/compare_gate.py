"""Limits of a comparison in words and as JUnit XML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.report.environment import template_environment
from rooftrace.units import format_ns, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.compare import CompareEvidence, GateCheck


def junit_text(checks: Sequence[GateCheck]) -> str:
    """Checks as JUnit XML, one test case a metric."""
    page = template_environment(lambda value: value, autoescape=True)
    text = page.get_template("compare/junit.xml.j2").render(
        checks=[(check, describe_check(check)) for check in checks],
        failures=sum(check.violated for check in checks),
    )
    return text.strip() + "\n"


def describe_check(check: GateCheck) -> str:
    """A check in one line."""
    said = f"{check.metric} {signed_pct(check.change_pct)} ({format_ns(check.base_ns)} to {format_ns(check.target_ns)})"
    if check.bound_pct is None:
        told = "too few steps to tell noise"
    else:
        told = f"at least {signed_pct(check.bound_pct)} beyond noise"
    return f"{said}, {told}; limit +{check.limit_pct:g} %"


def signed_pct(value: float) -> str:
    """A percentage with its sign."""
    return f"{value:+.2f} %"


def change_pct(result: CompareEvidence) -> float:
    """Growth of what is compared, per cent of the base."""
    return pct(result.target.compared_ns - result.base.compared_ns, result.base.compared_ns)
