"""Steps predicted with the distances of the step before: what the replay report measures. Times are µs, spans ns."""

from __future__ import annotations

from benchmarks.replay_report import predict_steps
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from tests.schedule.scenes import Program


def predicted(program: Program) -> list[tuple[str, int, int]]:
    workload = prepare_workload(program.build(), AnalyzeOptions()).workload
    return [(step.name, step.measured_ns, step.predicted_ns) for step in predict_steps(workload)]


def step(program: Program, number: int, *, gap: float, kernels: int = 60) -> None:
    """Kernels of 100, launched every 0.5 from the step's beginning on, with the given gap between them."""
    ts = 10_000 * number
    program.annotation(f"ProfilerStep#{number}", ts, 9_000)
    for at in range(kernels):
        program.launched("k", ts=ts + 0.5 * at, start=ts + 8 + (100 + gap) * at, dur=100, lasts=0.25)


def test_a_queued_step_is_predicted_with_the_gaps_of_the_one_before():
    # 60 kernels and 59 gaps: 6,000 + 59 * 4 as measured; with the first step's gap of 2, 6,000 + 118; the third step
    # has the second one's gaps
    program = Program()
    for number, gap in enumerate((2, 4, 4)):
        step(program, number, gap=gap)

    assert predicted(program) == [
        ("ProfilerStep#1", 6_236_000, 6_118_000),
        ("ProfilerStep#2", 6_236_000, 6_236_000),
    ]


def test_a_host_bound_step_is_predicted_with_the_latency_of_the_one_before():
    # Launched every 50, kernels of 10: the first latency is 6, then 9. The span from the first start to the last end,
    # 59 * 50 + 10, does not depend on it; where the last kernel alone starts 3 later, it does
    program = Program()
    for number in range(2):
        ts = 10_000 * number
        program.annotation(f"ProfilerStep#{number}", ts, 9_000)
        for at in range(60):
            late = 3 if number and at == 59 else 0
            program.launched("k", ts=ts + 50 * at, start=ts + 50 * at + 6 + late, dur=10)

    assert predicted(program) == [("ProfilerStep#1", 2_963_000, 2_960_000)]


def test_steps_with_little_work_or_work_without_a_launch_are_left_out():
    program = Program()
    step(program, 0, gap=2)
    step(program, 1, gap=2, kernels=49)
    step(program, 2, gap=2)  # after a step with little work
    step(program, 3, gap=2)
    program.kernel("lost", ts=39_000, dur=10)
    step(program, 4, gap=2)

    assert [name for name, _, _ in predicted(program)] == ["ProfilerStep#4"]


def test_the_error_is_signed_and_a_share_of_the_measured_span():
    program = Program()
    step(program, 0, gap=2)
    step(program, 1, gap=4)
    (found,) = predict_steps(prepare_workload(program.build(), AnalyzeOptions()).workload)

    assert round(found.error_pct, 2) == -1.89  # 118 of 6,236 too little
