"""Runs a command and tells how it ended: whatever stops it is said, and becomes an exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli import interrupts
from rooftrace.cli.output import abandon, say
from rooftrace.cli.parser import parse
from rooftrace.errors import RooftraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEBUG = "ROOFTRACE_DEBUG"  # set: a failure shows its traceback, and the interpreter ends as it does elsewhere
_ISSUES = "Please report it with the command, the version (`rooftrace --version`) and the lines above"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def outcome(arguments: Sequence[str]) -> int:
    """The exit code of a command; whatever stops it is told."""
    try:
        gc.disable()  # a command lives for seconds and makes few cycles; the collector would walk millions of events
        _prepare_streams()
        code = _run(arguments)
        sys.stdout.flush()
    except RooftraceError as error:
        say(str(error))
        return error.exit_code
    except BrokenPipeError:
        abandon(sys.stdout)  # its reader has gone (`| head`): not an error
        return 0
    except KeyboardInterrupt as stop:
        interrupts.ignore()
        say(interrupts.TEXT)
        return interrupts.exit_code(stop)
    except MemoryError:
        say("error: out of memory\n\nhint: Use a machine with more memory, or record fewer steps")
        return 70
    except Exception as error:  # noqa: BLE001 - the last resort: a full disk, or a bug of ours, told as one
        return _last_resort(error)
    return code


def _last_resort(error: Exception) -> int:
    number = getattr(error, "errno", None)
    if number in _NO_ROOM:
        return _report_full_disk()
    if number == errno.EINVAL and os.name == "nt" and _is_of_stdout():
        return 0  # how Windows tells that the reader has gone
    return _report_bug(error)


def _is_of_stdout() -> bool:
    """Whether stdout cannot be written to any more; if so, it goes nowhere."""
    try:
        sys.stdout.flush()
    except OSError:
        abandon(sys.stdout)
        return True
    return False


def _run(arguments: Sequence[str]) -> int:
    try:
        options = parse(arguments)
    except SystemExit as done:  # argparse has printed a help or the version
        return int(done.code or 0)
    return int(options.run(options))


def _prepare_streams() -> None:
    """UTF-8 whatever the locale; a stream the caller closed goes nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for the process's life
            continue
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


def _report_full_disk() -> int:
    abandon(sys.stdout)
    say("error: no room left to write in\n\nhint: Free some, or give another folder with -o")
    return 2


def _report_bug(error: Exception) -> int:
    import traceback

    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    message = f"error: internal error: {type(error).__name__}: {error} ({place})\n\nhint: {_ISSUES}"
    say(message)
    return 70
