"""The commands, their arguments and their help."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from rooftrace import __version__
from rooftrace.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DESCRIPTION = "Turns a GPU profile into a prioritised, evidence-backed report of what to fix first."
_EXIT_CODES = (
    "exit codes: 0 done, 1 a check failed, 2 usage, 3 input unreadable, 4 not a trace, 69 no environment, 70 a bug"
)

_OF_THE_LAUNCHER = (
    "commands of scripts/rooftrace.py alone:\n"
    "    setup     Make the environment that the other commands run in.\n"
    "    calibrate Measure what this machine's GPU can do and write a platform file."
)


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


def _count(text: str) -> int:
    """A whole number from 1 up."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 up")
    return int(text)


_JSON = Argument(flags=("--json",), help="print JSON instead of a table", action="store_true")
_LIMIT = Argument(flags=("--limit",), help="rows to print (default 20)", metavar="N", type=_count, default=20)
_PLATFORM = Argument(
    flags=("--platform",),
    help="GPU to rate against, instead of the one detected (see `platforms`)",
    metavar="SLUG",
)
_PLATFORM_FILE = Argument(
    flags=("--platform-file",), help="rate against the GPU of this platform file of yours", metavar="FILE.json"
)
_MODELS = Argument(
    flags=("--models",),
    help="op models of yours; this Python file is run, give only one you trust (repeatable)",
    metavar="FILE.py",
    action="append",
)
_STEPS = Argument(flags=("--steps",), help="steps to analyse: `3`, `2-5` (from 0) or a name", metavar="STEPS")
_SOURCE = Argument(flags=("source",), help="a trace file, or the folder of a run", metavar="TRACE_OR_RUN")
_EXAMPLE = "examples/transformer_training_h100.json.gz"

COMMANDS: tuple[Command, ...] = (
    Command(
        name="analyze",
        summary="Analyse a trace and write the whole report.",
        reads="a trace of torch.profiler (JSON; plain, gzip, zstd, zip or tar)",
        writes="RUN/analysis.md, RUN/report.json and the evidence; prints the path of analysis.md",
        example=f"analyze {_EXAMPLE} -o RUN",
        arguments=(
            Argument(flags=("trace",), help="the trace file", metavar="TRACE"),
            Argument(
                flags=("-o", "--output"),
                help="run folder (default ./rooftrace-runs/<trace name>)",
                metavar="RUN",
            ),
            _PLATFORM,
            _PLATFORM_FILE,
            _MODELS,
            _STEPS,
            Argument(flags=("--json",), help="print report.json instead of the path", action="store_true"),
            Argument(flags=("-q", "--quiet"), help="no progress on stderr", action="store_true"),
        ),
    ),
    Command(
        name="check",
        summary="Check the files of a run against their schemas and each other.",
        reads="the folder of a run",
        writes="nothing; one line a problem, exit code 1 if there is any",
        example="check RUN",
        arguments=(
            Argument(flags=("folder",), help="the folder of a run", metavar="RUN"),
            Argument(flags=("file",), help="check only this file of it", metavar="FILE", optional=True),
            Argument(flags=("--json",), help="print the problems as JSON", action="store_true"),
        ),
    ),
    Command(
        name="tree",
        summary="Print the call tree of a trace with the GPU time under each op.",
        reads="a trace",
        writes="nothing",
        example=f"tree {_EXAMPLE} --limit 12",
        arguments=(
            Argument(flags=("source",), help="a trace file", metavar="TRACE"),
            Argument(flags=("--depth",), help="levels to print (default 6)", metavar="N", type=_count, default=6),
            Argument(flags=("--python",), help="include Python frames and modules", action="store_true"),
            _STEPS,
            Argument(flags=("--limit",), help="rows to print (default 60)", metavar="N", type=_count, default=60),
            _JSON,
        ),
    ),
    Command(
        name="ops",
        summary="Print the op groups with their times, costs and ratings.",
        reads="a trace or a run",
        writes="nothing",
        example=f"ops {_EXAMPLE} --limit 5",
        arguments=(_SOURCE, _PLATFORM, _PLATFORM_FILE, _MODELS, _STEPS, _LIMIT, _JSON),
    ),
    Command(
        name="ledger",
        summary="Print where every nanosecond of each device went.",
        reads="a trace or a run",
        writes="nothing",
        example=f"ledger {_EXAMPLE}",
        arguments=(_SOURCE, _MODELS, _STEPS, _JSON),
    ),
    Command(
        name="platforms",
        summary="List the GPUs known, or one with its ceilings and sources.",
        reads="the knowledge base",
        writes="nothing",
        example="platforms h100-sxm",
        arguments=(
            Argument(
                flags=("slug",), help="one GPU in full, or a file of yours", metavar="SLUG_OR_FILE", optional=True
            ),
            _JSON,
        ),
    ),
    Command(
        name="explain",
        summary="Explain a code: a check, a note of Trace Health or a pattern.",
        reads="the knowledge base",
        writes="nothing",
        example="explain carry_in",
        arguments=(
            Argument(flags=("code",), help="the code; without one, all are listed", metavar="CODE", optional=True),
            _JSON,
        ),
    ),
)


class _Parser(argparse.ArgumentParser):
    """argparse with this program's form of errors."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong instead of printing it."""
        raise UsageError(message, hint=f"Run `{self.prog} --help`")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of one command; `UsageError` for what no command takes, `SystemExit` once help is printed."""
    command = next((word for word in arguments if not word.startswith("-")), None)
    known = {command.name: command for command in COMMANDS}
    if command is not None and command not in known:
        raise unknown_name("command", command, known)
    options, rest = build_parser().parse_known_args(arguments)
    if not rest:
        return options
    if command is not None and rest[0].startswith("-"):
        flags = [flag for argument in known[command].arguments for flag in argument.flags if flag.startswith("-")]
        raise unknown_name("option", rest[0].partition("=")[0], ["--help", *flags])
    raise UsageError(f"one argument too many: `{rest[0]}`", hint=f"Run `rooftrace {command} --help`")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; each leaves its handler in ``run``."""
    parser = _Parser(
        prog="rooftrace",
        description=_DESCRIPTION,
        epilog=f"{_OF_THE_LAUNCHER}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawTextHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"rooftrace {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands", parser_class=_Parser)
    for command in COMMANDS:
        _add(commands, command)
    return parser


def _add(commands: argparse._SubParsersAction[_Parser], command: Command) -> None:
    sub = commands.add_parser(
        command.name,
        help=command.summary,
        description=f"{command.summary}\n\nreads:  {command.reads}\nwrites: {command.writes}",
        epilog=f"example:\n  rooftrace {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for argument in command.arguments:
        options: dict[str, object] = {"help": argument.help}
        if argument.action:
            options["action"] = argument.action
        if argument.action != "store_true":
            options |= {"metavar": argument.metavar, "default": argument.default}
            if argument.type:
                options["type"] = argument.type
        if argument.optional:
            options["nargs"] = "?"
        sub.add_argument(*argument.flags, **options)  # type: ignore[arg-type]
    sub.set_defaults(run=_handler(command.name))


def _handler(name: str) -> Callable[[argparse.Namespace], int]:
    """The command's function, imported when it is called."""

    def call(options: argparse.Namespace) -> int:
        module = importlib.import_module(f"rooftrace.cli.{name}")
        return int(module.run(options))

    return call
