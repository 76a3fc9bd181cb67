"""Where the pack's own data lies: beside the package in a checkout, inside it when installed as a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_pack"
ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent.parent

KNOWLEDGE = ROOT / "knowledge"
SCHEMAS = ROOT / "schemas"
TEMPLATES = ROOT / "templates"
