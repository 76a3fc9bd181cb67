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

sys.dont_write_bytecode = True  # an installed pack can be read-only, and is never ours to write

EXIT_USAGE = 2
EXIT_UNAVAILABLE = 69
EXIT_INTERRUPTED = 130
LAUNCHER = Path(__file__).resolve()

if sys.version_info < (3, 10):  # noqa: UP036 - the lines that an older Python is meant to reach
    sys.stderr.write(
        f"error: rooftrace needs Python 3.10 or newer; this is {sys.version_info[0]}.{sys.version_info[1]}\n"
        f"\nhint: Run it with a newer one, for example `python3.12 {LAUNCHER}`\n"
    )
    sys.exit(EXIT_UNAVAILABLE)

import signal  # noqa: E402 - after the lines that an older Python is meant to reach


def end_at_once(number, frame):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, ARG001
    """Of an interrupt while modules are loaded: an exception there can crash an interpreter."""
    os.write(2, b"error: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started this wants it ignored
    signal.signal(signal.SIGINT, end_at_once)

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
        cache = environments.cache_folder()
        bytecode = cache / "bytecode"
        bytecode.mkdir(parents=True, exist_ok=True)
    except (OSError, environments.Unavailable):
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
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(command[0], command, variables)  # noqa: S606 - our own interpreter, no shell wanted
    import subprocess

    return subprocess.run(command, env=variables, check=False).returncode


def setup(arguments: list[str]) -> int:
    """Make the environment, even where this interpreter would do, and print its folder."""
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(SETUP_HELP)
        return 0
    if arguments:
        sys.stderr.write(f"error: `setup` takes no argument: `{arguments[0]}`\n\nhint: Leave it out\n")
        return EXIT_USAGE
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(environments.provide(environments.runtime_requirements(), verbose=True))
    return 0


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
    if signal.getsignal(signal.SIGINT) is end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what is half made is taken away again
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
        from shlex import quote

        python = "py -3" if os.name == "nt" else "python3"
        hint = f"Run `{python} {quote(str(LAUNCHER))} setup` once outside the sandbox, with a network"
        sys.stderr.write(f"error: {error}\n\nhint: {hint}\n")
        return EXIT_UNAVAILABLE
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr.write("error: interrupted\n")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
