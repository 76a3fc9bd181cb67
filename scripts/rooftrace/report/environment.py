"""What the template environments of Markdown and SVG share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

from rooftrace.pack import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILED_TEMPLATES = "ROOFTRACE_COMPILED_TEMPLATES"


def template_environment(finalize: Callable[[object], object], *, autoescape: bool) -> Environment:
    """Templates of the pack; `finalize` decides what may be written, an undefined name is an error."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=autoescape,  # noqa: S701 - off for Markdown only, which `finalize` escapes
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
        auto_reload=False,
        bytecode_cache=_compiled_templates(),
        # A template is rendered once or twice a run: folding its constants costs more than it saves.
        optimized=False,
    )


def _compiled_templates() -> FileSystemBytecodeCache | None:
    """Compiled templates in the folder that the launcher names: compiling them takes as long as a small analysis."""
    folder = os.environ.get(COMPILED_TEMPLATES)
    if not folder:
        return None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(folder) if os.access(folder, os.W_OK) else None
