"""What Windows and macOS do otherwise, where a test can say so without them."""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest

from rooftrace.cli import main, outcome
from rooftrace.cli.analyze import default_run
from rooftrace.workflow import folder, locks
from rooftrace.workflow.agents import prepare
from rooftrace.workflow.folder import new_folder
from rooftrace.workflow.options import AnalyzeOptions
from tests.golden_runs.cases import gpu_training


class NtOs(SimpleNamespace):
    """The module `os` of this system under the name of the other."""

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)


def test_a_prepared_run_is_replaced_with_no_file_of_it_open(tmp_path, monkeypatch) -> None:
    trace = gpu_training().write(tmp_path / "a.json", "plain")
    run = tmp_path / "run"
    prepare(trace, run, AnalyzeOptions(platform="h100-sxm"), {})
    opened: list[int] = []
    take, rename = os.open, Path.rename

    def noted(path: object, flags: int, *mode: int) -> int:
        descriptor = take(path, flags, *mode)
        opened.append(descriptor)
        return descriptor

    def refuse_with_open_files(self: Path, target: Path) -> Path:
        still = [number for number in opened if is_open_in(number, self)]
        if still:
            raise PermissionError(errno.EACCES, "in use")
        return rename(self, target)

    monkeypatch.setattr(folder, "os", NtOs(name="nt"))
    monkeypatch.setattr(locks, "os", NtOs(name="nt", open=noted))
    monkeypatch.setattr(Path, "rename", refuse_with_open_files)

    prepare(trace, run, AnalyzeOptions(platform="h100-sxm"), {})

    assert opened != []  # the lock of the state was waited for
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "run"]


def is_open_in(descriptor: int, parent: Path) -> bool:
    """Whether a descriptor is that of the lock of a run's state."""
    try:
        return os.path.samestat(os.fstat(descriptor), (parent / "tasks/.state.lock").stat())
    except OSError:
        return False


def test_a_place_is_filled_where_paths_cannot_tell_whether_they_are_mounts(tmp_path, monkeypatch) -> None:
    def unsupported(self: Path) -> bool:
        raise NotImplementedError("Path.is_mount() is unsupported on this system")  # of Python 3.10 and 3.11

    monkeypatch.setattr(Path, "is_mount", unsupported)
    (tmp_path / "run").mkdir()

    with new_folder(tmp_path / "run") as made:
        (made / "a").write_text("mine", encoding="utf-8")

    assert [path.name for path in (tmp_path / "run").iterdir()] == ["a"]


class GoneStream:
    """stdout whose reader has gone, as Windows tells it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.descriptor = os.open(os.devnull, os.O_WRONLY)

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        raise OSError(self.number, os.strerror(self.number))

    def fileno(self) -> int:
        return self.descriptor


@pytest.mark.parametrize(
    ("number", "system", "code"), [(errno.EINVAL, "nt", 0), (errno.EIO, "nt", 70), (errno.EINVAL, "posix", 70)]
)
def test_a_reader_that_has_gone_is_no_bug(monkeypatch, capsys, number, system, code) -> None:
    stream = GoneStream(number)
    monkeypatch.setattr(outcome, "os", NtOs(name=system))
    monkeypatch.setattr(sys, "stdout", stream)

    assert main(["platforms"]) == code
    os.close(stream.descriptor)


def test_a_name_as_macos_spells_it_has_the_folder_of_the_name_as_others_do(tmp_path) -> None:
    composed = "résumé.json"
    decomposed = unicodedata.normalize("NFD", composed)

    assert decomposed != composed
    assert default_run(tmp_path / decomposed) == default_run(tmp_path / composed) == Path("rooftrace-runs/résumé")
