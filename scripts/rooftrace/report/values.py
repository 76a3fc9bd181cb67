"""Evidence values as text, and prose with its citations filled in.

The ending of a name is its unit, so that one table decides how every quantity is rounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace import units
from rooftrace.errors import CheckFailed
from rooftrace.report.markdown import LIMIT, Safe, code, md, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooftrace.contracts.base import EvidenceValue

CITATION = re.compile(r"\{\{\s*([A-Za-z0-9_.]+)\s*\}\}")

# Dimensions of a matrix are read like code: no thousands separators.
_DIMENSIONS = frozenset({"m", "n", "k"})
# Words from closed lists or written by rooftrace itself; every other string is quoted as code.
_PLAIN_WORDS = frozenset(
    {
        "bound",
        "library",
        "precision",
        "phase",
        "category",
        "analyzer",
        "kind",
        "ceilings_kind",
        "unmodelled",
        "subject",
        "collectives",
        "category_kernels",
        "gpu_name",
        "gpu_vendor",
        "odd_dims",
    }
)
# Python frames: their path is cut at its beginning, so that file and line stay.
_FRAMES = frozenset({"source", "top_gap_frame"})


def _number(value: float) -> str:
    """Three significant digits, or an integer with separators from a thousand on."""
    return units.format_count(value) if abs(value) >= 1_000 or value == int(value) else f"{value:.3g}"


# Longest ending first where one ends like another.
_ENDINGS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_per_ms", lambda value: f"{_number(value)} per ms"),
    ("_ms", lambda value: units.format_ns(value * units.NS_PER_MS)),
    ("_us", lambda value: units.format_ns(value * units.NS_PER_US)),
    ("_ns", units.format_ns),
    ("_pct", units.format_pct),
    ("_count", units.format_count),
    ("_bytes", units.format_bytes),
    ("_tflops", lambda value: units.format_flops_per_s(value * 1e12)),
    ("_gbps", lambda value: units.format_bytes_per_s(value * 1e9)),
    ("_flops", units.format_flops),
)


def format_value(name: str, value: EvidenceValue) -> str:
    """A quantity with its unit, or a string as it is; not escaped."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    last = name.rpartition(".")[2]
    if last in _DIMENSIONS:
        return str(value)
    for ending, form in _ENDINGS:
        if last.endswith(ending):
            return form(value)
    return _number(value)


def cite(name: str, value: EvidenceValue) -> Safe:
    """A value as Markdown: numbers with their unit, names from the trace as inline code."""
    text = format_value(name, value)
    if not isinstance(value, str) or name in _PLAIN_WORDS:
        return md(text)
    return code(tail(text, LIMIT) if name in _FRAMES else text)


def fill(text: str, values: Mapping[str, EvidenceValue], *, where: str) -> str:
    """`text` with each ``{{name}}`` replaced once; a value is never searched for further citations."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            raise CheckFailed(
                f"{where} cites `{name}`, which the finding's evidence does not hold",
                details=[f"known: {', '.join(sorted(values))}"],
                hint="Add a condition on the field to the pattern's `when`, or cite another field",
            )
        return cite(name, values[name])

    return CITATION.sub(replace, text)
