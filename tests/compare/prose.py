"""Words about the small comparison, as a careful writer hands them in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooftrace.workflow.compare_files import write_deliverables

GOOD = """\
summary: The target takes {{compare.target_ms}} where the base took {{compare.base_ms}}: products are slower by \
{{compare.F1.difference_ms}}, which the faster additions make good only in part.

compare.F1
insight: The products in `Linear_0` run the same kernel on the same shapes and are slower in the target, beyond noise.
action: Compare clocks with `nvidia-smi` while both sides run, before anything in the code is changed.
reasoning: Launches are the same ({{compare.F1.base_launches_count}} on either side), only each one's time differs.
resolution: Record both sides again on an idle GPU.

Then profile this kernel on both machines with Nsight Compute.

compare.F2
insight: Additions under `aten::add` have become faster, at the shape `[64, 512]` as before.
action: Keep it, and compare the outputs of both sides once.
reasoning: They take {{compare.F2.target_ms}} after {{compare.F2.base_ms}}, with the same kernel.
resolution: Nothing is left to do but to look whether the gain stays in a second recording.
"""


def as_json(text: str = GOOD) -> dict[str, Any]:
    """The same as `submit` turns it into JSON."""
    from rooftrace.workflow.slottext import to_json

    content: dict[str, Any] = json.loads(to_json("compare", text))
    return content


def with_slot(name: str, text: str) -> dict[str, Any]:
    """Good prose with one slot of the first finding (or the summary) worded otherwise."""
    prose = as_json()
    if name == "summary":
        prose["summary"] = text
    else:
        prose["findings"][0][name] = text
    return prose


def hand_in(prose: dict[str, Any]) -> Callable[[Path], None]:
    """Write a prose file past `submit`, and the deliverables that follow from it."""

    def write(run: Path) -> None:
        (run / "prose").mkdir(exist_ok=True)
        (run / "prose/compare.json").write_text(json.dumps(prose), encoding="utf-8")
        write_deliverables(run)

    return write
