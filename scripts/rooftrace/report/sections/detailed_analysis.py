"""Each finding with its data, its reasoning and the ids of its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.report.cells import Cell, count, dtypes, flops, ident, is_ranked, ns, pct, shapes, share, size
from rooftrace.report.markdown import Safe, code, md
from rooftrace.report.sections.what_to_do_first import DETAILS_IN_FULL, Item, items
from rooftrace.report.timeline import drawn_findings, plot_path
from rooftrace.report.values import cite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooftrace.contracts.instance import Instance
    from rooftrace.contracts.report import Finding, OpGroup
    from rooftrace.report.view import View

MEMBERS_SHOWN = 3
# Evidence of a system finding fills a table of this many name and value pairs a row.
PAIRS = 4


class Detail(Struct, frozen=True, kw_only=True):
    """What a finding's block shows beside the finding's own words; rows are cells of its table."""

    item: Item
    heaviest: OpGroup | None
    groups: int
    member_rows: list[list[Cell]]
    quantity_rows: list[list[Cell]]
    evidence: Safe
    plot: str = ""  # path in the run of what shows the instance
    instance: Instance | None = None
    is_ranked: bool = True


def context(view: View) -> dict[str, object]:
    """Blocks of the findings written out, in rank order."""
    shown = view.report.findings[:DETAILS_IN_FULL]
    return {
        "details": details(view, shown),
        "left_out": len(view.all_findings) - len(shown),
    }


def details(view: View, findings: list[Finding]) -> list[Detail]:
    """Blocks of findings, in their order."""
    plots = {finding.id: plot_path(finding.id) for finding in drawn_findings(view)}
    return [_detail(view, item, plots) for item in items(findings, ("reasoning", "resolution"), view)]


def _detail(view: View, item: Item, plots: Mapping[str, str]) -> Detail:
    finding = item.finding
    groups = [view.ops[name] for name in finding.members if name in view.ops]
    groups.sort(key=lambda op: (-op.kernel_ns, op.id))
    pairs: list[Cell] = []
    for name, value in finding.evidence.items():
        pairs += [ident(name), cite(name, value)]
    pairs += [""] * (-len(pairs) % (2 * PAIRS))
    return Detail(
        item=item,
        heaviest=groups[0] if groups else None,
        groups=len(groups),
        member_rows=[_member_row(view, op) for op in groups[:MEMBERS_SHOWN]],
        quantity_rows=[pairs[start : start + 2 * PAIRS] for start in range(0, len(pairs), 2 * PAIRS)],
        evidence=Safe(" · ".join(f"{ident(name)} {cite(name, value)}" for name, value in finding.evidence.items())),
        plot=plots.get(finding.id, ""),
        instance=view.instances.get(finding.id),
        is_ranked=is_ranked(finding),
    )


def _member_row(view: View, op: OpGroup) -> list[Cell]:
    return [
        Safe(f"{ident(op.id)} {code(op.name, 50)}"),
        shapes(op.shapes),
        dtypes(op.dtypes),
        count(op.count),
        ns(op.kernel_ns),
        share(op.kernel_ns, view.totals.span_ns),
        _kernel_cell(view, op),
        flops(op.flops),
        size(op.bytes),
        op.bound,
        Safe(f"{pct(op.efficiency_pct)} / {pct(op.datasheet_efficiency_pct)}"),
        ns(op.floor_ns),
    ]


def _kernel_cell(view: View, op: OpGroup) -> Safe | None:
    """The heaviest kernel, its library, and how many more there are."""
    if not op.kernels:
        return None
    heaviest, more = op.kernels[0], len(op.kernels) - 1
    library = f" ({md(heaviest.library)})" if heaviest.library else ""
    return Safe(f"{code(view.short(heaviest.name), 50)}{library}{f' + {more}' if more else ''}")
