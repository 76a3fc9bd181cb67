"""The files of a run as records: what ``assemble`` and the sections read."""

from __future__ import annotations

import csv
import heapq
import io
from collections import defaultdict
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct
from msgspec.structs import replace
from pydantic import TypeAdapter, ValidationError

from rooftrace.contracts import store
from rooftrace.contracts.evidence import AnalyzerEvidence, ManifestFile
from rooftrace.contracts.ledger import LedgerFile
from rooftrace.contracts.model_evidence import ModelEvidence
from rooftrace.contracts.replay import ReplayFile
from rooftrace.contracts.report import OpGroup
from rooftrace.contracts.tables import OPS
from rooftrace.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rooftrace.contracts.instance import Instance

_OP_ROWS: TypeAdapter[list[OpGroup]] = TypeAdapter(list[OpGroup])
_JSON_LISTS = tuple(column.name for column in OPS.columns if column.type == "json")
_AS_RECORDED = ("shapes", "dtypes")
_OPTIONAL = frozenset(column.name for column in OPS.columns if column.optional)
_KEPT = tuple(column.name for column in OPS.columns if column.name in OpGroup.model_fields)


class RunFiles(Struct, frozen=True, kw_only=True):
    """The parts of a run that become ``report.json``."""

    manifest: ManifestFile
    ledger: LedgerFile
    ops: list[OpGroup]
    evidence: list[AnalyzerEvidence]
    replay: ReplayFile | None = None
    model: ModelEvidence | None = None


class KernelRow(Struct, frozen=True, kw_only=True):
    """A row of ``kernels.csv``, as far as the report shows it; times in ns."""

    name: str
    short: str
    kind: str
    category: str
    library: str
    count: int
    total_ns: int
    median_ns: int
    owners: tuple[str, ...] = ()
    spells_tile: bool = False


class GapRow(Struct, frozen=True, kw_only=True):
    """A row of ``gaps.csv``, as far as the report shows it; times in ns."""

    device: str
    start_ns: int
    dur_ns: int
    cause: str
    before: str
    after: str
    op: str
    source: str


def read_run(run: Path) -> RunFiles:
    """Manifest, ledger, op groups and the evidence of the activated analyzers, each checked."""
    manifest = store.read_artifact(run / store.MANIFEST, ManifestFile)
    return RunFiles(
        manifest=manifest,
        ledger=store.read_artifact(run / store.LEDGER, LedgerFile),
        ops=read_ops(run),
        evidence=[
            store.read_artifact(run / store.evidence_path(name), AnalyzerEvidence)
            for name in sorted(manifest.analyzers)
        ],
        replay=store.read_artifact(run / store.REPLAY, ReplayFile) if (run / store.REPLAY).is_file() else None,
        model=_model(run),
    )


def _model(run: Path) -> ModelEvidence | None:
    """What is known of the model, where the run has a file about it."""
    path = run / store.evidence_path(store.MODEL)
    return store.read_artifact(path, ModelEvidence) if path.is_file() else None


def read_ops(run: Path) -> list[OpGroup]:
    """Op groups in the order of ``ops.csv``."""
    rows = [_op_cells(row) for row in _rows(run, store.OPS)]
    try:
        return _OP_ROWS.validate_python(rows)
    except ValidationError as error:
        problems = [f"{store.OPS}::{store.json_path(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False)]
        raise CheckFailed(
            f"`{store.OPS}` does not match its table: {len(problems)} cells",
            details=problems[:20],
            hint="Run `rooftrace analyze TRACE -o RUN` again; the table is not to be edited",
        ) from None


def _op_cells(row: dict[str, str]) -> dict[str, object]:
    cells: dict[str, object] = {}
    for name in _KEPT:
        text = row.get(name)
        if text is None or (text == "" and name in _OPTIONAL):
            continue
        cells[name] = _json_cell(name, text) if name in _JSON_LISTS else text
    for name in _AS_RECORDED:
        # A damaged trace may hold anything in their place.
        if not isinstance(cells.get(name), list):
            cells[name] = None
    return cells


def _json_cell(name: str, text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CheckFailed(f"`{store.OPS}` holds a cell of column `{name}` that is not JSON: {error}") from None


def read_kernels(run: Path) -> list[KernelRow]:
    """Kernels, rows of several streams and owners merged by name, most time first."""
    merged: dict[tuple[str, str], KernelRow] = {}
    owners: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)  # in the order of the rows
    for row in _rows(run, store.KERNELS):
        key = (row["kernel"], row["kind"])
        seen = merged.get(key)
        count, total = int(row["count"]), int(row["total_ns"])
        owners[key][row["owner_op"]] = None
        merged[key] = KernelRow(
            name=row["kernel"],
            short=row["short"],
            kind=row["kind"],
            category=row["category"],
            library=row["library"],
            count=count + (seen.count if seen else 0),
            total_ns=total + (seen.total_ns if seen else 0),
            # NB: of the row with most time; medians of several rows cannot be merged exactly.
            median_ns=seen.median_ns if seen and seen.total_ns >= total else int(row["median_ns"]),
            spells_tile='"tile"' in row["facts"],
        )
    kernels = (replace(kernel, owners=tuple(owners[key])) for key, kernel in merged.items())
    return sorted(kernels, key=lambda kernel: (-kernel.total_ns, kernel.name, kernel.kind))


def read_longest_gaps(run: Path, limit: int) -> list[GapRow]:
    """The `limit` longest idle gaps, longest first; empty where the run has no table of gaps."""
    if not (run / store.GAPS).exists():
        return []
    longest = heapq.nsmallest(
        limit, _rows(run, store.GAPS), key=lambda row: (-int(row["dur_ns"]), int(row["start_ns"]))
    )
    return [
        GapRow(
            device=row["device"],
            start_ns=int(row["start_ns"]),
            dur_ns=int(row["dur_ns"]),
            cause=row["cause"],
            before=row["before"],
            after=row["after"],
            op=row["op"],
            source=row["source"],
        )
        for row in longest
    ]


def read_instances(run: Path) -> dict[str, Instance]:
    """The instance on the timeline of every fusion finding that has one, by finding id."""
    path = run / store.evidence_path("fusion")
    found = store.read_artifact(path, AnalyzerEvidence).findings if path.is_file() else []
    return {finding.id: finding.instance for finding in found if finding.instance is not None}


def _rows(run: Path, path: str) -> Iterator[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    text = store.read_bytes(run / path).decode()
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader, [])
    for cells in reader:
        if len(cells) != len(header):
            raise CheckFailed(f"`{path}` has a row of {len(cells)} cells under a header of {len(header)}")
        yield dict(zip(header, cells, strict=True))
