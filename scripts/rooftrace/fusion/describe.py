"""A candidate in words: its chain, kernels, shapes, where it is in the source, and how sure it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.calltree import PHASES
from rooftrace.fusion.candidates import class_of
from rooftrace.fusion.owners import optimizer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.fusion import Replacement
    from rooftrace.fusion.calls import Calls, FusionInputs
    from rooftrace.fusion.candidates import Candidate
    from rooftrace.fusion.compositions import Composition
    from rooftrace.fusion.find import FusionResult

_ARROW = " -> "
_CLASS = "{optimizer}"
_OF_A_CLASS = re.compile(r"torch\.optim\.\{optimizer\}\((\w+=\w+)\)")
_MOST_PARTS = 16
_MOST_LETTERS = 48
_FUNCTOR = re.compile(r"[A-Za-z_]*[A-Z_][A-Za-z_]{4,40}")  # the name of a function or of an operation, not of a number
_MOST_REPLACEMENTS = 4


class Instance(Struct, frozen=True, kw_only=True):
    """One real occurrence: where and when it ran, and the activities that fusing would replace."""

    device: int
    stream: int
    start_ns: int
    end_ns: int
    activities: tuple[int, ...]
    module_path: tuple[str, ...]


def instances(run: FusionInputs, result: FusionResult, candidate: Candidate) -> tuple[Instance, ...]:
    """The candidate's instances in order of time."""
    activities = run.activities
    rows = zip(result.activities(candidate).tolist(), candidate.first.tolist(), strict=True)
    return tuple(
        Instance(
            device=int(activities.device[row[0]]),
            stream=int(activities.stream[row[0]]),
            start_ns=int(activities.start[row[0]]),
            end_ns=int(activities.end[row[-1]]),
            activities=tuple(row),
            module_path=run.context.module_paths[int(run.context.module[int(result.calls.node[first])])],
        )
        for row, first in rows
    )


def chain(parts: Sequence[str], most: int = _MOST_PARTS) -> str:
    """Parts in order, the same one in a row counted, of long chains the beginning."""
    merged: list[tuple[str, int]] = []
    for part in parts:
        if merged and merged[-1][0] == part:
            merged[-1] = (part, merged[-1][1] + 1)
        else:
            merged.append((part, 1))
    shown = [f"{count} x {text}" if count > 1 else text for text, count in merged[:most]]
    return _ARROW.join(shown) + (f"{_ARROW}… ({len(parts)} in all)" if len(merged) > most else "")


def op_chain(candidate: Candidate) -> str:
    """Ops in order; in brackets those that stay."""
    inside = set(candidate.members)
    return chain([call.name if at in inside else f"[{call.name}]" for at, call in enumerate(candidate.calls)])


def word_chain(candidate: Candidate) -> str:
    """Words of the replaced calls: what equal chains have in common, whatever their kernels and shapes."""
    return " ".join(call.word for call in candidate.replaced)


def kernel_chain(run: FusionInputs, calls: Calls, candidate: Candidate) -> str:
    """Kernels of the example in order."""
    names = []
    for member in candidate.members:
        call = int(candidate.first[0]) + member
        names += [
            _cut(run.activities.infos[code].short)
            for code in run.activities.name[calls.activities_of(call, call)].tolist()
        ]
    return chain(names)


def _cut(name: str) -> str:
    """A kernel's name without what makes it long: of its template arguments the last that is a name, which tells it."""
    if len(name) <= _MOST_LETTERS:
        return name
    head, _, arguments = name.partition("<")
    if not arguments or len(head) >= _MOST_LETTERS:
        return f"{name[: _MOST_LETTERS - 1]}…"
    functors = [part for part in _top_level(arguments.removesuffix(">")) if _FUNCTOR.fullmatch(part)]
    return f"{head}<… {functors[-1]}>" if functors else f"{head}<…>"


def _top_level(arguments: str) -> list[str]:
    """Template arguments in order, each without arguments of its own."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        elif depth == 0 and letter != ">":
            parts[-1] += letter
    return [part.strip() for part in parts]


def shapes(candidate: Candidate) -> str:
    """Shapes that each replaced call of the example reads."""
    return chain([" x ".join(str(list(tensor.shape)) for tensor in call.reads) for call in candidate.replaced], most=6)


def source(run: FusionInputs, calls: Calls, candidate: Candidate) -> str:
    """The innermost frame outside the framework around the example's first replaced call."""
    node = int(calls.node[candidate.first[0] + candidate.members[0]])
    frame = int(run.context.frame[node])
    return run.trace.names[int(run.tree.name[frame])] if frame >= 0 else ""


def phase(run: FusionInputs, calls: Calls, candidate: Candidate) -> str:
    """Phase of the example."""
    return PHASES[int(run.context.phase[int(calls.node[candidate.first[0]])])]


def confidence(run: FusionInputs, calls: Calls, candidate: Candidate) -> str:
    """high: the composition fits and a module, function or op names it; medium: the composition; low: neither."""
    composition = candidate.composition
    if composition is None or composition.is_of_one_word or not candidate.connected:
        return "low"
    names = [candidate.scope, *(call.name for call in candidate.calls)]
    for member in range(min(candidate.length, _MOST_PARTS)):
        node = int(calls.node[candidate.first[0] + member])
        path = run.context.module_paths[int(run.context.module[node])]
        frame = int(run.context.frame[node])
        names += [class_of(path[-1])] if path else []
        names += [run.trace.names[int(run.tree.name[frame])].rpartition(": ")[2]] if frame >= 0 else []
    return "high" if any(composition.names_it(name) for name in names) else "medium"


def optimizer(run: FusionInputs, calls: Calls, candidate: Candidate) -> str:
    """Class of the optimizer whose step the example is part of, as the trace names it; "" where it names none."""
    return optimizer_of(run, int(calls.node[candidate.example]))


def epilogue(candidate: Candidate) -> str:
    """What kind of epilogue it would be: "gelu" of a matrix product, with further "operands", or "alone"; "" for none.

    The GELU of libraries' epilogues is the tanh form (cuBLASLt and hipBLASLt documentation): another result than exact.
    """
    composition, estimate = candidate.composition, candidate.estimate
    if composition is None or composition.file.kind != "epilogue":
        return ""
    if composition.identity == "gemm_epilogue" and any(call.word == "gelu" for call in candidate.replaced):
        return "gelu"
    return "operands" if estimate is None or estimate.nbytes else "alone"


def replacements(composition: Composition | None, vendor: str, names: Sequence[str] = (), optimizer: str = "") -> str:
    """What does the same at once, on a GPU of this vendor, for calls and modules of these names and this optimizer."""
    if composition is None:
        return "torch.compile"
    words = " ".join(names).lower()
    fitting = [
        _OF_A_CLASS.sub(r"\1", item.name) if not optimizer else item.name.replace(_CLASS, optimizer)
        for item in composition.file.replacements
        if (item.vendor in ("any", vendor) or not vendor)
        and (not item.fits or any(part in words for part in item.fits))
        and not any(part in words for part in item.unless)
        and _is_offered_to(item, optimizer, composition)
    ]
    return ", ".join(fitting[:_MOST_REPLACEMENTS]) or "torch.compile"


def _is_offered_to(item: Replacement, optimizer: str, composition: Composition) -> bool:
    """Whether an optimizer has the setting; where none is named, whether all that the calls may be have it."""
    meant = [optimizer.lower()] if optimizer else composition.file.optimizers
    return not item.optimizers or (bool(meant) and set(meant) <= set(item.optimizers))
