"""The lines of one case of a script: what it calls, its inputs and the chain as traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.repro.calls import CannotRebuild, Numbers, input_lines, op_name, outside_tensors, places
from rooftrace.repro.numbers import number_of

if TYPE_CHECKING:
    from rooftrace.contracts.chains import Chain, ChainStep, ChainTensor


class Option(Struct, frozen=True, kw_only=True):
    """Another way of doing what a chain does; ``lines`` define what ``text`` then names."""

    name: str
    lines: tuple[str, ...]
    text: str  # the call of `option(...)`


class Program(Struct, frozen=True, kw_only=True):
    """A chain that can be run: each call by the name of a bound function."""

    chain: Chain
    bound: tuple[str, ...]  # name of each step's function
    bindings: tuple[str, ...]  # lines that define them
    inputs: tuple[str, ...]
    numbers: tuple[tuple[str, ...], ...]  # names of each step's constants

    @property
    def parameters(self) -> str:
        """Names of the inputs."""
        return ", ".join(f"x{number}" for number in outside_tensors(self.chain))

    def value(self, tensor: ChainTensor) -> str:
        """Name of a tensor."""
        if tensor.step is None:
            return f"x{tensor.number}"
        if self.chain.steps[tensor.step].results > 1:
            return f"pick(t{tensor.step}, {tensor.number})"
        return f"t{tensor.step}"

    def arguments(self, step: ChainStep) -> str:
        """The tensors that a call is given."""
        texts = []
        for argument in step.arguments:
            values = [self.value(tensor) for tensor in argument.tensors]
            if argument.kind == "tensors":
                texts.append(f"[{', '.join(values)}]")
            elif argument.kind == "tensor":
                texts += values
        return ", ".join(texts)

    def line(self, at: int) -> str:
        """The call at a position."""
        return f"t{at} = {self.bound[at]}({self.arguments(self.chain.steps[at])})"

    def traced(self) -> list[str]:
        """The chain as a function of its inputs; it returns what no later call reads."""
        read = {t.step for step in self.chain.steps for argument in step.arguments for t in argument.tensors}
        last = [f"t{at}" for at, step in enumerate(self.chain.steps) if at not in read and step.role != "view"]
        body = [self.line(at) for at in range(len(self.chain.steps))]
        return [
            f"def traced({self.parameters}):",
            *(f"    {line}" for line in body),
            f"    return {', '.join(last)}",
        ]


def program_of(chain: Chain, case: int, numbers: Numbers) -> Program:
    """A chain made ready to be written; `CannotRebuild` where its record does not suffice."""
    if chain.reason is not None:
        raise CannotRebuild(chain.reason)
    chain = _whole_repetitions(chain)
    bound, bindings, constants = [], [], []
    made = 0
    for at, step in enumerate(chain.steps):
        name = op_name(step)
        if not step.arguments:
            raise CannotRebuild(f"op `{step.op}` cannot be rebuilt from its record: inputs not recorded")
        if any((t.step or 0) >= at for argument in step.arguments for t in argument.tensors if t.step is not None):
            raise CannotRebuild(f"op `{step.op}` cannot be rebuilt from its record: it reads what is made later")
        key = made % chain.period if chain.period else at
        made += step.role != "view"
        names = tuple(
            numbers.name((case, key, number), number_of(chain, at))
            for number, argument in enumerate(step.arguments)
            if argument.kind == "number"
        )
        function = f"{name.strip('_')}_{at}"
        shown = ", ".join([f'"{name}"', *places(step, names)])
        bound.append(function)
        bindings.append(f"{function} = call({shown})")
        constants.append(names)
    return Program(
        chain=chain,
        bound=tuple(bound),
        bindings=tuple(bindings),
        inputs=tuple(input_lines(chain)),
        numbers=tuple(constants),
    )


def _whole_repetitions(chain: Chain) -> Chain:
    """Without the beginning of a repetition at the end of a long loop."""
    launching = [at for at, step in enumerate(chain.steps) if step.role != "view"]
    if not chain.period or chain.period > len(launching):
        return chain
    count = len(launching) - len(launching) % chain.period
    return chain.model_copy(update={"steps": chain.steps[: launching[count - 1] + 1]})


def calls_of(chain: Chain) -> list[tuple[int, ChainStep]]:
    """Positions and calls, without views."""
    return [(at, step) for at, step in enumerate(chain.steps) if step.role != "view"]


def simple_option(name: str, function: str, lines: tuple[str, ...]) -> Option:
    """A function of the inputs, compared and timed as it is."""
    return Option(name=name, lines=lines, text=f'option("{name}", {function})')
