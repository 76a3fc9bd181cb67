"""The first run on an interpreter without the dependencies, and the runs after it; built once, by pip."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.launcher.conftest import Outcome, Pack

FirstRuns = tuple[Pack, Outcome, Outcome]


def tree_hash(root: Path) -> str:
    """Hash over the names and bytes of all files of a folder."""
    lines = (
        f"{path.relative_to(root)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(root.rglob("*"))
        if path.is_file()
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_two_first_runs_at_once_both_work_in_one_environment(first_runs: FirstRuns) -> None:
    pack, first, second = first_runs

    assert (first.code, second.code) == (7, 7), first.err + second.err
    assert first.seen["probe"] == second.seen["probe"] == 42
    assert first.seen["prefix"] == second.seen["prefix"]
    left = sorted(str(path) for path in pack.cache.iterdir())
    assert left == sorted([first.seen["prefix"], str(pack.cache / "bytecode")])  # no lock, no scratch


def test_arguments_exit_code_and_a_silent_stderr_pass_through(first_runs: FirstRuns) -> None:
    _, first, _ = first_runs

    assert (first.code, first.seen["arguments"], first.err) == (7, ["analyze", "a b.json"], "")


def test_the_environment_is_isolated_even_where_the_caller_is_not(first_runs: FirstRuns) -> None:
    pack, _, _ = first_runs

    foreign = pack.root.parent / "foreign"
    foreign.mkdir(exist_ok=True)
    (foreign / "rooftrace_probe.py").write_text("VALUE = 'from PYTHONPATH'\n", encoding="utf-8")

    seen = pack.run(PYTHONPATH=str(foreign)).seen

    assert (seen["isolated"], seen["probe"]) == (1, 42)


def test_a_later_run_needs_no_installer_and_loads_none(first_runs: FirstRuns) -> None:
    pack, _, _ = first_runs

    outcome = pack.run(PIP_FIND_LINKS="", PIP_INDEX_URL="invalid")

    assert outcome.code == 7
    assert outcome.seen["build_only_modules"] == []


def test_bytecode_goes_to_the_cache_and_never_to_the_pack(first_runs: FirstRuns) -> None:
    pack, first, second = first_runs

    assert [run.seen["bytecode"] for run in (first, second)] == [str(pack.cache / "bytecode")] * 2
    assert list(pack.root.rglob("*.pyc")) == []
    # processes that it starts write none at all
    assert [run.seen["child_no_bytecode"] for run in (first, second)] == ["1", "1"]


def test_the_mark_of_the_hand_over_does_not_reach_the_command(first_runs: FirstRuns) -> None:
    _, first, _ = first_runs

    assert first.seen["variables"] == ["ROOFTRACE_CACHE", "ROOFTRACE_COMPILED_TEMPLATES"]


def test_running_leaves_the_pack_as_it_was(first_runs: FirstRuns) -> None:
    pack, _, _ = first_runs
    before = tree_hash(pack.root)
    for path in pack.root.rglob("*"):
        path.chmod(0o555)

    plain, isolated, setup = pack.run("x"), pack.run("x", flags=("-I",)), pack.run("setup")

    for path in pack.root.rglob("*"):
        path.chmod(0o755)
    assert (plain.code, isolated.code, setup.code) == (7, 7, 0)
    assert tree_hash(pack.root) == before
    assert sorted(path.name for path in pack.root.rglob("__pycache__")) == []
