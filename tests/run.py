"""All checks of the repository, the ones CI runs: ``python3 tests/run.py [pytest arguments]``.

Needs nothing but Python >= 3.10: the first run makes an environment with the development tools in the user's
cache folder. In order, stopping at the first failure: format, lint, types, schemas, tests; ``--only`` picks a
group. Writes nothing into the checkout. Exit code: that of the failing step; 69 where the tools are missing
and cannot be installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
if sys.version_info < (3, 10):  # noqa: UP036 - the line that an older Python is meant to reach
    raise SystemExit("error: the checks need Python 3.10 or newer\n\nhint: Run them with a newer one")

sys.path.insert(0, str(ROOT / "scripts"))

from rooftrace_launch import environment as environments  # noqa: E402 - found only now

EXIT_UNAVAILABLE = 69
GROUPS = ("lint", "types", "schemas", "tests")


def steps(python: str, cache: Path, pytest_arguments: list[str]) -> list[tuple[str, str, list[str]]]:
    """Group, heading and command of each step, in the order they run."""
    mypy = [python, "-m", "mypy", "--strict", "--cache-dir", str(cache / "mypy")]
    ruff = [python, "-m", "ruff"]
    workers = ["-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadfile"]  # the tests of a file share what they make
    pytest = [python, "-m", "pytest", "-p", "no:cacheprovider", *workers, *pytest_arguments]
    return [
        ("lint", "format", [*ruff, "format", "--check", "--no-cache", "."]),
        ("lint", "lint", [*ruff, "check", "--no-cache", "."]),
        ("types", "types of the package", mypy),
        ("types", "types of the launcher", [*mypy, "scripts/rooftrace.py"]),
        (
            "types",
            "types of this script",
            [*mypy, "tests/run.py", "scripts/rooftrace_launch", "scripts/rooftrace_calibrate"],
        ),
        ("schemas", "schemas", [python, "-m", "rooftrace.contracts.generate", "--check"]),
        ("tests", "tests", pytest),
    ]


def tools_python() -> str:
    """An interpreter with the dependencies and the tools: this one, or that of an environment made for it."""
    requirements = environments.runtime_requirements() + environments.declared("dependency-groups", "dev")
    if environments.is_satisfied(requirements):
        return sys.executable
    return str(environments.python_of(environments.provide(requirements, verbose=True)))


def variables(cache: Path) -> dict[str, str]:
    """The environment of every step: own package first, no file written beside the sources."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "scripts"),
        "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),  # processes that tests start load what others compiled
        "HYPOTHESIS_STORAGE_DIRECTORY": str(cache / "hypothesis"),
    }


def main() -> int:
    """Run the steps; the exit code of the first that fails."""
    parser = argparse.ArgumentParser(
        description="Run all checks of the repository. Further arguments go to pytest.",
        epilog="example: python3 tests/run.py --only tests -k ledger",
        allow_abbrev=False,
    )
    parser.add_argument("--only", choices=GROUPS, help="run one group of checks")
    parser.add_argument("--print-python", action="store_true", help="print the interpreter with the tools, run nothing")
    options, pytest_arguments = parser.parse_known_args()
    try:
        cache: Path = environments.cache_folder() / "checks"
        cache.mkdir(parents=True, exist_ok=True)
        python = tools_python()
    except (environments.Unavailable, OSError) as error:
        print(
            f"error: {error}\n\nhint: Set ROOFTRACE_CACHE to a writable folder; a network is needed once",
            file=sys.stderr,
        )
        return EXIT_UNAVAILABLE
    if options.print_python:
        print(python)
        return 0
    for group, heading, command in steps(python, cache, pytest_arguments):
        if options.only not in (None, group):
            continue
        print(f"== {heading}", flush=True)
        started = time.monotonic()
        code = subprocess.run(command, cwd=ROOT, env=variables(cache), check=False).returncode
        if code != 0:
            print(f"== {heading}: failed with exit code {code}", flush=True)
            return code
        print(f"== {heading}: ok, {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
