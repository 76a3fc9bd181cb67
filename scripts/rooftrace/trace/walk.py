"""Hands the events of a document on piece by piece, whatever is damaged in it: for readers that make no columns."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rooftrace.trace import blocks
from rooftrace.trace.salvage import Salvage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.salvage import Sink

_MAX_TAIL = 16 << 20
# Where the array may end in the last piece: arrays in arguments and in the envelope look alike.
_ARRAY_END = re.compile(rb'(\})\s{0,64},?\s{0,64}\]\s{0,64}(?=,\s{0,64}"|\}|\]|\Z)')
_MAX_ENDS = 16


class Envelope(Struct, frozen=True):
    """The text around the event array."""

    head: bytes
    tail: bytes
    layout: Literal["object", "array"]


class Walk:
    """One pass over a document; `sink` gets runs of whole events as text, and damaged ones as they were mended."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._proven = True
        self._tail: bytearray | None = None
        self._pending = bytearray()
        self._pending_offset = 0
        self._retry_at = 0

    def run(self, source: Source, *, digest: bool = True, progress: Callable[[int], None] | None = None) -> Envelope:
        """Read to the end; `NotATrace` if there is no event array."""
        chunks = source.chunks(digest=digest)
        head = blocks.split_head(chunks, source.path.name)
        for piece in blocks.cut_pieces(head.rest, chunks, head.offset):
            self._take(piece)
            if progress is not None:
                progress(source.content_bytes)
        if self._tail is None and source.truncated is None:
            source.truncated = "the event array is not closed"
        return Envelope(head.text, bytes(self._tail or b""), head.layout)

    def _take(self, piece: blocks.Piece) -> None:
        if self._tail is not None:
            if len(self._tail) < _MAX_TAIL:
                self._tail += piece.text
            return
        text, offset = piece.text, piece.offset
        if self._pending:
            gap = offset - self._pending_offset - len(self._pending)
            self._pending += (b",".ljust(gap) if gap > 0 else b"") + text
            if len(self._pending) < self._retry_at and not piece.last:
                return
            text, offset = bytes(self._pending), self._pending_offset
            self._pending.clear()
        if self._sink.take_run(text):
            self._proven = True
            return
        if piece.last and self._take_to_the_end(text):
            return
        salvage = Salvage(text, offset, piece.last, self._sink, proven=self._proven)
        salvage.run()
        self._proven = salvage.proven
        if salvage.tail is not None:
            self._tail = bytearray(text[salvage.tail :])
        elif salvage.rest is not None:  # tried again when the text has doubled, which keeps the work linear
            self._pending += text[salvage.rest :]
            self._pending_offset = offset + salvage.rest
            self._retry_at = 2 * len(self._pending)

    def _take_to_the_end(self, text: bytes) -> bool:
        """Take the undamaged end of the array at once: what stands before its bracket is then given as text."""
        for match in islice(_ARRAY_END.finditer(text), _MAX_ENDS):
            if self._sink.take_run(text[: match.end(1)]):
                self._tail = bytearray(text[match.end() :])
                return True
        return False
