"""What the sections show: the report, indexed, with the sums that several of them need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from rooftrace import units
from rooftrace.contracts.base import BEFORE_FIRST_STEP
from rooftrace.contracts.module_names import module_class
from rooftrace.report.files import GapRow, KernelRow, read_instances, read_kernels, read_longest_gaps
from rooftrace.report.prose import Told
from rooftrace.report.roofline import Roofline, roofline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from rooftrace.contracts.instance import Instance
    from rooftrace.contracts.ledger import DeviceLedger, LedgerParts, StepLedger
    from rooftrace.contracts.report import Finding, OpGroup, ReportFile

GAPS_SHOWN = 5
_SEPARATORS = re.compile(r"[./]|: ")
# Tier of an analyzer's findings; compute where it is not named.
_TIER_OF = {"idle": "system", "multi_kernel": "system", "fusion": "fusion"}
PARTS = ("compute", "exposed_comm", "exposed_copy", "idle")


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Ledgers of all devices added up; ns."""

    span_ns: int
    parts: dict[str, int]
    total_comm_ns: int
    total_copy_ns: int
    carry_in_ns: int
    compute_by_category: dict[str, int]
    idle_by_cause: dict[str, int]

    @property
    def bounding(self) -> str:
        """The largest of the four parts."""
        return max(PARTS, key=lambda part: self.parts[part])

    @property
    def categories(self) -> list[tuple[str, int]]:
        """Compute by category, most time first."""
        return by_time(self.compute_by_category)


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """The steps of the first device that has any; ns."""

    device: int
    # The stretch before the first step, where there is one; in no other number here.
    leading: list[StepLedger]
    rows: list[StepLedger]
    mean_ns: float
    shortest: StepLedger
    longest: StepLedger
    cov_pct: float
    first_over_rest_pct: float


class View:
    """A report with its indexes. Reads nothing; everything here is derived."""

    def __init__(
        self,
        report: ReportFile,
        kernels: list[KernelRow],
        gaps: list[GapRow],
        told: Told | None = None,
        instances: Mapping[str, Instance] | None = None,
    ) -> None:
        self.report = report
        self.instances = instances or {}  # by finding id
        self.kernels = kernels
        self.gaps = gaps
        self.told = told or Told()

    def summaries(self, *tiers: str) -> list[tuple[str, str]]:
        """Analyzers of some tiers whose findings a writer has summed up, with the text."""
        names = {name: _TIER_OF.get(name, "compute") for name in self.told.summaries}
        return [(name, self.told.summaries[name]) for name, tier in sorted(names.items()) if tier in tiers]

    @cached_property
    def all_findings(self) -> list[Finding]:
        """Ranked and unranked, in rank order."""
        return [*self.report.findings, *self.report.unranked]

    def of_tier(self, tier: str) -> list[Finding]:
        """Findings of a tier, in rank order."""
        return [finding for finding in self.all_findings if finding.tier == tier]

    @cached_property
    def ops(self) -> dict[str, OpGroup]:
        """Op groups by id."""
        return {op.id: op for op in self.report.ops}

    @cached_property
    def short_names(self) -> dict[str, str]:
        """Readable names of kernels by raw name."""
        return {kernel.name: kernel.short for kernel in self.kernels}

    def short(self, kernel: str) -> str:
        """Readable name of a kernel; the raw one where the table lacks it."""
        return self.short_names.get(kernel) or kernel

    @cached_property
    def totals(self) -> Totals:
        """The ledgers added up over devices."""
        devices = self.report.ledger.devices
        return Totals(
            span_ns=sum(device.span_ns for device in devices),
            parts={part: sum(part_ns(device, part) for device in devices) for part in PARTS},
            total_comm_ns=sum(device.total_comm_ns for device in devices),
            total_copy_ns=sum(device.total_copy_ns for device in devices),
            carry_in_ns=sum(device.carry_in_ns for device in devices),
            compute_by_category=_added(device.compute_by_category for device in devices),
            idle_by_cause=_added(device.idle_by_cause for device in devices),
        )

    @cached_property
    def steps(self) -> StepFacts | None:
        """Facts about the steps, where a device has more than one."""
        for device in self.report.ledger.devices:
            rows = [step for step in device.steps if step.name != BEFORE_FIRST_STEP]
            leading = [step for step in device.steps if step.name == BEFORE_FIRST_STEP and step.span_ns]
            if len(rows) > 1:
                return _step_facts(device.device, leading, rows)
        return None

    @cached_property
    def before_first_step(self) -> tuple[DeviceLedger, StepLedger] | None:
        """The device with most time before its first step, and that stretch."""
        found = [
            (device, step)
            for device in self.report.ledger.devices
            for step in device.steps
            if step.name == BEFORE_FIRST_STEP and step.span_ns
        ]
        return max(found, key=lambda pair: pair[1].span_ns, default=None)

    def since_start(self, device: str, time_ns: int) -> int:
        """A time on the trace's clock as nanoseconds since the span of its device began."""
        starts = {str(ledger.device): ledger.start_ns for ledger in self.report.ledger.devices}
        return time_ns - starts.get(device, 0)

    @cached_property
    def rated_efficiency_pct(self) -> float | None:
        """Floors over measured times of all rated op groups; None where none is rated."""
        rated = [op for op in self.report.ops if op.floor_ns is not None and op.efficiency_pct is not None]
        floor = sum(min(op.floor_ns * op.count, op.busy_ns) for op in rated if op.floor_ns is not None)
        busy = sum(op.busy_ns for op in rated)
        return units.pct(floor, busy) if busy else None

    @cached_property
    def time_by_bound(self) -> dict[str, int]:
        """Summed kernel time of rated op groups by what bounds them."""
        return _summed((op.bound, op.kernel_ns) for op in self.report.ops if op.bound is not None)

    @cached_property
    def time_by_phase(self) -> dict[str, int]:
        """Summed kernel time of op groups by phase."""
        return _summed((op.phase, op.kernel_ns) for op in self.report.ops)

    @cached_property
    def time_by_module(self) -> dict[str, int]:
        """Summed kernel time of op groups by the class of the module they were mostly called from."""
        return _summed((innermost_class(op.modules[0]), op.kernel_ns) for op in self.report.ops if op.modules)

    @cached_property
    def time_by_precision(self) -> dict[str, int]:
        """Summed kernel time of rated op groups by the precision whose ceiling applies."""
        return _summed((op.precision, op.kernel_ns) for op in self.report.ops if op.precision is not None)

    @cached_property
    def roofline(self) -> Roofline | None:
        """Points and ceilings of the rated op groups, where there are any."""
        return roofline(self.report)

    @cached_property
    def vendor(self) -> str:
        """`nvidia`, `amd` or `` where the run does not tell."""
        report = self.report
        names = [device.name for device in report.trace.devices]
        text = " ".join([*names, *report.trace.versions, report.platform.product if report.platform else ""]).lower()
        if any(word in text for word in ("amd", "instinct", "radeon", "hip", "rocm")):
            return "amd"
        return "nvidia" if any(word in text for word in ("nvidia", "cuda", "geforce", "tesla", "quadro")) else ""


