"""Whether a model runs eagerly, and the one change that then covers what single fusions cover in parts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from rooftrace.fusion.candidates import class_of
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.calltree import Context
    from rooftrace.fusion.calls import Calls, FusionInputs
    from rooftrace.fusion.candidates import Candidate

# From this many findings about a model on, one change for all of them is less work (rule of thumb).
SEVERAL: Final = 3
_GENERATED: Final = "Inductor"
_PATCHED: Final = "transformers/"  # Liger Kernel patches language models of this library
# Endings of the classes of causal language models in it, and in what follows it.
_CAUSAL_LM: Final = ("ForCausalLM", "LMHeadModel")


class OneMove(Struct, frozen=True, kw_only=True):
    """One change for all fusions of an eager model, and which finding to tell it in: by position, None for none.

    ``of_several``: the first of several about one model; ``of_any``: the first of the model with most of them.
    """

    text: str
    of_several: int | None
    of_any: int | None


def find_one_move(run: FusionInputs, told: Sequence[tuple[Calls, Candidate] | None]) -> OneMove:
    """The one move; ``told`` holds for each finding about a model's own code its example, None for others."""
    models: dict[str, list[int]] = defaultdict(list)
    for at, example in enumerate(told):
        if example is not None:
            models[model_of(run, *example)].append(at)
    eager = [found for model, found in models.items() if is_eager(run, model)]
    return OneMove(
        text=one_move(run) if eager else "",
        of_several=_first([found for found in eager if len(found) >= SEVERAL]),
        of_any=_first(eager),
    )


def _first(found: Sequence[list[int]]) -> int | None:
    return min(found, key=lambda at: (-len(at), at[0]))[0] if found else None


def model_of(run: FusionInputs, calls: Calls, candidate: Candidate) -> str:
    """Class of the outermost module around the example; "" where no modules are recorded."""
    node = int(calls.node[candidate.example])
    return _outermost(run, int(run.context.module[node])) if node >= 0 else ""


def is_eager(run: FusionInputs, model: str) -> bool:
    """Whether every kernel of a model is launched by an op of its own: no replayed graph, no generated kernel."""
    activities = run.activities
    generated = np.zeros(len(run.trace.names), dtype=bool)
    for code in sorted_unique(activities.name).tolist():
        generated[code] = activities.infos[code].library == _GENERATED
    launches = activities.launch[activities.graph | generated[activities.name]]
    if not launches.size:
        return True
    modules = sorted_unique(run.context.module[launches[launches >= 0]]).tolist()
    return model != "" and model not in {_outermost(run, module) for module in modules}


def _outermost(run: FusionInputs, module: int) -> str:
    path = run.context.module_paths[module]
    return class_of(path[0]) if path else ""


def one_move(run: FusionInputs) -> str:
    """What takes in several fusions of an eager model at once."""
    moves = ["torch.compile of the model"]
    context = run.context
    if not (context.has_backward or context.has_optimizer):
        moves.append("an inference engine")
    if _has_frames_of(run, _PATCHED) and is_causal_lm(context):
        moves.append("Liger patches")
    return moves[0] if len(moves) == 1 else f"{', '.join(moves[:-1])}{',' * (len(moves) > 2)} or {moves[-1]}"


def is_causal_lm(context: Context) -> bool:
    """Whether a recorded module is a causal language model, by the ending of its class."""
    names = {name for path in context.module_paths for name in path}
    return any(class_of(name).endswith(_CAUSAL_LM) for name in names)


def _has_frames_of(run: FusionInputs, library: str) -> bool:
    frames = sorted_unique(run.tree.name[run.tree.kind == int(Kind.PYTHON)]).tolist()
    return any(library in run.trace.names[code].replace("\\", "/") for code in frames)
