"""The planted truth, by hand: durations are the recorder's, everything else is arithmetic beside the number."""

from __future__ import annotations

import ast

from evals.workshop.fusions import ops
from evals.workshop.fusions.corpus import cases, planted
from evals.workshop.fusions.machines import H100, fused_ns
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import tensor
from tests.repository.files import ROOT

X = (1000, 1000)


def spent(recorder, *numbers):
    return sum(recorder.executed[at].end_ns - recorder.executed[at].start_ns for at in numbers)


def test_fused_time_is_the_largest_term_and_15_per_cent_of_the_others():
    # 3.18 MB / 3,180 GB/s = 1,000 ns; 133.8 MFLOP / 66.9 TFLOP/s = 2,000 ns; 1,000 ns of latency
    assert fused_ns(H100, 3_180_000, {("vector", "f32"): 133.8e6}, 1000) == 2000 + 0.15 * 2000


def test_a_chain_saves_its_time_less_what_comes_from_outside_and_what_is_needed():
    r = Recorder(H100)
    x = tensor(X, "f32")
    with r.plant("novel"):
        y = ops.unary(r, "tanh", ops.unary(r, "neg", x))
    (instance,) = r.truth()

    # 4 MB in and 4 MB out / 3,180 GB/s = 2,515.7 ns; 1 + 8 FLOPs an element / 66.9 TFLOP/s = 134.5 ns; 1,000 ns
    assert instance.activities == (0, 1)
    assert instance.saving_ns == spent(r, 0, 1) - round(2515.7 + 0.15 * (134.5 + 1000))
    del y


def test_a_tensor_that_a_later_call_reads_is_written_too():
    def saving(*, read_again):
        r = Recorder(H100)
        with r.plant("novel"):
            inner = ops.unary(r, "neg", tensor(X, "f32"))
            ops.unary(r, "abs", inner)
        if read_again:
            ops.reduce(r, "sum", inner)
        return r.truth()[0].saving_ns

    assert saving(read_again=False) - saving(read_again=True) == 1258  # 4 MB / 3,180 GB/s = 1,257.9 ns


def test_a_tensor_read_through_two_views_is_read_once():
    r = Recorder(H100)
    first, second = ops.halves(r, tensor((1000, 2000), "f32"))
    with r.plant("novel"):
        ops.binary(r, "mul", second, ops.unary(r, "abs", first))
    (instance,) = r.truth()

    # both halves 8 MB, result 4 MB: 3,773.6 ns; 2 FLOPs an element: 29.9 ns
    assert instance.saving_ns == spent(r, 0, 1) - round(3773.6 + 0.15 * (29.9 + 1000))


def test_an_epilogue_pays_for_its_other_operand_alone_and_leaves_the_product():
    r = Recorder(H100)
    x = ops.linear(r, tensor(X, "bf16"), 1000)
    with r.epilogue():
        ops.binary(r, "add", x, tensor(X, "bf16"))
    (instance,) = r.truth()

    # 2 MB / 3,180 GB/s = 628.9 ns; 1 FLOP an element / 133.8 TFLOP/s = 7.5 ns; no launch of its own
    assert instance.activities == (1,)
    assert instance.saving_ns == spent(r, 1) - round(628.9 + 0.15 * 7.5)


def test_a_loop_reads_and_writes_each_state_once():
    r = Recorder(H100)
    with r.plant("sgd_loop", tensors=1, lists=3):
        weight, buffer = tensor(X, "f32"), tensor(X, "f32")
        ops.scalar(r, "mul_", buffer)
        ops.binary(r, "add_", buffer, tensor(X, "f32"))
        ops.binary(r, "add_", weight, buffer)
    (instance,) = r.truth()

    # weight, buffer and gradient in, weight and buffer out: 20 MB = 6,289.3 ns; 3 FLOPs an element = 44.8 ns
    assert instance.saving_ns == spent(r, 0, 1, 2) - round(6289.3 + 0.15 * (44.8 + 1000))


def test_of_instances_inside_each_other_the_set_that_saves_most_is_true():
    r = Recorder(H100)
    x = tensor(X, "f32")
    with r.plant("outer"):
        y = ops.unary(r, "neg", x)
        with r.plant("inner"):
            ops.unary(r, "abs", ops.unary(r, "exp", y))

    assert [instance.pattern for instance in r.truth()] == ["outer"]


def test_what_runs_apart_is_no_member():
    r = Recorder(H100)
    with r.plant("swiglu") as plant:
        gate = ops.unary(r, "silu", tensor(X, "f32"))
        with r.apart():
            r.launch("a_product", Work(reads=(gate,), writes=(tensor(X, "f32"),)))
        with r.apart(plant):
            ops.binary(r, "mul", gate, tensor(X, "f32"))

    assert r.truth()[0].activities == (0, 2)


def test_recording_twice_gives_the_same_bytes():
    one = next(case for case in cases() if case.name == "decoder_layers_h100")

    assert planted(one) == planted(one)


def test_the_generator_imports_nothing_of_what_it_checks():
    imported = set()
    for path in sorted((ROOT / "evals/workshop/fusions").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
            elif isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}

    assert not imported & {"rooftrace", "tests", "benchmarks"}
    assert "evals" in imported