def open_view(run: Path, report: ReportFile, told: Told | None = None) -> View:
    """The view of a report and of the tables beside it."""
    has_gpu = bool(report.ledger.devices)
    found = [*report.findings, *report.unranked]
    wants_gaps = any(finding.id.startswith("idle.") for finding in found)
    return View(
        report,
        kernels=read_kernels(run) if has_gpu else [],
        gaps=read_longest_gaps(run, GAPS_SHOWN) if wants_gaps else [],
        told=told,
        instances=read_instances(run) if any(finding.tier == "fusion" for finding in found) else {},
    )


def part_ns(ledger: LedgerParts, part: str) -> int:
    """One of the four parts of a ledger."""
    values = {
        "compute": ledger.compute_ns,
        "exposed_comm": ledger.exposed_comm_ns,
        "exposed_copy": ledger.exposed_copy_ns,
        "idle": ledger.idle_ns,
    }
    return values[part]


def by_time(times: dict[str, int]) -> list[tuple[str, int]]:
    """Names with their times, most time first, ties by name."""
    return sorted(times.items(), key=lambda item: (-item[1], item[0]))


def innermost_class(path: str) -> str:
    """Class of the innermost module of a path: `Linear` of `Model_0.Block_3.Linear_1`."""
    return module_class(_SEPARATORS.split(path)[-1]) or path


def shapes_text(shapes: list[JsonValue] | None) -> str:
    """`4096x1024, 1024x512` of recorded shapes; scalars are left out."""
    return ", ".join(text for text in map(_shape_text, shapes or []) if text)


def _shape_text(shape: JsonValue) -> str:
    if not isinstance(shape, list) or not shape:
        return ""
    if any(isinstance(size, list) for size in shape):
        return f"list of {len(shape)}"
    return "x".join(str(size) for size in shape)


def repeats_text(shapes: str) -> str:
    """`16x16x559x64 (x3)` of three equal shapes in a row."""
    runs = [(text, len(list(same))) for text, same in groupby(shapes.split(", "))]
    return ", ".join(f"{text} (x{times})" if times > 1 else text for text, times in runs)


def dtypes_text(dtypes: list[JsonValue] | None) -> str:
    """Distinct recorded dtypes in order of appearance, without scalars."""
    names = [name for name in dtypes or [] if isinstance(name, str) and name and not name.startswith("Scalar")]
    return ", ".join(dict.fromkeys(names))


def _step_facts(device: int, leading: list[StepLedger], rows: list[StepLedger]) -> StepFacts:
    spans = [row.span_ns for row in rows]
    mean = sum(spans) / len(spans)
    deviation = (sum((span - mean) ** 2 for span in spans) / len(spans)) ** 0.5
    rest = median(spans[1:])
    return StepFacts(
        device=device,
        leading=leading,
        rows=rows,
        mean_ns=mean,
        shortest=min(rows, key=lambda row: row.span_ns),
        longest=max(rows, key=lambda row: row.span_ns),
        cov_pct=units.pct(deviation, mean),
        first_over_rest_pct=units.pct(spans[0] - rest, rest),
    )


def _added(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    return _summed(item for part in parts for item in part.items())


def _summed(items: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, time in items:
        sums[name] = sums.get(name, 0) + time
    return sums
