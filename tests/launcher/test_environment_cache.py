"""Locks, damaged and foreign environments; a fake ``uv`` builds, so each case takes milliseconds."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import pytest

from tests.launcher.conftest import Pack, finish

DEAD_PID = 2**22 + 1  # above the largest process id of a 64-bit Linux


def builds(pack: Pack) -> int:
    """How often the fake ``uv`` made an environment."""
    log = pack.path / "log"
    calls = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return sum(call.startswith("venv ") for call in calls)


def make_lock(environment: Path, *, pid: int, host: str, age_s: float = 0.0) -> Path:
    """A lock as another process would hold it, last refreshed ``age_s`` ago."""
    lock = environment.with_name(environment.name + ".lock")
    lock.mkdir(parents=True)
    (lock / "owner").write_text(f"{pid} {host}", encoding="utf-8")
    then = time.time() - age_s
    os.utime(lock, (then, then))
    return lock


@pytest.fixture
def unbuilt(pack: Pack) -> Path:
    """Where the environment would be; nothing is there yet."""
    environment = pack.environment()
    environment.rename(environment.with_name("elsewhere"))
    (pack.path / "log").unlink()
    return environment


def test_setup_prints_the_folder_and_nothing_else_on_stdout(pack: Pack) -> None:
    outcome = pack.run("setup")

    folder = Path(outcome.out.removesuffix("\n"))
    assert (outcome.code, folder.parent, folder.is_dir()) == (0, pack.cache, True)
    assert outcome.err == f"making the environment {folder} (once; about a minute)\n"


def test_setup_again_builds_nothing(pack: Pack) -> None:
    first, second = pack.run("setup"), pack.run("setup")

    assert (builds(pack), second.out, second.err) == (1, first.out, "")


def test_uv_is_told_to_compile_because_no_run_writes_bytecode(pack: Pack) -> None:
    pack.run("setup")

    fill = (pack.path / "log").read_text(encoding="utf-8").splitlines()[1]
    assert fill.startswith("pip install --quiet --compile-bytecode --python ")
    assert fill.endswith(" rooftrace-probe>=1.0")


def test_a_half_made_environment_is_replaced_and_never_used(pack: Pack, unbuilt: Path) -> None:
    python = unbuilt / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 99\n", encoding="utf-8")
    python.chmod(0o755)

    outcome = pack.run("x")

    assert (outcome.code, builds(pack)) == (7, 1)


def test_an_environment_whose_python_was_uninstalled_is_made_anew(pack: Pack) -> None:
    environment = pack.environment()
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to("/nowhere/python")

    outcome = pack.run("x")

    assert (outcome.code, builds(pack)) == (7, 2)


def test_other_requirements_get_an_environment_of_their_own(pack: Pack) -> None:
    before = pack.environment()
    pyproject = pack.root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text(encoding="utf-8").replace(">=1.0", ">=1.1"), encoding="utf-8")

    assert pack.environment() != before


def test_the_lock_of_a_dead_process_is_taken_over(pack: Pack, unbuilt: Path) -> None:
    lock = make_lock(unbuilt, pid=DEAD_PID, host=platform.node())

    outcome = pack.run("x")

    assert (outcome.code, builds(pack), lock.exists()) == (7, 1, False)


def test_a_lock_silent_for_over_ten_minutes_is_taken_over_whoever_holds_it(pack: Pack, unbuilt: Path) -> None:
    lock = make_lock(unbuilt, pid=1, host="another-host", age_s=601)

    outcome = pack.run("x")

    assert (outcome.code, builds(pack), lock.exists()) == (7, 1, False)


@pytest.mark.parametrize(
    ("pid", "host"),
    [
        pytest.param(os.getpid(), platform.node(), id="living process of this host"),
        pytest.param(DEAD_PID, "another-host", id="process of a host that cannot be asked"),
    ],
)
def test_a_held_lock_is_waited_for_and_its_environment_used(pack: Pack, unbuilt: Path, pid: int, host: str) -> None:
    make_lock(unbuilt, pid=pid, host=host)

    process = pack.popen("x")
    time.sleep(1.0)
    was_waiting = process.poll() is None
    unbuilt.with_name("elsewhere").rename(unbuilt)

    assert (was_waiting, finish(process).code, builds(pack)) == (True, 7, 0)


def test_without_an_installer_the_environment_of_another_python_serves(pack: Pack, unbuilt: Path) -> None:
    tag = unbuilt.name.split("-")
    other = unbuilt.with_name("-".join([tag[0], "cpython", "999", *tag[3:]]))
    unbuilt.with_name("elsewhere").rename(other)
    unbuilt.with_name(unbuilt.name + ".lock").write_text("no folder can be made here", encoding="utf-8")

    # the lock cannot be taken, which is how a read-only cache looks
    outcome = pack.run("x")

    assert (outcome.code, builds(pack)) == (7, 0)


def test_what_a_killed_builder_left_of_this_environment_is_deleted_and_nothing_else(pack: Pack, unbuilt: Path) -> None:
    left = {
        f"{unbuilt.name}.new-abcdefgh": (DEAD_PID, platform.node()),
        f"{unbuilt.name}.new-of_other": (DEAD_PID, "another-host"),  # which may be building
        f"{unbuilt.name}.new-of_liver": (os.getpid(), platform.node()),
        "another.new-abcdefgh": (DEAD_PID, platform.node()),
    }
    for name, (pid, host) in left.items():
        unbuilt.with_name(name).mkdir()
        (unbuilt.with_name(name) / "owner").write_text(f"{pid} {host}", encoding="utf-8")
    unbuilt.with_name(f"{unbuilt.name}.old-{'0' * 32}").mkdir()
    unbuilt.with_name(f"{unbuilt.name}.lock.old-{'f' * 32}").mkdir()

    assert pack.run("x").code == 7

    names = {path.name for path in pack.cache.iterdir()} - {"bytecode", "elsewhere", unbuilt.name}
    assert names == set(left) - {f"{unbuilt.name}.new-abcdefgh"}
