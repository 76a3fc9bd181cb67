from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from rooftrace.contracts.state import NextStep, StateFile
from tests.contracts.written import STATE


def with_task(**change: object) -> dict[str, object]:
    return {**STATE, "tasks": [{**STATE["tasks"][0], **change}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_task(status="open"), "task gemm is open and has 1 submissions"),
        (with_task(status="accepted"), "task gemm is accepted and has problems"),
        (with_task(dispatches=3), "Input should be less than or equal to 2"),
        (with_task(prose="../prose/gemm.json"), "String should match pattern"),
        (with_task(status="lost"), "Input should be 'open', 'handed_out', 'accepted' or 'fallen_back'"),
        ({**STATE, "tasks": STATE["tasks"] * 2}, "a task occurs twice"),
    ],
)
def test_a_state_that_cannot_be_is_refused(content, message):
    with pytest.raises(ValidationError, match=re.escape(message)):
        StateFile.model_validate(content)


def test_at_most_three_tasks_are_handed_out_at_once():
    task = {"analyzer": "gemm", "brief": "tasks/gemm.md", "submit": "rooftrace submit RUN gemm"}

    assert len(NextStep(action="write_prose", tasks=[task] * 3, note="Three to write.").tasks) == 3
    with pytest.raises(ValidationError, match="List should have at most 3 items"):
        NextStep(action="write_prose", tasks=[task] * 4, note="Four to write.")
