"""The measures that were reached, and whether new ones fall behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evals.scoring.measures import CaseResult, Measures, by_kind, overall

PATH = Path(__file__).with_name("baseline.json")
TOLERANCE, SIZE_TOLERANCE = 0.02, 0.01
"""What an overall share may lose, and the median size error gain, before it counts."""
KIND_TOLERANCE = 0.15
"""The same for the shares of one kind, of which there are few cases."""
UPPER = frozenset({"size_error"})
REASONS = "reasons"
"""Why a form's measures were once lowered, or measured on another corpus than before."""


def facts(results: Sequence[CaseResult]) -> dict[str, dict[str, float | int | None]]:
    """Measures over all and by kind, rounded."""
    rows = {"all": overall(results), **by_kind(results)}
    return {name: _rounded(measures) for name, measures in rows.items()}


def _rounded(measures: Measures) -> dict[str, float | int | None]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(measures).items()}


def write(form: str, results: Sequence[CaseResult], path: Path = PATH, *, because: str = "") -> list[str]:
    """Makes the measures of one form (``short`` or ``whole``) the baseline; what is worse then, and so needs a reason.

    Without one nothing is written. The last reason of a form is kept beside its measures.
    """
    known = read(path)
    worse = regressions(form, results, path) if form in known else []
    if worse and not because:
        return worse
    reasons = {**(known.get(REASONS) or {}), **({form: because} if because else {})}
    document = {**known, form: facts(results), **({REASONS: reasons} if reasons else {})}
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return []


def read(path: Path = PATH) -> dict[str, Any]:
    """Form -> row -> measure -> value, and the reasons by form."""
    if not path.is_file():
        return {}
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def regressions(form: str, results: Sequence[CaseResult], path: Path = PATH) -> list[str]:
    """What is worse than the baseline by more than the tolerance."""
    known, now = read(path).get(form), facts(results)
    if known is None:
        return [f"no baseline for the {form} form"]
    found = []
    for row, measures in sorted(known.items()):
        for name, before in sorted(measures.items()):
            after = now.get(row, {}).get(name)
            if name != "count" and before is not None and _is_worse(row, name, float(before), after):
                found.append(f"{row}: {name} was {before}, is {after}")
    return found


def _is_worse(row: str, name: str, before: float, after: float | None) -> bool:
    if after is None:
        return True
    tolerance = KIND_TOLERANCE if row != "all" else SIZE_TOLERANCE if name in UPPER else TOLERANCE
    return after > before + tolerance if name in UPPER else after < before - tolerance
