"""Templates filled in: Markdown whose every string is escaped unless a filter has already done so.

A section is a template ``templates/report/<NN>_<name>.md.j2`` and a function ``context`` in
``report/sections/<name>.py``; both are found by the file name, and ``NN`` is the order.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

from rooftrace.pack import TEMPLATES
from rooftrace.report import cells, markdown
from rooftrace.report.sections.detailed_analysis import details

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rooftrace.report.view import View

COMPILED_TEMPLATES = "ROOFTRACE_COMPILED_TEMPLATES"
SUFFIX = ".md.j2"
_BLANK_LINES = re.compile(r"\n{3,}")
_FILTERS: dict[str, Callable[..., object]] = {
    "code": markdown.code,
    "md": markdown.md,
    "points": markdown.points,
    "prose": markdown.prose,
    "token": markdown.token,
    "safe": markdown.Safe,
    "anchor": cells.anchor,
    "bytes": cells.size,
    "count": cells.count,
    "flops": cells.flops,
    "flops_per_s": cells.flops_per_s,
    "ident": cells.ident,
    "marker": cells.marker,
    "ns": cells.ns,
    "pct": cells.pct,
    "share": cells.share,
    "spaced": cells.spaced,
    "table": cells.table,
}


def render_analysis(view: View) -> str:
    """``analysis.md``: every section in order, one blank line between blocks."""
    return _joined(_section(name, view) for name in section_names())


def render_findings(view: View) -> dict[str, str]:
    """``findings/<analyzer>.md`` by path, for each analyzer that found something."""
    template = environment().get_template("findings.md.j2")
    pages: dict[str, str] = {}
    for name in sorted({finding.id.partition(".")[0] for finding in view.all_findings}):
        findings = [finding for finding in view.all_findings if finding.id.startswith(f"{name}.")]
        text = template.render(analyzer=name, details=details(view, findings), **shared(view))
        pages[f"findings/{name}.md"] = _joined([text])
    return pages


def section_names() -> list[str]:
    """Template names of the sections without their suffix, in order."""
    return sorted(path.name.removesuffix(SUFFIX) for path in (TEMPLATES / "report").glob(f"[0-9]*{SUFFIX}"))


def _section(name: str, view: View) -> str:
    module = import_module(f"rooftrace.report.sections.{name.partition('_')[2]}")
    context: Callable[[View], dict[str, object]] = module.context
    return environment().get_template(f"report/{name}{SUFFIX}").render(**context(view), **shared(view))


def shared(view: View) -> dict[str, object]:
    """What every template may use."""
    report = view.report
    return {"report": report, "view": view, "totals": view.totals, "has_gpu": bool(report.ledger.devices)}


def _joined(parts: Iterable[str]) -> str:
    text = "\n\n".join(part.strip() for part in parts)
    return _BLANK_LINES.sub("\n\n", text) + "\n"


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


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates for Markdown: strings are escaped by `finalize`, so that none can be forgotten."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is Markdown, escaped by `finalize`
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=cells.as_markdown,
        auto_reload=False,
        bytecode_cache=_compiled_templates(),
        # A template is rendered once or twice a run: folding its constants costs more than it saves.
        optimized=False,
    )
    environment.filters.update(_FILTERS)
    return environment
