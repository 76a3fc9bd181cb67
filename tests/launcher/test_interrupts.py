"""An interrupt while the environment is made: nothing of it stays, no installer goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.launcher.conftest import Pack, finish, write_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
# Tells that it is at work and which processes it is made of, then would install for a minute.
SLOW_UV = """#!/bin/sh
/bin/sleep 60 &
echo $$ $! > "{log}.tmp"
/bin/mv "{log}.tmp" "{log}"
wait
"""


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or dead and not yet buried by the system."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def at_work(pack: Pack) -> list[int]:
    """The processes of the installer, once it runs."""
    for _ in range(300):
        if (pack.path / "pids").exists():
            return [int(word) for word in (pack.path / "pids").read_text(encoding="utf-8").split()]
        time.sleep(0.1)
    pytest.fail("the installer did not start")


@pytest.mark.parametrize("command", ["setup", "analyze"])
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["INT", "TERM", "HUP"],
)
def test_what_is_half_made_is_taken_away_and_the_installer_ended(
    pack: Pack, command: str, number: int, code: int
) -> None:
    write_program(pack.path / "uv", SLOW_UV.format(log=pack.path / "pids"))
    process = pack.popen(command)
    pids = at_work(pack)

    process.send_signal(number)  # to it alone, as `kill` does
    process.send_signal(number)  # and a closed terminal twice
    outcome = finish(process)

    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.endswith("error: interrupted\n")
    assert "Traceback" not in outcome.err
    assert all(has_ended(pid) for pid in pids)
    assert list(pack.cache.iterdir()) == []


def test_what_was_killed_is_swept_away_by_the_next_run(pack: Pack) -> None:
    fast = (pack.path / "uv").read_text(encoding="utf-8")
    write_program(pack.path / "uv", SLOW_UV.format(log=pack.path / "pids"))
    process = pack.popen("x")
    pids = at_work(pack)
    process.kill()
    process.communicate()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert len(list(pack.cache.iterdir())) == 2  # a lock and what was half made

    write_program(pack.path / "uv", fast)
    outcome = pack.run("x")

    assert outcome.code == 7
    assert sorted(path.name for path in pack.cache.iterdir()) == sorted([pack.environment().name, "bytecode"])


def test_an_interrupt_that_is_to_be_ignored_is_ignored(pack: Pack) -> None:
    write_program(pack.path / "uv", SLOW_UV.format(log=pack.path / "pids"))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does; a child inherits it
    try:
        process = pack.popen("x")
    finally:
        signal.signal(signal.SIGHUP, before)
    at_work(pack)

    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.terminate()
    assert finish(process).code == 143
