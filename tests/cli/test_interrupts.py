"""Interrupts, several processes at once and full disks: real processes, which leave a run whole or as it was."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rooftrace.cli import main
from tests.cli.conftest import EXAMPLE, LAUNCHER
from tests.cli.test_failures import WITH_LITTLE_ROOM
from tests.golden_runs.cases import gpu_training
from tests.workflow.prose import prepared_run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, limits and locks as POSIX has them")
INTERRUPTED = "error: interrupted; what was there is kept: run the command again to go on\n"
# Tells when the interpreter is up, so that the interrupt meets this program and not Python's own start.
READY = "import sys, rooftrace.cli; print('up', flush=True); sys.exit(rooftrace.cli.main())"


def begin(variables, *arguments: str | Path, program=("-c", READY)) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        env=dict(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupted(variables, after_s: float, *arguments: str | Path) -> tuple[int, str]:
    """Exit code and stderr of a command whose whole group of processes gets Ctrl-C after a while."""
    process = begin(variables, *arguments)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def duration(variables, *arguments: str | Path) -> float:
    started = time.monotonic()
    process = begin(variables, *arguments)
    process.communicate(timeout=240)
    assert process.returncode == 0
    return time.monotonic() - started


def contents(run: Path) -> dict[str, bytes]:
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def test_an_interrupt_at_any_time_leaves_no_run_or_a_whole_one(variables, tmp_path, capsys) -> None:
    whole = duration(variables, "prepare", EXAMPLE, "-o", tmp_path / "first", "-q")
    moments = random.Random(7)  # noqa: S311
    codes = set()
    shares = [0.1, 0.5, moments.uniform(0.1, 1), moments.uniform(0.1, 1)]  # not 0: the program of `READY` ends there
    for number, share in enumerate(shares):
        after_s = share * whole
        run = tmp_path / f"run{number}"
        code, err = interrupted(variables, after_s, "prepare", EXAMPLE, "-o", run, "-q")
        codes.add(code)
        assert (code, err.count("Traceback")) in ((130, 0), (0, 0))
        assert err.endswith(INTERRUPTED) == (code == 130)
        assert not run.exists() or main(["check", str(run)]) == 0
    capsys.readouterr()
    assert 130 in codes
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_interrupt_of_a_second_analysis_keeps_the_first_or_replaces_it(variables, tmp_path, capsys) -> None:
    run = tmp_path / "run"
    whole = duration(variables, "analyze", EXAMPLE, "-o", run, "-q")
    before = contents(run)
    moments = random.Random(11)  # noqa: S311
    for _ in range(3):
        code, err = interrupted(variables, whole * moments.uniform(0.4, 1.0), "analyze", EXAMPLE, "-o", run, "-q")
        assert code in (0, 130)
        assert "Traceback" not in err
        assert contents(run) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_interrupted_report_can_be_written_again(variables, tmp_path, capsys) -> None:
    run = prepared_run(tmp_path)
    whole = duration(variables, "report", run)
    moments = random.Random(13)  # noqa: S311
    for _ in range(3):
        code, err = interrupted(variables, moments.uniform(0, whole), "report", run)
        assert code in (0, 130)
        assert "Traceback" not in err

    assert main(["report", str(run)]) == 0
    assert main(["check", str(run)]) == 0
    assert main(["next", str(run), "--resume"]) == 0
    assert [path for path in run.rglob(".new.*")] == []
    capsys.readouterr()


def test_the_launcher_is_interrupted_without_a_traceback(variables, tmp_path) -> None:
    moments = random.Random(17)  # noqa: S311
    for _ in range(4):
        process = begin(variables, "analyze", EXAMPLE, "-o", tmp_path / "run", program=(str(LAUNCHER),))
        time.sleep(0.15 + moments.uniform(0, 0.5))
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, 130)
        assert "Traceback" not in err


AT_WORK = """
import sys, time, rooftrace.cli, rooftrace.workflow.run as run
def wait(*arguments, **options):
    print('at work', flush=True)
    time.sleep(60)
