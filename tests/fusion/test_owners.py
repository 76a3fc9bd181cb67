from __future__ import annotations

import pytest

from rooftrace.analyzers.fusion import analyze
from rooftrace.fusion import find_candidates
from rooftrace.fusion.owners import DDP_COPIES
from tests.analyzers.workloads import workload_of
from tests.fusion.programs import ADD, COPY, F32, MUL, Model, inputs_of

SHAPES = ([1000, 1000], [1000], [500, 1000])


def call(model, op, tensor, operands=1, scalars=("0.9",)):
    model.call(f"aten::{op}", 4, *[tensor] * operands, scalars=scalars, kernel=MUL)


def adagrad(model, tensor):
    call(model, "addcmul_", tensor, 3, ("1",))
    call(model, "sqrt", tensor, 1, ())
    call(model, "add_", tensor, 1, ("1e-10", "1"))
    call(model, "addcdiv_", tensor, 3, ("-0.01",))


def rmsprop(model, tensor):
    call(model, "mul_", tensor)
    adagrad(model, tensor)


def rmsprop_with_momentum(model, tensor):
    call(model, "mul_", tensor)
    call(model, "addcmul_", tensor, 3)
    call(model, "sqrt", tensor, 1, ())
    call(model, "add_", tensor, 1, ("1e-10", "1"))
    call(model, "mul_", tensor)
    call(model, "addcdiv_", tensor, 3)
    call(model, "add_", tensor, 2, ("-0.01",))


def adam_before_lerp(model, tensor):
    call(model, "mul_", tensor)
    call(model, "add_", tensor, 2, ("0.1",))
    call(model, "mul_", tensor)
    call(model, "addcmul_", tensor, 3)
    call(model, "sqrt", tensor, 1, ())
    call(model, "div_", tensor)
    call(model, "add_", tensor, 1, ("1e-8", "1"))
    call(model, "addcdiv_", tensor, 3)


def momentum(model, tensor):
    call(model, "mul_", tensor)
    call(model, "add_", tensor, 2, ("1",))
    call(model, "add_", tensor, 2, ("-0.01",))


def stepped(update, name, shapes=SHAPES):
    """A step of an optimizer; `name` is its class as the profiler annotates it."""
    model = Model()
    start = model.host
    for shape in shapes:
        update(model, (shape, F32))
    model.annotation(f"Optimizer.step#{name}.step", start - 1, model.host - start + 2)
    return model


def only(model):
    (candidate,) = find_candidates(inputs_of(model)).candidates
    return candidate


@pytest.mark.parametrize(
    ("update", "name", "pattern", "tensors"),
    [
        # tensors that a fused step reads and writes: weight, gradient and states; weight and states
        (adagrad, "Adagrad", "adagrad_loop", 3 + 2),
        (rmsprop, "RMSprop", "rmsprop_loop", 3 + 2),
        (rmsprop_with_momentum, "RMSprop", "rmsprop_momentum_loop", 4 + 3),
        (adam_before_lerp, "Adam", "adam_loop", 4 + 3),
        (adam_before_lerp, "AdamW", "adam_loop", 4 + 3),
        (momentum, "SGD", "sgd_loop", 3 + 2),
    ],
)
def test_a_step_is_the_optimizers_whose_class_and_calls_agree(update, name, pattern, tensors):
    candidate = only(stepped(update, name))

    assert candidate.composition.identity == pattern
    assert candidate.estimate.nbytes == tensors * 4 * 1_501_000  # elements of all three parameters, f32


@pytest.mark.parametrize("name", ["NAdam", "Lamb", "Adagrad"])
def test_calls_like_adams_under_another_class_are_no_adam(name):
    assert only(stepped(adam_before_lerp, name)).composition.identity == "optimizer_loop"


