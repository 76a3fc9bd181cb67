"""The commands, their arguments and their help."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rooftrace import __version__
from rooftrace.cli.interrupts import raise_interrupts
from rooftrace.cli.run_commands import RUN_COMMANDS
from rooftrace.cli.stage_commands import STAGE_COMMANDS
from rooftrace.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from rooftrace.cli.arguments import Command

_DESCRIPTION = "Turns a GPU profile into a prioritised, evidence-backed report of what to fix first."
_EXIT_CODES = (
    "exit codes: 0 done, 1 a check failed, 2 usage, 3 input unreadable, 4 not a trace, 69 no environment, 70 a bug"
)

_OF_THE_LAUNCHER = (
    "commands of scripts/rooftrace.py alone:\n"
    "    setup     Make the environment that the other commands run in.\n"
    "    calibrate Measure what this machine's GPU can do and write a platform file."
)

_TRACES = ("trace", "source", "base")  # the arguments that name a file to be read, or the first of them

COMMANDS: tuple[Command, ...] = (*RUN_COMMANDS, *STAGE_COMMANDS)


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
        epilog=f"{command.notes}\n\nexample:\n  rooftrace {command.example}".lstrip(),
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
        with _reading_ahead(options):
            module = importlib.import_module(f"rooftrace.cli.{name}")
            raise_interrupts()
            return int(module.run(options))

    return call


def _reading_ahead(options: argparse.Namespace) -> AbstractContextManager[None]:
    """While it lasts, the command's trace, if it has one, is read by other processes."""
    from rooftrace.stretches import reading_ahead

    trace = next((getattr(options, name) for name in _TRACES if hasattr(options, name)), None)
    return reading_ahead(None if trace is None else Path(trace))
