"""The layers of the package, and what breaks them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# Top first. A module imports from itself and from lines below its own; modules of one line do not meet.
LAYERS = (
    ("cli", "__main__"),
    ("workflow",),
    ("validators",),
    ("report", "repro"),
    ("analyzers", "compare"),
    ("replay", "fusion"),
    ("roofline", "causes"),
    ("schedule",),
    ("calltree", "ledger"),
    ("trace", "platforms", "opmodels", "kernelnames", "patterns"),
    ("contracts",),
    ("units", "errors", "pack", "intervals", "beside"),
    ("stretches", "heap"),
    ("sorted_unique",),
    ("",),  # the package itself: its version
)
HEIGHT = {name: len(LAYERS) - row for row, names in enumerate(LAYERS) for name in names}
HEIGHT["__main__"] = HEIGHT["cli"] + 1  # it only calls the command line

# These read the files of a run and nothing else, so that they work on a run made elsewhere.
READ_FILES_ONLY = ("report", "repro", "validators")
OPEN_TO_THEM = {"contracts", "units", "errors", "pack", "beside", "report", ""}


def imported_modules(path: Path, source: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted parts below ``rooftrace`` of every import of the package by the module at ``path``.

    ``path`` is relative to the package's folder. ``from rooftrace import units`` counts as ``units``.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head, *rest = alias.name.split(".")
                if head == "rooftrace":
                    yield node.lineno, tuple(rest)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = path.parts[:-1]
                base = (*package[: len(package) - node.level + 1], *(node.module or "").split("."))
                parts = tuple(part for part in base if part)
            elif node.module and node.module.split(".")[0] == "rooftrace":
                parts = tuple(node.module.split(".")[1:])
            else:
                continue
            for alias in node.names:
                yield node.lineno, (*parts, alias.name)


def layer_of(parts: tuple[str, ...]) -> str:
    """The layer an import reaches: its first part, or the package itself for names like ``__version__``."""
    first = parts[0] if parts else ""
    return first if first in HEIGHT or (first.islower() and not first.startswith("_")) else ""


def is_analyzer(source: str) -> bool:
    """Whether a module of ``analyzers`` is one, by its function ``analyze``; the others are shared ground."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "analyze" for node in ast.parse(source).body)


def broken_rules(path: Path, source: str, analyzers: frozenset[str]) -> list[str]:
    """What one module imports against the rules; ``path`` is relative to the package's folder."""
    own = path.parts[0].removesuffix(".py") if path.parts != ("__init__.py",) else ""
    if own not in HEIGHT:
        return [f"{path}: `{own}` has no place in the layers"]
    broken = []
    for line, parts in imported_modules(path, source):
        other = layer_of(parts)
        if other not in HEIGHT:
            broken.append(f"{path}:{line}: imports `{other}`, which has no place in the layers")
        elif other != own and HEIGHT[other] >= HEIGHT[own]:
            broken.append(f"{path}:{line}: `{own}` imports `{other}`, which is not below it")
        elif other != own and own in READ_FILES_ONLY and other not in OPEN_TO_THEM:
            broken.append(f"{path}:{line}: `{own}` imports `{other}`, but may read files only")
        elif other == own == "analyzers" and parts[1] in analyzers - {path.stem}:
            broken.append(f"{path}:{line}: one analyzer imports another, `{parts[1]}`")
    return sorted(broken)
