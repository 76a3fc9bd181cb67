"""How a text speaks of a name that no trace holds: as one that is to appear, or as a setting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.report.slots import SlotText

_MARK = "[\ue000-\uf8ff]"
_BREAK = re.compile(r"[,;:.]|\b(?:and|but|while|where(?:as)?|than|until)\b")
# `A` or `B` appears: what is said of one is said of both.
_BESIDE = re.compile(rf"^(?:\s*(?:,|/|,?\s*(?:and|or))\s*{_MARK})+")
_NEW_BEFORE = re.compile(
    r"\b(?:appears?|show(?:s|ing)? up|comes? up|becomes?|turns? into|gives? way to|(?:replaced|followed) (?:by|with)"
    r"|new(?! (?:trace|profile|run|recording|capture|comparison))|another|look for|expect)\b[^,;]{0,40}$",
    re.IGNORECASE,
)
_NEW_AFTER = re.compile(
    r"^[^,;.]{0,30}?\b(?:appears?|shows? up|comes? up|replaces?|takes? (?:its|their|the|over)\b|(?:is|are) new"
    r"|stands?(?: there)? (?:in (?:its|their|the) place|instead|where))\b",
    re.IGNORECASE,
)
# Said of what is there today, or of what goes: that the trace must hold.
_OLD = re.compile(
    r"\b(?:today|currently|at present|now|already|so far|in this trace|as recorded|gone|no longer|not|never|no|without"
    r"|disappear\w*|vanish\w*)\b",
    re.IGNORECASE,
)
_OLD_FOLLOWS = re.compile(r"\b(?:instead of|(?:in|takes?) (?:the )?place of|rather than|replac(?:es|ing)|from)\b", re.I)
# Written like a name of code: no words, no quantity.
_NAME = re.compile(r"(?!\w*[0-9]_?(?:pct|percent|ms|us|ns|x)$)[A-Za-z_][\w.:<>~*]{2,119}")
_SETTING = re.compile(r"(?!\w*(?:kernel|_fwd|_bwd|gemm))[a-z]+(?:_[a-z]+)+")
_SET_BEFORE = re.compile(
    r"\b(?:set(?:ting)?|pass(?:ing)?|keyword|argument|flag|option|parameter|switch)\s+$", re.IGNORECASE
)
_SET_AFTER = re.compile(
    r"^\s+(?:(?:keyword|argument|flag|option|parameter|setting|switch)\b|to (?:True|False|None|on|off)\b)"
)


def announced(text: SlotText) -> set[str]:
    """Names of which the text says that they will appear: only a new trace can hold them."""
    return {name for name, before, after in _mentions(text) if _NAME.fullmatch(name) and _is_announced(before, after)}


def called_settings(text: SlotText) -> set[str]:
    """Names that the text calls a setting, an argument or a flag, or sets to on or off."""
    return {
        name
        for name, before, after in _mentions(text)
        if _SETTING.fullmatch(name) and (_SET_BEFORE.search(before) or _SET_AFTER.match(after))
    }


def looks_like_a_setting(name: str) -> bool:
    """Whether it is written as an argument is, in small letters with underscores."""
    return _SETTING.fullmatch(name) is not None


def _mentions(text: SlotText) -> Iterator[tuple[str, str, str]]:
    """Every piece of code with the words of its sentence before and after it."""
    for sentence in text.sentences:
        for match in re.finditer(_MARK, sentence):
            part = text.part(match.group())
            if part.kind == "code":
                yield part.text, sentence[: match.start()], sentence[match.end() :]


def _is_announced(before: str, after: str) -> bool:
    """By the words of its own clause; those that speak of today or of what goes count against it."""
    before, after = _BREAK.split(before)[-1], _BREAK.split(_BESIDE.sub("", after))[0]
    if _OLD_FOLLOWS.search(before):
        return False
    is_new = _NEW_AFTER.match(after) or _NEW_BEFORE.search(before)
    return bool(is_new) and not _OLD.search(f"{before} {_OLD_FOLLOWS.split(after)[0]}")
