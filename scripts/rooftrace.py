#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = []
# ///
"""Runs rooftrace on a machine that has nothing but Python >= 3.10.

Where the interpreter that runs this file has the dependencies, the command goes on in it; else in a virtual
environment in the user's cache folder, which the first run makes (``rooftrace_launch/``). Nothing is
written into the pack. Exit 69: the environment is missing and cannot be made here.

``python3 scripts/rooftrace.py setup`` only makes the environment and prints its folder;
``python3 scripts/rooftrace.py calibrate`` measures a device with the torch of the interpreter that runs it.

Standard library only; down to the version check nothing that Python 3.6 cannot read: no ``__future__``.
"""

import os
import sys
from pathlib import Path

TYPE_CHECKING = False  # without the module `typing`, which takes time
if TYPE_CHECKING:
    from types import FrameType
    from typing import TextIO

sys.dont_write_bytecode = True  # an installed pack can be read-only, and is never ours to write

EXIT_USAGE = 2
EXIT_UNAVAILABLE = 69
LAUNCHER = Path(__file__).resolve()

if sys.version_info < (3, 10):  # noqa: UP036 - the lines that an older Python is meant to reach
    sys.stderr.write(
        f"error: rooftrace needs Python 3.10 or newer; this is {sys.version_info[0]}.{sys.version_info[1]}\n"
        f"\nhint: Run it with a newer one, for example `python3.12 {LAUNCHER}`\n"
    )
    sys.exit(EXIT_UNAVAILABLE)

import signal  # noqa: E402 - after the lines that an older Python is meant to reach

INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]


def end_at_once(number, frame):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, ARG001
    """Of an interrupt while modules are loaded: an exception there can crash an interpreter."""
    try:
        os.write(2, b"error: interrupted\n")
    finally:
        os._exit(128 + number)


for interrupt in INTERRUPTS:
    if signal.getsignal(interrupt) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(interrupt, end_at_once)  # else whoever started this wants it ignored, or is no shell

sys.path.insert(0, str(LAUNCHER.parent))  # python3 -I leaves the script's folder out

from rooftrace_launch import environment as environments  # noqa: E402 - found only now, and read by new Pythons only

COMPILED_TEMPLATES = "ROOFTRACE_COMPILED_TEMPLATES"  # where the report may keep its compiled templates
HANDED_OVER = "ROOFTRACE_HANDED_OVER"  # set for the re-executed process, so that it never hands over again
SETUP_HELP = """usage: rooftrace.py setup

Make the environment that the other commands run in and print its folder. Needs the network, once.

example: python3 scripts/rooftrace.py setup
"""


def keep_compiled_code() -> None:
    """Let Python and the templates keep compiled code in the user's cache folder; without one, nothing is kept."""
    try:
        str(LAUNCHER).encode()  # a name that is no text has no place among the templates' keys
        cache = environments.cache_folder()
        bytecode = cache / "bytecode"
        bytecode.mkdir(parents=True, exist_ok=True)
    except (OSError, UnicodeError, environments.Unavailable):
        return
    if os.access(bytecode, os.W_OK):
        sys.pycache_prefix = str(bytecode)
        sys.dont_write_bytecode = False
        os.environ.setdefault(COMPILED_TEMPLATES, str(cache / "templates"))


def run_here() -> int:
    """Run the command in this process."""
    from importlib import import_module

    keep_compiled_code()
    code: int = import_module("rooftrace.cli").main()
    return code


def hand_over(python: Path, arguments: list[str]) -> int:
    """Run the command in another interpreter; does not return on POSIX.

    Always isolated: a ``PYTHONPATH`` meant for other programs would put their packages before our own.
    """
    flags = ["-I", "-B", *(["-X", "utf8"] if sys.flags.utf8_mode else [])]
    command = [str(python), *flags, str(LAUNCHER), *arguments]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", HANDED_OVER: "1"}
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the caller
            stream.flush()
    if os.name == "posix":
        os.execve(command[0], command, variables)  # noqa: S606 - our own interpreter, no shell wanted
    import subprocess
    from contextlib import suppress

    process = subprocess.Popen(command, env=variables)
    while True:
        with suppress(KeyboardInterrupt):  # the command's too, and it tells
            return process.wait()


