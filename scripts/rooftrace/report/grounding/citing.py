"""Citations: of ids that exist, without a unit of the writer's own."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rooftrace.report.values import format_value, measures, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.report.grounding.grounds import Basis, Slot

_MARK = "[\ue000-\uf8ff]"
_TIMES = r"(?:x|\u00d7)(?! ?[\ue000-\uf8ff])(?:[ -]?faster)?"  # a factor, not a sign between two sizes
_UNIT = re.compile(
    rf"({_MARK})(?:[\s\u00a0-]?(%|percent|per ?cent|m(?:illi)?s(?:ec)?(?:onds?)?|[\u00b5\u03bcu]s|microsec(?:onds?)?|ns"
    rf"|nanosec(?:onds?)?|s|secs?|seconds?|minutes?|[kKMGT]i?B(?:/s)?|bytes?|[kMGTP]?FLOPS?(?:/s)?|{_TIMES})(?![\w])"
    r"|(x)\b)"
)
# What a noun before a citation can be; other nouns say too little to be held to it.
_NOUNS = (
    (
        "efficiency",
        re.compile(rf"\befficienc(?:y|ies) (?:of|is|at|reaches|:)? ?(?:only )?({_MARK})"),
        ("percentage",),
    ),
    (
        "bandwidth",
        re.compile(rf"\bbandwidth (?:of|is|at|reaches|:)? ?(?:only )?({_MARK})"),
        ("byte/s", "percentage"),
    ),
    (
        "duration",
        re.compile(rf"\b(?:takes|lasts|spends|duration of) (?:only |about )?({_MARK})"),
        ("time", "percentage"),
    ),
)
# A value as the subject of a change reads as if the value itself moved: "4.016 ms falls".
_CHANGES = re.compile(
    r"(?P<before>\b(?:of|from|at|to|by|than|below|above|over|under|with|near) (?:the |its |about |only )?)?"
    rf"(?P<mark>{_MARK})"
    r" (?:(?:then|also|will|would|should|must|can|no longer|has|have|clearly|visibly) ){0,2}"
    r"(?P<verb>f[ae]lls?|fallen|rises?|rose|drops?|dropped|shrinks?|shrank|grows?|grew|(?:de|in)creases?d?|declines?"
    r"|goes (?:down|up|away)|disappears?|vanish(?:es)?|improves?|halves|doubles|climbs?)\b"
)
_NOT_NUMBERS = ("text", "yes or no", "number", "count")


def unknown_ids(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Ids that the run does not have, and braces that cite nothing."""
    for name in dict.fromkeys(slot.text.cited):
        if name not in grounds.values:
            yield f"`{{{{{name}}}}}` cites nothing; {_nearest(name, slot, grounds)}"
    rest = " ".join(part.text for part in slot.text.parts if part.kind != "cite")
    if re.search(r"\{\{|\}\}", rest):
        yield "braces that cite nothing; a citation is {{id}} alone, also inside backticks"


def _nearest(name: str, slot: Slot, grounds: Basis) -> str:
    own = slot.finding.id if slot.finding else slot.analyzer
    if f"{own}.{name}" in grounds.values:
        return f"write {{{{{own}.{name}}}}}"
    prefix = name.rpartition(".")[0] or own
    near = [known for known in grounds.values if known.startswith(f"{prefix}.")] or list(grounds.values)
    close = get_close_matches(name, near, n=3, cutoff=0.5)
    if close:
        return f"near it: {', '.join(close)}"
    return "the ids are in the evidence of the task"


def contradicted_units(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Units after a citation, and nouns before it that its quantity cannot be."""
    text = slot.text
    yield from _moving_values(slot, grounds)
    for match in _UNIT.finditer(text.skeleton):
        part = text.part(match.group(1))
        if part.kind == "cite" and part.text in grounds.values:
            unit = match.group(2) or match.group(3)
            shown = format_value(part.text, grounds.values[part.text])
            yield f"`{{{{{part.text}}}}} {unit}`: the report writes `{shown}` there; leave the unit out"
    for noun, pattern, possible in _NOUNS:
        for match in pattern.finditer(text.skeleton):
            part = text.part(match.group(1))
            if part.kind != "cite" or part.text not in grounds.values:
                continue
            kind = measures(part.text, grounds.values[part.text])
            if kind not in possible and kind not in _NOT_NUMBERS:
                yield f"`{part.text}` is no {noun}: it measures {kind}"


def _moving_values(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Cited numbers that are said to fall or rise, where a quantity should be."""
    for match in _CHANGES.finditer(slot.text.skeleton):
        part = slot.text.part(match["mark"])
        value = grounds.values.get(part.text) if part.kind == "cite" else None
        if match["before"] or value is None or isinstance(value, str | bool):
            continue
        shown, verb = format_value(part.text, value), match["verb"]
        yield (
            f"`{{{{{part.text}}}}} {verb}` reads “{shown} {verb}”: name the quantity in words and cite its value, "
            f"as in “the {_quantity(part.text)} {verb} from {{{{{part.text}}}}}”"
        )


def _quantity(name: str) -> str:
    """A quantity in words: its name without analyzer and unit."""
    last, unit = name.rpartition(".")[2], unit_of(name)
    return (last.removesuffix(unit.ending) if unit else last).replace("_", " ")
