"""The way of a small file to the report: read, prepared, assessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooftrace.trace import FileFacts, Kind, load
from rooftrace.workflow import AnalyzeOptions, health
from rooftrace.workflow.prepare import Prepared, prepare_workload

if TYPE_CHECKING:
    from rooftrace.contracts.report import Health
    from rooftrace.trace import Trace
    from tests.trace.reading import Folder

PARTS = ("span_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")


@dataclass(frozen=True)
class Result:
    """What an analysis says of a file."""

    prepared: Prepared
    facts: FileFacts
    health: Health

    @property
    def trace(self) -> Trace:
        """The columns."""
        return self.prepared.workload.trace

    @property
    def codes(self) -> list[str]:
        """Codes of Trace Health, in order of the alphabet."""
        return sorted(note.code for note in self.health.notes)

    def note(self, code: str) -> str:
        """Text of the note with this code."""
        return next(note.text for note in self.health.notes if note.code == code)

    def parts(self, device: int = 0) -> dict[str, int]:
        """The parts of a device's ledger that are not zero, and its span, ns."""
        ledger = next(entry for entry in self.prepared.workload.ledgers if entry.device == device)
        found = {part: getattr(ledger, part) for part in PARTS}
        return {part: ns for part, ns in found.items() if ns}

    @property
    def ops(self) -> dict[str, int]:
        """GPU time of each op, or of each kernel without one, ns."""
        workload = self.prepared.workload
        found: dict[str, int] = {}
        for group in workload.groups:
            ns = int(workload.activities.dur[group.activities].sum())
            found[group.name] = found.get(group.name, 0) + ns
        return found

    @property
    def steps(self) -> list[str]:
        """Names of the steps."""
        return list(self.prepared.workload.steps.names)

    @property
    def platform(self) -> str | None:
        """Slug of the GPU that was recognised."""
        found = self.prepared.choice.platform
        return found.slug if found is not None else None


def analysed(folder: Folder, content: bytes, name: str = "trace.json", steps: str | None = None) -> Result:
    """What is said of a file with this content."""
    trace, facts = load(folder.write(content, name))
    prepared = prepare_workload(trace, AnalyzeOptions(steps=steps))
    return Result(prepared, facts, health.assess(prepared, facts))


def events_of(trace: Trace) -> list[tuple[str, str, int, int]]:
    """Kind, name, start after the first event and duration of each event, ns, in file order."""
    return [
        (Kind(kind).name, trace.names[name], start, dur)
        for kind, name, start, dur in zip(
            trace.kind.tolist(), trace.name.tolist(), trace.start.tolist(), trace.dur.tolist(), strict=True
        )
    ]
