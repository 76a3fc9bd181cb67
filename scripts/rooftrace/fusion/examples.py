"""An instance of a candidate, or a single call, as a chain that can be written to a run and rebuilt from it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.calltree.surroundings import record_op
from rooftrace.contracts.chains import Chain, ChainArgument, ChainStep, ChainTensor
from rooftrace.fusion.tokens import SCALAR_FORMS, base_word
from rooftrace.fusion.wiring import OUTSIDE, Source, Wired, wire
from rooftrace.opmodels import Op, Tensor, dtype_in_kernel_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.chains import Role
    from rooftrace.fusion.calls import Calls, FusionInputs
    from rooftrace.fusion.candidates import Candidate
    from rooftrace.kernelnames import KernelInfo
    from rooftrace.opmodels import Arg

NO_CALLS = "the calls are not recorded, only their kernels"
NO_INPUTS = "inputs not recorded: profile with `record_shapes=True`"
_MOST_STEPS = 256
_MOST_TEXT = 400
_MOST_NAME = 160


class _Step(Struct, frozen=True, kw_only=True):
    wired: Wired
    role: Role
    kernel_ns: int
    kernels: tuple[str, ...]


def chain_of_candidate(run: FusionInputs, calls: Calls, candidate: Candidate, finding: str) -> Chain:
    """The calls of the first instance."""
    composition = candidate.composition
    is_loop = composition is not None and composition.file.kind == "loop"
    steps = _steps(run, calls, candidate)
    kept = steps[:_MOST_STEPS]
    pattern = composition.identity if composition else "novel"
    period = _period([step.wired.op.name for step in kept if step.role != "view"]) if is_loop else 0
    sources = _sources(kept, pattern, period, is_joined=bool(composition and composition.file.joined))
    return Chain(
        finding=finding,
        op_id=None,
        pattern=pattern,
        instances=int(candidate.first.size),
        period=period,
        left_out=len(steps) - len(kept),
        steps=_pruned([_chain_step(step, mine) for step, mine in zip(kept, sources, strict=True)]),
        reason=None if all(step.wired.op.args for step in kept) else NO_INPUTS,
    )


def chain_of_call(op: Op, infos: Sequence[KernelInfo], kernel_ns: int, head: tuple[str, str, int]) -> Chain:
    """One call; ``head`` gives the finding, the op group and the number of instances."""
    finding, op_id, instances = head
    op = _with_list_dtype(op, [info.name for info in infos])
    step = _Step(
        wired=Wired(op=op, word=base_word(op.name), is_view=False, results=()),
        role="replaced",
        kernel_ns=kernel_ns,
        kernels=tuple(info.short[:_MOST_NAME] for info in infos),
    )
    return Chain(
        finding=finding,
        op_id=op_id,
        pattern="",
        instances=instances,
        period=0,
        left_out=0,
        steps=[_chain_step(step, wire([step.wired])[0])],
        reason=None if op.args else NO_INPUTS,
    )


def chain_without_calls(finding: str, pattern: str, instances: int, op_id: str | None = None) -> Chain:
    """A finding of which only kernels are known."""
    return Chain(
        finding=finding,
        op_id=op_id,
        pattern=pattern,
        instances=max(instances, 1),
        period=0,
        left_out=0,
        steps=[],
        reason=NO_CALLS,
    )


def _steps(run: FusionInputs, calls: Calls, candidate: Candidate) -> list[_Step]:
    """Calls of the candidate and the outermost views between them, in the order of the host."""
    first = candidate.example
    inside = set(candidate.members) | ({0} if candidate.anchor else set())
    member_of = {int(calls.step[first + at]): at for at in sorted(inside)}
    launching = set(calls.step.tolist())
    positions = list(range(min(member_of), max(member_of) + 1))
    views = _outermost(run, calls, [at for at in positions if at not in launching], launching)
    result = []
    for at in positions:
        if at not in member_of and at not in views:
            continue
        node = int(calls.step_node[at])
        meaning = calls.meanings[calls.step_meaning[at]]
        op = record_op(run.trace, int(run.tree.name[node]), int(run.trace.inputs[run.tree.row[node]]))
        results = meaning.writes if meaning.reason is None else ()
        if at in views:
            wired = Wired(op=op, word="view", is_view=True, results=results)
            result.append(_Step(wired=wired, role="view", kernel_ns=0, kernels=()))
            continue
        member = member_of[at]
        call = first + member
        codes = run.activities.name[calls.activities_of(call, call)].tolist()
        names = tuple(run.activities.infos[code].short[:_MOST_NAME] for code in codes)
        op = _with_list_dtype(op, [run.activities.infos[code].name for code in codes])
        result.append(
            _Step(
                wired=Wired(op=op, word=meaning.word, is_view=False, results=results),
                role="stays" if candidate.anchor and member == 0 else "replaced",
                kernel_ns=int(np.median(calls.time_ns[candidate.first + member])),
                kernels=names,
            )
        )
    return result


def _outermost(run: FusionInputs, calls: Calls, views: Sequence[int], launching: set[int]) -> set[int]:
    """Views that contain no call which launches, and lie in no other such view."""
    tree = run.tree
    starts = calls.step_node
    found: set[int] = set()
    until = -1
    for at in views:
        node = int(starts[at])
        end, lane = int(tree.end[node]), int(tree.lane[node])
        if found and int(tree.start[node]) < until:
            continue
        after = at + 1
        while after < starts.size and tree.lane[starts[after]] == lane and int(tree.start[starts[after]]) < end:
            if after in launching:
                break
            after += 1
        else:
            found.add(at)
            until = end
    return found


def _sources(
    steps: Sequence[_Step], pattern: str, period: int, *, is_joined: bool
) -> list[dict[tuple[int, int], Source]]:
    """Sources of all operands; the repetitions of a loop share nothing."""
    result: list[dict[tuple[int, int], Source]] = []
    outside = 0
    for low, high in _repetitions([step.wired for step in steps], period, is_joined=is_joined):
        found = wire([step.wired for step in steps[low:high]], pattern, is_joined=is_joined)
        result += [{place: _moved(source, low, outside) for place, source in mine.items()} for mine in found]
        outside = 1 + max((s[1] for mine in result for s in mine.values() if s[0] == OUTSIDE), default=-1)
    return result


def _moved(source: Source, calls: int, outside: int) -> Source:
    """The source seen from the beginning of all calls."""
    return (OUTSIDE, source[1] + outside) if source[0] == OUTSIDE else (source[0] + calls, source[1])


def _repetitions(calls: Sequence[Wired], period: int, *, is_joined: bool) -> list[tuple[int, int]]:
    """Begin and end of each repetition; views go with the call after them. One stretch where nothing repeats."""
    launching = [at for at, call in enumerate(calls) if not call.is_view]
    size = period or (_period([calls[at].op.name for at in launching]) if is_joined else len(launching)) or 1
    ends = [at + 1 for at in launching[size - 1 :: size]]
    if not ends or ends[-1] < len(calls):
        ends.append(len(calls))
    return list(pairwise([0, *ends]))


def _period(names: Sequence[str]) -> int:
    """The shortest period of a loop's calls; all of them where there is none."""
    count = len(names)
    periods = (p for p in range(1, count // 2 + 1) if all(names[i] == names[i - p] for i in range(p, count)))
    return next(periods, count)


def _with_list_dtype(op: Op, kernels: Sequence[str]) -> Op:
    """Tensor lists carry no element type: the one that a kernel's name spells."""
    dtype = next((found for name in kernels if (found := dtype_in_kernel_name(name))), None)

    def typed(arg: Arg) -> Arg:
        if not isinstance(arg, tuple):
            return arg
        return tuple(replace(tensor, dtype=tensor.dtype or dtype) for tensor in arg)

    return replace(op, args=tuple(typed(arg) for arg in op.args))


def _chain_step(step: _Step, sources: dict[tuple[int, int], Source]) -> ChainStep:
    op = step.wired.op
    return ChainStep(
        op=op.name[:_MOST_NAME],
        word=step.wired.word,
        role=step.role,
        arguments=[_argument(op, at, sources) for at in range(len(op.args))],
        results=len(step.wired.results),
        kernel_ns=step.kernel_ns,
        kernels=list(step.kernels),
    )


def _argument(op: Op, at: int, sources: dict[tuple[int, int], Source]) -> ChainArgument:
    arg = op.args[at]
    if isinstance(arg, Tensor):
        if _is_number(op, at, arg) and sources[at, 0][0] == OUTSIDE:
            return ChainArgument(kind="number", tensors=[], text=None)
        return ChainArgument(kind="tensor", tensors=[_tensor(arg, sources[at, 0])], text=None)
    if isinstance(arg, tuple):
        tensors = [_tensor(tensor, sources[at, place]) for place, tensor in enumerate(arg)]
        return ChainArgument(kind="tensors", tensors=tensors, text=None)
    if arg is None:
        return ChainArgument(kind="none", tensors=[], text=None)
    if arg and len(arg) <= _MOST_TEXT:
        return ChainArgument(kind="scalar", tensors=[], text=arg)
    is_operand = not arg and at == 1 and base_word(op.name) in SCALAR_FORMS
    return ChainArgument(kind="number" if is_operand else "unrecorded", tensors=[], text=None)


def _is_number(op: Op, at: int, tensor: Tensor) -> bool:
    """Whether a tensor without dimensions stands for a Python number: beside a first operand that has some."""
    first = op.tensor_or_none(0)
    is_wide = tensor.dtype in ("float64", "int64", "bool")
    return at > 0 and not tensor.shape and is_wide and first is not None and bool(first.shape)


def _tensor(tensor: Tensor, source: Source) -> ChainTensor:
    return ChainTensor(
        shape=list(tensor.shape),
        dtype=tensor.dtype,
        strides=None if tensor.strides is None else list(tensor.strides),
        step=None if source[0] == OUTSIDE else source[0],
        number=source[1],
    )


def _pruned(steps: list[ChainStep]) -> list[ChainStep]:
    """Without views that no call reads."""
    needed = [step.role != "view" for step in steps]
    for at in range(len(steps) - 1, -1, -1):
        if needed[at]:
            for argument in steps[at].arguments:
                for tensor in argument.tensors:
                    if tensor.step is not None:
                        needed[tensor.step] = True
    place = {old: new for new, old in enumerate(at for at, kept in enumerate(needed) if kept)}

    def moved(argument: ChainArgument) -> ChainArgument:
        tensors = [t.model_copy(update={"step": None if t.step is None else place[t.step]}) for t in argument.tensors]
        return argument.model_copy(update={"tensors": tensors})

    return [
        step.model_copy(update={"arguments": [moved(argument) for argument in step.arguments]})
        for step, kept in zip(steps, needed, strict=True)
        if kept
    ]
