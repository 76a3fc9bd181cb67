"""What prose about a comparison is held against."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rooftrace.contracts.kinds import COMPARE
from rooftrace.contracts.module_names import module_class
from rooftrace.report.compare_ids import pair_summary, pair_values
from rooftrace.report.compare_parts import asked_of_pair
from rooftrace.report.grounding.names import NAME_LIMIT, Names, product_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import ComparedSide, CompareEvidence, CompareFinding, CompareRow, RowSide

_DIMS = re.compile(r"\[\s*([0-9]+(?:\s*,\s*[0-9]+)*)\s*\]")
# As a kernel's name spells the tile it works on.
_TILE = re.compile(r"[0-9]+x[0-9]+|MT[0-9]+")


@dataclass(frozen=True, kw_only=True)
class PairGrounds:
    """A comparison behind prose, as the rules ask for it."""

    run: Path
    result: CompareEvidence

    @cached_property
    def values(self) -> dict[str, EvidenceValue]:
        """By evidence id."""
        return pair_values(self.result)

    @cached_property
    def summaries(self) -> Mapping[str, Mapping[str, EvidenceValue]]:
        """What is said of the whole, under the one analyzer's name."""
        return {COMPARE: pair_summary(self.result)}

    @cached_property
    def findings(self) -> dict[str, CompareFinding]:
        """Findings by id, in rank order."""
        return {finding.id: finding for finding in self.result.findings}

    @cached_property
    def names(self) -> Names:
        """The names of both traces."""
        return pair_names(self.result)

    def findings_of(self, analyzer: str) -> list[CompareFinding]:
        """All findings, for the one analyzer there is."""
        return list(self.findings.values()) if analyzer == COMPARE else []

    def asked_of(self, analyzer: str) -> list[str]:
        """Ids of the findings for which a writer is asked."""
        return [finding.id for finding in asked_of_pair(self.result)] if analyzer == COMPARE else []


def pair_names(result: CompareEvidence) -> Names:
    """Names of either trace: of rows, of kernels, of steps, files and devices."""
    lines = dict.fromkeys(name for row in result.rows for name in _row_names(row))
    for side in (result.base, result.target):
        lines.update(dict.fromkeys(_side_names(side)))
    for finding in result.findings:
        texts = [value for value in finding.evidence.values() if isinstance(value, str)]
        lines.update(dict.fromkeys([finding.subject, *texts]))
    tiled = [name for name in lines if _TILE.search(name)]
    products = set().union(*(product_names(side.trace, side.platform) for side in (result.base, result.target)))
    return Names(
        lines="\n".join(line.replace("\n", " ") for line in lines if line),
        tiled="\n".join(tiled),
        shapes=frozenset(dims for row in result.rows for dims in _shapes(row)),
        products=tuple(sorted(products, key=lambda name: (-len(name), name))),
        ids=frozenset({row.id for row in result.rows} | {finding.id for finding in result.findings}),
    )


def _halves(row: CompareRow) -> list[RowSide]:
    return [half for half in (row.base, row.target) if half is not None]


def _row_names(row: CompareRow) -> Iterator[str]:
    yield from row.path
    yield from (module_class(part) for part in row.path)
    yield " > ".join(row.path)
    for half in _halves(row):
        yield from (name for name in (half.op, half.kernel, half.dtypes) if name)
        yield from (kernel.name[:NAME_LIMIT] for kernel in half.kernels)


def _side_names(side: ComparedSide) -> Iterator[str]:
    yield side.trace.file
    yield from (step.name for step in side.trace.steps)
    yield from sorted(product_names(side.trace, side.platform))


def _shapes(row: CompareRow) -> Iterator[str]:
    for half in _halves(row):
        yield from ("x".join(re.findall(r"[0-9]+", dims)) for dims in _DIMS.findall(half.shapes))
