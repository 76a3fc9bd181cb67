"""For any list of events, in any layout, cut anywhere: every intact event is kept.

The examples are the same in every run; ROOFTRACE_EXAMPLES=2000 tries as many others.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.errors import NotATrace
from tests.trace.reading import Folder, assert_same, cut_often, names_of, read_both, times_of

EXAMPLES = os.environ.get("ROOFTRACE_EXAMPLES")
SETTINGS = settings(
    max_examples=int(EXAMPLES or 60), derandomize=EXAMPLES is None, database=None, deadline=None, print_blob=False
)

NAMES = st.one_of(
    st.sampled_from(["},{", '"}],"x":[{', "]", "\\", '"', "{[", "a\\", '"traceEvents":[', "核", "\n", "nan", "inf,"]),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=12),
)
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), NAMES
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
NANOSECONDS = st.one_of(st.integers(0, 10**13), st.integers(1_600_000_000 * 10**9, 1_800_000_000 * 10**9))


def microseconds(ns: int) -> str:
    """The decimal number of µs, exactly."""
    return f"{ns // 1000}.{ns % 1000:03d}"


@st.composite
def events(draw: st.DrawFn) -> tuple[str, str, int, int]:
    """Text of a complete event; its name, start and duration in ns."""
    name, start, dur = draw(NAMES), draw(NANOSECONDS), draw(st.integers(0, 10**9))
    fields: dict[str, Any] = {"cat": "kernel", "name": name, "pid": 0, "tid": draw(st.integers(0, 9)), "ph": "X"}
    fields["args"] = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n\t", " : ")]))
    text = json.dumps(fields, ensure_ascii=draw(st.booleans()), separators=separators)
    at = draw(st.sampled_from(["head", "tail"]))
    times = f'"ts":{microseconds(start)}{separators[0]}"dur":{microseconds(dur)}'
    text = "{" + times + separators[0] + text[1:] if at == "head" else text[:-1] + separators[0] + times + "}"
    return text, name, start, dur


# A GPU event of one launch that is written twice is dropped.
DIFFERENT = st.lists(events(), max_size=12, unique_by=lambda event: event[1:])
SPACES = st.text(alphabet=" \t\r\n", max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, str, int, int]]]:
    """A document, and of each event: where it ends, name, start, duration."""
    text = draw(
        st.sampled_from(
            ['{"traceEvents":[', '{"schemaVersion": 1, "traceEvents" : [', "[", '\ufeff{\n"traceEvents": [\n']
        )
    )
    known = []
    for number, (event, *facts) in enumerate(draw(DIFFERENT)):
        text += (draw(SPACES) + "," if number else "") + draw(SPACES) + event
        known.append((len(text.encode()), *facts))
    text += draw(SPACES) + "]"
    if not text.startswith("["):
        text += draw(st.sampled_from(["}", ',"traceName":"t"}', ' , "deviceProperties":[{"id":0},{"id":1}]\n}\n']))
    return text.encode(), known


def load_cut(content: bytes, block: int) -> tuple[Any, Any] | None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        cut_often(patch, block, max(1, block // 2))
        try:
            return Folder(Path(folder)).load(content)
        except NotATrace:
            return None


def assert_holds(loaded: tuple[Any, Any] | None, known: list[tuple[int, str, int, int]]) -> None:
    # Events at or before zero beside a clock that has run for a minute are dropped on purpose.
    late = [start for _, _, start, _ in known if start > 0]
    if late and min(late) > 60 * 10**9:
        known = [event for event in known if event[2] > 0]
    if loaded is None:
        assert known == []
        return
    trace, _ = loaded
    assert names_of(trace) == [name for _, name, _, _ in known]
    assert times_of(trace) == [(start, dur) for _, _, start, dur in known]


@SETTINGS
@given(documents(), st.integers(8, 400))
def test_every_event_of_a_document_is_read_wherever_its_pieces_are_cut(document, block: int) -> None:
    content, known = document

    loaded = load_cut(content, block)

    assert_holds(loaded, known)
    if loaded is not None:
        assert loaded[0].dropped.counts.keys() <= {"GPU event at time zero"}
        assert loaded[0].repaired.counts == {}
        assert loaded[1].truncated is None


@SETTINGS
@given(documents(), st.integers(8, 400), st.floats(0, 1))
def test_every_whole_event_before_a_cut_is_kept(document, block: int, part: float) -> None:
    content, known = document
    start = content.index(b"[") + 1
    length = start + int(part * (len(content) - start))

    assert_holds(load_cut(content[:length], block), [event for event in known if event[0] <= length])


@SETTINGS
@given(documents(), st.integers(8, 400), st.binary(max_size=8), st.floats(0, 1))
def test_damage_in_one_event_leaves_the_others(document, block: int, damage: bytes, part: float) -> None:
    """The damage replaces the middle of an event's text; that event alone may be lost or changed."""
    content, known = document
    if len(known) < 2:
        return
    number = int(part * (len(known) - 1))
    begin, end = (known[number - 1][0] if number else content.index(b"[") + 1), known[number][0]
    first = content.index(b"{", begin)
    middle = (first + end) // 2
    damaged = content[:middle] + b"\x02" + damage.translate(None, b'"{}[],\\') + content[middle + 1 :]

    loaded = load_cut(damaged, block)

    others = [event for event in known if event is not known[number]]
    kept = [] if loaded is None else list(zip(names_of(loaded[0]), times_of(loaded[0]), strict=True))
    late = [start for _, _, start, _ in others if start > 0]
    for _, name, start, dur in others:
        if start > 0 or not late or min(late) <= 60 * 10**9:
            assert (name, (start, dur)) in kept


@SETTINGS
@given(documents())
def test_both_readers_agree_on_any_document(document) -> None:
    content, _ = document
    with tempfile.TemporaryDirectory() as folder:
        path = Folder(Path(folder)).write(content.removeprefix(b"\xef\xbb\xbf"))
        assert_same(*read_both(path))


@SETTINGS
@given(
    st.one_of(st.binary(max_size=300), st.text(alphabet='{}[]",:\\0aX ', max_size=200).map(str.encode)), st.booleans()
)
def test_no_content_raises_anything_but_a_refusal(content: bytes, with_array: bool) -> None:
    load_cut((b'{"traceEvents":[' if with_array else b"") + content, 32)
