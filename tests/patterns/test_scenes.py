"""The scenes: whole traces, read and analysed, in which a pattern fires."""

from __future__ import annotations

import pytest

from rooftrace.patterns import load_patterns
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.findings import find_and_score
from rooftrace.workflow.prepare import prepare_workload
from tests.patterns.scenes import SCENES


@pytest.mark.parametrize(("analyzer", "pattern"), SCENES, ids="/".join)
def test_a_scene_has_a_finding_that_its_pattern_is_about(analyzer: str, pattern: str) -> None:
    trace = SCENES[analyzer, pattern]().build()

    found = find_and_score(prepare_workload(trace, AnalyzeOptions()).workload).findings[analyzer]

    assert [finding.id for finding in found if pattern in finding.patterns]


def test_every_scene_is_of_a_pattern_that_there_is() -> None:
    assert [key for key in SCENES if key[1] not in {pattern.id for pattern in load_patterns(key[0])}] == []
