"""Reading and writing the files of a run, each checked against its contract on the way."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from rooftrace.contracts import kinds
from rooftrace.contracts.evidence import AnalyzerEvidence, ManifestFile
from rooftrace.contracts.ledger import LedgerFile
from rooftrace.contracts.replay import ReplayFile
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import CheckFailed, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

M = TypeVar("M", bound=BaseModel)

MANIFEST = kinds.MANIFEST
REPORT = "report.json"
ANALYSIS = kinds.ANALYSIS
LEDGER = "evidence/ledger.json"
OPS = "evidence/ops.csv"
KERNELS = "evidence/kernels.csv"
GAPS = "evidence/gaps.csv"
REPLAY = "evidence/replay.json"
CHAINS = "evidence/chains.json"
STATE = "state.json"
COMPARE = "compare.json"
COMPARE_EVIDENCE = f"evidence/{kinds.COMPARE}.json"
PROSE = "prose"
ANALYSES, COMPARES = "rooftrace analyze TRACE -o RUN", "rooftrace compare BASE TARGET -o RUN"
MODEL = "model"  # identification of the model: no analyzer, but prose of its own


def evidence_path(analyzer: str) -> str:
    """Relative path of an analyzer's evidence."""
    return f"evidence/{analyzer}.json"


def prose_path(analyzer: str) -> str:
    """Relative path of an analyzer's prose."""
    return f"{PROSE}/{analyzer}.json"


def prose_files(run: Path) -> list[str]:
    """Relative paths of the prose files that are there, sorted."""
    folder = run / PROSE
    return sorted(f"{PROSE}/{path.name}" for path in folder.glob("*.json")) if folder.is_dir() else []


def schema_name_of(path: str) -> str | None:
    """Name of the schema (or table) a run's file is checked against; None for Markdown and plots."""
    fixed = {
        MANIFEST: "manifest",
        REPORT: "report",
        LEDGER: "ledger",
        OPS: "ops",
        KERNELS: "kernels",
        GAPS: "gaps",
        REPLAY: "replay",
        CHAINS: "chains",
        STATE: "state",
        COMPARE: "compare",
        COMPARE_EVIDENCE: "compare_evidence",
        evidence_path(MODEL): "model_evidence",
        prose_path(MODEL): "model_prose",
    }
    if path in fixed:
        return fixed[path]
    if path.startswith(f"{PROSE}/") and path.endswith(".json"):
        return "prose"
    return "evidence" if path.startswith("evidence/") and path.endswith(".json") else None


def model_of(schema_name: str) -> type[BaseModel] | None:
    """Pydantic model of a JSON artifact."""
    models: dict[str, type[BaseModel]] = {
        "manifest": ManifestFile,
        "report": ReportFile,
        "ledger": LedgerFile,
        "evidence": AnalyzerEvidence,
        "replay": ReplayFile,
    }
    return models.get(schema_name) or _model_of_written(schema_name)


def _model_of_written(schema_name: str) -> type[BaseModel] | None:
    """Models that only a run with prose needs; loading them takes as long as reading a small run."""
    if schema_name == "state":
        from rooftrace.contracts.state import StateFile

        return StateFile
    if schema_name == "model_evidence":
        from rooftrace.contracts.model_evidence import ModelEvidence

        return ModelEvidence
    if schema_name == "chains":
        from rooftrace.contracts.chains import ChainsFile

        return ChainsFile
    if schema_name in ("compare", "compare_evidence", "comparison_manifest"):
        from rooftrace.contracts import compare

        compared: dict[str, type[BaseModel]] = {
            "compare": compare.CompareFile,
            "compare_evidence": compare.CompareEvidence,
        }
        return compared.get(schema_name, compare.ComparisonManifest)
    if schema_name in ("prose", "model_prose"):
        from rooftrace.contracts.prose import ModelProse, ProseFile

        return ProseFile if schema_name == "prose" else ModelProse
    return None


def to_json(record: BaseModel) -> bytes:
    """The bytes of an artifact: two-space indent, fields in the model's order, null where there is no value."""
    data = record.model_dump(mode="json")
    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_bytes(path: Path, data: bytes) -> None:
    """Write atomically: a reader sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(temporary).chmod(permitted(0o644))
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_files(run: Path, files: Mapping[str, bytes]) -> None:
    """Write several files of a run: where one finds no room, none has changed."""
    with tempfile.TemporaryDirectory(prefix=".new.", dir=run) as folder:
        paths = sorted(files)
        for number, path in enumerate(paths):
            new = Path(folder) / str(number)
            new.write_bytes(files[path])
            new.chmod(permitted(0o644))
        for number, path in enumerate(paths):
            (run / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / str(number)).replace(run / path)


def permitted(mode: int) -> int:
    """What the user's mask leaves of a mode."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def _maker(path: Path) -> str:
    """The command that makes the folder of a file."""
    return COMPARES if path.name == COMPARE or kinds.is_comparison(path.parent) else ANALYSES


def read_bytes(path: Path) -> bytes:
    """Content of a file of a run."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"`{path.name}` is missing from `{path.parent}`",
            hint=f"Run `{_maker(path)}` to make it",
        ) from None
    except OSError as error:
        raise InputError(f"cannot read `{path}`: {error.strerror}") from None


def read_artifact(path: Path, model: type[M]) -> M:
    """The checked content of a JSON artifact; `CheckFailed` lists what does not match, by JSON path."""
    data = read_bytes(path)
    try:
        return model.model_validate_json(data, strict=True)  # as the schema: text is no number
    except ValidationError as error:
        problems = [f"{path.name}::{json_path(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False)]
        raise CheckFailed(
            f"`{path.name}` does not match its schema: {len(problems)} problem{'s' if len(problems) > 1 else ''}",
            details=problems[:20],
            hint=f"Run `{_maker(path)}` to make it again; it is generated and not to be edited",
        ) from None


def json_path(location: tuple[int | str, ...]) -> str:
    """`$.ops[0].flops` for a pydantic error location."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()
