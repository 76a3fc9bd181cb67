"""``state.json`` on disk: read, changed under a lock, written whole; and the rules by which it changes.

`next` is called between two steps of an agent, so nothing here loads pydantic or numpy: a state is read into plain
records, and only one that does not fit them is read again through its contract, for the exact message.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from rooftrace.contracts.kinds import is_comparison
from rooftrace.errors import CheckFailed, InputError, UsageError
from rooftrace.workflow.locks import locked_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

STATE = "state.json"
TASKS = "tasks"
STATE_LOCK = ".state.lock"
FOLDERS = ("evidence", "findings", "plots", "prose", TASKS)
_STATUSES = ("open", "handed_out", "accepted", "fallen_back")
# As in the contract, which takes too long to load here; a test holds them together.
MAX_PARALLEL = 3
MAX_REPAIRS = 2
MAX_DISPATCHES = 2
_MAX_PROBLEMS = 40
_MAX_PROBLEM = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The prose of one analyzer (or of the model identification), as in the contract."""

    analyzer: str
    brief: str
    prose: str
    status: str = "open"
    dispatches: int = 0
    submissions: int = 0
    problems: tuple[str, ...] = ()
    writer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The content of ``state.json``, as in the contract."""

    schema_version: str = "1.0"
    tool_version: str
    source_sha256: str
    trace_path: str
    options: dict[str, str]
    tasks: tuple[Task, ...]
    report_sha256: str | None = None
    checked_sha256: str | None = None

    def task(self, analyzer: str) -> Task:
        """The task of an analyzer; `UsageError` names those there are."""
        for task in self.tasks:
            if task.analyzer == analyzer:
                return task
        names = ", ".join(task.analyzer for task in self.tasks) or "none"
        raise UsageError(f"no prose is asked for `{analyzer}`", hint=f"Tasks of this run: {names}")

    def with_task(self, changed: Task) -> State:
        """The state with one task replaced."""
        return replace(self, tasks=tuple(changed if task.analyzer == changed.analyzer else task for task in self.tasks))


def to_bytes(state: State) -> bytes:
    """Content of the file."""
    return orjson.dumps(asdict(state), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read(run: Path) -> State:
    """The state of a run; `InputError` where it was not prepared, `CheckFailed` where the file is damaged."""
    path = run / STATE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        what = "is no run" if not (run / "manifest.json").is_file() else "was not prepared for writing prose"
        raise InputError(f"`{run}` {what}", hint=f"Run `{_maker(run)}`") from None
    except OSError as error:
        raise InputError(f"cannot read `{path}`: {error.strerror}", hint="Check its permissions") from None
    try:
        return _parsed(data)
    except (KeyError, TypeError, ValueError):
        raise _damaged(path) from None


def _parsed(data: bytes) -> State:
    """A state from the file's bytes; any misfit is a `KeyError`, `TypeError` or `ValueError`."""
    content: dict[str, Any] = orjson.loads(data)
    tasks = tuple(Task(**{**item, "problems": tuple(item["problems"])}) for item in content["tasks"])
    state = State(**{**content, "tasks": tasks})
    for task in state.tasks:
        texts = (task.analyzer, task.brief, task.prose, *task.problems)
        if task.status not in _STATUSES or not all(isinstance(text, str) for text in texts):
            raise ValueError(task.analyzer)
        if not all(type(number) is int and number >= 0 for number in (task.dispatches, task.submissions)):
            raise TypeError(task.analyzer)
    return state


def _maker(run: Path) -> str:
    """The command that prepares such a folder."""
    return f"rooftrace {'compare BASE TARGET --prepare' if is_comparison(run) else 'prepare TRACE'} -o RUN"


def _damaged(path: Path) -> CheckFailed:
    from rooftrace.contracts import store
    from rooftrace.contracts.state import StateFile

    hint = f"Run `{_maker(path.parent)}` again; accepted prose is kept"
    try:
        store.read_artifact(path, StateFile)
    except CheckFailed as error:
        return CheckFailed(error.what, details=error.details, hint=hint)
    return CheckFailed(f"`{path.name}` cannot be read", hint=hint)


