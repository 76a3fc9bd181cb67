"""A name for sizes and classes: the table of known models, and what is said where it has none."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct

from rooftrace.contracts.fencing import one_line
from rooftrace.pack import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLE = "models.json"
_NAME = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._+/()-]")
_COMPARED = ("layers", "hidden", "intermediate", "heads", "vocabulary", "experts", "layer_class")


class Sizes(Struct, frozen=True, kw_only=True):
    """What shapes and module counts tell of the main network; None where they do not."""

    layers: int | None = None
    layer_class: str | None = None
    hidden: int | None = None
    intermediate: int | None = None
    heads: int | None = None
    head_size: int | None = None
    vocabulary: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    image: int | None = None
    patch: int | None = None
    batch_and_length: tuple[int, int | None] | None = None
    image_batch: int | None = None


class _Family(Struct, frozen=True, kw_only=True):
    """Models whose classes or source files look alike."""

    pattern: re.Pattern[str]
    name: str
    kind: str
    variants: tuple[dict[str, Any], ...]


def guess(*, classes: Sequence[str], sources: Sequence[str], sizes: Sizes, is_training: bool) -> dict[str, Any]:
    """Fields of the best guess: a known model where classes and sizes agree, else its family, else its class."""
    use = "training" if is_training else "inference"
    # The main network's class decides; of the others, and of the files, the first that is known.
    for place, texts in (("module class", classes), ("source file", sources)):
        for text in texts:
            family = next((family for family in _families() if family.pattern.search(text)), None)
            if family:
                return _of_family(family, sizes, use, f"{place} `{one_line(text, 80)}`")
    by_size = _by_sizes_alone(sizes, use)
    if by_size:
        return by_size
    name = _clean(classes[0]) if classes else ""
    reasons = [f"module class `{one_line(classes[0], 80)}`"] if classes else ["neither a module nor a file names it"]
    return {
        "name": name or "unknown model",
        "family": f"{_kind_by_sizes(sizes)} ({use})",
        "confidence": "low",
        "reasons": reasons,
    }


def _of_family(family: _Family, sizes: Sizes, use: str, reason: str) -> dict[str, Any]:
    """The variant that agrees best where no other agrees as well, else the family."""
    fitting = [variant for variant in family.variants if not _contradicted(variant, sizes)]
    most = max((len(_agreed(variant, sizes)) for variant in fitting), default=0)
    best = [variant for variant in fitting if len(_agreed(variant, sizes)) == most]
    kind = f"{family.kind} ({use})"
    if len(best) == 1 and most >= 2:
        reasons = [reason, *(f"{name} = {best[0][name]}" for name in _agreed(best[0], sizes))]
        return {"name": best[0]["name"], "family": kind, "confidence": "high", "reasons": reasons}
    return {"name": family.name, "family": kind, "confidence": "medium", "reasons": [reason]}


def _by_sizes_alone(sizes: Sizes, use: str) -> dict[str, Any] | None:
    """The first family with a model whose vocabulary and width fit, where no class or file tells."""
    if not (sizes.vocabulary and sizes.hidden):
        return None
    for family in _families():
        fitting = [variant for variant in family.variants if _has_its_words(variant, sizes)]
        if fitting:
            return {
                "name": fitting[0]["name"] if len(fitting) == 1 else family.name,
                "family": f"{family.kind} ({use})",
                "confidence": "low",
                "reasons": [f"{name} = {fitting[0][name]}" for name in _agreed(fitting[0], sizes)],
            }
    return None


def _has_its_words(variant: dict[str, Any], sizes: Sizes) -> bool:
    same = (variant.get("vocabulary"), variant.get("hidden")) == (sizes.vocabulary, sizes.hidden)
    return same and not _contradicted(variant, sizes)


def _agreed(variant: dict[str, Any], sizes: Sizes) -> list[str]:
    return [name for name in _COMPARED if name in variant and variant[name] == getattr(sizes, name)]


def _contradicted(variant: dict[str, Any], sizes: Sizes) -> bool:
    """Whether a size that both know differs; the vocabulary may, since tables are padded."""
    pairs = ((variant[name], getattr(sizes, name)) for name in _COMPARED if name in variant and name != "vocabulary")
    return any(found is not None and found != wanted for wanted, found in pairs)


def _kind_by_sizes(sizes: Sizes) -> str:
    if sizes.experts:
        return "mixture-of-experts transformer"
    if sizes.heads:
        return "transformer"
    return "convolutional network" if sizes.image else "network of unknown kind"


def _clean(name: str) -> str:
    text = _UNSAFE.sub("", one_line(name, _NAME))
    return text if text[:1].isalpha() else ""


@cache
def _families() -> tuple[_Family, ...]:
    content = orjson.loads((KNOWLEDGE / _TABLE).read_bytes())
    return tuple(
        _Family(
            pattern=re.compile(item["match"]),
            name=item["name"],
            kind=item["kind"],
            variants=tuple(item.get("variants", ())),
        )
        for item in content["families"]
    )
