"""What a user reads where the launcher cannot run the command: whole texts and exit codes."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest

from tests.launcher.conftest import BROKEN_UV, SCRIPTS, Pack, write_program


def test_a_failing_installer_gives_three_lines_and_exit_69(pack: Pack) -> None:
    write_program(pack.path / "uv", BROKEN_UV)
    (pack.wheels / "rooftrace_probe-1.0-py3-none-any.whl").unlink()

    outcome = pack.run("analyze", "trace.json")

    assert (outcome.code, outcome.out) == (69, "")
    assert outcome.err == (
        "error: the Python packages that rooftrace needs cannot be installed here: "
        "No matching distribution found for rooftrace-probe>=1.0\n"
        "\n"
        f"hint: Run `python3 '{pack.launcher}' setup` once outside the sandbox, with a network\n"
    )
    assert list(pack.cache.iterdir()) == []  # nothing half made, no lock left


def test_a_cache_that_cannot_be_written_gives_three_lines_and_exit_69(pack: Pack) -> None:
    pack.cache.write_text("a file where the cache should be", encoding="utf-8")

    outcome = pack.run("analyze", "trace.json")

    assert (outcome.code, outcome.out) == (69, "")
    assert outcome.err == (
        f"error: cannot write in `{pack.cache}`: File exists\n"
        "\n"
        "hint: Set ROOFTRACE_CACHE to a folder that can be written, "
        f"or run `python3 '{pack.launcher}' setup` once outside the sandbox, with a network\n"
    )


def test_setup_refuses_arguments(pack: Pack) -> None:
    outcome = pack.run("setup", "--force")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: `setup` takes no argument: `--force`\n\nhint: Leave it out\n"


def test_setup_help_makes_nothing(pack: Pack) -> None:
    outcome = pack.run("setup", "--help")

    assert (outcome.code, outcome.err, pack.cache.exists()) == (0, "", False)
    assert outcome.out.startswith("usage: rooftrace.py setup\n")


def test_an_old_python_is_told_which_one_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = SCRIPTS / "rooftrace.py"
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))

    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(launcher), run_name="__main__")

    assert exit_.value.code == 69
    assert capsys.readouterr().err == (
        "error: rooftrace needs Python 3.10 or newer; this is 3.9\n"
        "\n"
        f"hint: Run it with a newer one, for example `python3.12 {launcher}`\n"
    )


@pytest.mark.parametrize("minor", [7, 8, 9])
def test_an_old_python_can_read_the_launcher(minor: int) -> None:
    text = (SCRIPTS / "rooftrace.py").read_text(encoding="utf-8")

    ast.parse(text, feature_version=(3, minor))


def test_the_launcher_of_the_repository_finds_its_own_list_of_dependencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROOFTRACE_CACHE", str(tmp_path / "file" / "cache"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["rooftrace.py", "setup"])

    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(SCRIPTS / "rooftrace.py"), run_name="__main__")

    assert exit_.value.code == 69
    assert capsys.readouterr().err.startswith(f"error: cannot write in `{tmp_path}/file/cache`: ")