def write(run: Path, state: State) -> None:
    """Replace the file as a whole."""
    handle, temporary = tempfile.mkstemp(dir=run / TASKS, prefix=".state.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(to_bytes(state))
        Path(temporary).chmod(0o644)
        Path(temporary).replace(run / STATE)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def update(run: Path, change: Callable[[State], tuple[State, T]]) -> T:
    """Read, change and write the state with no other process between; returns what `change` tells."""
    read(run)  # a run that has none is told before a lock is made in it
    with locked(run, "state"):
        before = read(run)
        after, told = change(before)
        if after != before:
            write(run, after)
    return told


@contextmanager
def locked(run: Path, what: str) -> Iterator[None]:
    """Hold a lock of the run; `UsageError` where its tasks lie elsewhere, by a link."""
    refuse_links(run)
    with locked_file(run / TASKS / f".{what}.lock", run):
        yield


def refuse_links(run: Path) -> None:
    """`UsageError` if a folder of the run is a link: what is written into a run stays in it."""
    for name in FOLDERS:
        if (run / name).is_symlink():
            raise UsageError(
                f"`{run / name}` is a link; nothing was written",
                hint="The files of a run lie in its own folders: put a folder in the place of the link",
            )


# The rules


def hand_out(state: State, *, is_resumed: bool = False) -> tuple[State, list[Task]]:
    """The tasks to write now, at most three: open ones first, then those that nobody has handed in.

    In a resumed run those come first: whoever had them is gone. A task is handed out twice at most; what comes back
    from neither keeps the words of the knowledge base.
    """
    fresh = sorted((task for task in state.tasks if task.status == "open"), key=lambda task: task.dispatches)
    late = [task for task in state.tasks if task.status == "handed_out"]
    again = [task for task in late if task.dispatches < MAX_DISPATCHES]
    chosen = ([*again, *fresh] if is_resumed else fresh or again)[:MAX_PARALLEL]
    out = [replace(task, status="handed_out", dispatches=task.dispatches + 1, submissions=0) for task in chosen]
    if not out:
        for task in late:
            state = _unreported(state.with_task(replace(task, status="fallen_back")))
    for task in out:
        state = state.with_task(task)
    return state, out


def _unreported(state: State) -> State:
    """After what the report says of its words has changed: it has to be written anew."""
    return replace(state, report_sha256=None, checked_sha256=None)


def accept(state: State, analyzer: str, writer: str | None) -> State:
    """After valid prose was stored: the report has to be written anew."""
    task = state.task(analyzer)
    done = replace(
        task, status="accepted", submissions=task.submissions + 1, problems=(), writer=writer and writer[:80]
    )
    return _unreported(state.with_task(done))


def refuse(state: State, analyzer: str, problems: list[str]) -> State:
    """After prose was refused: the writer may repair it twice, then the task is open again, once."""
    task = state.task(analyzer)
    if task.status == "accepted":
        return state  # what is stored stays
    kept = tuple(problem[:_MAX_PROBLEM] for problem in problems[:_MAX_PROBLEMS])
    tried = replace(
        task,
        status="handed_out" if task.status == "open" else task.status,
        dispatches=max(task.dispatches, 1),
        submissions=task.submissions + 1,
        problems=kept,
    )
    if tried.status == "handed_out" and tried.submissions > MAX_REPAIRS:
        again = tried.dispatches < MAX_DISPATCHES
        tried = replace(tried, status="open" if again else "fallen_back", submissions=0 if again else tried.submissions)
    after = state.with_task(tried)
    is_given_up = tried.status == "fallen_back" != task.status
    return _unreported(after) if is_given_up else after


def repairs_left(task: Task) -> int:
    """How often the writer may hand in again before the task goes to somebody else or falls back."""
    return max(0, MAX_REPAIRS + 1 - task.submissions) if task.status == "handed_out" else 0


def reported(state: State, report_sha256: str, *, is_checked: bool) -> State:
    """After the report was written, and checked."""
    return replace(state, report_sha256=report_sha256, checked_sha256=report_sha256 if is_checked else None)
