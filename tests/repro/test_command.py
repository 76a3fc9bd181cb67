"""`repro` reads a run's folder and writes one file."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from rooftrace.cli import repro
from rooftrace.contracts import store
from rooftrace.contracts.chains import ChainsFile
from rooftrace.errors import CheckFailed, InputError, UsageError
from tests.repro.chains import F32, call_chain

GOLDEN = Path(__file__).resolve().parents[1] / "golden_runs" / "gpu_training" / "run"


@pytest.fixture
def folder(tmp_path):
    """A run with one GEMM finding and its call."""
    run = tmp_path / "run"
    shutil.copytree(GOLDEN, run)
    write_chains(run, call_chain("aten::mm", ([4, 6], F32), ([6, 8], F32), op_id="op1"))
    return run


def write_chains(run, *chains):
    file = ChainsFile(chains=list(chains), tool_version="0.1.0", source_sha256="0" * 64)
    store.write_bytes(run / store.CHAINS, store.to_json(file))


def call(folder, finding, output=None, *, as_json=False):
    given = None if output is None else str(output)
    return repro.run(Namespace(folder=str(folder), finding=finding, output=given, json=as_json))


def test_the_script_goes_to_the_file_and_its_path_to_stdout(folder, tmp_path, capsys):
    path = tmp_path / "gemm.py"

    code = call(folder, "gemm.F1", path)

    out, err = capsys.readouterr()
    assert (code, out, err) == (0, f"{path}\n", "rebuilt aten::mm\n")
    compile(path.read_text(encoding="ascii"), path.name, "exec")


def test_without_a_file_the_script_itself_is_printed(folder, capsys):
    call(folder, "gemm.F1")

    out, _ = capsys.readouterr()
    assert out.startswith('#!/usr/bin/env python3\n"""Runs the calls behind gemm.F1 alone')
    compile(out, "script", "exec")


def test_the_same_run_gives_the_same_script(folder, tmp_path):
    call(folder, "gemm.F1", tmp_path / "a.py")
    call(folder, "gemm.F1", tmp_path / "b.py")

    assert (tmp_path / "a.py").read_bytes() == (tmp_path / "b.py").read_bytes()


def test_json_tells_what_is_in_the_script(folder, tmp_path, capsys):
    call(folder, "gemm.F1", tmp_path / "gemm.py", as_json=True)

    assert json.loads(capsys.readouterr().out) == {
        "finding": "gemm.F1",
        "path": str(tmp_path / "gemm.py"),
        "script": None,
        "cases": [{"op_id": "op1", "calls": ["aten::mm"], "compared_with": [], "traced_us": 40.0}],
        "refused": [],
    }


def test_a_script_of_ours_is_replaced_and_a_file_of_the_users_is_not(folder, tmp_path):
    mine, other = tmp_path / "mine.py", tmp_path / "other.py"
    call(folder, "gemm.F1", mine)
    other.write_text("print()\n", encoding="utf-8")

    call(folder, "gemm.F1", mine)
    with pytest.raises(UsageError) as raised:
        call(folder, "gemm.F1", other)

    assert str(raised.value) == (
        f"error: `{other}` exists and is no script of `rooftrace repro`; nothing was written\n\n"
        "hint: Give another path with -o"
    )
    assert other.read_text(encoding="utf-8") == "print()\n"


def test_a_finding_that_is_not_there_is_named_with_the_nearest(folder):
    with pytest.raises(UsageError) as raised:
        call(folder, "gemm.F2")

    assert str(raised.value) == (
        "error: unknown finding: `gemm.F2`\n\n"
        "hint: Did you mean `gemm.F1`? Known: elementwise.F1, elementwise.F2, gemm.F1"
    )


def test_a_finding_about_the_system_is_refused(folder):
    with pytest.raises(UsageError) as raised:
        call(folder, "idle.F1")

    assert str(raised.value) == (
        "error: `idle.F1` is about the whole system and has no calls of its own to run\n\n"
        "hint: Give one of: elementwise.F1, elementwise.F2, gemm.F1"
    )


def test_a_finding_without_recorded_calls_is_refused(folder):
    with pytest.raises(UsageError) as raised:
        call(folder, "elementwise.F1")

    assert str(raised.value) == (
        "error: `elementwise.F1` cannot be run alone\n  the run holds no calls for it\n\n"
        "hint: Profile with `record_shapes=True`, outside graphs; ops of other libraries need their own benchmark"
    )


def test_a_run_of_an_older_version_without_calls_is_told_to_be_made_again(folder):
    (folder / store.CHAINS).unlink()

    with pytest.raises(InputError) as raised:
        call(folder, "gemm.F1")

    assert str(raised.value) == (
        f"error: `chains.json` is missing from `{folder / 'evidence'}`\n\n"
        "hint: Run `rooftrace analyze TRACE -o RUN` to make it"
    )


def test_calls_that_do_not_match_their_schema_are_refused(folder):
    (folder / store.CHAINS).write_text('{"chains": 1}', encoding="utf-8")

    with pytest.raises(CheckFailed, match=r"`chains\.json` does not match its schema: 3 problems"):
        call(folder, "gemm.F1")


def test_a_folder_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(InputError) as raised:
        call(tmp_path / "none", "gemm.F1")

    assert str(raised.value) == (
        f"error: `{tmp_path / 'none'}` does not exist\n\nhint: Give the folder that `prepare` or `analyze` wrote"
    )
