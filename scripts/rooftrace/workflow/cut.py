"""A smaller trace from a larger one: some steps, a window of time, or all but the Python frames.

The file is read twice: for the columns, which tell the steps and what each call launched, and as text, of which the
chosen events are written as they stand. Events that overlap the window are kept whole. A kernel is kept with the call
that launched it, so that a step's kernels are in its file even where they run after it, and those of the step before
are not; analysing the file gives what `--steps` gives of the whole.
"""

from __future__ import annotations

import gzip
import os
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from msgspec import Struct, field

from rooftrace import calltree
from rooftrace.calltree.steps import is_step_name
from rooftrace.contracts import credentials, identities
from rooftrace.contracts.store import permitted
from rooftrace.errors import UsageError
from rooftrace.trace import GPU_KINDS, Kind, load
from rooftrace.trace.blocks import split_head
from rooftrace.trace.containers import open_source
from rooftrace.trace.envelope import DAMAGED
from rooftrace.trace.events import KIND_OF_CATEGORY, Tally
from rooftrace.trace.rawevents import MALFORMED, ExactEvent, exact_ns, to_int
from rooftrace.trace.walk import Walk
from rooftrace.workflow import scratch
from rooftrace.workflow.locks import unheld
from rooftrace.workflow.options import select_steps
from rooftrace.workflow.redact import JsonTexts, redactor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rooftrace.calltree import Activities
    from rooftrace.trace import Trace

_ALWAYS, _NEVER = -(1 << 62), 1 << 62
_OWN_LAYOUTS = ("object", "array")
_PYTHON = "python_function"
_FLOWS = frozenset("sft")
_decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_events = msgspec.json.Decoder(list[ExactEvent]).decode
# Keys of a header under which the reader keeps what it learnt, which no file holds.
_OF_THE_READER = (credentials.KEY, identities.KEY, DAMAGED)


