"""Ctrl-C, by what a command is at: while modules are loaded it ends the process, later it is an exception.

An exception in the midst of a library's start can crash the interpreter; and before a command runs there is nothing
that would have to be tidied up. Only a process that is ours from start to end is changed.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130
TEXT = "error: interrupted; what was there is kept: run the command again to go on"


def end_at_once() -> None:
    """Let an interrupt end the process with one line."""
    if _is_ours() and callable(signal.getsignal(signal.SIGINT)):  # not where whoever started it wants it ignored
        signal.signal(signal.SIGINT, _end)


def raise_interrupts() -> None:
    """Let an interrupt be an exception again, since there is something to tidy up now."""
    if _is_ours() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore() -> None:
    """What is left to do is to end: another interrupt would only add a traceback."""
    if _is_ours():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_ours() -> bool:
    return threading.current_thread() is threading.main_thread()


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as a handler is called
    os.write(2, f"{TEXT}\n".encode())
    os._exit(EXIT_CODE)
