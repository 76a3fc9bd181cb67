"""For all tests: signals as a terminal leaves them.

A shell starts what it puts into the background with Ctrl-C ignored, and programs that are started by such a process
ignore it, too. Tests of interrupts start programs; others lose nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
for _number in _SIGNALS:
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """The program, called here, takes over signals of the process; others get them back."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