class Choice(Struct, frozen=True, kw_only=True):
    """What to keep: steps as for `analyze`, or a window in ns after the first event; and whether Python frames.

    With `redact`, texts that tell whose the trace is have placeholders; no number differs.
    """

    steps: str | None = None
    window: tuple[int | None, int | None] | None = None
    python: bool = True
    redact: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it leaves no event out."""
        return self.steps is None and self.window is None and self.python


class Written(Struct, frozen=True, kw_only=True):
    """What was written."""

    path: Path
    kept: int
    events: int


class _Plan(Struct, kw_only=True):
    """Times are those of the file, ns; `gpu` holds start and correlation of what is kept, or None for all."""

    start: int = _ALWAYS
    end: int = _NEVER
    gpu: set[tuple[int, int]] | None = None
    correlations: set[int] = field(default_factory=set)
    python: bool = True


def cut(
    trace: Path,
    out: Path,
    choice: Choice,
    progress: Callable[[int], None] | None = None,
    *,
    max_bytes: int | None = None,
) -> Written:
    """Write the chosen part of a trace to a new file, compressed if its name ends in `.gz`."""
    if choice.is_whole and not choice.redact:
        raise UsageError("nothing to leave out", hint="Give --steps, --window, --no-python or --redact")
    _refuse_existing(out)
    columns, facts = load(trace, progress, max_bytes=max_bytes)
    if columns.layout not in _OWN_LAYOUTS:
        raise UsageError(
            f"`{trace.name}` is of the format {columns.layout}, which is not cut",
            hint="Give a trace of torch.profiler; `analyze` takes --steps for any format",
        )
    plan = _plan(columns, choice)
    head = split_head(open_source(trace, max_bytes).chunks(digest=False), trace.name)
    before = _keys(head.text.strip().rstrip(b", \t\r\n") + b"}")
    is_array = head.layout == "array"
    with _new_file(out) as file:
        handle = _Redacting(file, JsonTexts(redactor_of((columns, facts)))) if choice.redact else file
        handle.write(b"[\n" if is_array else b"{\n" + _written(before) + b'"traceEvents": [\n')
        writer = _Writer(handle, plan)
        tail = Walk(writer).run(open_source(trace, max_bytes), digest=False).tail
        handle.write(b"\n]" if is_array else b"\n]" + _written(_behind(tail, before, columns.header), b",\n") + b"\n}")
        handle.write(b"\n")
    return Written(path=out, kept=writer.kept, events=writer.events)


class _Redacting:
    """A file that is given whole tokens of JSON, and keeps nothing that tells whose they are."""

    def __init__(self, file: IO[bytes], texts: JsonTexts) -> None:
        self._file = file
        self._texts = texts

    def write(self, content: bytes) -> int:
        return self._file.write(self._texts.without(content))


def _refuse_existing(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise UsageError(f"`{out}` exists; nothing was written", hint="Give the path of a new file with -o")
    if not out.parent.is_dir():
        raise UsageError(f"no such folder: `{out.parent}`", hint="Make it, or give another path with -o")


def _plan(trace: Trace, choice: Choice) -> _Plan:
    plan = _Plan(python=choice.python)
    if choice.steps is None and choice.window is None:
        return plan
    tree = calltree.build_tree(trace)
    activities = calltree.collect_activities(trace, tree)
    if choice.steps is not None:
        whole = calltree.find_steps(trace, tree, activities)
        activities, steps = select_steps(activities, whole, choice.steps)
        plan.start = int(steps.start[0])
        last = steps.first + len(steps.names)
        following = int(whole.start[last]) if last < len(whole.names) else _NEVER
        # Until the next step begins, calls are this one's; of the last, as long as it launches.
        plan.end = min(following, max(int(steps.end[-1]), _last_launch(activities, tree.end) + 1))
    else:
        low, high = choice.window or (None, None)
        plan.start, plan.end = _ALWAYS if low is None else low, _NEVER if high is None else high
        activities = _in_window(trace, activities, plan)
    _keep(trace, activities, plan)
    if not activities.row.size and not _overlaps_host(trace, plan):
        raise UsageError("no event lies in what was chosen", hint="Give a longer window, or other steps")
    on_host = trace.base_ns - trace.host_moved_ns  # GPU events are kept by their own times and ids
    plan.start = _moved(plan.start, on_host)
    plan.end = _moved(plan.end, on_host)
    return plan


def _moved(time: int, by: int) -> int:
    return time if time in (_ALWAYS, _NEVER) else time + by


def _last_launch(activities: Activities, ends: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    launches = activities.launch[activities.launch >= 0]
    return int(ends[launches].max()) if launches.size else _ALWAYS


def _in_window(trace: Trace, activities: Activities, plan: _Plan) -> Activities:
    """What runs in the window, or was launched in it."""
    calls = trace.of_kind(Kind.RUNTIME, Kind.DRIVER)
    calls = calls[(trace.end_of(calls) > plan.start) & (trace.start[calls] < plan.end)]
    launched = np.isin(trace.correlation[activities.row], trace.correlation[calls]) & (
        trace.correlation[activities.row] > 0
    )
    overlaps = (activities.end > plan.start) & (activities.start < plan.end)
    return activities.select(launched | overlaps)


def _keep(trace: Trace, activities: Activities, plan: _Plan) -> None:
    rows = activities.row
    starts, correlations = (trace.start[rows] + trace.base_ns).tolist(), trace.correlation[rows].tolist()
    plan.gpu = set(zip(starts, correlations, strict=True))
    plan.correlations = set(correlations) - {-1, 0}


def _overlaps_host(trace: Trace, plan: _Plan) -> bool:
    return bool(((trace.end > plan.start) & (trace.start < plan.end) & ~np.isin(trace.kind, GPU_KINDS)).any())


class _Writer:
    """Writes the events of the plan, in the order and the words of the file; the sink of a walk."""

    def __init__(self, handle: IO[bytes] | _Redacting, plan: _Plan) -> None:
        self.repaired = Tally()
        self.dropped = Tally()
        self.kept = 0
        self.events = 0
        self._handle = handle
        self._plan = plan

    def take_run(self, text: bytes) -> bool:
        """Take the text if it is a whole number of valid events."""
        array = b"[" + text + b"]"
        try:
            texts, events = _decode_texts(array), _decode_events(array)
        except MALFORMED:
            return False
        self._put(texts, events)
        return True

    def take_events(self, events: list[ExactEvent]) -> None:
        """Take events that were decoded, or mended, one by one."""
        self._put([_text(event) for event in events], events)

    def _put(self, texts: Sequence[msgspec.Raw | bytes], events: Sequence[ExactEvent]) -> None:
        self.events += len(events)
        chosen = [bytes(text) for text, event in zip(texts, events, strict=True) if _is_kept(event, self._plan)]
        if chosen:
            self._handle.write((b",\n" if self.kept else b"") + b",\n".join(chosen))
            self.kept += len(chosen)


def _keys(text: bytes) -> dict[str, bytes]:
    """The keys of an object and the texts of their values; none of one that is damaged."""
    try:
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except MALFORMED:
        return {}
    return {key: bytes(value) for key, value in found.items() if key != "traceEvents"}


def _behind(tail: bytes, before: dict[str, bytes], header: dict[str, Any]) -> dict[str, bytes]:
    """What stands behind the events; and where the envelope cannot be read, the keys that the reader found."""
    body = tail.strip(b" \t\r\n\x00").lstrip(b",")
    found = _keys(b"{" + body) or _keys(b"{" + body.rstrip(b"}] \t\r\n") + b"}")
    for key, value in header.items():
        if key not in _OF_THE_READER:
            found.setdefault(key, msgspec.json.encode(value))
    return {key: value for key, value in found.items() if key not in before}


def _written(keys: dict[str, bytes], before: bytes = b"") -> bytes:
    """Keys and values, each with a comma behind it, or with `before` before it."""
    behind = b"" if before else b",\n"
    return b"".join(before + msgspec.json.encode(key) + b": " + value + behind for key, value in keys.items())


def _is_kept(event: ExactEvent, plan: _Plan) -> bool:
    if event.ph == "M":
        return True
    if event.cat == _PYTHON and not plan.python:
        return False
    start = exact_ns(bytes(event.ts).decode("ascii", "replace"))
    if start is None:
        return plan.gpu is None
    begins_inside = plan.start <= start < plan.end
    kind = KIND_OF_CATEGORY.get(event.cat.lower(), Kind.OTHER) if isinstance(event.cat, str) else Kind.OTHER
    if isinstance(event.ph, str) and event.ph in _FLOWS:
        kept = begins_inside or to_int(event.id) in plan.correlations
    elif kind in GPU_KINDS and plan.gpu is not None:
        correlation = _correlation(event)  # a fraction of a ns may be rounded either way
        kept = any((start + by, correlation) in plan.gpu for by in (0, -1, 1))
    elif kind == Kind.ANNOTATION and isinstance(event.name, str) and is_step_name(event.name):
        kept = begins_inside
    else:
        kept = start < plan.end and (begins_inside or start + _duration(event) > plan.start)
    return kept


def _duration(event: ExactEvent) -> int:
    return max(0, exact_ns(bytes(event.dur).decode("ascii", "replace")) or 0) if event.dur else 0


class _Linked(msgspec.Struct, gc=False):
    correlation: Any = -1


_decode_linked = msgspec.json.Decoder(_Linked).decode


def _correlation(event: ExactEvent) -> int:
    try:
        return to_int(_decode_linked(event.args).correlation)
    except MALFORMED:
        return -1


def _text(event: ExactEvent) -> bytes:
    """An event that was mended, written anew with the fields that are read."""
    raw = (("ts", event.ts), ("dur", event.dur), ("args", event.args))
    plain = {
        "ph": event.ph,
        "cat": event.cat,
        "name": event.name,
        "pid": event.pid,
        "tid": event.tid,
        "id": event.id,
    }
    plain = {key: value for key, value in plain.items() if value not in ("", -1)}
    fields = [msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in plain.items()]
    fields += [msgspec.json.encode(key) + b":" + bytes(value) for key, value in raw if value]
    return b"{" + b",".join(fields) + b"}"


@contextmanager
def _new_file(out: Path) -> Iterator[IO[bytes]]:
    """A file beside `out` that takes its place when all is written, and vanishes otherwise."""
    for left in scratch.left_behind(out.parent, out.name):
        with unheld(left) as is_free, suppress(OSError):
            if is_free:
                left.unlink()
    with ExitStack() as stack:
        try:
            descriptor, temporary = stack.enter_context(scratch.file(out.parent, out.name))
        except OSError as error:
            raise UsageError(f"cannot write `{out}`: {error.strerror}", hint="Give another path with -o") from None
        with os.fdopen(descriptor, "wb") as plain:
            if out.name.lower().endswith(".gz"):
                with gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0, compresslevel=6) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield plain
        _refuse_existing(out)
        temporary.chmod(permitted(0o644))
        temporary.replace(out)
