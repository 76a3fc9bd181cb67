"""What replaces a loop over tensors: ops and optimizers that take all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rooftrace.repro.calls import op_name, outside_tensors, places
from rooftrace.repro.program import Option, calls_of, simple_option

if TYPE_CHECKING:
    from rooftrace.contracts.chains import Chain, ChainStep, ChainTensor
    from rooftrace.repro.program import Program

_UNARY: Final = ("sqrt", "neg", "abs", "exp", "reciprocal", "sign")
_FOREACH: Final = frozenset(
    name + end
    for name in (
        *_UNARY,
        "add",
        "sub",
        "mul",
        "div",
        "addcmul",
        "addcdiv",
        "lerp",
        "pow",
        "clamp_min",
        "clamp_max",
    )
    for end in ("", "_")
) | {"copy_", "zero_"}


def multi_tensor(program: Program) -> Option | None:
    """Multi-tensor ops: each call of a repetition once, with the tensors of all repetitions."""
    chain, period = program.chain, program.chain.period
    steps = calls_of(chain)
    if any(op_name(step) not in _FOREACH for _, step in steps) or len(steps) % period:
        return None
    place = {at: (number % period, number // period) for number, (at, _) in enumerate(steps)}
    body = [f"    {program.line(at)}" for at, step in enumerate(chain.steps) if step.role == "view"]
    definitions: list[str] = []
    for first in range(period):
        mine = steps[first::period]
        at, step = mine[0]
        if len({_scalars(other, program.numbers[number]) for number, other in mine}) > 1:
            return None
        definition = _multi(step, program.numbers[at])
        if definition is None:
            return None
        definitions.append(f"all_{first} = {definition}")
        lists = []
        for argument, _ in enumerate(step.arguments):
            if step.arguments[argument].kind == "tensors":
                return None
            if step.arguments[argument].kind == "tensor":
                found = [_of_all(program, other.arguments[argument].tensors[0], place) for _, other in mine]
                lists.append(f"[{', '.join(found)}]")
        result = f"r{first} = all_{first}({', '.join(lists)})"
        body.append(f"    {result}")
        if op_name(step).endswith("_"):
            body.append(f"    r{first} = {lists[0]}")
    unread = _unread(chain)
    returned = [f"r{place[at][0]}[{place[at][1]}]" for at, _ in steps if at in unread]
    lines = (
        *definitions,
        "",
        f"def multi_tensor({program.parameters}):",
        *body,
        f"    return [{', '.join(returned)}]",
    )
    return simple_option("torch._foreach_* ops", "multi_tensor", lines)


def _multi(step: ChainStep, numbers: tuple[str, ...]) -> str | None:
    """The call of the multi-tensor op: with a number to add, it takes no factor of it (PyTorch: _foreach_add)."""
    shown = ["L" if place == "T" else place for place in places(step, numbers)]
    scaled = op_name(step).strip("_") in ("add", "sub") and len(shown) == 3 and shown[1] != "L"
    if scaled and shown.pop() != "1":
        return None
    return f'foreach("{op_name(step)}", {", ".join(shown)})'


def _of_all(program: Program, tensor: ChainTensor, place: dict[int, tuple[int, int]]) -> str:
    if tensor.step is None or tensor.step not in place:
        return program.value(tensor)
    call, repetition = place[tensor.step]
    return f"r{call}[{repetition}]"


def _scalars(step: ChainStep, numbers: tuple[str, ...]) -> tuple[object, ...]:
    return (step.op, numbers, *((argument.kind, argument.text) for argument in step.arguments))


def fused_adam(program: Program) -> Option | None:
    """A step of the fused optimizer on the parameters that the loop updates."""
    chain = program.chain
    if chain.pattern != "adam_loop":
        return None
    order = list(outside_tensors(chain))
    parameters = [str(order.index(number)) for number in _parameters(chain)]
    if not parameters:
        return None
    name = "torch.optim.AdamW(fused=True), a step"
    positions = ", ".join(parameters)
    text = f'option("{name}", lambda optimizer: optimizer.step(), prepare=fused_adam({positions}), compared=False)'
    return Option(name=name, lines=(), text=text)


def _parameters(chain: Chain) -> list[int]:
    """For each repetition a tensor of the shape that is updated: parameter or gradient, shapes cannot tell."""
    steps = [step for _, step in calls_of(chain)]
    found = []
    for low in range(0, len(steps), chain.period):
        mine = steps[low : low + chain.period]
        shapes = [step.arguments[0].tensors[0].shape for step in mine if step.word == "addcdiv"]
        read = [tensor for step in mine for argument in step.arguments for tensor in argument.tensors]
        found += [tensor.number for tensor in read if tensor.step is None and tensor.shape in shapes][:1]
    return found


def _unread(chain: Chain) -> set[int]:
    read = {t.step for step in chain.steps for argument in step.arguments for t in argument.tensors}
    return set(range(len(chain.steps))) - read
