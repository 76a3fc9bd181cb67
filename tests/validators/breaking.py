"""Changes to the files of a run, with the digests in its manifest brought along."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def edit_json(run: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON artifact."""
    content = json.loads((run / name).read_text(encoding="utf-8"))
    change(content)
    (run / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if name != "manifest.json":
        sign(run)


def edit_text(run: Path, name: str, old: str, new: str) -> None:
    """Replace the only occurrence of a text."""
    text = (run / name).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (run / name).write_text(text.replace(old, new), encoding="utf-8")
    sign(run)


def sign(run: Path) -> None:
    """Put the digests of the files as they are into the manifest."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    for entry in manifest["files"]:
        entry["sha256"] = hashlib.sha256((run / entry["path"]).read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
