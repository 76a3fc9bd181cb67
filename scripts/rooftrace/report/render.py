"""Templates filled in: Markdown whose every string is escaped unless a filter has already done so.

A section is a template ``templates/report/<NN>_<name>.md.j2`` and a function ``context`` in
``report/sections/<name>.py``; both are found by the file name, and ``NN`` is the order.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from rooftrace.pack import TEMPLATES
from rooftrace.report import cells, markdown
from rooftrace.report.environment import template_environment
from rooftrace.report.sections.detailed_analysis import details

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jinja2 import Environment

    from rooftrace.report.view import View

SUFFIX = ".md.j2"
_BLANK_LINES = re.compile(r"\n{3,}")
_FILTERS: dict[str, Callable[..., object]] = {
    "code": markdown.code,
    "cited": cells.cited,
    "md": markdown.md,
    "points": markdown.points,
    "prose": markdown.prose,
    "spans": markdown.spans,
    "token": markdown.token,
    "safe": markdown.Safe,
    "anchor": cells.anchor,
    "bytes": cells.size,
    "count": cells.count,
    "flops": cells.flops,
    "finding_marker": cells.finding_marker,
    "frame": cells.frame,
    "flops_per_s": cells.flops_per_s,
    "ident": cells.ident,
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


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates for Markdown: strings are escaped by `finalize`, so that none can be forgotten."""
    environment = template_environment(cells.as_markdown, autoescape=False)
    environment.filters.update(_FILTERS)
    return environment
