"""What-if questions and their answers, worked out by hand on one run. Times are µs, results ns."""

from __future__ import annotations

import pytest

from rooftrace.errors import UsageError
from rooftrace.replay import path as paths
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from rooftrace.workflow.whatif import Questions, answer
from tests.support.trace_builder import TraceBuilder
from tests.workflow.whatif_run import questioned


def workload_of(trace: TraceBuilder, steps: str | None = None):
    return prepare_workload(trace.build(), AnalyzeOptions(steps=steps)).workload


def asked(**questions):
    return answer(workload_of(questioned()), Questions(**questions))


@pytest.mark.parametrize(
    ("questions", "span_us"),
    [
        pytest.param({}, 340, id="as recorded"),
        # All is 50 earlier, the call returns at 185 and the second product runs from 200 to 250
        pytest.param({"scale": ["gemm=0.5"]}, 240, id="products at half"),
        pytest.param({"scale": ["elementwise=0"]}, 290, id="no elementwise time"),
        pytest.param({"scale": ["communication=2"]}, 380, id="a collective twice as long"),
        pytest.param({"scale": ["attention=0.5"]}, 340, id="a category that does not occur"),
        pytest.param({"scale_kernel": ["add=0"]}, 290, id="one kernel"),
        pytest.param({"scale_kernel": ["^nvjet.*TNT$=0.5"]}, 240, id="a pattern"),
        pytest.param({"scale_kernel": ["nvjet_(?=tst)=0.5"]}, 240, id="a pattern with an equals sign"),
        # A quarter each: 10 to 35, 85, 125, 155; returned at 160, 175 to 200
        pytest.param({"scale": ["gemm=0.5"], "scale_kernel": ["nvjet=0.5"]}, 190, id="twice the same kernels"),
        pytest.param({"without": ["communication"]}, 300, id="no communication"),
        pytest.param({"without": ["copies"]}, 310, id="no copies"),
        pytest.param({"without": ["communication", "copies"]}, 270, id="neither"),
        # The call takes 5, the usual time of one, until 15; launched at 20, the second product follows the copy at 230
        pytest.param({"without": ["sync"]}, 320, id="no synchronisation"),
        pytest.param({"without": ["sync:aten::item"]}, 320, id="none under an op"),
        pytest.param({"without": ["sync:cudaStreamSynchronize"]}, 320, id="none of a name"),
        # 5 between the return at 235 and the launch: half of them, or all, are gone
        pytest.param({"host_scale": 0.5}, 337.5, id="half of the host time"),
        pytest.param({"host_scale": 1.0}, 340, id="all of the host time"),
        pytest.param({"host_scale": 0.0}, 335, id="none of it"),
        pytest.param({"no_launch_gaps": True}, 335, id="no launch gaps"),
        pytest.param({"without": ["host"]}, 335, id="no host time"),
        pytest.param({"host_scale": 0.5, "no_launch_gaps": True}, 335, id="both"),
        # As with half products, but the call waits for nothing: the second one starts with the copy's end at 180
        pytest.param({"scale": ["gemm=0.5"], "without": ["sync"]}, 220, id="two kinds at once"),
    ],
)
def test_a_question_is_answered_with_a_span(questions, span_us):
    result = asked(**questions)

    assert result.span_ns == span_us * 1_000
    assert (result.measured_ns, result.baseline_ns) == (340_000, 340_000)
    assert sum(ledger.span_ns for ledger in result.ledgers) == result.span_ns
    assert sum(result.by_resource.values()) == result.span_ns


def test_the_answer_says_where_the_time_goes_then():
    (ledger,) = asked(scale=["gemm=0.5"]).ledgers

    assert (ledger.compute_ns, ledger.exposed_comm_ns, ledger.exposed_copy_ns, ledger.idle_ns) == (
        150_000,  # 50 + 50 + 50
        40_000,
        30_000,
        20_000,  # 5 until the call returns, 5 until the launch, 10 until the start
    )


def test_the_answer_says_what_bounds_the_run_then():
    before, after = asked().by_resource, asked(scale=["gemm=0"], without=["sync"]).by_resource

    assert {name: ns for name, ns in before.items() if ns} == {
        "compute": 250_000,
        "communication": 40_000,
        "copy": 30_000,
        "synchronisation": 5_000,
        "host": 5_000,
        "launch": 10_000,
    }
    # The first product takes nothing; the addition, launched at 3, starts a usual latency, 10, later
    assert {name: ns for name, ns in after.items() if ns} == {
        "launch": 3_000,
        "compute": 50_000,
        "communication": 40_000,
        "copy": 30_000,
    }


def test_steps_are_questioned_alone():
    trace = TraceBuilder()
    for number in range(3):
        ts = 1_000 * number
        trace.annotation(f"ProfilerStep#{number}", ts, 900)
        trace.op("aten::mm", ts + 5, 5)
        trace.kernel("add_kernel", ts=ts + 20, dur=100 + number, correlation=trace.launch(ts=ts + 6))
    result = answer(workload_of(trace, steps="1"), Questions(scale_kernel=["add=0.5"]))

    assert (result.measured_ns, result.span_ns) == (101_000, 50_500)


def test_a_trace_without_gpu_activity_has_an_answer_of_nothing():
    trace = TraceBuilder()
    trace.op("aten::mm", 0, 5)
    result = answer(workload_of(trace), Questions(host_scale=0.5))

    assert (result.measured_ns, result.span_ns, result.ledgers, result.by_resource) == (0, 0, [], {})


def on_two_devices():
    """On device 0 a kernel from 10 to 110, launched at 0; on device 1 one from 25 to 75, launched at 5 by the same."""
    trace = TraceBuilder()
    trace.kernel("a", ts=10, dur=100, correlation=trace.launch(ts=0, dur=1))
    trace.kernel("b", ts=25, dur=50, device=1, correlation=trace.launch(ts=5, dur=1))
    return workload_of(trace)


def test_the_critical_paths_of_all_devices_are_summed():
    result = answer(on_two_devices(), Questions(scale_kernel=["a=0.5"]))

    assert (result.measured_ns, result.span_ns) == (150_000, 100_000)  # 100 + 50; 50 + 50
    assert {name: ns for name, ns in result.by_resource.items() if ns} == {"compute": 100_000}


def test_what_host_threads_did_is_looked_up_once_for_all_devices(monkeypatch):
    made = []

    class Counting(paths._Host):
        def __init__(self, *given):
            made.append(1)
            super().__init__(*given)

    monkeypatch.setattr(paths, "_Host", Counting)
    answer(on_two_devices(), Questions())

    assert len(made) == 1


SCALE_HINT = "Write it as NAME=FACTOR with a factor from 0 to 1000, such as gemm=0.5"


@pytest.mark.parametrize(
    "text", ["gemm", "gemm=", "=0.5", "gemm=fast", "gemm=-1", "gemm=nan", "gemm=inf", "gemm=1e30", "gemm=1000.1", ""]
)
@pytest.mark.parametrize("option", ["scale", "scale_kernel"])
def test_what_is_no_scale_is_refused(option, text):
    with pytest.raises(UsageError) as caught:
        asked(**{option: [text]})

    assert str(caught.value) == f"error: `{text}` is no scale\n\nhint: {SCALE_HINT}"


def test_scales_of_one_kernel_multiply_to_a_thousand_at_most():
    # The addition at 1,000 times its 50: 49,950 more
    assert asked(scale_kernel=["add=1000", "add=1000"]).span_ns == 340_000 + 49_950_000
