"""The command line: parses arguments, calls one stage, prints, and turns errors into exit codes.

stdout carries data or the path written; everything else goes to stderr. Heavy modules are imported by the command
that needs them, so that ``--help`` stays quick.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.output import say
from rooftrace.cli.parser import build_parser
from rooftrace.errors import RooftraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ISSUES = "Please report it with the command, the version (`rooftrace --version`) and the lines above"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    gc.disable()  # a command lives for seconds and makes few cycles; the collector would walk millions of events
    _use_utf8()
    options = build_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except RooftraceError as error:
        say(str(error))
        return error.exit_code
    except BrokenPipeError:
        # The reader of stdout has gone (`| head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        say("error: interrupted; nothing was written")
        return 130
    except MemoryError:
        say("error: out of memory\n\nhint: Use a machine with more memory, or record fewer steps")
        return 70
    except Exception as error:  # noqa: BLE001 - the last resort: a bug of ours, told as one
        return _report_bug(error)


def _use_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


def _report_bug(error: Exception) -> int:
    import traceback

    if os.environ.get("ROOFTRACE_DEBUG"):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    message = f"error: internal error: {type(error).__name__}: {error} ({place})\n\nhint: {_ISSUES}"
    say(message)
    return 70
