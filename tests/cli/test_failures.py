"""What goes wrong outside the command line: permissions, a full disk, an interrupt, a bug of this program."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLE, Outcome
from tests.golden_runs.cases import gpu_training

NOBODY = 65534
# Everything is loaded first: an unprivileged user may not read the folder of the interpreter.
AS_NOBODY = f"""
import os, pathlib, sys, tempfile, traceback
import rooftrace.cli.analyze, rooftrace.cli.parser
if os.geteuid() == 0:
    rooftrace.cli.parser.parse(["explain"])
    with tempfile.TemporaryDirectory() as folder:
        rooftrace.workflow.analyze(pathlib.Path("a.json"), pathlib.Path(folder) / "run")
    try:
        os.setgroups([])
        os.setgid({NOBODY})
        os.setuid({NOBODY})
    except OSError:
        sys.exit(77)
sys.exit(rooftrace.cli.main(sys.argv[1:]))
"""
WITH_LITTLE_ROOM = """
import resource, sys
import rooftrace.cli
sys.dont_write_bytecode = True  # the import system keeps what the limit cut off
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
sys.exit(rooftrace.cli.main(sys.argv[1:]))
"""
posix = pytest.mark.skipif(os.name != "posix", reason="permissions and limits are tested as POSIX has them")


@pytest.fixture
def open_folder():
    """A folder that every user can reach, with a trace that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="rooftrace-"))
    folder.chmod(0o755)
    trace = gpu_training().write(folder / "a.json", "plain")
    trace.chmod(0o644)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | stat.S_IRWXU)
    shutil.rmtree(folder)


def as_nobody(start, *arguments: str, cwd: Path) -> Outcome:
    outcome: Outcome = start(*arguments, cwd=cwd, program=("-c", AS_NOBODY))
    if outcome.code == 77:
        pytest.skip("privileges cannot be dropped here")
    return outcome


@posix
def test_a_trace_that_may_not_be_read(start, open_folder):
    (open_folder / "a.json").chmod(0o000)
    (open_folder / "out").mkdir()
    (open_folder / "out").chmod(0o777)

    outcome = as_nobody(start, "analyze", "a.json", "-o", "out/run", cwd=open_folder)

    expected = "error: cannot read `a.json`: Permission denied\n\nhint: Check the file's permissions\n"
    assert (outcome.err, outcome.out, outcome.code) == (expected, "", 3)
    assert list((open_folder / "out").iterdir()) == []


@posix
@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        ((), "rooftrace-runs/a"),
        (("-o", "run"), "run"),
        (("-o", "new/run"), "new/run"),
        (("-o", "shut/run"), "shut/run"),
    ],
    ids=["default", "given", "given with its parent", "in a folder nobody may enter"],
)
def test_an_output_folder_that_may_not_be_written(start, open_folder, arguments, folder):
    (open_folder / "shut").mkdir(mode=0o700)
    before = sorted(open_folder.rglob("*"))

    outcome = as_nobody(start, "analyze", "a.json", *arguments, cwd=open_folder)

    expected = f"error: cannot write `{folder}`: Permission denied\n\nhint: Give a folder you may write to with -o\n"
    assert (outcome.err, outcome.out, outcome.code) == (expected, "", 2)
    assert sorted(open_folder.rglob("*")) == before


@posix
def test_a_folder_may_be_filled_where_nothing_can_be_made_beside_it(start, open_folder):
    (open_folder / "mine").mkdir()
    (open_folder / "mine").chmod(0o777)

    outcome = as_nobody(start, "analyze", "a.json", "-o", "mine", cwd=open_folder)

    assert (outcome.out, outcome.code) == ("mine/analysis.md\n", 0)
    assert not [path.name for path in (open_folder / "mine").iterdir() if path.name.startswith(".")]


