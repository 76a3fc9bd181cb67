"""Names of kernels, ops and modules: those of the trace. In backticks also APIs, settings, tools and data types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.report.grounding.apis import is_api, layer_names
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
_CAMEL = re.compile(r"\b(?=\w*[0-9])(?=\w*?[a-z][0-9]*[A-Z])[A-Za-z]\w*")


def unknown_names(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Names that neither the trace nor an API has."""
    if slot.name in ("name", "family"):
        return
    names = grounds.names
    for code in dict.fromkeys(slot.text.code):
        if not _is_known(code, names):
            yield f"`{code[:80]}` is neither in the trace nor an API or setting; {_instead(code, names)}"
    for name in _named_in_words(slot.text.plain, names):
        if not _is_known(name, names):
            yield f"`{name[:80]}` is not in the trace; {_instead(name, names)}"


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
