"""A slot's text taken apart: citations, inline code and plain words; and put together again as Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rooftrace.report.markdown import code, literal
from rooftrace.report.values import cite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooftrace.contracts.base import EvidenceValue

# A citation in backticks is a citation: the report decides what is shown as code.
_PARTS = re.compile(
    r"`\{\{\s*([A-Za-z0-9_.]+)\s*\}\}`|\{\{\s*([A-Za-z0-9_.]+)\s*\}\}|(`+)(?!`)(.+?)(?<!`)\3(?!`)", re.S
)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")
# One private-use character stands for a citation or a piece of code in `skeleton`.
_MARK = 0xE000
_MARKS = re.compile("[\ue000-\uf8ff]")
_MOST_PARTS = 0xF8FF - _MARK
CODE_LIMIT = 200


class Part(Struct, frozen=True, kw_only=True):
    """A stretch of a slot: an evidence id, the content of inline code, or plain words."""

    kind: Literal["cite", "code", "plain"]
    text: str


@dataclass(frozen=True, kw_only=True)
class SlotText:
    """A slot's text and its parts."""

    raw: str

    @cached_property
    def parts(self) -> list[Part]:
        """Parts in order; together they are the text."""
        found: list[Part] = []
        at = 0
        for match in _PARTS.finditer(self.raw):
            if match.start() > at:
                found.append(Part(kind="plain", text=self.raw[at : match.start()]))
            name = match.group(1) or match.group(2)
            found.append(Part(kind="cite", text=name) if name else Part(kind="code", text=match.group(4).strip()))
            at = match.end()
        if at < len(self.raw):
            found.append(Part(kind="plain", text=self.raw[at:]))
        return found[:_MOST_PARTS]

    @cached_property
    def skeleton(self) -> str:
        """The text with one private character in place of each citation and each piece of code."""
        return "".join(
            _MARKS.sub(" ", part.text) if part.kind == "plain" else chr(_MARK + index)
            for index, part in enumerate(self.parts)
        )

    @cached_property
    def plain(self) -> str:
        """The words alone, a space in place of each citation and each piece of code."""
        return _MARKS.sub(" ", self.skeleton)

    @cached_property
    def sentences(self) -> list[str]:
        """Sentences of `skeleton`; a semicolon ends one."""
        return [sentence for sentence in _SENTENCES.split(self.skeleton) if sentence.strip()]

    def part(self, mark: str) -> Part:
        """The part that a private character of `skeleton` stands for."""
        return self.parts[ord(mark) - _MARK]

    def parts_in(self, sentence: str, kind: Literal["cite", "code"]) -> list[str]:
        """Texts of the citations or pieces of code in a sentence of `skeleton`."""
        marks = [self.part(mark) for mark in _MARKS.findall(sentence)]
        return [part.text for part in marks if part.kind == kind]

    def spelled(self, sentence: str) -> str:
        """A sentence of `skeleton` with its code spelled out and its citations as `{}`."""

        def text(match: re.Match[str]) -> str:
            part = self.part(match.group())
            return part.text if part.kind == "code" else "{}"

        return _MARKS.sub(text, sentence)

    def quoted(self, sentence: str) -> str:
        """A sentence of `skeleton` as the writer wrote it, cut short."""

        def text(match: re.Match[str]) -> str:
            part = self.part(match.group())
            return f"`{part.text}`" if part.kind == "code" else f"{{{{{part.text}}}}}"

        words = " ".join(_MARKS.sub(text, sentence).split())
        return words if len(words) <= 90 else words[:89].rstrip() + "…"

    @property
    def cited(self) -> list[str]:
        """Ids cited, in order."""
        return [part.text for part in self.parts if part.kind == "cite"]

    @property
    def code(self) -> list[str]:
        """Contents of inline code, in order."""
        return [part.text for part in self.parts if part.kind == "code"]

    def markdown(self, values: Mapping[str, EvidenceValue]) -> str:
        """Paragraphs with the evidence's values put in; every other character is shown as it is."""
        return "\n\n".join(SlotText(raw=part).line(values) for part in _PARAGRAPHS.split(self.raw.strip()))

    def line(self, values: Mapping[str, EvidenceValue]) -> str:
        """The text as one line of Markdown."""
        return "".join(_as_markdown(part, values) for part in self.parts).strip()


def _as_markdown(part: Part, values: Mapping[str, EvidenceValue]) -> str:
    if part.kind == "cite":
        return cite(part.text, values[part.text])
    return code(part.text, CODE_LIMIT) if part.kind == "code" else literal(part.text)