@posix
def test_a_disk_that_fills_up_leaves_nothing(start, tmp_path):
    outcome = start("analyze", EXAMPLE, "-o", tmp_path / "run", program=("-c", WITH_LITTLE_ROOM))

    expected = (
        f"error: cannot write `{tmp_path / 'run'}`: File too large\n\n"
        "hint: Free some room, or give a folder on another disk with -o\n"
    )
    assert (outcome.err, outcome.out, outcome.code) == (expected, "", 2)
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_disk_that_fills_up_keeps_the_run_that_was_there(start, tmp_path, example_run):
    shutil.copytree(example_run, tmp_path / "run")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    outcome = start("analyze", EXAMPLE, "-o", tmp_path / "run", program=("-c", WITH_LITTLE_ROOM))

    assert outcome.code == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_stdout_is_no_bug(variables, example_run):
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "rooftrace", "ops", str(example_run)]
        done = subprocess.run(command, env=variables, stdout=full, stderr=subprocess.PIPE, check=False)

    expected = "error: no room left to write in\n\nhint: Free some, or give another folder with -o\n"
    assert (done.stderr.decode().split("\n", 1)[1], done.returncode) == (expected, 2)  # the first line: `more groups`


def broken(*arguments: object, **options: object) -> None:
    raise ZeroDivisionError("a share of nothing")


BUG = (
    "error: internal error: ZeroDivisionError: a share of nothing "
    f"(test_failures.py:{broken.__code__.co_firstlineno + 1} in broken)\n"
    "\n"
    "hint: Please report it with the command, the version (`rooftrace --version`) and the lines above\n"
)


def test_a_bug_is_told_as_one_without_a_traceback(call, here, monkeypatch):
    gpu_training().write(here / "a.json", "plain")
    monkeypatch.setattr("rooftrace.workflow.run.write_report", broken)
    monkeypatch.delenv("ROOFTRACE_DEBUG", raising=False)

    outcome = call("analyze", "a.json", "-o", "runs/a")

    assert (outcome.err, outcome.out, outcome.code) == (BUG, "", 70)
    assert list((here / "runs").iterdir()) == []


def test_a_developer_sees_the_traceback_of_a_bug(call, here, monkeypatch):
    gpu_training().write(here / "a.json", "plain")
    monkeypatch.setattr("rooftrace.workflow.run.write_report", broken)
    monkeypatch.setenv("ROOFTRACE_DEBUG", "1")

    outcome = call("analyze", "a.json")

    assert outcome.code == 70
    assert outcome.err.startswith("Traceback (most recent call last):\n")
    assert outcome.err.endswith(BUG)


def interrupt(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_leaves_nothing(call, here, monkeypatch):
    gpu_training().write(here / "a.json", "plain")
    monkeypatch.setattr("rooftrace.workflow.run.write_report", interrupt)

    outcome = call("analyze", "a.json", "-o", "runs/a")

    assert (outcome.err, outcome.out, outcome.code) == (
        "error: interrupted; what was there is kept: run the command again to go on\n",
        "",
        130,
    )
    assert list((here / "runs").iterdir()) == []


def exhaust(*arguments: object, **options: object) -> None:
    raise MemoryError


def test_a_machine_without_memory_is_told(call, here, monkeypatch):
    gpu_training().write(here / "a.json", "plain")
    monkeypatch.setattr("rooftrace.workflow.run.rate_kernels", exhaust)

    outcome = call("analyze", "a.json")

    expected = "error: out of memory\n\nhint: Use a machine with more memory, or record fewer steps\n"
    assert (outcome.err, outcome.out, outcome.code) == (expected, "", 70)


def test_a_run_that_was_edited_fails_its_check(call, example_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(example_run, run)
    (run / "analysis.md").write_text("## Appendix\n", encoding="utf-8")

    outcome = call("check", run)

    assert outcome.out == (
        "REP004 analysis.md has the sections ## Appendix: `analysis.md` must have every section once, in order.\n"
        "RUN002 analysis.md was changed: Every file of the manifest must be there with the content that was written; "
        "files are generated, not edited.\n"
    )
    hint = "Run `rooftrace explain CODE` for a code's meaning"
    assert (outcome.err, outcome.code) == (f"error: 2 problems in {run}\n\nhint: {hint}\n", 1)


def test_a_table_that_was_edited_is_not_printed(call, example_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(example_run, run)
    (run / "evidence/ops.csv").write_text("id,name\nop1,mine\n", encoding="utf-8")

    outcome = call("ops", run)

    assert outcome.err == (
        "error: `evidence/ops.csv` does not match its table\n"
        "  evidence/ops.csv: the header is id,name\n"
        "\n"
        "hint: Run `rooftrace analyze TRACE -o RUN` to make it again; it is generated and not to be edited\n"
    )
    assert (outcome.out, outcome.code) == ("", 1)
