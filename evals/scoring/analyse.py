"""Runs the product on a trace and keeps what is compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from evals.scoring.found import Found
from rooftrace.trace import load
from rooftrace.workflow.findings import find_and_score, run_analyzers
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload

if TYPE_CHECKING:
    from rooftrace.analyzers import Workload
    from rooftrace.analyzers.draft import Draft
    from rooftrace.contracts.evidence import FindingEvidence


def analyse(trace: Path) -> list[Found]:
    """Every finding about a trace, ranked or not."""
    columns, _ = load(trace, None)
    workload = prepare_workload(columns, AnalyzeOptions()).workload
    scored = find_and_score(workload).findings
    _, drafts = run_analyzers(workload)
    return [
        _found(name, finding, _activities(workload, draft))
        for name, findings in scored.items()
        for finding, draft in zip(findings, drafts[name], strict=True)
    ]


def _activities(workload: Workload, draft: Draft) -> frozenset[int]:
    """Correlation ids of what an edit changes on the GPU, and of what a fusion claims.

    What an idle finding removes, such as the copy of a value that is read, goes with the waiting that it is about.
    """
    edit = draft.edit
    if draft.finding.category == "idle":
        edit = replace(edit, removed=edit.removed[:0])
    claims = getattr(draft, "claims", np.empty(0, dtype=np.int64))
    members = np.unique(np.concatenate([edit.activities, edit.removed, claims]).astype(np.int64))
    found = workload.trace.correlation[workload.activities.row[members]]
    return frozenset(int(number) for number in found.tolist() if number > 0)


def _found(analyzer: str, finding: FindingEvidence, activities: frozenset[int]) -> Found:
    words = {key: value for key, value in sorted(finding.evidence.items()) if isinstance(value, str)}
    return Found(
        identity=finding.id,
        analyzer=analyzer,
        subject=finding.subject,
        cause=finding.patterns[0] if finding.patterns else "",
        low=finding.score.low,
        mid=finding.score.mid,
        high=finding.score.high,
        is_bound=finding.kind == "upper_bound",
        activities=activities,
        is_joint=", " in str(finding.evidence.get("sync_ops", "")),
        aspect=str(finding.evidence.get("cause", finding.evidence.get("aspect", ""))),
        text=json.dumps({"subject": finding.subject, **words}, ensure_ascii=False),
    )
