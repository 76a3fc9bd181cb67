"""The known compositions (``knowledge/fusion``): regular expressions over the words of calls."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from pydantic import ValidationError

from rooftrace.contracts.fusion import FusionPatternFile
from rooftrace.errors import InternalError
from rooftrace.fusion.tokens import SETS, either
from rooftrace.pack import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_PART = re.compile(r"\s*([A-Za-z_0-9]+|[()|?*+]|\{\d+,?\d*\})")
# Characters that stand for words: letters without meaning to a regular expression, one a word. Those below 256 compile
# many times faster than others and are enough for all words of a usual trace.
_FEW = "".join(chr(code) for code in range(0x21, 0x100) if chr(code).isalnum())
_FIRST_OF_MANY = 0x4E00
_NEVER = "(?:(?!))"
_BREAK = "\n"
SAME = (("same",),)  # the sequence of the composition whose calls all have one word


class Composition(Struct, frozen=True, kw_only=True):
    """A composition and what is looked for."""

    file: FusionPatternFile
    words: tuple[tuple[str, ...], ...]  # parts of each sequence: words and signs
    tells: tuple[tuple[str, ...], ...] = ()  # of which one has to occur
    denies: tuple[tuple[str, ...], ...] = ()  # of which none may occur

    @property
    def identity(self) -> str:
        """The file's id."""
        return self.file.id

    @property
    def is_of_one_word(self) -> bool:
        """Whether any run of equal calls fits it."""
        return self.words == SAME

    def names_it(self, text: str) -> bool:
        """Whether a module's or op's name says the same."""
        lower = text.lower()
        return any(hint in lower for hint in self.file.modules)


class Alphabet:
    """Words as single characters. Without shapes ``adds`` cannot be told from ``add``: they are one then."""

    def __init__(self, *, loose: bool = False) -> None:
        self._loose = loose
        self._characters: dict[str, str] = {}

    def encode(self, words: Sequence[str | None], numbers: Iterable[int]) -> str:
        """The words of some numbers as text of one character each; for None one that no composition holds."""
        characters = [_BREAK if word is None else self._new(word) for word in words]
        return "".join([characters[number] for number in numbers])

    def expression(self, sequences: Iterable[tuple[str, ...]]) -> str | None:
        """Sequences as a regular expression that fits any of them; None if no text made so far can fit."""
        told = [self._told(parts) for parts in sequences if all(map(self._class, _needed(parts)))]
        return "|".join(f"(?:{one})" for one in told) or None

    def _told(self, parts: tuple[str, ...]) -> str:
        return "".join((self._class(part) or _NEVER) if _is_word(part) else _SIGNS.get(part, part) for part in parts)

    def _class(self, part: str) -> str:
        """The characters of a word or of a set of words; empty if no text has any."""
        known = {
            self._characters.get(self._spelled(one), ""): None
            for word in SETS.get(part, (part,))
            for one in either(word)
        }
        characters = "".join(known)
        return f"[{characters}]" if characters else ""

    def _new(self, word: str) -> str:
        count = len(self._characters)
        following = _FEW[count] if count < len(_FEW) else chr(_FIRST_OF_MANY + count)
        return self._characters.setdefault(self._spelled(word), following)

    def _spelled(self, word: str) -> str:
        return _LOOSE.get(word, word) if self._loose else word


_SIGNS = {"(": "(?:"}


def _is_word(part: str) -> bool:
    return part[0].isalnum() or part[0] == "_"


@cache
def _needed(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Words without which a sequence cannot fit: those outside of brackets that may not be left out."""
    depth, needed = 0, []
    for part, following in zip(parts, (*parts[1:], ""), strict=True):
        depth += (part == "(") - (part == ")")
        if part == "|" and depth == 0:
            return ()
        if depth == 0 and _is_word(part) and not following.startswith(("?", "*", "{0")):
            needed.append(part)
    return tuple(needed)


_LOOSE = {
    "adds": "add",
    "subs": "sub",
    "muls": "mul",
    "divs": "div",
    "cast": "copy",
    "sub": "add",
}


@cache
def load_compositions(folder: Path = KNOWLEDGE / "fusion") -> tuple[Composition, ...]:
    """All compositions, by id."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            file = FusionPatternFile.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise InternalError(f"composition `{path.name}` does not match its schema: {error}") from None
        words, tells, denies = (
            tuple(_split(text, path.name) for text in texts) for texts in (file.sequences, file.tells, file.denies)
        )
        if file.kind != "loop" and any(sign in parts for parts in words for sign in "*+"):
            raise InternalError(f"composition `{path.name}`: only a loop may repeat without bound")
        found.append(Composition(file=file, words=words, tells=tells, denies=denies))
    return tuple(found)


def _split(text: str, name: str) -> tuple[str, ...]:
    parts, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise InternalError(f"composition `{name}`: `{text[at:].strip()}` is no word or sign")
        parts.append(match.group(1))
        at = match.end()
    return tuple(parts)


def find_all(composition: Composition, text: str, alphabet: Alphabet) -> Iterator[tuple[int, int]]:
    """First and last position of every stretch of ``text`` that fits: overlapping ones, and shorter ones inside.

    What is optional at an end may belong to something else: which of the stretches is meant, data flow decides.
    """
    expression = alphabet.expression(composition.words)
    if expression is None:
        return
    whole = re.compile(expression)
    for match in re.finditer(f"(?=({expression}))", text):
        low, high = match.span(1)
        yield from ((low, end - 1) for end in range(low + 2, high + 1) if whole.fullmatch(text, low, end))


def find_longest(
    composition: Composition, text: str, alphabet: Alphabet, parts: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The longest stretches that fit a loop within each part of ``text``, given by first position and end."""
    expression = alphabet.expression(composition.words)
    if expression is None:
        return
    whole = re.compile(expression)
    tells, denies = (
        [re.compile(told) for told in [alphabet.expression(sequences)] if told is not None]
        for sequences in (composition.tells, composition.denies)
    )
    for low, high in parts:
        for match in whole.finditer(text, low, high):
            if composition.tells and not any(one.search(match.group()) for one in tells):
                continue
            if not any(one.search(match.group()) for one in denies):
                yield match.start(), match.end() - 1
