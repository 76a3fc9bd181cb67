"""What a reproducer is made from: a finding of the report and the calls recorded for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts import store
from rooftrace.contracts.chains import ChainsFile
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from rooftrace.contracts.chains import Chain
    from rooftrace.contracts.report import Finding


class Subject(Struct, frozen=True, kw_only=True):
    """A finding and its chains of calls."""

    finding: Finding
    chains: tuple[Chain, ...]
    gpu: str
    trace: str


def read_subject(run: Path, identity: str) -> Subject:
    """A finding of a run; `UsageError` for one that is unknown or has no calls of its own."""
    report = store.read_artifact(run / store.REPORT, ReportFile)
    known = {finding.id: finding for finding in (*report.findings, *report.unranked)}
    with_calls = [name for name, finding in known.items() if finding.tier != "system"]
    if identity not in known:
        raise unknown_name("finding", identity, with_calls or known)
    finding = known[identity]
    if finding.tier == "system":
        raise UsageError(
            f"`{identity}` is about the whole system and has no calls of its own to run",
            hint=f"Give one of: {', '.join(sorted(with_calls))}" if with_calls else None,
        )
    chains = store.read_artifact(run / store.CHAINS, ChainsFile).chains
    return Subject(
        finding=finding,
        chains=tuple(chain for chain in chains if chain.finding == identity),
        gpu=report.platform.product if report.platform else "",
        trace=report.trace.file,
    )
