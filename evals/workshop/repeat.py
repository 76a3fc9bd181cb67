"""Repeats a real trace into one large valid trace, for benchmarks: copies in a row, later and renumbered.

An event is turned once into a template: its own bytes with a placeholder at each number that a repetition
shifts. Every later copy is one formatting operation a block, so 800 MB are written in seconds and only the
input is held.

Shifted: ``ts`` (by whole microseconds, so that fractions stay as they are); every id by one common stride,
so that ids that are equal stay equal (an ``ac2g`` arrow carries its launch's correlation); the number in
``ProfilerStep#N``. Metadata events, the profiler's own span and its first mark are written once, its last
mark at the very end.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

IDS = b"correlation|External id|external id|id|Ev Idx|Python id|Python parent id|Sequence number"
SHIFTED = re.compile(
    rb'(?<!\\)"(?P<key>ts|' + IDS + rb')"\s*:\s*(?P<number>-?\d+)|"ProfilerStep#(?P<step>\d+)"', re.ASCII
)
TIME = re.compile(rb'(?<!\\)"(?P<key>ts|dur)"\s*:\s*(?P<number>-?\d+(?:\.\d+)?(?P<exponent>[eE])?)')
PHASE = re.compile(rb'(?<!\\)"ph"\s*:\s*"(?P<phase>\w)"')
DURATION = re.compile(rb'(?<!\\)"dur"\s*:\s*(?P<number>\d+)')
PROFILER_SPAN, FIRST_MARK, LAST_MARK = b'"Trace"', b'"Iteration Start', b'"Record Window End'
PAUSE_US = 1000
"""Time between the end of one copy and the start of the next."""
BLOCK_BYTES = 1 << 20


class NotRepeatable(ValueError):  # noqa: N818 - named for what the trace is
    """The file holds no trace this tool can repeat."""


@dataclass
class Block:
    """Events as one template: ``text % (base + n * stride)`` is their n-th copy."""

    text: bytearray = field(default_factory=bytearray)
    base: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)

    def copy(self, number: int) -> bytes:
        """The events of repetition ``number`` (0 is the original)."""
        values = [base + number * stride for base, stride in zip(self.base, self.stride, strict=True)]
        return bytes(self.text) % tuple(values)


@dataclass(frozen=True, kw_only=True)
class Strides:
    """What one repetition adds to a time in whole microseconds, to an id, and to a step's number."""

    period_us: int
    ids: int
    steps: int


def repeat_trace(trace: Path, times: int, output: Path) -> int:
    """Writes ``trace`` ``times`` over to ``output``, compressed for ``.gz``; returns the event count."""
    envelope, events = _read(trace)
    once = [raw for raw in events if _is_written_once(raw)]
    last = [raw for raw in events if LAST_MARK in raw]
    body = [raw for raw in events if not _is_written_once(raw) and LAST_MARK not in raw]
    strides = _strides(body)
    blocks = list(_blocks(body, strides))
    with _open(output) as stream:
        stream.write(b"{\n")
        for key, value in envelope.items():
            stream.write(msgspec.json.encode(key) + b": " + bytes(value) + b",\n")
        stream.write(b'"traceEvents": [\n')
        separator = b""
        for piece in _pieces((once, last), blocks, strides, times):
            stream.write(separator + piece)
            separator = b",\n"
        stream.write(b"\n]\n}\n")
    return len(once) + len(last) + times * len(body)


def _pieces(
    marks: tuple[list[bytes], list[bytes]], blocks: list[Block], strides: Strides, times: int
) -> Iterator[bytes]:
    once, last = marks
    for raw in once:
        yield _stretch(raw, (times - 1) * strides.period_us)
    for number in range(times):
        for block in blocks:
            yield block.copy(number)
    for block in _blocks(last, strides):
        yield block.copy(times - 1)


def _read(trace: Path) -> tuple[dict[str, msgspec.Raw], list[bytes]]:
    """The envelope without its events, and each event's own bytes."""
    data = trace.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    try:
        envelope = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        events = msgspec.json.decode(envelope.pop("traceEvents"), type=list[msgspec.Raw])
    except (msgspec.DecodeError, KeyError) as error:
        raise NotRepeatable(f"`{trace.name}` is not an object with traceEvents: {error}") from error
    return envelope, [bytes(raw) for raw in events]


def _is_written_once(raw: bytes) -> bool:
    phase = PHASE.search(raw)
    return phase is None or phase["phase"] == b"M" or PROFILER_SPAN in raw or FIRST_MARK in raw


def _strides(events: list[bytes]) -> Strides:
    first, last, ids, steps = float("inf"), float("-inf"), 0, [0]
    for raw in events:
        times = {match["key"]: _microseconds(match) for match in TIME.finditer(raw)}
        start = times.get(b"ts", 0.0)
        first, last = min(first, start), max(last, start + times.get(b"dur", 0.0))
        for match in SHIFTED.finditer(raw):
            if match["step"] is not None:
                steps.append(int(match["step"]))
            elif match["key"] != b"ts":
                ids = max(ids, int(match["number"]))
    if last < first:
        raise NotRepeatable("the trace holds no event with a time")
    numbered = steps[1:]
    step_count = max(numbered) - min(numbered) + 1 if numbered else 0
    return Strides(period_us=int(last - first) + PAUSE_US, ids=ids + 1, steps=step_count)


def _microseconds(match: re.Match[bytes]) -> float:
    if match["exponent"] is not None:
        raise NotRepeatable("a time is written with an exponent")
    return float(match["number"])


def _blocks(events: list[bytes], strides: Strides) -> Iterator[Block]:
    block = Block()
    for raw in events:
        if block.text:
            block.text += b",\n"
        _append(block, raw, strides)
        if len(block.text) >= BLOCK_BYTES:
            yield block
            block = Block()
    if block.text:
        yield block


def _append(block: Block, raw: bytes, strides: Strides) -> None:
    """Adds an event's template; ids of 0 and below are not ids and stay."""
    done = 0
    for match in SHIFTED.finditer(raw):
        group = "number" if match["step"] is None else "step"
        value = int(match[group])
        is_time = match["key"] == b"ts"
        if value <= 0 and not is_time:
            continue
        begin, end = match.span(group)
        block.text += raw[done:begin].replace(b"%", b"%%") + b"%d"
        block.base.append(value)
        block.stride.append(_stride(match, strides))
        done = end
    block.text += raw[done:].replace(b"%", b"%%")


def _stride(match: re.Match[bytes], strides: Strides) -> int:
    if match["step"] is not None:
        return strides.steps
    return strides.period_us if match["key"] == b"ts" else strides.ids


def _stretch(raw: bytes, by_us: int) -> bytes:
    """The profiler's own span, as long as all repetitions; any other event as it is."""
    match = DURATION.search(raw) if PROFILER_SPAN in raw else None
    if match is None:
        return raw
    begin, end = match.span("number")
    return raw[:begin] + b"%d" % (int(match["number"]) + by_us) + raw[end:]


def _open(output: Path) -> BinaryIO:
    if output.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(output, "wb", compresslevel=1, mtime=0))
    return output.open("wb")
