"""Finding checks, their order, and asking about one file."""

from __future__ import annotations

import sys

import pytest

import rooftrace.validators
from rooftrace.cli import explain
from rooftrace.errors import InputError
from rooftrace.validators import CHECKS, Check, check_run
from rooftrace.validators.checks import load_checks
from tests.validators.breaking import edit_json

DROPPED_IN = '''
from rooftrace.validators.checks import Check


class RUN901(Check):
    """A run must be named like this."""

    requires = ("RUN001",)

    @staticmethod
    def check(files):
        """Never content."""
        yield f"{files.run.name} is another name"
'''


@pytest.fixture
def dropped_in(tmp_path, monkeypatch):
    """A folder that counts as part of the package, with one more check in a file of its own."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "naming.py").write_text(DROPPED_IN, encoding="utf-8")
    monkeypatch.setattr(rooftrace.validators, "__path__", [*rooftrace.validators.__path__, str(folder)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    CHECKS.pop("RUN901", None)
    sys.modules.pop("rooftrace.validators.naming", None)


def test_a_file_dropped_into_the_folder_is_a_check(dropped_in, run):
    problems = check_run(run).problems

    assert [str(problem) for problem in problems] == ["RUN901 run is another name: A run must be named like this."]


def test_a_code_cannot_be_used_twice():
    load_checks()

    with pytest.raises(ValueError, match=r"RUN001 is registered by rooftrace\.validators\.run already"):
        type("RUN001", (Check,), {})


def test_what_a_check_requires_exists_and_is_no_circle():
    checks = load_checks()
    reached: set[str] = set()
    for _ in checks:  # each round reaches at least one more, if there is no circle
        reached |= {code for code, check in checks.items() if set(check.requires) <= reached}

    assert reached == set(checks)


def test_nothing_is_checked_in_a_folder_without_a_manifest(run):
    (run / "manifest.json").unlink()

    assert check_run(run).checks == 1


def test_a_check_is_left_out_when_one_it_requires_failed(run):
    checks = load_checks("run")
    needing: set[str] = {"RUN003"}
    for _ in checks:  # what requires it, and what requires that
        needing |= {code for code, check in checks.items() if needing & set(check.requires)}
    edit_json(run, "report.json", lambda report: report.update(surprise=1))

    result = check_run(run)
    assert [problem.code for problem in result.problems] == ["RUN003"]
    assert result.checks == len(checks) - len(needing) + 1


def test_two_broken_files_are_told_at_once(run):
    edit_json(run, "report.json", lambda report: report.update(surprise=1))
    edit_json(run, "evidence/ledger.json", lambda ledger: ledger.update(surprise=1))

    assert [problem.text.split("::")[0] for problem in check_run(run).problems] == ["ledger.json", "report.json"]


@pytest.mark.parametrize("only", ["report.json", "analysis.md", "evidence/ops.csv", "manifest.json"])
def test_one_file_of_a_good_run_passes(run, only):
    assert check_run(run, only).problems == []


def test_one_file_is_told_its_own_problems_only(run):
    edit_json(run, "report.json", lambda report: report.update(surprise=1))
    (run / "findings/gemm.md").write_text("", encoding="utf-8")

    assert [problem.code for problem in check_run(run, "report.json").problems] == ["RUN003"]
    assert [problem.code for problem in check_run(run, "findings/gemm.md").problems] == ["RUN002"]


def test_no_file_passes_in_a_run_whose_manifest_is_broken(run):
    edit_json(run, "manifest.json", lambda manifest: manifest.update(surprise=1))

    assert [problem.code for problem in check_run(run, "report.json").problems] == ["RUN001"]


@pytest.mark.parametrize("only", ["notes.txt", "/etc/passwd", "../run/report.json"])
def test_a_file_that_is_not_of_the_run_is_refused(run, only):
    (run / "notes.txt").write_text("mine", encoding="utf-8")

    with pytest.raises(InputError, match="is no file of the run"):
        check_run(run, only)


def test_every_code_is_explained_by_its_docstring(capsys):
    for code, check in load_checks().items():
        assert explain.run(_Options(code=code)) == 0
        assert capsys.readouterr().out.startswith(f"{code}\n  rule: {(check.__doc__ or '')[:40]}")


class _Options:
    json = False

    def __init__(self, *, code):
        self.code = code
