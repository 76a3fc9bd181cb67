"""Inputs that are no trace: whole texts, exit codes 3 and 4, nothing on stdout, no folder left."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden_runs.cases import gpu_training
from tests.support.trace_builder import zip_of

CHROME = "Give the Chrome trace that torch.profiler wrote (export_chrome_trace)"
WRONG_FILE = "Give the file that torch.profiler wrote"
WROTE_NOTHING = "The profiler wrote nothing; capture again and let it finish writing"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"

# name, content, error, hint; exit code 4
AGAIN = "Record again, while the workload runs, and let the profiler finish writing"
CONTENTS: dict[str, tuple[bytes, str, str | None]] = {
    "empty": (b"", "`x.json` is empty (0 bytes)", WROTE_NOTHING),
    "empty in gzip": (gzip.compress(b"", mtime=0), "`x.json` holds 0 bytes of JSON inside gzip", WROTE_NOTHING),
    "text": (b"hello `world`\n", "`x.json` is not JSON: it starts with `hello .world`", CHROME),
    "escape sequence": (b"\x1b[31mred", "`x.json` is not JSON: it starts with `.[31mred`", CHROME),
    "html": (
        b"<!DOCTYPE html><html>Sign in</html>",
        "`x.json` is an HTML or XML document, not a trace",
        "The download probably returned a web page; fetch the raw file",
    ),
    "lfs pointer": (
        LFS,
        "`x.json` is a Git LFS pointer, not the file itself",
        "Run `git lfs pull` in the repository it comes from",
    ),
    "checkpoint": (
        zip_of({"model/data.pkl": b"\x80\x02}q\x00.", "model/version": b"3\n"}),
        "`x.json` is a PyTorch checkpoint, not a trace",
        "Give the file that torch.profiler wrote (export_chrome_trace)",
    ),
    "pickle": (
        pickle.dumps({"weights": [1, 2]}, protocol=4),
        "`x.json` is a Python pickle (a memory snapshot?), not a trace",
        WRONG_FILE,
    ),
    "zip of other things": (
        zip_of({"notes.txt": b"none"}),
        "`x.json` holds no trace file",
        "Pack the `.json` or `.json.gz` trace itself",
    ),
    "other JSON": (b'{"model": "a"}', "`x.json` is JSON without `traceEvents`", CHROME),
    "no events": (b'{"traceEvents": []}', "`x.json` holds no events", AGAIN),
}


def error(what: str, hint: str | None) -> str:
    return f"error: {what}\n\nhint: {hint}\n" if hint else f"error: {what}\n"


@pytest.mark.parametrize("case", CONTENTS)
def test_a_file_that_is_no_trace_is_told_for_what_it_is(call, here, case):
    content, what, hint = CONTENTS[case]
    (here / "x.json").write_bytes(content)

    outcome = call("analyze", "x.json")

    assert (outcome.err, outcome.out, outcome.code) == (error(what, hint), "", 4)
    assert [path.name for path in here.iterdir()] == ["x.json"]


@pytest.mark.parametrize("command", ["tree", "ops", "ledger"])
def test_the_tables_refuse_it_in_the_same_words(call, here, command):
    (here / "x.json").write_bytes(LFS)

    _, what, hint = CONTENTS["lfs pointer"]
    outcome = call(command, "x.json")
    assert (outcome.err, outcome.out, outcome.code) == (error(what, hint), "", 4)


def test_a_gzip_file_cut_before_its_first_event_holds_none(call, here):
    whole = gzip.compress(b'{"schemaVersion": 1, "traceEvents": [\n' + b" " * 100, mtime=0)
    (here / "x.json.gz").write_bytes(whole[:-12])

    outcome = call("analyze", "x.json.gz")

    assert (outcome.err, outcome.out, outcome.code) == (error("`x.json.gz` holds no events", AGAIN), "", 4)


def make_nothing(folder: Path) -> None:
    """The file is missing."""


def make_unfinished(folder: Path) -> None:
    (folder / "x.json.tmp").write_bytes(b"{")


def make_folder(folder: Path) -> None:
    (folder / "x.json").mkdir()


def make_folder_of_traces(folder: Path) -> None:
    make_folder(folder)
    for rank in (1, 0):
        gpu_training().write(folder / "x.json" / f"rank{rank}.json.gz")


def make_pipe(folder: Path) -> None:
    os.mkfifo(folder / "x.json")


def make_run(folder: Path) -> None:
    make_folder(folder)
    (folder / "x.json" / "manifest.json").write_text("{}", encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "what", "hint"),
    [
        (
            make_nothing,
            "no such file: `x.json`",
            "Give the path of a trace written by torch.profiler, such as `trace.json` or `trace.json.gz`",
        ),
        (
            make_unfinished,
            "no such file: `x.json`",
            "`x.json.tmp` lies beside it: the profiler was stopped while writing; analyse that file",
        ),
        (make_folder, "`x.json` is a directory", "Give the path of one trace file"),
        (make_folder_of_traces, "`x.json` is a directory", "Give one file in it, such as `x.json/rank0.json.gz`"),
        (make_run, "`x.json` is a run, analysed already", "Read `x.json/analysis.md`, or give a trace file"),
        pytest.param(
            make_pipe,
            "`x.json` is a pipe, not a regular file",
            "Write the trace to a file and give its path",
            marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes"),
        ),
    ],
)
def test_a_path_that_is_no_file_is_told_without_waiting(
    call, here, make: Callable[[Path], None], what: str, hint: str
) -> None:
    make(here)
    before = sorted(here.rglob("*"))

    outcome = call("analyze", "x.json")

    assert (outcome.err, outcome.out, outcome.code) == (error(what, hint), "", 3)
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("command", ["check", "ops", "ledger", "tree"])
def test_a_folder_that_is_no_run_is_told(call, here, command):
    (here / "folder").mkdir()

    outcome = call(command, "folder")

    hint = "Give a trace file, or a folder that `analyze` wrote"
    assert (outcome.err, outcome.code) == (error("`folder` is a directory and not a run", hint), 3)


def test_check_takes_neither_a_file_nor_nothing(call, here):
    (here / "x.json").write_bytes(b"{}")

    hint = "Give the folder that `analyze` wrote"
    assert call("check", "x.json").err == error("`x.json` is a file, not a folder", hint)
    assert call("check", "gone").err == error("`gone` does not exist", hint)
    assert call("check", "gone").code == 3


def test_check_of_a_file_that_is_not_of_the_run(call, example_run):
    outcome = call("check", example_run, "notes.md")

    what = f"`notes.md` is no file of the run `{example_run}`"
    files = "analysis.md, evidence/attention.json, evidence/chains.json, …"
    assert (outcome.err, outcome.code) == (error(what, f"Paths are relative to the run's folder: {files}"), 3)
