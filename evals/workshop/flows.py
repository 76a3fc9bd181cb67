"""Which forward operator an autograd node belongs to, by the rule Kineto applies to sequence numbers."""

from __future__ import annotations

from evals.workshop.instructions import Span

SEQUENCE = "Sequence number"
FORWARD_THREAD = "Fwd thread id"
ENGINE_PREFIX = "autograd::engine::evaluate_function: "


def forward_backward_pairs(spans: tuple[Span, ...]) -> list[tuple[Span, Span]]:
    """(forward operator, backward node) for each sequence number, in the order of the backward nodes.

    Forward: of the operators that carry the number with thread id 0, the one that began last (it recorded the
    node). Backward: the node itself, inside the engine's span of the same number.
    """
    forward: dict[int, Span] = {}
    pairs: list[tuple[Span, Span]] = []
    for span in spans:
        number = span.args.get(SEQUENCE)
        if not isinstance(number, int) or span.kind != "cpu_op":
            continue
        if span.args.get(FORWARD_THREAD) == 0:
            forward[number] = span
        elif not span.name.startswith(ENGINE_PREFIX) and number in forward:
            pairs.append((forward[number], span))
    return pairs
