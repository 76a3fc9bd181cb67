"""The files of a comparison, and its manifest, which lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.compare import ComparisonManifest
from rooftrace.contracts.evidence import RunFile
from rooftrace.report.compare_run import write

if TYPE_CHECKING:
    from pathlib import Path

    from rooftrace.contracts.compare import CompareEvidence


def write_evidence(run: Path, result: CompareEvidence) -> None:
    """Write ``evidence/compare.json`` and a manifest that lists it."""
    store.write_bytes(run / store.COMPARE_EVIDENCE, store.to_json(result))
    manifest = ComparisonManifest(
        tool_version=result.tool_version,
        source_sha256=result.source_sha256,
        base_sha256=result.base.trace.sha256,
        files=[_entry(run, store.COMPARE_EVIDENCE)],
    )
    store.write_bytes(run / store.MANIFEST, store.to_json(manifest))


def write_deliverables(run: Path) -> None:
    """Write ``compare.json`` and ``compare.md`` with whatever prose is sound."""
    list_files(run, write(run))


def list_files(run: Path, paths: list[str]) -> None:
    """Put files into the manifest, as they are now."""
    manifest = store.read_artifact(run / store.MANIFEST, ComparisonManifest)
    entries = {entry.path: entry for entry in manifest.files} | {path: _entry(run, path) for path in paths}
    files = [entries[name] for name in sorted(entries)]
    store.write_bytes(run / store.MANIFEST, store.to_json(manifest.model_copy(update={"files": files})))


def _entry(run: Path, path: str) -> RunFile:
    digest = store.sha256(store.read_bytes(run / path))
    return RunFile(path=path, sha256=digest, schema_name=store.schema_name_of(path))
