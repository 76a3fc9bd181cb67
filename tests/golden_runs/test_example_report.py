"""`examples/report`, which the README shows, is what the README's command writes."""

from __future__ import annotations

import os
from pathlib import Path

from rooftrace.workflow import analyze

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HOW = "examples/report is out of date: `ROOFTRACE_UPDATE_GOLDEN=1 python3 tests/run.py --only tests tests/golden_runs`"


def contents(folder: Path, *patterns: str) -> dict[str, str]:
    files = sorted(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def rewrite(fresh: dict[str, str]) -> None:
    for name in contents(EXAMPLES / "report", "**/*"):
        (EXAMPLES / "report" / name).unlink()
    for name, text in fresh.items():
        (EXAMPLES / "report" / name).parent.mkdir(parents=True, exist_ok=True)
        (EXAMPLES / "report" / name).write_text(text, encoding="utf-8")


def test_the_report_in_the_examples_is_what_analyze_writes(tmp_path):
    analyze(EXAMPLES / "transformer_training_h100.json.gz", tmp_path / "run")

    fresh = contents(tmp_path / "run", "analysis.md", "plots/*.svg")
    if os.environ.get("ROOFTRACE_UPDATE_GOLDEN"):
        rewrite(fresh)
    stored = contents(EXAMPLES / "report", "**/*")
    assert sorted(stored) == sorted(fresh), HOW
    for name, text in fresh.items():
        assert stored[name] == text, f"{name}: {HOW}"
