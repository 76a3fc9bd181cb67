"""Interpreters and places that a user may have: flags of Python, locales, folders, homes; the bytes are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import LAUNCHER, ROOT
from tests.golden_runs.cases import gpu_training


def contents(run: Path) -> dict[str, bytes]:
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    return gpu_training().write(tmp_path_factory.mktemp("trace") / "a.json", "plain")


@pytest.fixture(scope="module")
def usual(trace, start, tmp_path_factory) -> dict[str, bytes]:
    run = tmp_path_factory.mktemp("usual") / "run"
    assert start("analyze", trace, "-o", run, "-q", program=(str(LAUNCHER),)).code == 0
    return contents(run)


@pytest.mark.parametrize(
    "flags",
    [("-I",), ("-O",), ("-OO",), ("-W", "error"), ("-X", "dev", "-W", "error"), ("-X", "utf8=0"), ("-E", "-s", "-B")],
    ids=" ".join,
)
def test_flags_of_the_interpreter_change_nothing(start, trace, usual, tmp_path, flags) -> None:
    outcome = start("analyze", trace, "-o", tmp_path / "run", "-q", program=(*flags, str(LAUNCHER)))

    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'run/analysis.md'}\n")
    assert "Warning" not in outcome.err
    assert contents(tmp_path / "run") == usual
    assert start("check", tmp_path / "run", program=(*flags, str(LAUNCHER))).code == 0


@pytest.mark.parametrize(
    "more",
    [
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1:strict"},
        {"HOME": "/dev/null/nobody", "ROOFTRACE_CACHE": "", "XDG_CACHE_HOME": ""},
        {"HOME": "/proc", "ROOFTRACE_CACHE": "/dev/null/cache"},
        {"HOME": "", "USERPROFILE": "", "ROOFTRACE_CACHE": ""},
        {"TERM": "dumb", "COLUMNS": "0"},
        {"TMPDIR": "/nowhere", "TEMP": "/nowhere", "TMP": "/nowhere"},
        {"NO_COLOR": "1", "PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"},
    ],
    ids=lambda more: " ".join(more),
)
def test_the_environment_changes_nothing(start, trace, usual, tmp_path, more) -> None:
    if os.name != "posix" and "HOME" in more:
        pytest.skip("a home of POSIX")
    outcome = start("analyze", trace, "-o", tmp_path / "run", program=(str(LAUNCHER),), **more)

    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'run/analysis.md'}\n")
    assert "µs" in outcome.err  # `span 802.0 µs`
    assert contents(tmp_path / "run") == usual


@pytest.mark.parametrize(
    "name", ["with a space", "模型 é", "a\nb", 'quote\'s "two"', "-dash", "100% $HOME `x`", "a;b&c|d"]
)
def test_folders_may_bear_any_name(start, trace, usual, tmp_path, name) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "a.json").write_bytes(trace.read_bytes())

    outcome = start("prepare", "a.json", "-q", cwd=folder, program=(str(LAUNCHER),))

    assert (outcome.code, outcome.out) == (0, "rooftrace-runs/a\n")
    made = contents(folder / "rooftrace-runs/a")
    assert {path: made[path] for path in usual if path.startswith("evidence/")} == {
        path: data for path, data in usual.items() if path.startswith("evidence/")
    }
    command = outcome.err.rpartition("\nnext: ")[2].strip().removeprefix("python3 ")
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" {command}'], cwd=ROOT, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_nothing_is_written_beside_a_trace_or_into_a_home(start, trace, tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()

    outcome = start(
        "analyze", trace, "-o", tmp_path / "run", cwd=home, program=(str(LAUNCHER),), HOME=str(home), XDG_CACHE_HOME=""
    )

    assert outcome.code == 0
    assert list(home.rglob("*")) == []
    assert [path.name for path in trace.parent.iterdir()] == ["a.json"]


@pytest.mark.skipif(os.name != "posix", reason="a working folder cannot be deleted elsewhere")
def test_where_the_working_folder_was_deleted_a_run_goes_where_it_is_asked_to(
    variables, trace, usual, tmp_path
) -> None:
    def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "gone").mkdir()
        command = f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && exec "$@"'
        words = ["sh", "-c", command, "sh", sys.executable, str(LAUNCHER), *arguments]
        return subprocess.run(words, env=dict(variables), capture_output=True, text=True, check=False)

    given, default = (
        launch("analyze", str(trace), "-q", "-o", str(tmp_path / "run")),
        launch("analyze", str(trace), "-q"),
    )

    assert given.returncode == 0, given.stderr
    assert contents(tmp_path / "run") == usual
    assert (default.returncode, default.stderr) == (
        2,
        "error: cannot write `rooftrace-runs/a`: No such file or directory\n\n"
        "hint: Give a folder you may write to with -o\n",
    )
    cut = launch("cut", str(trace), "--steps", "1", "-o", str(tmp_path / "b.json"))
    assert cut.returncode == 0, cut.stderr


@pytest.mark.skipif(os.name != "posix", reason="streams are closed as POSIX does")
def test_prose_from_a_closed_stream_is_told(variables, trace, tmp_path) -> None:
    def shell(command: str) -> subprocess.CompletedProcess[str]:
        whole = f'"{sys.executable}" "{LAUNCHER}" {command}'
        return subprocess.run(["sh", "-c", whole], env=dict(variables), capture_output=True, text=True, check=False)

    assert shell(f'prepare "{trace}" -q -o "{tmp_path}/run" <&-').returncode == 0
    done = shell(f'submit "{tmp_path}/run" gemm <&-')

    assert (done.returncode, done.stderr) == (
        3,
        "error: stdin is closed\n\nhint: Give the prose on stdin, or the file that holds it\n",
    )
