"""What commands and their arguments are made of, and the arguments that several share."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]?)(i?)b?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a command, as argparse takes it."""

    flags: tuple[str, ...]
    help: str
    metavar: str | None = None
    action: str | None = None
    optional: bool = False
    type: Callable[[str], object] | None = None
    default: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its module in this package, what its help says and an example that runs."""

    name: str
    summary: str
    reads: str
    writes: str
    example: str
    arguments: tuple[Argument, ...]
    notes: str = ""


def count(text: str) -> int:
    """A whole number from 1 up."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 up")
    return int(text)


def size(text: str) -> int:
    """A number of bytes from 1 up: `500M`, `20GB`, `1.5GiB`."""
    found = _SIZE.fullmatch(text)
    value = (
        int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " ")) if found else 0
    )
    if value < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of bytes, such as 500M or 20G")
    return value


def percent(text: str) -> float:
    """A percentage from 0 up, with its sign or without."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is not a percentage from 0 up")
    return value


def factor(text: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 0 to 1")
    return value


JSON = Argument(flags=("--json",), help="print JSON instead of a table", action="store_true")
LIMIT = Argument(flags=("--limit",), help="rows to print (default 20)", metavar="N", type=count, default=20)
PLATFORM = Argument(
    flags=("--platform",),
    help="GPU to rate against, instead of the one detected (see `platforms`)",
    metavar="SLUG",
)
PLATFORM_FILE = Argument(
    flags=("--platform-file",), help="rate against the GPU of this platform file of yours", metavar="FILE.json"
)
MODELS = Argument(
    flags=("--models",),
    help="op models of yours; this Python file is run, give only one you trust (repeatable)",
    metavar="FILE.py",
    action="append",
)
STEPS = Argument(flags=("--steps",), help="steps to analyse: `3`, `2-5` (from 0) or a name", metavar="STEPS")
SOURCE = Argument(flags=("source",), help="a trace file, or the folder of a run", metavar="TRACE_OR_RUN")
TRACE = Argument(flags=("trace",), help="the trace file", metavar="TRACE")
TRACE_ONLY = Argument(flags=("source",), help="a trace file", metavar="TRACE")
FOLDER = Argument(flags=("folder",), help="the folder of a run", metavar="RUN")
OUTPUT = Argument(flags=("-o", "--output"), help="run folder (default ./rooftrace-runs/<trace name>)", metavar="RUN")
FORCE = Argument(
    flags=("--force",), help="write into a folder that holds other things, which stay", action="store_true"
)
MAX_BYTES = Argument(
    flags=("--max-bytes",),
    help="most bytes to unpack, such as 20G (default: what a trace of the file's size may hold)",
    metavar="SIZE",
    type=size,
)
REDACT = Argument(
    flags=("--redact",),
    help="write no user, host or job name, home folder, address or e-mail of the trace anywhere",
    action="store_true",
)
TIMINGS = Argument(flags=("--timings",), help="print on stderr which stage took how long", action="store_true")
QUIET = Argument(flags=("-q", "--quiet"), help="no progress on stderr", action="store_true")
EXAMPLE = "examples/transformer_training_h100.json.gz"
