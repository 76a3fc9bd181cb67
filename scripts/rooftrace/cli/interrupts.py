"""What asks a process to end (Ctrl-C, `kill`, a closed terminal), by what a command is at.

While modules are loaded it ends the process, later it is an exception: one in the midst of a library's start can crash
the interpreter, and before a command runs there is nothing that would have to be tidied up. Only a process that is ours
from start to end is changed, and no signal that whoever started it wants ignored (`nohup`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

TEXT = "error: interrupted; what was there is kept: run the command again to go on"
# SIGBREAK is Ctrl-Break of Windows, which has no SIGHUP.
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))
# A closed terminal and a group of processes send a signal twice, and more than one: the first is tidied up after.
_SETTLE_S = 1.0
_came: list[float] = []


def exit_code(stop: KeyboardInterrupt) -> int:
    """128 and the signal's number, as shells have it: 130 for Ctrl-C, 143 for `kill`, 129 for a closed terminal."""
    number = stop.args[0] if stop.args else signal.SIGINT
    return 128 + int(number)


def end_at_once() -> None:
    """Let an interrupt end the process with one line."""
    if not _is_ours():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) not in (None, signal.SIG_IGN):
            signal.signal(number, _end)


def raise_interrupts() -> None:
    """Let an interrupt be an exception again, since there is something to tidy up now."""
    if not _is_ours():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, _raise)


def ignore() -> None:
    """What is left to do is to end: another interrupt would only add a traceback."""
    if _is_ours():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _is_ours() -> bool:
    return threading.current_thread() is threading.main_thread()


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as a handler is called
    try:
        if (stretches := sys.modules.get("rooftrace.stretches")) is not None:  # others may be reading for this process
            stretches.kill_helpers()
        os.write(2, f"{TEXT}\n".encode())
    finally:
        os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as a handler is called
    now = time.monotonic()
    if _came and now - _came[-1] < _SETTLE_S:
        return
    _came.append(now)
    raise KeyboardInterrupt(number)
