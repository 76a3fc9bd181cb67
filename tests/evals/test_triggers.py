"""Triggers with a scripted router: what it is shown, how its answers are read, and what is counted."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evals.runner.tasks import ROOT
from evals.runner.triggers import (
    Answered,
    Case,
    Skill,
    answers,
    asking,
    cases,
    chosen,
    distractors,
    markdown,
    pack_skills,
    question,
    read_sheet,
    sheet,
    summary,
)

ROUTER = Path(__file__).with_name("fake_router.py")
PACK = frozenset({"rooftrace", "compare"})


def router(manner: str) -> str:
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(ROUTER))} {manner} {{prompt}}"


def answered(skill: str, *names: str) -> Answered:
    return Answered(case=Case(identity="x", query="q", skill=skill), names=names, pack=PACK)


def test_every_triggering_case_expects_a_skill_of_the_pack_and_each_skill_has_some():
    names = {skill.name for skill in pack_skills()}
    expected = [case.skill for case in cases() if case.skill]

    assert set(expected) == names
    assert min(expected.count(name) for name in names) >= 2
    assert expected.count("compare") >= 4
    assert cases()[0] == Case(
        identity="orchestrator", query="run the analysis orchestrator on trace.json", skill="rooftrace"
    )
    rows = json.loads((ROOT / "evals" / "evals.json").read_text())["trigger"]
    assert [row["id"] for row in rows if row["should_trigger"] is not bool(row.get("skill"))] == []


def test_near_misses_of_comparing_are_cases():
    quiet = {case.query for case in cases() if not case.skill}

    assert any("two CSV files" in query for query in quiet)
    assert any("two JSON configs" in query for query in quiet)


def test_descriptions_are_read_whole_out_of_the_front_matter():
    compare = next(skill for skill in pack_skills() if skill.name == "compare")

    assert compare.description.startswith("Compares two GPU traces and says where the time went")
    assert compare.description.endswith("or wants a performance gate in CI.")


def test_a_router_sees_every_skill_once_and_the_request_in_an_order_of_its_own_for_each_case():
    skills = (*pack_skills(), *distractors())
    first, second = (question(Case(identity=name, query="Why is it slow?", skill=""), skills) for name in "ab")

    assert all(first.count(f"- {skill.name}: ") == 1 for skill in skills)
    assert len(skills) >= 15
    assert "<request>\nWhy is it slow?\n</request>" in first
    assert first != second
    assert sorted(first.splitlines()) == sorted(second.splitlines())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("compare", "compare"),
        ("It is about traces.\n\n**rooftrace**", "rooftrace"),
        ("rooftrace would do, but\nnone", "none"),
        ("Skill: `compare`.", "compare"),
        ("I would load compare.\nThat is all.", ""),
        ("", ""),
    ],
)
def test_the_name_in_the_last_line_is_the_answer(text, name):
    assert chosen(text, ["rooftrace", "compare"]) == name


def test_shares_count_triggering_and_routing_apart():
    result = summary(
        [
            answered("compare", "compare"),
            answered("compare", "rooftrace"),  # the pack triggers, by another skill
            answered("rooftrace", "none"),
            answered("", "none"),
            answered("", "compare"),
        ]
    )

    assert result["triggered_where_it_should"] == 0.6667  # two of three
    assert result["right_skill"] == 0.3333  # one of three
    assert result["quiet_where_it_should"] == 0.5
    assert [row["verdict"] for row in result["rows"]] == [
        "stable pass",
        "stable fail",
        "stable fail",
        "stable pass",
        "stable fail",
    ]


def test_an_answer_without_a_name_passes_nowhere():
    assert answered("compare", "").passed == [False]
    assert answered("", "").passed == [False]


def test_repeated_answers_that_differ_are_flaky():
    result = summary([answered("compare", "compare", "none", "compare")])

    assert result["rows"][0]["verdict"] == "flaky pass"
    assert "| x | compare | compare, none, compare | flaky pass |" in markdown(result, "fake")


def test_a_router_that_reads_the_descriptions_words_routes_every_case():
    few = [case for case in cases() if case.identity in ("orchestrator", "compare-two", "compare-csv", "explain")]
    result = summary(list(answers(few, asking(router("words")))))

    assert len(few) == 4
    assert (result["triggered_where_it_should"], result["quiet_where_it_should"]) == (1.0, 1.0)
    assert result["right_skill"] == 1.0


@pytest.mark.parametrize(("manner", "shares"), [("none", (0.0, 1.0, 0.0)), ("compare", (1.0, 0.0, 0.5))])
def test_a_router_that_always_says_the_same_is_seen(manner, shares):
    few = [case for case in cases() if case.identity in ("orchestrator", "compare-two", "compare-csv")]
    result = summary(list(answers(few, asking(router(manner)))))

    names = ("triggered_where_it_should", "quiet_where_it_should", "right_skill")
    assert tuple(result[name] for name in names) == shares


def test_a_page_with_all_cases_is_answered_by_lines():
    listed = [Case(identity="one", query="Why?", skill="compare"), Case(identity="two", query="How?", skill="")]
    page = sheet(listed, [Skill(name="compare", description="Compares.")])
    found = read_sheet("one: compare\n- two: none\nthree: rooftrace\n", listed)

    assert "one: Why?\ntwo: How?" in page
    assert [one.names for one in found] == [("compare",), ("none",)]
    assert [one.names for one in read_sheet("one: compare", listed)] == [("compare",), ("",)]


def test_the_command_fails_below_the_least_share_and_writes_the_summary(tmp_path):
    words = [sys.executable, "-m", "evals.runner.triggers", "--only", "compare-", "--json", str(tmp_path / "t.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    runs = [
        subprocess.run(
            [*words, "--harness", router(manner)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for manner in ("words", "none")
    ]

    assert [run.returncode for run in runs] == [0, 1]
    assert "right skill: 100.0 %" in runs[0].stdout
    assert json.loads((tmp_path / "t.json").read_text())["right_skill"] == 0.0
