"""Where a run goes: never over what is not ours, and never over the run of another file."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from rooftrace.cli import main
from rooftrace.cli.analyze import default_run
from rooftrace.errors import UsageError
from rooftrace.workflow.folder import new_folder, place_of, refuse_foreign_folder
from tests.golden_runs.cases import cpu_only, gpu_training


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    gpu_training().write(tmp_path / "one/trace.json", "plain")
    cpu_only().write(tmp_path / "two/trace.json", "plain")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *arguments: str) -> tuple[str, str]:
    assert main([*arguments, "-q"]) == 0
    printed = capsys.readouterr()
    return printed.out.strip(), printed.err


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_another_file_of_the_same_name_has_a_folder_of_its_own(here, capsys) -> None:
    first, _ = run(capsys, "analyze", "one/trace.json")
    before = (here / first).read_bytes()

    second, told = run(capsys, "analyze", "two/trace.json")

    own = f"rooftrace-runs/trace-{digest(here / 'two/trace.json')[:8]}"
    assert (first, second) == ("rooftrace-runs/trace/analysis.md", f"{own}/analysis.md")
    assert told.startswith(f"note: `rooftrace-runs/trace` is the run of another file; this one goes to `{own}`\n")
    assert (here / first).read_bytes() == before
    assert run(capsys, "analyze", "two/trace.json")[0] == second  # and goes there again
    assert run(capsys, "prepare", "two/trace.json")[0] == own


def test_the_same_file_goes_where_it_went_wherever_it_lies_now(here, capsys) -> None:
    first, _ = run(capsys, "analyze", "one/trace.json")
    (here / "one/trace.json").rename(here / "trace.json")

    again, told = run(capsys, "analyze", "trace.json", "--steps", "1")

    assert again == first
    assert "note:" not in told


def test_a_folder_that_was_asked_for_is_taken_whatever_run_it_holds(here, capsys) -> None:
    run(capsys, "analyze", "one/trace.json", "-o", "run")

    assert run(capsys, "analyze", "two/trace.json", "-o", "run")[0] == "run/analysis.md"


def test_comparisons_of_other_files_have_folders_of_their_own(here, capsys) -> None:
    gpu_training().write(here / "two/trace.json", "gzip")
    gpu_training().write(here / "three.json", "zip")
    first, _ = run(capsys, "compare", "one/trace.json", "three.json")
    same, _ = run(capsys, "compare", "one/trace.json", "three.json")
    second, _ = run(capsys, "compare", "two/trace.json", "three.json")

    names = [digest(here / name)[:8] for name in ("two/trace.json", "three.json")]
    assert Path(first).parent == Path(same).parent == Path("rooftrace-runs/trace_vs_three")
    assert Path(second).parent == Path(f"rooftrace-runs/trace_vs_three-{names[0]}-{names[1]}")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_no_run_is_left_to_be_refused(tmp_path, content) -> None:
    trace = gpu_training().write(tmp_path / "a.json", "plain")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/manifest.json").write_bytes(content)

    assert place_of(tmp_path / "run", trace) == tmp_path / "run"
    with pytest.raises(UsageError, match="is not a run of rooftrace"):
        refuse_foreign_folder(tmp_path / "run")


def test_force_writes_beside_what_a_folder_holds(here, capsys) -> None:
    (here / "mine").mkdir()
    (here / "mine/thesis.tex").write_text("years", encoding="utf-8")
    (here / "mine/data").mkdir()
    (here / "mine/data/a.bin").write_bytes(b"1")

    for _ in range(2):  # the second time it is a run with other things in it
        run(capsys, "analyze", "one/trace.json", "-o", "mine", "--force")
        assert (here / "mine/thesis.tex").read_text(encoding="utf-8") == "years"
        assert (here / "mine/data/a.bin").read_bytes() == b"1"
        assert main(["check", "mine"]) == 0
        assert main(["analyze", "one/trace.json", "-o", "mine"]) == 2
        assert "--force to write the run into it" in capsys.readouterr().err
    assert not [path for path in (here / "mine").iterdir() if path.name.startswith(".")]


def test_force_replaces_no_file_by_a_folder(here, capsys) -> None:
    assert main(["analyze", "one/trace.json", "-o", "one/trace.json", "--force"]) == 2
    assert capsys.readouterr().err.startswith("error: `one/trace.json` exists and is not a folder\n")


def test_a_link_to_a_run_is_followed_once_and_kept(here, capsys) -> None:
    run(capsys, "analyze", "one/trace.json", "-o", "real")
    (here / "link").symlink_to("real")

    run(capsys, "analyze", "two/trace.json", "-o", "link")

    assert (here / "link").is_symlink()
    assert place_of(here / "real", here / "two/trace.json") == here / "real"


@pytest.mark.skipif(os.name != "posix", reason="masks are POSIX's")
@pytest.mark.parametrize(("mask", "folder", "file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_the_users_mask_decides_who_may_read_a_run(here, capsys, mask, folder, file) -> None:
    before = os.umask(mask)
    try:
        run(capsys, "analyze", "one/trace.json", "-o", "run")
    finally:
        os.umask(before)

    assert stat.S_IMODE((here / "run").stat().st_mode) == folder
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (here / "run").rglob("*") if path.is_file()}
    assert modes == {file}


def test_a_run_that_another_process_makes_meanwhile_is_replaced(tmp_path) -> None:
    target = tmp_path / "run"
    with new_folder(target) as mine:
        (mine / "a").write_text("mine", encoding="utf-8")
        target.mkdir()
        (target / "a").write_text("theirs", encoding="utf-8")

    assert (target / "a").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("nul.json", "_nul"),
        ("CON.trace.json.gz", "_CON"),
        ("com1.json", "_com1"),
        ("aux.1.json", "_aux.1"),
        ("lpt\u00b2.json", "_lpt\u00b2"),
    ],
)
def test_no_folder_bears_the_name_of_a_device_of_windows(name, folder) -> None:
    assert default_run(Path(name)).name == folder
