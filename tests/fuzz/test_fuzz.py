"""Mutated traces end in a report or an error of ours. The examples are the same in every run; ROOFTRACE_EXAMPLES=2000
tries as many others, and ``python -m tests.fuzz --minutes N`` goes on for as long as it is let."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutate import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.target import try_content

EXAMPLES = os.environ.get("ROOFTRACE_EXAMPLES")
SETTINGS = settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.trace"))


@pytest.mark.parametrize("name", sorted(seeds()))
def test_every_seed_ends_in_a_report(name: str) -> None:
    finding = try_content(seeds()[name])

    assert finding is None, finding.text


@pytest.mark.parametrize("path", CORPUS, ids=[path.stem for path in CORPUS])
def test_what_once_failed_ends_in_a_report_or_an_error_of_ours(path: Path) -> None:
    finding = try_content(path.read_bytes())

    assert finding is None, finding.text


@SETTINGS
@given(st.sampled_from(sorted(seeds())), st.integers(0, 2**32))
def test_a_mutated_trace_ends_in_a_report_or_an_error_of_ours(name: str, number: int) -> None:
    content = mutated(seeds()[name], random.Random(number))  # noqa: S311 - not for secrets

    finding = try_content(content, report=number % 4 == 0)

    assert finding is None, finding.text


def test_a_failure_is_found_and_named_for_its_place(monkeypatch) -> None:
    """The target sees what it is there to see."""
    from rooftrace.workflow import findings

    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(findings, "analyze_system", fail)

    finding = try_content(seeds()["host_alone"])

    assert finding is not None
    assert finding.key == "ZeroDivisionError in run.py:examine_trace"
