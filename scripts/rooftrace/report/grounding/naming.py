"""Names of kernels, ops and modules: those of the trace. In backticks also APIs, settings, tools and data types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.report.grounding.apis import is_api, layer_names
from rooftrace.report.grounding.mentions import announced, called_settings, looks_like_a_setting
from rooftrace.report.grounding.numbers import allowed_taken_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.report.grounding.grounds import Basis, Slot
    from rooftrace.report.grounding.names import Names

# What reads like a name without backticks: qualified, with an underscore inside, or a class of a layer.
_QUALIFIED = re.compile(r"[A-Za-z_][\w.]*(?:::[\w~]+)+")
_UNDERSCORED = re.compile(r"(?<![\w.])\.?[A-Za-z_]*[A-Za-z0-9]_[\w.]*\w")
_LAYER = re.compile(
    r"\b[A-Z][A-Za-z0-9]*[a-z0-9](?:Layer|Block|Attention|MLP|Linear|Norm|Embeddings?|Encoder|Decoder|Head|Experts?|MoE"
    r"|Backward0?)\b"
)
_EVIDENCE_ID = re.compile(r"(?<![\w.])[a-z_]+(?:\.\w+)+")
_CAMEL = re.compile(r"\b(?=\w*[0-9])(?=\w*?[a-z][0-9]*[A-Z])[A-Za-z]\w*")


def unknown_names(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Names that neither the trace nor an API has; evidence ids written as if they were names."""
    if slot.name in ("name", "family"):
        return
    names, spoken_of = grounds.names, _spoken_of(slot)
    for code in dict.fromkeys(slot.text.code):
        evidence_id = None if names.holds(code) else _evidence_id(code, slot, grounds)
        if evidence_id:
            yield f"`{code}` is an evidence id and no name: cite it, {{{{{evidence_id}}}}}, without backticks"
        elif code not in spoken_of and not _is_known(code, names):
            told = f"{_instead(code, names)}{_how(code, slot)}"
            yield f"`{code[:80]}` is neither in the trace nor an API or setting; {told}"
    for name in dict.fromkeys(_EVIDENCE_ID.findall(slot.text.plain)):
        if name in grounds.values:
            yield f"`{name}` is an evidence id and no name: cite it, {{{{{name}}}}}"
    for name in _named_in_words(slot.text.plain, names):
        if not _is_known(name, names):
            yield f"`{name[:80]}` is not in the trace; {_instead(name, names)}"


def _spoken_of(slot: Slot) -> set[str]:
    """Names that the slot may hold for how it speaks of them: what is to appear, what is to be set."""
    if slot.name == "verify":
        return announced(slot.text)
    return called_settings(slot.text) if slot.name in ("action", "resolution") else set()


def _evidence_id(code: str, slot: Slot, grounds: Basis) -> str | None:
    """The id that a piece of code spells, whole or without what it is of; None where it is an API's name as well."""
    if code in grounds.values:
        return code
    owner = slot.finding.id if slot.finding else slot.analyzer
    full = f"{owner}.{code}"
    return full if full in grounds.values and not _is_known(code, grounds.names) else None


def _is_known(code: str, names: Names) -> bool:
    return names.holds(code) or names.holds_shape(code) or code.strip() in names.ids or is_api(code)


def _named_in_words(plain: str, names: Names) -> Iterator[str]:
    rest = allowed_taken_out(plain, names)
    found = [*_QUALIFIED.findall(rest), *_UNDERSCORED.findall(_QUALIFIED.sub(" ", rest))]
    found += [name for name in [*_LAYER.findall(rest), *_CAMEL.findall(rest)] if name not in layer_names()]
    yield from dict.fromkeys(name.rstrip(".") for name in found)


def _instead(name: str, names: Names) -> str:
    near = names.nearest(name)
    if near:
        return f"near it: {', '.join(f'`{known}`' for known in near)}"
    return "cite the id that holds the name, or say it without one"


def _how(code: str, slot: Slot) -> str:
    """How a name of that form may be written in this slot."""
    if slot.name == "verify":
        return f". Of a name that is to come, say so: `{code[:40]}` appears" if re.fullmatch(r"[\w.:]+", code) else ""
    return f". A setting is written with its value: `{code[:40]}=VALUE`" if looks_like_a_setting(code) else ""
