"""How far a long file is read: one line on a terminal, renewed; elsewhere a line every few seconds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rooftrace.cli.output import say, say_over

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# On a terminal a person waits; a log wants few lines, and none of what is read at once.
_FIRST_S, _EVERY_S = 1.0, 0.25
_FIRST_IN_LOG_S, _EVERY_IN_LOG_S = 5.0, 5.0
_SHORTEST_LEFT_S = 1.0
# After this much its rate is told, and it is known how far the file's bytes unpack.
_KNOWN_AFTER = 0.02


def progress(trace: Path) -> Callable[[int], None]:
    """A reporter that is told bytes of content, and tells how much is read, how fast and how long it will take."""
    is_terminal = sys.stderr.isatty()
    wait, every = (_FIRST_S, _EVERY_S) if is_terminal else (_FIRST_IN_LOG_S, _EVERY_IN_LOG_S)
    started = time.monotonic()
    whole = content_size(trace)
    due = started + wait

    def tell(content_bytes: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + every
            (say_over if is_terminal else say)(line(trace.name, content_bytes, whole, now - started))

    return tell


def line(name: str, done: int, whole: int | None, seconds: float) -> str:
    """What is told: `reading a.json: 120 of 813 MB, 95 MB/s, about 7 s left`; bytes, and seconds since the start."""
    rate = done / seconds if seconds > 0 else 0.0
    of_whole = f" of {whole / 1e6:.0f}" if whole is not None and whole >= done else ""
    text = f"reading {name}: {done / 1e6:.0f}{of_whole} MB, {rate / 1e6:.0f} MB/s"
    if not of_whole or whole is None or done < _KNOWN_AFTER * whole:
        return text
    left = (whole - done) / rate
    return f"{text}, about {duration(left)} left" if left >= _SHORTEST_LEFT_S else text


def duration(seconds: float) -> str:
    """`42 s`, `3 min 5 s`."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def content_size(trace: Path) -> int | None:
    """Bytes of the unpacked content, where the file tells: plain text, or gzip of one member below 4 GB."""
    try:
        if not trace.is_file():
            return None  # a pipe would wait for whoever writes into it
        with trace.open("rb") as file:
            head = file.read(2)
            size = file.seek(0, 2)
            if head[:1] in (b"{", b"["):
                return size
            if head != b"\x1f\x8b" or size < 18:
                return None
            file.seek(-4, 2)
            content = int.from_bytes(file.read(4), "little")
    except OSError:
        return None
    return content if 2 * size < content < 100 * size else None
