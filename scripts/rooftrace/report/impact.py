"""What a score stands for beside its three numbers: whose time it is, what else it needs, what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import units
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.report.cells import finding_gap, ident, share
from rooftrace.report.markdown import Safe
from rooftrace.report.view import by_time

if TYPE_CHECKING:
    from rooftrace.contracts.report import Finding
    from rooftrace.report.view import View

# The mid score closes this share of a gap (METHODS: impact); fusion findings hold gaps by it, before any replay.
_MID = 0.875
# Low over high is 0.75 where a score grows with what is fixed; this near to 1 it does not.
_FLAT = 0.95
# A score below this share of what it could be is held back by something else.
_HELD_BACK = 0.9
# A last step this much above the mid one (100 of 87.5 % would be 1.14) rests on the wait being gone wholly.
_JUMP = 2.0
# Shares of the span that differ by less say the same, in points of per cent.
_SAME = 0.05
_SAME_IF_CLAIMED = 0.005


class Worth(Struct, frozen=True, kw_only=True):
    """What an impact line says of a finding; `gap` and `gap_share` may be empty, `own` too where it is all of the gap.

    `claimers` are the fusion findings that hold the rest of the gap, `limiter` the resource that keeps the score
    below the gap: `` where nothing does, `other` where the run was not replayed far enough to tell.
    """

    gap: Safe
    gap_share: Safe
    own: Safe
    claimers: Safe
    has_floor: bool
    is_fused: bool
    takes_launches: bool
    is_flat: bool
    is_held_back: bool
    limiter: str
    high_is_bound: bool


def worth(view: View, finding: Finding) -> Worth:
    """What the words of a finding's impact need."""
    gap_pct = _gap_pct(view, finding)
    is_claimed = finding.evidence.get("claimed_by_fusion_ms") is not None
    least = _SAME_IF_CLAIMED if is_claimed else _SAME
    has_less = finding.tier == "compute" and gap_pct - finding.gpu_time_score > least
    is_fused = finding.tier == "fusion" and "saving_ms" in finding.evidence
    return Worth(
        gap=finding_gap(finding),
        gap_share=share(gap_pct, 100) if gap_pct else Safe(""),
        own=Safe(units.format_pct(finding.gpu_time_score)) if has_less else Safe(""),
        claimers=claimers(view, finding) if is_claimed else Safe(""),
        has_floor=finding.kind == "modelled" and "gap_ms" in finding.evidence,
        is_fused=is_fused,
        takes_launches=is_fused and finding.score_basis == "replay" and bool(finding.evidence.get("host_cut_ms")),
        is_flat=_is_flat(finding),
        is_held_back=_is_held_back(finding),
        limiter=_limiter(view, finding),
        high_is_bound=finding.category == "idle" and finding.score.high > _JUMP * finding.score.mid > 0,
    )


def _gap_pct(view: View, finding: Finding) -> float:
    """The gap, or without a floor the time, as a share of the span, per cent."""
    evidence, span = finding.evidence, view.totals.span_ns
    value = next((evidence[name] for name in ("gap_ms", "saving_ms", "time_ms") if name in evidence), None)
    return units.pct(value * units.NS_PER_MS, span) if isinstance(value, int | float) and span else 0.0


def claimers(view: View, finding: Finding) -> Safe:
    """Fusion findings that hold gaps of a finding's ops: those that name one of them, else all that hold any."""
    holding = [found for found in view.of_tier("fusion") if found.gpu_time_score * _MID >= RANKING_LIMIT_PCT]
    names = {view.ops[member].name for member in finding.members if member in view.ops}
    naming = [found for found in holding if names & _replaced_ops(found)]
    return Safe(", ".join(ident(found.id) for found in naming or holding))


def _replaced_ops(finding: Finding) -> set[str]:
    """Ops of a chain that fusing replaces; one in brackets stays."""
    chain = str(finding.evidence.get("op_chain", "")).split(" -> ")
    return {name.split(" x ")[-1].strip() for name in chain if not name.startswith("[")}


def _is_replayed_gap(finding: Finding) -> bool:
    return finding.tier != "system" and finding.kind != "upper_bound" and finding.score_basis == "replay"


def _is_flat(finding: Finding) -> bool:
    score = finding.score
    return _is_replayed_gap(finding) and score.high >= RANKING_LIMIT_PCT and score.low >= _FLAT * score.high


def _is_held_back(finding: Finding) -> bool:
    gap = finding.gpu_time_score
    return _is_replayed_gap(finding) and gap > _SAME and finding.score.high < _HELD_BACK * gap


def _limiter(view: View, finding: Finding) -> str:
    if not (_is_held_back(finding) or _is_flat(finding)):
        return ""
    others = [name for name, _ in by_time(on_path(view)) if name not in ("compute", "unexplained")]
    return others[0] if others else "other"


# What a critical path's resources are summed to, and the name under which each could be free.
RESOURCES = {
    "host": ("host", "launch", "synchronisation"),
    "compute": ("compute",),
    "communication": ("communication",),
    "copy": ("copy",),
    "between": ("device", "dependency"),
    "unexplained": ("unexplained",),
}


def on_path(view: View) -> dict[str, int]:
    """Time on the critical paths of all devices by resource, ns; empty without a replay."""
    paths = view.report.replay.paths if view.report.replay else []
    return {
        name: time
        for name, parts in RESOURCES.items()
        if (time := sum(path.by_resource.get(part, 0) for path in paths for part in parts))  # type: ignore[call-overload]
    }
