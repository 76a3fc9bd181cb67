"""How well the replay explains real runs: ``python -m benchmarks.replay_report [TRACE …]``.

For every trace: error of the unchanged replay (it keeps what it cannot explain, so this alone proves little), share
of the critical path that is explained, and what bounds the run. For every trace with several steps: constants fitted
on one step predict the next one's span from its kernels' durations and its host's gaps alone.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from rooftrace.calltree import Link  # noqa: E402
from rooftrace.errors import RooftraceError  # noqa: E402
from rooftrace.replay.constraints import predict, usual_distances  # noqa: E402
from rooftrace.replay.facts import describe_replay  # noqa: E402
from rooftrace.replay.run import Replay  # noqa: E402
from rooftrace.trace import load  # noqa: E402
from rooftrace.units import format_ns  # noqa: E402
from rooftrace.workflow.options import AnalyzeOptions  # noqa: E402
from rooftrace.workflow.prepare import prepare_workload  # noqa: E402

if TYPE_CHECKING:
    from rooftrace.analyzers import Workload

_LEAST_ACTIVITIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPrediction:
    """One step predicted with the constants of the one before it."""

    name: str
    measured_ns: int
    predicted_ns: int

    @property
    def error_pct(self) -> float:
        """Predicted over measured span, less one, per cent."""
        return 100.0 * (self.predicted_ns - self.measured_ns) / self.measured_ns


def predict_steps(workload: Workload) -> list[StepPrediction]:
    """Every step but the first, where steps hold enough linked work; what lies outside a step stays as measured."""
    steps, activities, schedule = workload.steps, workload.activities, workload.schedule
    found = []
    for number in range(1, len(steps.names)):
        before, now = steps.of_activity == number - 1, steps.of_activity == number
        if min(before.sum(), now.sum()) < _LEAST_ACTIVITIES or (activities.link[now] > int(Link.FLOW)).any():
            continue
        fitted = usual_distances(activities, schedule, before)
        replay = Replay(workload.tree, activities, schedule, predict(activities, schedule, fitted, now))
        timeline = replay.timeline()
        found.append(
            StepPrediction(
                name=steps.names[number],
                measured_ns=int(activities.end[now].max() - activities.start[now].min()),
                predicted_ns=int(timeline.end[now].max() - timeline.start[now].min()),
            )
        )
    return found


def main(arguments: list[str]) -> int:
    """Print one line a trace, and one a predicted step."""
    folder = Path(os.environ.get("ROOFTRACE_TRACES", ROOT / "../shared/traces"))
    paths = [Path(name) for name in arguments] or sorted(folder.rglob("*.json.gz"))
    for path in paths:
        try:
            workload = prepare_workload(load(path)[0], AnalyzeOptions()).workload
        except RooftraceError as error:
            print(f"{path.name}: {error}")
            continue
        if not workload.activities.row.size:
            print(f"{path.name}: no GPU activity")
            continue
        facts = describe_replay(Replay(workload.tree, workload.activities, workload.schedule))
        print(
            f"{path.relative_to(folder) if path.is_relative_to(folder) else path}: "
            f"span {format_ns(facts.measured_ns)}, error {facts.error_pct:+.2f} %, "
            f"explained {facts.explained_pct:.1f} %, bound by {facts.bound_by}, "
            f"{facts.evidence.unlinked} of {workload.activities.row.size} activities without a launch"
        )
        for step in predict_steps(workload):
            print(
                f"    {step.name}: measured {format_ns(step.measured_ns)}, "
                f"predicted {format_ns(step.predicted_ns)}, error {step.error_pct:+.2f} %"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
