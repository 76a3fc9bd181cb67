"""Runs drawn in µs, and the causes of their gaps."""

from __future__ import annotations

from rooftrace import calltree, causes
from rooftrace.schedule import build_schedule
from tests.support.trace_builder import TraceBuilder


class Run(TraceBuilder):
    """Kernels that start 5 µs after their launch unless told otherwise: the run's launch latency."""

    def run(
        self,
        kernel="k",
        *,
        at,
        dur=10,
        start=None,
        op="aten::mm",
        tid=1,
        call_dur=2,
        **to,
    ):
        """An op of 4 µs at `at` (None: no op) that launches one kernel; returns the correlation."""
        if op is not None:
            self.op(op, at, 4, tid=tid)
        correlation = self.launch(ts=at, dur=call_dur, tid=tid)
        self.kernel(kernel, ts=at + 5 if start is None else start, dur=dur, correlation=correlation, **to)
        return correlation

    def warm_up(self, until=0, count=5, kernel="k"):
        """Kernels before `until`, 20 µs apart, that tell the usual latency and name `k`; each leaves a gap of 10 µs."""
        for number in range(count, 0, -1):
            self.run(kernel, at=until - 20 * number)


def causes_of(builder):
    """The trace and the causes of all its gaps."""
    trace = builder.build()
    tree = calltree.build_tree(trace)
    activities = calltree.collect_activities(trace, tree)
    context = calltree.build_context(trace, tree)
    schedule = build_schedule(trace, tree, activities)
    return trace, tree, causes.attribute(trace, tree, context, activities, schedule)


def longest(builder):
    """What is known of the longest gap."""
    trace, tree, found = causes_of(builder)
    gap = int(found.dur.argmax())
    op, frame, row = int(found.op[gap]), int(found.frame[gap]), int(found.row[gap])
    return {
        "cause": causes.CAUSE_NAMES[int(found.cause[gap])],
        "us": int(found.dur[gap]) / 1000,
        "call": trace.names[trace.name[row]] if row >= 0 else None,
        "op": trace.names[tree.name[op]] if op >= 0 else None,
        "frame": trace.names[trace.name[frame]] if frame >= 0 else None,
        "reason": causes.REASON_NAMES[int(found.reason[gap])],
    }
