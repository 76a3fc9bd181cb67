"""Time grows with the size of a file and not with its square; memory with a piece and not with the file."""

from __future__ import annotations

import gc
import gzip
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
import zstandard

from rooftrace.errors import NotATrace
from rooftrace.trace import blocks, containers, load
from tests.trace.reading import Folder, kernel

KERNEL = kernel().encode()
OPEN = b'{"traceEvents":['


def fill(size: int, event: bytes) -> bytes:
    """About `size` bytes of one event."""
    return OPEN + b",".join([event] * (size // (len(event) + 1))) + b"]}"


LONG_LIST = b'{"ph":"X","ts":1,"dur":1,"args":{"l":[{"a":1}'
HAZARDS: dict[str, Callable[[int], bytes]] = {
    "not a finite number in every event": lambda n: fill(n, kernel(args='{"bandwidth":inf}').encode()),
    "every event unreadable": lambda n: fill(n, kernel(ts="5.5.5").encode()),
    "every string unclosed": lambda n: fill(n, b'{"ph":"X","ts":20,"dur":5,"args":{"x":"abc}}'),
    "every brace unclosed": lambda n: fill(n, b'{"ph":"X","ts":20,"dur":5,"args":{"x":"abc"}'),
    "one string unclosed": lambda n: OPEN + b'{"ph":"X","name":"a,' + fill(n, KERNEL),
    "long name": lambda n: OPEN + kernel("x" * n).encode() + b"]}",
    "long name of boundaries": lambda n: OPEN + kernel("},{" * (n // 3)).encode() + b"]}",
    "long name with quotes": lambda n: OPEN + kernel('a"b' * (n // 3)).encode() + b"]}",
    "long name with a control character": lambda n: OPEN + kernel("x" * n + "\x01").encode() + b"]}",
    "escapes without end": lambda n: OPEN + b'{"ph":"X","name":"' + b'\\"' * (n // 2),
    "quotes without end": lambda n: OPEN + b"{" + b'"' * n,
    "braces without end": lambda n: OPEN + b"{" * n,
    "arrays in arrays": lambda n: OPEN + b'{"a":[' * (n // 6),
    "boundaries without events": lambda n: OPEN + b"},{" * (n // 3),
    "ends of arrays": lambda n: OPEN + b'{"ph":"X","x":' + b'}],"a":[{' * (n // 9),
    "closing brackets": lambda n: OPEN + KERNEL + b"]" + b"}" * n,
    "long list in arguments": lambda n: OPEN + LONG_LIST + b',{"a":1}' * (n // 8) + b"]}}]}",
    "damaged list in arguments": lambda n: OPEN + LONG_LIST + b',{"a":1}' * (n // 8) + b",:]}}," + KERNEL + b"]}",
    "white space before the events": lambda n: OPEN + b" " * n + KERNEL + b"]}",
    "zeros between events": lambda n: OPEN + KERNEL + b"," + bytes(n) + KERNEL + b"]}",
    "long envelope": lambda n: OPEN + KERNEL + b'],"stackFrames":{' + b'"1":{"name":"f"},' * (n // 17) + b'"2":{}}}',
    "documents in documents": lambda n: b'{"x":1,"traceEvents":[' * (n // 22),
    "arrays of events that meet": lambda n: OPEN + (KERNEL + b"],[") * (n // (len(KERNEL) + 3)) + KERNEL + b"]}",
    "arrays that meet in a broken event": lambda n: OPEN + b'{"ph":"X","x":"' + b"}],[{" * (n // 5) + KERNEL + b"]}",
    "envelopes in one event": lambda n: OPEN + b'{"ph":"X","x":"' + b'"traceEvents":[{' * (n // 16) + KERNEL + b"]}",
    "lines": lambda n: (KERNEL + b"\n") * (n // len(KERNEL)),
    "events without their first bracket": lambda n: fill(n, KERNEL[1:]),
    "arguments as text that is none": lambda n: fill(n, kernel(args='"{[{["').encode()),
    "header without end": lambda n: b'{"x":{"y":"' + b"{" * n + OPEN[1:] + KERNEL + b"]}",
    "no events": lambda n: b'{"x":["' + b'"traceEvents" ' * (n // 14) + b'"]}',
}


def seconds(folder: Folder, content: bytes) -> float:
    path = folder.write(content)
    gc.collect()
    gc.disable()  # as a command does; the collector would walk what other tests have left
    try:
        start = time.process_time()
        with suppress(NotATrace):
            load(path)
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("hazard", HAZARDS)
def test_time_grows_with_the_size_of_the_file(folder: Folder, monkeypatch, hazard: str) -> None:
    # Pieces of 32 KiB, so that what grows with a piece's square shows as well as what grows with the file's.
    monkeypatch.setattr(blocks, "BLOCK", 1 << 15)
    make = HAZARDS[hazard]

    small = seconds(folder, make(75_000))
    large = seconds(folder, make(300_000))

    # four times the size: 4 where it is linear, 16 where it is quadratic
    assert large < 9 * small + 0.3


def peak_of(read: Callable[[], object]) -> int:
    """Most bytes held by Python objects while reading."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("compress", "limit"),
    [(gzip.compress, 4 << 20), (zstandard.ZstdCompressor().compress, 40 << 20)],
    ids=["gzip", "zstd"],
)
def test_a_small_file_with_a_huge_content_is_given_in_small_chunks(folder: Folder, compress, limit: int) -> None:
    size = 128 << 20
    path = folder.write(compress(b"{" + bytes(size)))
    source = containers.open_source(path)

    peak = peak_of(lambda: [None for _ in source.chunks()])

    assert source.content_bytes == size + 1
    assert peak < limit


def test_a_piece_is_little_longer_than_a_block(monkeypatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 4096)
    text = b",".join([KERNEL] * 2000)
    chunks = (text[at : at + 1000] for at in range(0, len(text), 1000))

    pieces = list(blocks.cut_pieces(b"", chunks, 0))

    assert max(len(piece.text) for piece in pieces) <= 4096 + 1000
    assert b",".join(piece.text for piece in pieces) == text
    assert all(text[piece.offset : piece.offset + len(piece.text)] == piece.text for piece in pieces)


def test_text_without_events_is_handed_on_in_bounded_pieces(monkeypatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 256)
    text = b'"' + b"x" * 100_000
    chunks = (text[at : at + 100] for at in range(0, len(text), 100))

    pieces = list(blocks.cut_pieces(b"", chunks, 0))

    assert max(len(piece.text) for piece in pieces) <= blocks.MAX_BLOCKS * 256 + 100
    assert b"".join(piece.text for piece in pieces) == text
