"""A text as if it stood in a slot, and what a rule says about it."""

from __future__ import annotations

import dataclasses
from typing import Any

from rooftrace.report.grounding.grounds import Grounds, Slot
from rooftrace.report.grounding.rules import RULES
from rooftrace.report.slots import SlotText


def told(code: str, text: str, grounds: Grounds, **about: Any) -> list[str]:
    """What the rule of a code says about a text in a slot of `finding` (`gemm.F1` unless another is named).

    Further arguments change the finding's evidence; `slot` is the slot's name, `finding=None` stands for a summary.
    """
    name, slot = about.pop("finding", "gemm.F1"), about.pop("slot", "insight")
    finding = grounds.findings[name] if name else None
    if finding is not None and about:
        finding = finding.model_copy(update={"evidence": {**finding.evidence, **about}})
        grounds = dataclasses.replace(
            grounds, values={**grounds.values, **{f"{name}.{key}": value for key, value in about.items()}}
        )
        grounds.findings[name] = finding
    analyzer = name.partition(".")[0] if name else "gemm"
    held = Slot(where="prose/x.json::$.x", name=slot, analyzer=analyzer, text=SlotText(raw=text), finding=finding)
    return list(RULES[code](held, grounds))
