"""``state.json``: how far the writing of a run's prose has come, and what is to be done next.

The one file of a run that may hold an absolute path. It holds no clock: what was done is told by what is there.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rooftrace.contracts.base import Artifact, Record

# Sub-agents at work at once; more would exceed what the narrowest harness offers.
MAX_PARALLEL = 3
# A writer may repair what `submit` refused this often; then its task is open again, once.
MAX_REPAIRS = 2
MAX_DISPATCHES = 2

_RELATIVE = "^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$"
_NAME = "^[a-z_]+$"

TaskStatus = Literal["open", "handed_out", "accepted", "fallen_back"]
Action = Literal["write_prose", "report", "check", "done"]


class Task(Record):
    """The prose of one analyzer (or of the model identification)."""

    analyzer: str = Field(pattern=_NAME, description="Analyzer, or `model`.")
    brief: str = Field(pattern=_RELATIVE, description="The task's brief, relative to the run's folder.")
    prose: str = Field(pattern=_RELATIVE, description="Where its prose goes, relative to the run's folder.")
    status: TaskStatus = Field(
        description="`open`: nobody writes it; `handed_out`: `next` has named it and nothing valid has come back; "
        "`accepted`: valid prose is stored; `fallen_back`: the words of the knowledge base stay."
    )
    dispatches: int = Field(ge=0, le=MAX_DISPATCHES, description="How often `next` has handed it out.")
    submissions: int = Field(ge=0, description="How often prose was handed in since it was last handed out.")
    problems: list[str] = Field(
        default_factory=list,
        max_length=40,
        description="Problems of the last prose that was refused, one a line.",
    )
    writer: str | None = Field(
        default=None, max_length=80, description="Who handed in the accepted prose, where they said so."
    )

    @model_validator(mode="after")
    def _fits(self) -> Task:
        if self.status == "open" and self.submissions:
            msg = f"task {self.analyzer} is open and has {self.submissions} submissions"
            raise ValueError(msg)
        if self.status == "accepted" and self.problems:
            msg = f"task {self.analyzer} is accepted and has problems"
            raise ValueError(msg)
        return self


class StateFile(Artifact):
    """The state of a run whose prose is being written."""

    trace_path: str = Field(description="Absolute path of the trace as it was given, for a person who resumes.")
    options: dict[str, str] = Field(description="Options of `prepare` that are not their defaults, by option name.")
    tasks: list[Task] = Field(description="In the order in which they are handed out; `model` last.")
    report_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of `analysis.md` when `report` last wrote it; null before.",
    )
    checked_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of `analysis.md` when `check` last passed; null before.",
    )

    @model_validator(mode="after")
    def _names_once(self) -> StateFile:
        names = [task.analyzer for task in self.tasks]
        if len(set(names)) != len(names):
            msg = "a task occurs twice"
            raise ValueError(msg)
        return self


class NextTask(Record):
    """A task as `next` hands it out."""

    analyzer: str = Field(pattern=_NAME, description="Analyzer, or `model`.")
    brief: str = Field(pattern=_RELATIVE, description="File to read and follow, relative to the run's folder.")
    submit: str = Field(description="Command that takes the prose from stdin.")
    problems: list[str] = Field(default_factory=list, description="Why the prose handed in before was refused.")


class NextStep(Record):
    """What `next --json` prints."""

    action: Action = Field(
        description="`write_prose`: have the tasks written, each by its own sub-agent or one after another; "
        "`report` and `check`: run the command; `done`: hand the report over."
    )
    tasks: list[NextTask] = Field(max_length=MAX_PARALLEL, description="Tasks to write now; empty for other actions.")
    command: str | None = Field(default=None, description="Command to run now, for `report` and `check`.")
    waiting_for: list[str] = Field(
        default_factory=list, description="Analyzers handed out before whose prose has not come back."
    )
    note: str = Field(description="One sentence for the person: how far it is.")