@pytest.mark.parametrize(
    ("update", "pattern"),
    [
        (adagrad, "adagrad_loop"),
        (rmsprop, "rmsprop_loop"),
        (rmsprop_with_momentum, "rmsprop_momentum_loop"),
        (adam_before_lerp, "adam_loop"),
        (momentum, "sgd_loop"),
    ],
)
def test_where_no_class_is_named_the_calls_tell(update, pattern):
    model = Model()
    start = model.host
    for shape in SHAPES:
        update(model, (shape, F32))
    model.annotation("optimizer_step", start - 1, model.host - start + 2)

    found = find_candidates(inputs_of(model)).candidates

    assert [candidate.composition.identity for candidate in found] == [pattern]


def evidence_of(model):
    return analyze(workload_of(model))[1][0].finding.evidence


@pytest.mark.parametrize(
    ("update", "name", "replacement"),
    [
        (
            adagrad,
            "Adagrad",
            "torch.optim.Adagrad(foreach=True), torch.optim.Adagrad(fused=True) where PyTorch has it for GPUs",
        ),
        (rmsprop, "RMSprop", "torch.optim.RMSprop(foreach=True), torch.compile of the step"),
        (
            adam_before_lerp,
            "Adam",
            "torch.optim.Adam(fused=True), torch.optim.Adam(foreach=True), apex.optimizers.FusedAdam",
        ),
        (
            momentum,
            "SGD",
            "torch.optim.SGD(fused=True), torch.optim.SGD(foreach=True), torch.compile of the step",
        ),
        (adam_before_lerp, "Lamb", "torch._foreach_* (multi-tensor) ops, torch.compile of the step"),
        (
            adam_before_lerp,
            "NAdam",
            "torch.optim.NAdam(foreach=True), torch._foreach_* (multi-tensor) ops, torch.compile of the step",
        ),
    ],
)
def test_what_is_offered_keeps_the_optimizer_and_is_what_it_has(update, name, replacement):
    evidence = evidence_of(stepped(update, name))

    assert (evidence["optimizer"], evidence["replacement"]) == (name, replacement)


def test_two_optimizers_of_one_composition_are_two_findings():
    model = Model()
    for name in ("Lamb", "Lion"):
        start = model.host
        for shape in SHAPES * 2:
            momentum(model, (shape, F32))
        model.annotation(f"Optimizer.step#{name}.step", start - 1, model.host - start + 2)
        model.host += 5

    found = [draft.finding.evidence for draft in analyze(workload_of(model))[1]]

    assert sorted((one["optimizer"], one["instances_count"]) for one in found) == [("Lamb", 1), ("Lion", 1)]


def copies(model, count):
    for number in range(count):
        tensor = ([64 + number], F32)
        model.call("aten::copy_", 4, tensor, tensor, kernel=COPY, scalars=("False",))


def test_copies_of_data_parallelism_are_no_candidates_and_say_how_they_go():
    model = Model()
    with model.frame("<built-in method _broadcast_coalesced of PyCapsule object at 0x7f468be8c150>"):
        copies(model, 12)
    for number in range(12):
        start = model.host
        model.host += 1
        copies(model, 1)
        model.op("torch.distributed.ddp.reducer::copy_bucket_to_grad", start, model.host - start + number % 2)
        model.host += 2

    result = find_candidates(inputs_of(model))

    assert result.candidates == ()
    # 24 copies of 4 µs
    assert [(one.reason, one.count, one.time_ns) for one in result.rejected] == [(DDP_COPIES, 24, 96_000)]


def test_copies_that_the_program_makes_itself_stay_a_loop():
    model = Model()
    with model.frame("static.py(12): fill"):
        copies(model, 12)

    assert only(model).composition.identity == "same_op_loop"


def test_a_sum_beside_copies_of_data_parallelism_is_no_copy():
    model = Model()
    with model.frame("torch/nn/parallel/distributed.py(2110): _distributed_broadcast_coalesced"):
        for _ in range(12):
            model.call("aten::add_", 4, ([1000], F32), ([1000], F32), kernel=ADD, scalars=("1",))

    assert find_candidates(inputs_of(model)).rejected == ()
