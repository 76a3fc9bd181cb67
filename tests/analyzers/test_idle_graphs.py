"""Launch sequences that a graph could replay."""

from __future__ import annotations

from rooftrace.analyzers.idle_graphs import find_sequences
from tests.analyzers.workloads import product, workload_of
from tests.causes.runs import Run


def sequences_of(run):
    return find_sequences(workload_of(run), 0)


def launches(names, run=None, at=0.0, shapes=None):
    run = run or Run()
    for number, name in enumerate(names):
        inputs = product(*shapes[number % len(shapes)]) if shapes else {}
        run.op("aten::mm", at, 4, **inputs)
        run.run(name, at=at + 1, dur=2, op=None)
        at += 10
    return run


LAYER = [f"k{n}" for n in range(8)]


def test_layers_of_one_stretch_repeat():
    found = sequences_of(launches(["first", *LAYER * 3, "last"]))

    assert found.launches.tolist() == [8, 8, 8]
    assert found.repeats.tolist() == [3, 3, 3]
    assert ((found.end - found.start) / 1000).tolist() == [72.0] * 3  # seven distances of 10 and a call of 2
    assert found.activities.size == 24


def test_launches_with_other_inputs_do_not_repeat():
    shapes = [(n, 8, 8) for n in range(1, 25)]

    assert sequences_of(launches(LAYER * 3, shapes=shapes)).launches.size == 0


def test_equal_stretches_between_blocking_calls_repeat_as_a_whole():
    run = Run()
    for step in range(2):
        launches([*LAYER, f"tail{0}"], run, at=1000.0 * step)
        run.launch("cudaDeviceSynchronize", ts=1000.0 * step + 500, dur=5)

    found = sequences_of(run)
    assert (found.launches.tolist(), found.repeats.tolist()) == ([9, 9], [2, 2])


def test_a_longer_distance_is_taken_only_if_it_covers_more():
    # two layers recur as one does; but with a kernel between every two of them only the pair recurs
    plain = sequences_of(launches(LAYER * 6))
    paired = sequences_of(launches([*LAYER, *LAYER, "norm"] * 4))

    assert set(plain.launches.tolist()) == {8}
    assert set(paired.launches.tolist()) == {17}


def test_a_few_launches_are_no_sequence():
    assert sequences_of(launches(["a", "b", "c"] * 5)).launches.size == 0


def test_work_of_two_threads_is_not_one_sequence():
    run = Run()
    for number, name in enumerate(LAYER * 2):
        run.run(name, at=10.0 * number, dur=2, tid=1 + number % 2)

    assert sequences_of(run).launches.size == 0