run.{stage} = wait
sys.exit(rooftrace.cli.main())
"""


def stopped(variables, stage: str, signals: tuple[int, ...], *arguments: str | Path) -> tuple[int, str]:
    """Exit code and stderr of a command, its process alone signalled while it is at a stage; no child outlives it."""
    process = begin(variables, *arguments, program=("-c", AT_WORK.format(stage=stage)))
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    for number in signals:
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    return process.returncode, err


LOADING = """
import pathlib, sys, time, rooftrace.cli, rooftrace.stretches as stretches
stretches.processors = lambda: 2
stretches._LEAST_AHEAD, stretches._FIRST = 1, 1
stretches._HELPER = pathlib.Path(sys.argv.pop())
class Slow:
    def find_spec(self, name, path, target=None):
        if name == 'rooftrace.cli.outcome':
            print('at work', flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
sys.exit(rooftrace.cli.main())
"""


def test_an_interrupt_while_modules_are_loaded_ends_who_reads_ahead(variables, tmp_path) -> None:
    helper = tmp_path / "helper.py"
    up = tmp_path / "up"
    helper.write_text(f"import pathlib, time\npathlib.Path({str(up)!r}).touch()\ntime.sleep(60)\n")
    trace = gpu_training().write(tmp_path / "a.json", "plain")

    process = begin(variables, "analyze", trace, "-o", tmp_path / "run", helper, program=("-c", LOADING))
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    for _ in range(100):
        time.sleep(0 if up.exists() else 0.1)
    assert up.exists()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (143, INTERRUPTED)
    assert is_empty(process.pid)


def is_empty(group: int) -> bool:
    """Whether a group of processes has no member any more; the system takes a moment to take a killed one away."""
    for _ in range(50):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ((signal.SIGINT,), 130),  # 128 + 2
        ((signal.SIGTERM,), 143),  # 128 + 15
        ((signal.SIGHUP,), 129),  # 128 + 1
        ((signal.SIGTERM, signal.SIGTERM, signal.SIGTERM), 143),
    ],
    ids=["INT", "TERM", "HUP", "TERM three times"],
)
def test_a_command_that_is_asked_to_end_takes_away_what_it_made(variables, tmp_path, signals, code) -> None:
    outcome = stopped(variables, "write_report", signals, "analyze", EXAMPLE, "-o", tmp_path / "run", "-q")

    assert outcome == (code, INTERRUPTED)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["TERM", "HUP"])
def test_processes_that_read_ahead_end_with_their_command(variables, tmp_path, number) -> None:
    # 40 MB are divided among the processors, where there are several
    (tmp_path / "a.json").write_bytes(gpu_training().json() + b" " * 40_000_000)

    code, err = stopped(variables, "read_trace", (number,), "analyze", tmp_path / "a.json", "-o", tmp_path / "run")

    assert (code, err) == (128 + number, INTERRUPTED)


def test_what_whoever_started_it_wants_ignored_is_ignored(variables, tmp_path) -> None:
    nohup = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{AT_WORK.format(stage='write_report')}"
    process = begin(variables, "analyze", EXAMPLE, "-o", tmp_path / "run", "-q", program=("-c", nohup))
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"

    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


@pytest.mark.parametrize("inside", [False, True], ids=["beside the run", "inside it"])
def test_what_a_killed_command_left_is_gone_after_the_next(variables, tmp_path, call, monkeypatch, inside) -> None:
    run = tmp_path / "run"
    if inside:
        run.mkdir()
        monkeypatch.chdir(run)
    code, _ = stopped(variables, "write_report", (signal.SIGKILL,), "analyze", EXAMPLE, "-o", run, "-q")
    left = [path.name for path in (run if inside else tmp_path).iterdir()]
    assert (code, len(left)) == (-9, 1)
    assert left[0].startswith(".run.rooftrace-new-")

    assert call("analyze", EXAMPLE, "-o", run, "-q").code == 0

    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []
    assert call("check", run).code == 0


def test_of_two_processes_that_write_one_run_the_last_one_stays_whole(variables, tmp_path, capsys) -> None:
    gpu_training().write(tmp_path / "a.json", "plain")
    other = gpu_training()
    other.kernel("slow", 900, 50)
    other.write(tmp_path / "b.json", "plain")
    run = tmp_path / "run"
    names = [name for _ in range(3) for name in ("a", "b")]

    processes = [begin(variables, "prepare", tmp_path / f"{name}.json", "-o", run, "-q") for name in names]
    outcomes = [(process.communicate(timeout=240)[1], process.returncode) for process in processes]

    assert [code for _, code in outcomes] == [0] * 6, outcomes
    assert main(["check", str(run)]) == 0
    capsys.readouterr()
    whole = []
    for name in ("a", "b"):
        main(["prepare", str(tmp_path / f"{name}.json"), "-o", str(tmp_path / name), "-q"])
        whole.append(contents(tmp_path / name))
    capsys.readouterr()
    assert contents(run) in whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.json", "b", "b.json", "run"]


def test_a_report_written_while_the_run_is_replaced_mixes_nothing(variables, tmp_path, capsys) -> None:
    run = prepared_run(tmp_path)
    other = gpu_training()
    other.kernel("slow", 900, 50)
    trace = other.write(tmp_path / "b.json", "plain")

    processes = [
        begin(variables, *words)
        for _ in range(3)
        for words in (("report", run), ("prepare", trace, "-o", run, "-q"), ("next", run, "--json"))
    ]
    outcomes = [(process.communicate(timeout=240)[1], process.returncode) for process in processes]

    assert [outcome for outcome in outcomes if outcome[1] not in (0, 3) or "Traceback" in outcome[0]] == []
    assert main(["check", str(run)]) == 0
    capsys.readouterr()


def test_a_report_without_room_changes_nothing(start, variables, tmp_path) -> None:
    run = prepared_run(tmp_path)
    (run / "prose").mkdir(exist_ok=True)
    before = contents(run)

    outcome = start("report", run, program=("-c", WITH_LITTLE_ROOM))

    expected = f"error: cannot write `{run}`: File too large\n\nhint: Free some room, then run the command again\n"
    assert (outcome.err, outcome.out, outcome.code) == (expected, "", 2)
    assert contents(run) == before
    assert main(["check", str(run)]) == 0


@pytest.mark.parametrize("name", ["evidence", "findings", "plots", "prose", "tasks"])
def test_nothing_is_written_through_a_link_in_a_run(call, tmp_path, name) -> None:
    run = prepared_run(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    (run / name).rename(elsewhere) if (run / name).is_dir() else elsewhere.mkdir()
    (run / name).symlink_to(elsewhere)
    before = contents(elsewhere)

    outcome = call("report", run)

    expected = f"error: `{run / name}` is a link; nothing was written\n"
    assert (outcome.err.split("\n\n")[0] + "\n", outcome.code) == (expected, 2)
    assert contents(elsewhere) == before
    # a new analysis takes the link away and leaves what it points to
    assert call("prepare", tmp_path / "trace.json", "-o", run, "--platform", "h100-sxm").code == 0
    assert not (run / name).is_symlink()
    assert contents(elsewhere) == before
    assert call("check", run).code == 0


def test_a_file_of_a_run_that_is_a_link_is_replaced_and_not_followed(call, tmp_path) -> None:
    run = prepared_run(tmp_path)
    mine = tmp_path / "mine.txt"
    mine.write_text("years of work", encoding="utf-8")
    for name in ("analysis.md", "report.json", "manifest.json", "state.json"):
        shutil.copy(run / name, tmp_path / name)
        (run / name).unlink()
        (run / name).symlink_to(mine if name == "analysis.md" else tmp_path / name)
    kept = {name: (tmp_path / name).read_bytes() for name in ("report.json", "manifest.json", "state.json")}

    assert call("report", run).code == 0

    assert mine.read_text(encoding="utf-8") == "years of work"
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
    assert call("check", run).code == 0


def test_a_lock_that_is_a_link_is_not_followed(call, tmp_path) -> None:
    run = prepared_run(tmp_path)
    (run / "tasks/.state.lock").unlink(missing_ok=True)
    (run / "tasks/.state.lock").symlink_to(tmp_path / "made elsewhere")

    outcome = call("next", run)

    assert outcome.code == 2
    assert outcome.err.startswith(f"error: cannot write `{run}`: ")
    assert not (tmp_path / "made elsewhere").exists()
