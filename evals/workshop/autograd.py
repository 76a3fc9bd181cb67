"""The tape: which node each forward operator records, and how the engine runs them on its own thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from evals.workshop.flows import ENGINE_PREFIX
from evals.workshop.instructions import Await
from evals.workshop.program import Tensor, ThreadBuilder, recorded_inputs

ACCUMULATE = "torch::autograd::AccumulateGrad"
FORWARD_THREAD = 1
"""The id by which autograd nodes name the thread of the forward pass."""
Emit = Callable[[ThreadBuilder], None]


@dataclass(frozen=True, kw_only=True)
class Node:
    """A recorded backward node.

    ``body`` is what the node does, ``after`` what the engine does with its results (reduction of a bias
    gradient, sum where a tensor was used twice), ``parameters`` the leaves whose gradients are then ready.
    """

    sequence: int
    name: str
    gradient: Tensor
    body: Emit | None
    after: Emit | None
    parameters: tuple[Tensor, ...]
    scope: str
    tag: str = ""


@dataclass
class Tape:
    """Sequence numbers of one process and the nodes recorded since the last backward pass."""

    next_number: int = 1
    nodes: list[Node] = field(default_factory=list)

    def record(
        self,
        b: ThreadBuilder,
        name: str,
        gradient: Tensor,
        body: Emit | None = None,
        *,
        after: Emit | None = None,
        parameters: tuple[Tensor, ...] = (),
    ) -> None:
        """Takes the next sequence number for a node; ``gradient`` is what flows into it."""
        self.nodes.append(
            Node(
                sequence=self.next_number,
                name=name,
                gradient=gradient,
                body=body,
                after=after,
                parameters=parameters,
                scope=f"{b.draws.scope}/grad",
                tag=b.tag,
            )
        )
        self.next_number += 1


def run_backward(b: ThreadBuilder, tape: Tape, baton: str, wake_ns: int) -> None:
    """Emits the engine's work on its thread: from the call of ``backward()`` to the hand-over back to it."""
    b.instructions.append(Await(baton=f"{baton}/start", wake_ns=wake_ns))
    for node in sorted(tape.nodes, key=lambda node: -node.sequence):
        outer, b.draws.scope = b.draws.scope, node.scope
        with b.tagged(node.tag):
            _evaluate(b, node)
        for parameter in node.parameters:
            _accumulate(b, parameter)
        b.draws.scope = outer
    tape.nodes.clear()
    b.signal(f"{baton}/done")


def _evaluate(b: ThreadBuilder, node: Node) -> None:
    numbers = {"Sequence number": node.sequence, "Fwd thread id": FORWARD_THREAD}
    with b.span("cpu_op", ENGINE_PREFIX + node.name, numbers):
        with b.span("cpu_op", node.name, {**numbers, **recorded_inputs([node.gradient])}):
            if node.body is not None:
                node.body(b)
        if node.after is not None:
            node.after(b)


def _accumulate(b: ThreadBuilder, parameter: Tensor) -> None:
    """The first gradient of a parameter is taken over as it is: no kernel."""
    with (
        b.span("cpu_op", ENGINE_PREFIX + ACCUMULATE),
        b.op(ACCUMULATE, parameter),
        b.op("aten::detach", parameter),
    ):
        b.leaf("detach", parameter)
