"""Evidence values as text, and prose with its citations filled in.

The ending of a name is its unit, so that one table decides how every quantity is rounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

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
        "cause",
        "collective",
        "direction",
        "memory",
        "comm_phase",
        "aspect",
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
        "workload",
        "verdict",
        "bound_by",
    }
)
# Python frames: their path is cut at its beginning, so that file and line stay.
_FRAMES = frozenset({"source", "frame", "comm_frame", "top_copy_frame"})


def _number(value: float) -> str:
    """Three significant digits, or an integer with separators from a thousand on."""
    return units.format_count(value) if abs(value) >= 1_000 or value == int(value) else f"{value:.3g}"


class Unit(Struct, frozen=True, kw_only=True):
    """How quantities with one ending are read: what they measure, their factor to a common unit, their text."""

    ending: str
    measures: str
    factor: float
    form: Callable[[float], str]


# Longest ending first where one ends like another.
_UNITS = (
    Unit(ending="_per_ms", measures="rate", factor=1, form=lambda value: f"{_number(value)} per ms"),
    Unit(ending="_ms", measures="time", factor=1e6, form=lambda value: units.format_ns(value * units.NS_PER_MS)),
    Unit(ending="_us", measures="time", factor=1e3, form=lambda value: units.format_ns(value * units.NS_PER_US)),
    Unit(ending="_ns", measures="time", factor=1, form=units.format_ns),
    Unit(ending="_pct", measures="percentage", factor=1, form=units.format_pct),
    Unit(ending="_count", measures="count", factor=1, form=units.format_count),
    Unit(ending="_bytes", measures="bytes", factor=1, form=units.format_bytes),
    Unit(
        ending="_tflops",
        measures="FLOP/s",
        factor=1e12,
        form=lambda value: units.format_flops_per_s(value * 1e12),
    ),
    Unit(
        ending="_gbps",
        measures="byte/s",
        factor=1e9,
        form=lambda value: units.format_bytes_per_s(value * 1e9),
    ),
    Unit(ending="_flops", measures="FLOP", factor=1, form=units.format_flops),
)


@lru_cache(maxsize=1024)
def unit_of(name: str) -> Unit | None:
    """Unit of a quantity, by the ending of its name; None for plain numbers and for sizes of a matrix."""
    last = name.rpartition(".")[2]
    return None if last in _DIMENSIONS else next((unit for unit in _UNITS if last.endswith(unit.ending)), None)


def measures(name: str, value: EvidenceValue) -> str:
    """What a citation stands for: `time`, `percentage` …, `number`, `text`, or `yes or no`."""
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, str):
        return "text"
    unit = unit_of(name)
    return unit.measures if unit else "number"


def format_value(name: str, value: EvidenceValue) -> str:
    """A quantity with its unit, or a string as it is; not escaped."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if name.rpartition(".")[2] in _DIMENSIONS:
        return str(value)
    unit = unit_of(name)
    return unit.form(value) if unit else _number(value)


def cite(name: str, value: EvidenceValue) -> Safe:
    """A value as Markdown: numbers with their unit, names from the trace as inline code."""
    text = format_value(name, value)
    last = name.rpartition(".")[2]
    if not isinstance(value, str) or last in _PLAIN_WORDS:
        return md(text)
    return code(tail(text, LIMIT) if last in _FRAMES else text)


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
