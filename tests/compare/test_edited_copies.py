"""A run and its own copy with one thing changed: found, named, sized within 1 %."""

from __future__ import annotations

import pytest

from evals.workshop.hardware import H100_SXM
from evals.workshop.instructions import Synchronize
from evals.workshop.pairs import changes
from evals.workshop.pairs.order_cases import side_stream
from evals.workshop.pairs.runs import PairCase, run
from evals.workshop.simulator import simulate
from rooftrace.compare import compare_sides
from rooftrace.pack import ROOT
from tests.compare import editor
from tests.compare.sides import assert_conserved, real_trace, side_of, sides_of

EXAMPLE = ROOT / "examples/transformer_training_h100.json.gz"


@pytest.fixture(scope="module")
def example():
    return editor.read(EXAMPLE), side_of(EXAMPLE)


def found(comparison, cause):
    return [(item.subject, item.delta_ns) for item in comparison.findings if item.cause == cause]


def test_a_kernel_family_that_takes_twice_as_long(example, tmp_path):
    document, base = example
    edited, planted = editor.slowed(document, "flash_fwd_kernel", 2)
    comparison = compare_sides(base, side_of(editor.write(edited, tmp_path / "slow.json")))
    ((subject, delta),) = found(comparison, "slower_kernel")
    assert subject.startswith("flash_fwd_kernel")
    assert delta == planted > 200_000
    assert len(comparison.findings) == 1
    assert_conserved(comparison)


def test_an_op_that_is_gone(example, tmp_path):
    document, base = example
    edited, planted = editor.removed(document, "aten::gelu")
    comparison = compare_sides(base, side_of(editor.write(edited, tmp_path / "gone.json")))
    ((subject, delta),) = found(comparison, "only_in_base")
    assert subject == "GELU"  # the module that calls nothing else has no counterpart
    assert delta == -planted < -500_000
    assert_conserved(comparison)


def test_a_wait_for_the_gpu_in_every_layer(tmp_path):
    threads = run(H100_SXM, "inference", "large", frozenset(), 4)
    waited = changes.after_spans(
        threads,
        "aten::gelu",
        lambda _: [Synchronize(call="stream_sync", host_ns=2_000, tail_ns=3_000, stream=7)],
    )
    case = PairCase(name="waits", gpu=H100_SXM, base=threads, target=waited, causes=("synchronisation",))
    # The gaps that follow a wait, from the simulator's own records.
    timeline = simulate(waited)
    work = sorted(timeline.activities, key=lambda row: row.start_ns)
    gaps = 0
    for call in timeline.calls:
        if call.name == "stream_sync" and call.waited_ns:
            before = max(row.end_ns for row in work if row.start_ns < call.end_ns)
            gaps += min(row.start_ns for row in work if row.start_ns >= before) - before
    comparison = compare_sides(*sides_of(case, tmp_path))
    ((_, delta),) = found(comparison, "synchronisation")
    assert delta == pytest.approx(gaps, rel=0.01)
    assert_conserved(comparison)


def test_a_stream_whose_work_runs_after_the_others_instead_of_beside_them(tmp_path):
    case = side_stream(H100_SXM)
    path = tmp_path / "base.json"
    path.write_text(case.traces()[0], encoding="utf-8")
    edited, beside = editor.serialised(editor.read(path), 13, 7)
    comparison = compare_sides(side_of(path), side_of(editor.write(edited, tmp_path / "serial.json")))
    ((subject, delta),) = found(comparison, "lost_overlap")
    assert subject == "aten::mul, aten::gelu"
    assert delta == pytest.approx(beside, rel=0.01)
    assert_conserved(comparison)


@pytest.mark.real_traces
def test_waits_in_a_real_trace(tmp_path):
    path = real_trace("h100/facebook_timesformer-base-finetuned-k400__1016002.json.gz")
    edited, planted = editor.synced(editor.read(path), 20_000)
    comparison = compare_sides(side_of(path), side_of(editor.write(edited, tmp_path / "synced.json")))
    waits = [
        row.delta_ns
        for row, cause in zip(comparison.rows, comparison.causes, strict=True)
        if cause == "synchronisation"
    ]
    assert sum(waits) == pytest.approx(planted, rel=0.01)
