"""Names that TorchInductor gives to its Triton kernels: ``triton_<kind>_fused_<ops>_<number>``.

The ops are the origins of what was fused, joined by underscores that the ops themselves contain too. A
pointwise kernel may name an ``addmm`` or an attention whose output it only reads, so its kind comes first.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"^triton_(poi|red|per|tem|spl|for|unk)_fused_(\w*)$")
# As it names kernels with `torch._inductor.config.triton.descriptive_names` off, and as it did in its first version.
_NAMELESS = re.compile(r"^triton_(?:_[0-9a-z]*|\d*)$")
_TRAILING_NUMBER = re.compile(r"(?:^|_)\d+$")
_MAX_OPS = 64
_MAX_WORDS_OF_OP = 8
# Kinds whose loop runs over a reduced dimension.
_REDUCES = frozenset({"red", "per", "spl"})
_MEAN_SQUARE = frozenset({"mean", "var_mean", "var", "pow"})


def is_generated(name: str) -> bool:
    """True for a name that Inductor gives to a Triton kernel, decodable or not."""
    return name.startswith("triton_") and (_NAME.match(name) or _NAMELESS.match(name)) is not None


def fused_ops(name: str, known: dict[str, str]) -> tuple[str, ...] | None:
    """Ops in `name`, each as often as it occurs; None if it is no such name or has a word that `known` lacks."""
    match = _NAME.match(name)
    if match is None:
        return None
    ops, unknown = _decode(match[2], known)
    return None if unknown else ops


def is_fused(name: str, known: dict[str, str]) -> bool:
    """True if `name` says that it fuses several ops, or fuses some that it does not name."""
    match = _NAME.match(name)
    return match is not None and len(fused_ops(name, known) or ("", "")) > 1


def category(name: str, known: dict[str, str]) -> str:
    """What an Inductor kernel does; ``triton`` where its name cannot be decoded."""
    match = _NAME.match(name)
    if match is None or match[1] == "unk":
        return "triton"
    ops, unknown = _decode(match[2], known)
    if unknown and not ops:
        return "triton"
    kinds = {known[op] for op in ops}
    if match[1] == "tem":
        return next((kind for kind in ("attention", "moe", "convolution", "gemm") if kind in kinds), "triton")
    if match[1] in _REDUCES:
        is_norm = "normalization" in kinds or ("rsqrt" in ops and not _MEAN_SQUARE.isdisjoint(ops))
        return "normalization" if is_norm else "reduction"
    return "elementwise" if unknown else _pointwise(kinds)


def _pointwise(kinds: set[str]) -> str:
    """What a pointwise kernel does that fuses ops of `kinds`."""
    if kinds == {"memory"}:
        return "memory"
    return "embedding" if kinds in ({"embedding"}, {"memory", "embedding"}) else "elementwise"


def _decode(listed: str, known: dict[str, str]) -> tuple[tuple[str, ...], bool]:
    """Ops in ``<ops>_<number>``, the longest known first, and whether a word is left that belongs to none."""
    words = _TRAILING_NUMBER.sub("", listed).split("_") if listed else []
    ops: list[str] = []
    unknown = False
    at = 0
    while at < len(words) and len(ops) < _MAX_OPS:
        ends = range(min(len(words), at + _MAX_WORDS_OF_OP), at, -1)
        end = next((end for end in ends if "_".join(words[at:end]) in known), None)
        if end is None:
            unknown = unknown or words != [""]
            at += 1
        else:
            ops.append("_".join(words[at:end]))
            at = end
    return tuple(ops), unknown
