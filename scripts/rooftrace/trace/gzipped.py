"""Gzip as a stream: several members, trailing padding, and files cut short or damaged, read as far as they go.

The deflate data is inflated raw and the checksum compared here, because a library that finds it wrong keeps back
what it had read before. Every call is bounded: a small input may hold a huge output.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

MAGIC = b"\x1f\x8b"
# What one call takes and gives at most; of a damaged member the last call's output is lost.
_INPUT = 1 << 16
_OUTPUT = 1 << 16
_HEADER = 10
_TRAILER = 8
_EXTRA, _NAME, _COMMENT, _HEADER_CRC = 4, 8, 16, 2


class _Inflater(Protocol):
    """The part of zlib's decompressor that isal shares."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _library() -> tuple[Callable[[], _Inflater], Callable[[bytes, int], int], tuple[type[Exception], ...]]:
    """Inflater, checksum and errors of isal where it is installed, else of zlib."""
    try:
        from isal import isal_zlib
    except ImportError:
        return lambda: zlib.decompressobj(wbits=-15), zlib.crc32, (zlib.error,)
    errors = (zlib.error, EOFError, cast("type[Exception]", isal_zlib.error))
    return lambda: cast("_Inflater", isal_zlib.decompressobj(wbits=-15)), isal_zlib.crc32, errors


class GzipReader:
    """The content of a gzip stream in chunks; `problem` says afterwards what was wrong with it."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.problem: str | None = None
        self._chunks = chunks
        self._input = b""
        self._new_inflater, self._crc32, self._errors = _library()

    def __iter__(self) -> Iterator[bytes]:
        while self._fill(2) and self._input.startswith(MAGIC):
            if not self._skip_header():
                self._end("gzip stream ends early")
                return
            if not (yield from self._member()):
                return

    def _fill(self, count: int) -> bool:
        """Have `count` bytes of input, if the stream holds so many."""
        while len(self._input) < count:
            chunk = next(self._chunks, b"")
            if not chunk:
                return False
            self._input += chunk
        return True

    def _skip_header(self) -> bool:
        if not self._fill(_HEADER):
            return False
        flags, at = self._input[3], _HEADER
        if flags & _EXTRA:
            if not self._fill(at + 2):
                return False
            at += 2 + int.from_bytes(self._input[at : at + 2], "little")
        for flag in (_NAME, _COMMENT):
            if flags & flag:
                if not self._fill(at):
                    return False
                while (end := self._input.find(b"\0", at)) < 0:
                    if not self._fill(len(self._input) + 1):
                        return False
                at = end + 1
        at += 2 if flags & _HEADER_CRC else 0
        complete = self._fill(at)
        self._input = self._input[at:]
        return complete

    def _end(self, problem: str) -> bool:
        """Note the first problem; False, for "no further member can be read"."""
        self.problem = self.problem or problem
        return False

    def _member(self) -> Generator[bytes, None, bool]:
        """One member's content, then whether it was whole; its checksum and length are compared."""
        inflater, crc, size = self._new_inflater(), 0, 0
        while not inflater.eof:
            taken = b"" if inflater.unconsumed_tail else self._take()
            try:
                out = inflater.decompress(inflater.unconsumed_tail or taken, _OUTPUT)
            except self._errors as error:
                return self._end(f"damaged gzip data ({error})")
            if out:
                crc, size = self._crc32(out, crc), size + len(out)
                yield out
            elif not taken and not inflater.unconsumed_tail and not inflater.eof:
                return self._end("gzip stream ends early")
        self._input = inflater.unused_data + self._input
        if not self._fill(_TRAILER):
            return self._end("gzip stream ends early")
        expected = crc.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")
        if self._input[:_TRAILER] != expected:
            self._end("the gzip checksum does not match: some of the content is damaged")
        self._input = self._input[_TRAILER:]
        return True

    def _take(self) -> bytes:
        if not self._fill(1):
            return b""
        taken, self._input = self._input[:_INPUT], self._input[_INPUT:]
        return taken
