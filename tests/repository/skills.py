"""Skill files and their front matter."""

from __future__ import annotations

from pathlib import Path

from tests.repository.files import repository_files


def skill_files() -> list[Path]:
    """Every ``SKILL.md``, relative to the repository."""
    return [path for path in repository_files() if path.name == "SKILL.md"]


def front_matter(text: str) -> dict[str, str]:
    """The fields of a front matter in block style: ``key: value``, or an indented block under ``key:``.

    Stricter than YAML: whatever else a client's parser might read differently is an error here.
    """
    lines = text.split("\n")
    if lines[0] != "---":
        raise ValueError("the first line is not `---`")
    fields: dict[str, str] = {}
    name = ""
    for line in lines[1 : lines.index("---", 1)]:
        if line.startswith("  "):
            fields[name] = f"{fields[name]} {line.strip()}".strip()
            continue
        name, colon, value = line.partition(":")
        if not colon or name in fields or ": " in value.strip():
            raise ValueError(f"not a plain field: `{line}`")
        fields[name] = "" if value.strip() == ">-" else value.strip()
    return fields
