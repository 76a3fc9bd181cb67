"""Values for numbers that a trace leaves out: what the known compositions have in their place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.chains import Chain

# PyTorch's defaults: torch.nn.LayerNorm 1e-5, and what most models set for RMSNorm.
_EPSILON: Final = {
    "rms_norm": 1e-6,
    "add_norm": 1e-6,
    "layer_norm": 1e-5,
    "batch_norm": 1e-5,
    "group_norm": 1e-5,
}
_ANY: Final = 0.5
_DECAY: Final = 0.9  # below 1, so that what is multiplied again and again stays finite
# torch.nn.GELU: x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
_CUBIC, _TANH_SCALE, _SIGMOID_SCALE = 0.044715, math.sqrt(2 / math.pi), 1.702


def number_of(chain: Chain, at: int) -> float:
    """The value of a number in the call at a position of the chain."""
    word = chain.steps[at].word
    if chain.pattern in _EPSILON and word == "adds":
        return _EPSILON[chain.pattern]
    if chain.pattern == "attention_core":
        return _attention_scale(chain, word)
    if chain.pattern in ("gelu", "quick_gelu"):
        launching = [step.word for step in chain.steps if step.role != "view"]
        place = sum(step.role != "view" for step in chain.steps[:at])
        return _gelu(launching, place)
    return _DECAY if chain.period else _ANY


def _attention_scale(chain: Chain, word: str) -> float:
    """1 over the root of the head's size, which the first product sums over."""
    product = next((step for step in chain.steps if step.word in ("bmm", "mm")), None)
    shape = product.arguments[0].tensors[0].shape if product and product.arguments[0].tensors else []
    root = math.sqrt(shape[-1]) if shape and shape[-1] > 0 else 1.0
    return root if word == "divs" else 1.0 / root


def _gelu(words: Sequence[str], at: int) -> float:
    before, after = words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if words[at] == "adds":
        return 1.0
    if after == "erf":
        return math.sqrt(2.0) if words[at] == "divs" else math.sqrt(0.5)
    if after == "sigmoid":
        return _SIGMOID_SCALE
    if before == "pow":
        return _CUBIC
    return _TANH_SCALE if after == "tanh" else 0.5
