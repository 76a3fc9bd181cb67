"""Asking about prose before it is stored, and about one prose file."""

from __future__ import annotations

import json

import pytest

from rooftrace.errors import InputError
from rooftrace.validators import check_prose, check_run
from tests.validators.handing_in import good_prose, hand_in, with_slot


def test_prose_can_be_checked_before_it_is_stored(run):
    bad = with_slot("insight", "The products take 9999 ms of the span.")

    assert check_prose(run, "gemm", json.dumps(good_prose()).encode()).problems == []
    assert [problem.code for problem in check_prose(run, "gemm", json.dumps(bad).encode()).problems] == ["GROUND001"]
    assert not (run / "prose").exists()


def test_what_is_submitted_is_checked_and_not_what_is_stored(run):
    hand_in(with_slot("insight", "The products take 9999 ms of the span."))(run)

    assert check_prose(run, "gemm", json.dumps(good_prose()).encode()).problems == []


def test_a_prose_file_can_be_checked_alone_although_the_manifest_does_not_list_it(run):
    hand_in(with_slot("insight", "The products take 9999 ms of the span."))(run)
    result = check_run(run, "prose/gemm.json")

    assert [problem.code for problem in result.problems] == ["GROUND001"]
    with pytest.raises(InputError, match=r"`prose/idle\.json` is no file of the run"):
        check_run(run, "prose/idle.json")


def test_a_huge_file_is_refused_unread(run):
    huge = b'{"analyzer": "gemm", "summary": "' + b"x" * 70_000 + b'"}'

    problems = check_prose(run, "gemm", huge).problems
    assert [problem.text for problem in problems] == [f"prose/gemm.json: {len(huge)} bytes; prose has 65536 at most"]


def test_all_flaws_of_a_slot_are_told_at_once(run):
    text = "Bank conflicts in `flash_kernel` cost 42 % and {{x}}."
    problems = check_prose(run, "gemm", json.dumps(with_slot("insight", text)).encode()).problems

    assert [problem.code for problem in problems] == ["GROUND001", "GROUND002", "GROUND004", "GROUND005"]


def test_a_message_says_what_where_and_how_to_mend_it(run):
    problems = check_prose(
        run, "gemm", json.dumps(with_slot("insight", "It takes 130.0 us of time.")).encode()
    ).problems

    assert str(problems[0]) == (
        "GROUND001 prose/gemm.json::$.findings[0].insight: `130.0` is a number that no script wrote; "
        "if 130.0 µs is meant, write {{gemm.F1.time_ms}}: "
        "Prose must hold no number but ids, ranks, dtypes, recorded shapes and settings: cite every quantity by its id."
    )


MODEL = {
    "analyzer": "model",
    "name": "BERT-small",
    "family": "encoder-only transformer, training".replace(",", " /"),
    "confidence": "low",
    "reasoning": "One `Linear` module and {{trace.events_count}} events say little about the family.",
    "summary": "A single layer that was trained for {{steps.steps_count}} steps.",
}


def test_prose_about_the_model_is_checked_like_any_other(run):
    assert check_prose(run, "model", json.dumps(MODEL).encode()).problems == []
    wrong = {**MODEL, "reasoning": "It has 24 layers and a hidden size of 1024."}
    codes = [problem.code for problem in check_prose(run, "model", json.dumps(wrong).encode()).problems]
    assert codes == ["GROUND001", "GROUND001"]
