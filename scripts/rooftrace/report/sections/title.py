"""What the report is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooftrace.report.view import View


def context(view: View) -> dict[str, object]:
    """The trace's file name and its GPU."""
    report = view.report
    named = [device.name for device in report.trace.devices if device.name]
    gpu = report.platform.product if report.platform else (named[0] if named else "")
    return {"gpu": gpu, "gpu_count": len(report.trace.devices)}
