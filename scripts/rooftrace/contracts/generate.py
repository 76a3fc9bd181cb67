"""Writes ``schemas/*.schema.json`` from the pydantic models, or with ``--check`` fails where they differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from rooftrace.contracts import kernel_rules, pattern, platform, tables
from rooftrace.contracts.chains import ChainsFile
from rooftrace.contracts.compare import CausesFile, CompareEvidence, CompareFile, ComparisonManifest, EquivalentsFile
from rooftrace.contracts.evidence import AnalyzerEvidence, ManifestFile
from rooftrace.contracts.fusion import FusionPatternFile
from rooftrace.contracts.ledger import LedgerFile
from rooftrace.contracts.model_evidence import ModelEvidence
from rooftrace.contracts.prose import ModelProse, ProseFile
from rooftrace.contracts.replay import ReplayFile
from rooftrace.contracts.report import ReportFile
from rooftrace.contracts.state import StateFile
from rooftrace.pack import SCHEMAS

if TYPE_CHECKING:
    from pydantic import BaseModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, type[BaseModel]] = {
    "calibrated_platform": platform.CalibratedFile,
    "chains": ChainsFile,
    "compare": CompareFile,
    "compare_causes": CausesFile,
    "compare_evidence": CompareEvidence,
    "comparison_manifest": ComparisonManifest,
    "equivalents": EquivalentsFile,
    "evidence": AnalyzerEvidence,
    "fusion_pattern": FusionPatternFile,
    "kernel_category": kernel_rules.CategoryFile,
    "ledger": LedgerFile,
    "library": kernel_rules.LibraryFile,
    "manifest": ManifestFile,
    "model_evidence": ModelEvidence,
    "model_prose": ModelProse,
    "pattern": pattern.PatternFile,
    "platform": platform.PlatformFile,
    "prose": ProseFile,
    "replay": ReplayFile,
    "report": ReportFile,
    "state": StateFile,
}
# Written by hand: what has a default may be left out.
_WRITTEN_BY_HAND = ("model_prose", "prose")
_CELL: dict[str, dict[str, Any]] = {
    "int": {"type": "string", "pattern": "^-?[0-9]+$"},
    "float": {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},
    "str": {"type": "string"},
    "json": {"type": "string", "contentMediaType": "application/json"},
    "bool": {"enum": ["true", "false"]},
}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by name; a table's schema describes one row of text cells."""
    generated: dict[str, dict[str, Any]] = {
        name: {"$schema": _DIALECT, **model.model_json_schema(mode=_mode(name))} for name, model in MODELS.items()
    }
    for name, table in tables.TABLES.items():
        generated[name] = _table_schema(table)
    return dict(sorted(generated.items()))


def _mode(name: str) -> Literal["validation", "serialization"]:
    return "validation" if name in _WRITTEN_BY_HAND else "serialization"


def _table_schema(table: tables.Table) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for column in table.columns:
        cell = _CELL[column.type]
        choice = {"anyOf": [{"const": ""}, cell]} if column.optional else cell
        properties[column.name] = {"description": column.description, **choice}
    return {
        "$schema": _DIALECT,
        "title": f"One row of {table.name}.csv",
        "type": "object",
        "additionalProperties": False,
        "required": [column.name for column in table.columns],
        "properties": properties,
    }


def main(arguments: list[str]) -> int:
    """Write all schemas; with `--check`, name those that differ and return 1."""
    stale: list[str] = []
    wanted = {
        f"{name}.schema.json": orjson.dumps(s, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        for name, s in schemas().items()
    }
    present = {path.name for path in SCHEMAS.glob("*.schema.json")}
    for name, data in wanted.items():
        path = SCHEMAS / name
        if not path.exists() or path.read_bytes() != data:
            stale.append(name)
            if "--check" not in arguments:
                path.write_bytes(data)
    extra = sorted(present - set(wanted))
    if "--check" in arguments and (stale or extra):
        sys.stderr.write(
            f"error: schemas differ from the contracts: {', '.join(stale + extra)}\n\nhint: Run `make gen`\n"
        )
        return 1
    for name in extra:
        Path(SCHEMAS / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