def setup(arguments: list[str]) -> int:
    """Make the environment, even where this interpreter would do, and print its folder."""
    if arguments in (["-h"], ["--help"]):
        tell(sys.stdout, SETUP_HELP)
        return 0
    if arguments:
        tell(sys.stderr, f"error: `setup` takes no argument: `{arguments[0]}`\n\nhint: Leave it out\n")
        return EXIT_USAGE
    tidy_up_when_interrupted()
    folder = environments.provide(environments.runtime_requirements(), verbose=True)
    tell(sys.stdout, f"{folder}\n")
    return 0


def tell(stream: "TextIO | None", text: str) -> None:
    """Write in UTF-8 whatever the locale, names of files as they are; nothing where nobody reads it."""
    if stream is None:  # closed by the caller
        return
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="surrogateescape")
    try:
        stream.write(text)
        stream.flush()
    except OSError:  # its reader has gone (`| head`), and the interpreter's last flush must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tidy_up_when_interrupted() -> None:
    """Let interrupts be exceptions, since what is half made has to be taken away again."""
    for number in INTERRUPTS:
        if signal.getsignal(number) is end_at_once:
            signal.signal(number, interrupted)


def interrupted(number: int, frame: "FrameType | None") -> None:  # noqa: ARG001 - as a handler is called
    """Raise the first interrupt; others would only interrupt the tidying up."""
    ignore_interrupts()
    raise KeyboardInterrupt(number)


def ignore_interrupts() -> None:
    """What is left to do is short."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


def calibrate(arguments: list[str]) -> int:
    """Measure here, where the user's torch is; another start reads the file back where the dependencies are."""
    from importlib import import_module

    read_back = [sys.executable, "-B", str(LAUNCHER), "platforms"]
    code: int = import_module("rooftrace_calibrate.command").main(arguments, read_back)
    return code


def start(arguments: list[str]) -> int:
    """Run one command where its dependencies are."""
    if arguments[:1] == ["setup"]:
        return setup(arguments[1:])
    if arguments[:1] == ["calibrate"]:
        return calibrate(arguments[1:])
    requirements = environments.runtime_requirements()
    was_handed_over = os.environ.pop(HANDED_OVER, None) is not None
    if was_handed_over or environments.is_running_in_own(requirements) or environments.is_satisfied(requirements):
        return run_here()
    tidy_up_when_interrupted()
    try:
        environment = environments.provide(requirements, verbose=False)
    except environments.Unavailable:
        other = environments.ready_for_another_python(requirements)
        if other is None:
            raise
        environment = other
    return hand_over(environments.python_of(environment), arguments)


def main() -> int:
    """Exit code of the command; 69 with an error and a hint where it cannot run at all."""
    try:
        return start(sys.argv[1:])
    except environments.Unavailable as error:
        refuse(str(error), error.hint)
        return EXIT_UNAVAILABLE
    except KeyboardInterrupt as stop:
        ignore_interrupts()
        tell(sys.stderr, "error: interrupted\n")
        return 128 + int(stop.args[0] if stop.args else signal.SIGINT)


def refuse(what: str, hint: str) -> None:
    """Say why the command cannot run here, and what helps."""
    from shlex import quote

    python = "py -3" if os.name == "nt" else "python3"
    outside = f"un `{python} {quote(str(LAUNCHER))} setup` once outside the sandbox, with a network"
    tell(sys.stderr, f"error: {what}\n\nhint: {f'{hint}, or r{outside}' if hint else f'R{outside}'}\n")


if __name__ == "__main__":
    sys.exit(main())
