"""On random trees of modules no kernel is claimed twice, and what is claimed is what ran."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.fusion import find_candidates
from rooftrace.fusion.calls import collect_calls
from tests.fusion.programs import ADD, BF16, COPY, F32, GEMM, HALF, MUL, ROWS, Model, X, inputs_of, rms_norm

ATTENTION = "void flash_fwd_kernel<Flash_fwd_kernel_traits>"


def block(model, choice):
    """One of the things that models are made of."""
    if choice == 0:
        rms_norm(model)
    elif choice == 1:
        model.call("aten::mm", 80, ([8192, 1024], F32), ([1024, 1024], F32), kernel=GEMM)
        model.call("aten::gelu", 40, X, scalars=("none",))
    elif choice == 2:
        model.call("aten::silu", 40, X)
        model.call("aten::mm", 80, HALF, ([1024, 1024], BF16), kernel=GEMM)
        model.call("aten::mul", 40, X, X, kernel=MUL)
    elif choice == 3:
        model.call("aten::add", 40, X, X, kernel=ADD, scalars=("1",))
        model.call("aten::cos", 40, X)
        model.call("aten::mul", 40, X, ROWS, kernel=MUL)
    elif choice == 4:
        model.call("aten::copy_", 30, HALF, X, kernel=COPY, scalars=("False",))
        model.call("flash_attn::fwd", 90, HALF, kernel=ATTENTION)
    else:
        model.call("aten::sigmoid", 40, X)
        model.call("aten::mul", 40, X, X, kernel=MUL)


def tree(model, generator, depth):
    for number in range(int(generator.integers(1, 5))):
        if depth and generator.random() < 0.5:
            with model.module(f"Block_{number}"):
                tree(model, generator, depth - 1)
        else:
            block(model, int(generator.integers(0, 6)))


@pytest.mark.parametrize("seed", range(25))
def test_no_kernel_is_claimed_twice_and_claimed_time_is_the_time_of_the_kernels(seed):
    model, generator = Model(), np.random.default_rng(seed)
    tree(model, generator, 3)
    run = inputs_of(model)

    result = find_candidates(run)

    claims = [result.activities(candidate).reshape(-1) for candidate in (*result.candidates, *result.unrated)]
    claimed = np.concatenate([*claims, np.empty(0, dtype=np.int64)])
    assert np.unique(claimed).size == claimed.size
    for candidate in result.candidates:
        mine = result.activities(candidate)
        assert candidate.time_ns.tolist() == run.activities.dur[mine].sum(axis=1).tolist()
        assert (candidate.saving_ns <= candidate.time_ns).all()
        assert not any("flash" in run.trace.names[code] for code in run.activities.name[mine].reshape(-1))


@pytest.mark.parametrize("seed", range(10))
def test_calls_hold_every_activity_once_in_the_order_of_the_stream(seed):
    model, generator = Model(), np.random.default_rng(seed)
    tree(model, generator, 2)
    run = inputs_of(model)

    calls = collect_calls(run)

    assert sorted(calls.order.tolist()) == list(range(run.activities.row.size))
    assert int(calls.time_ns.sum()) == int(run.activities.dur.sum())
    assert (np.diff(run.activities.start[calls.order]) > 0).all()
