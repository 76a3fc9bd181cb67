"""A run with a change and the device's span before and after it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from evals.workshop.hardware import H100_SXM, Gpu
from evals.workshop.instructions import Thread, Timeline
from evals.workshop.kineto import Header, trace_text
from evals.workshop.simulator import simulate
from evals.workshop.truth import span_ns
from evals.workshop.whatif.changes import Change, changed


@dataclass(frozen=True, kw_only=True)
class Case:
    """``before_ns`` and ``after_ns``: first start to last end of GPU activity in the run as it is and as changed.

    ``sync_events``: whether its trace holds ``cuda_sync`` events. ``trait`` names what the run is made of.
    ``recorded``: the run as it is, where it has been simulated already.
    """

    name: str
    threads: tuple[Thread, ...] = field(repr=False)
    change: Change
    before_ns: int
    after_ns: int
    gpu: Gpu = field(default=H100_SXM, repr=False)
    sync_events: bool = True
    trait: str = ""
    recorded: Timeline | None = field(default=None, repr=False)

    def before(self) -> Timeline:
        """The run as it is."""
        return simulate(self.threads) if self.recorded is None else self.recorded

    def after(self) -> Timeline:
        """The run with the change."""
        return simulate(changed(self.threads, self.change))

    def trace(self) -> str:
        """The trace of the run as it is, as a profiler writes it."""
        header = Header(
            gpu=self.gpu,
            threads={thread.tid: thread.name for thread in self.threads},
            trace_name=f"{self.name.replace(' ', '_')}.json",
            trace_id=hashlib.blake2b(self.name.encode(), digest_size=16).hexdigest().upper(),
            sync_events=self.sync_events,
        )
        return trace_text(self.before(), header)


def simulated_case(case: Case) -> Case:
    """The case with the spans of its simulation."""
    before = case.before()
    return replace(case, before_ns=span_ns(before), after_ns=span_ns(case.after()), recorded=before)
