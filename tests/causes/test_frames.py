"""Which user frame a gap is told by: the deepest that is open for half of it. Times are µs."""

from __future__ import annotations

from tests.causes.runs import Run, longest


def between(*frames):
    """A gap of 990 µs (15 to 1005) without ops, and Python frames."""
    run = Run()
    run.warm_up()
    run.run(at=0)
    run.run(at=1000)
    for name, ts, dur in frames:
        run.python(name, ts, dur)
    return run


def test_a_frame_in_the_middle_that_takes_a_quarter_of_the_gap_is_not_told():
    #            15           400   650         1005
    # forward    [------------------------------]
    # is_tensor               [----]
    run = between(("model.py(4): forward", -300, 1400), ("generic.py(121): is_tensor", 400, 250))

    assert longest(run)["frame"] == "model.py(4): forward"


def test_of_nested_frames_that_cover_half_the_inner_one_is_told():
    run = between(
        ("model.py(4): forward", -300, 1400), ("zoom.py(7): zoom", 100, 850), ("zoom.py(9): spline", 200, 600)
    )

    assert longest(run)["frame"] == "zoom.py(9): spline"  # 600 of 990


def test_without_a_frame_that_covers_half_none_is_told():
    run = between(("a.py(1): a", 20, 400), ("b.py(1): b", 430, 400))

    assert longest(run)["frame"] is None


def test_python_frames_inside_an_op_are_no_stall():
    #           20                            4920
    # host      [Torch-Compiled Region        ]
    # frames     [a][a][a][a] …
    run = Run()
    run.warm_up()
    run.run(at=0)
    run.op("Torch-Compiled Region: 0/0", 20, 4900)
    run.run(at=5000)

    assert longest(run)["cause"] == "host_code"
    for ts in range(30, 4900, 20):
        run.python("<built-in function assert_size_stride>", ts, 2)
    assert longest(run)["cause"] == "launch_bound"
