"""The command line: parses arguments, calls one stage, prints, and turns errors into exit codes.

stdout carries data or the path written; everything else goes to stderr. Heavy modules are imported by the command
that needs them, so that ``--help`` stays quick; a file that a command names is read by others meanwhile.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rooftrace.cli import interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Without `arguments` it is the process's own, which ends with it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads when imported; no work for them here
    if arguments is not None:
        from rooftrace.cli.outcome import outcome

        return outcome(arguments)
    interrupts.end_at_once()
    return _end(_outcome(sys.argv[1:]))


def _outcome(arguments: Sequence[str]) -> int:
    from rooftrace.heap import keep_freed_memory
    from rooftrace.stretches import first_file, reading_ahead

    with reading_ahead(first_file(arguments)):
        keep_freed_memory()
        from rooftrace.cli.outcome import outcome

        try:
            return outcome(arguments)
        finally:
            interrupts.ignore()


def _end(code: int) -> int:
    """End at once: to free a trace object by object, as an interpreter does at its end, takes a tenth of a second."""
    from contextlib import suppress

    from rooftrace.cli.outcome import DEBUG

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # its reader has gone
            stream.flush()
    if not os.environ.get(DEBUG):  # what measures a process works at its end
        os._exit(code)
    return code
