"""Damaged text: what is intact is kept, what can be mended is, and both are counted with the offset of the first."""

from __future__ import annotations

import pytest

from rooftrace.errors import NotATrace
from tests.trace.reading import Folder, cut_often, document, kernel, names_of, times_of

BEFORE, BEHIND = kernel("before", 10, 2), kernel("behind", 90, 1)
FIRST_OFFSET = len('{"schemaVersion":1,"traceEvents":[') + len(BEFORE) + 1


def raw(name: bytes, args: bytes = b"{}") -> bytes:
    """A kernel whose name or arguments stand there as they are."""
    return b'{"ph":"X","cat":"kernel","name":"' + name + b'","pid":0,"tid":7,"ts":20,"dur":5,"args":' + args + b"}"


# the event's text, the mends it takes, its name
MENDED = {
    "nan": (raw(b"k", b'{"x":NaN}'), ["not a finite number"], "k"),
    "negative nan": (raw(b"k", b'{"x":-nan,"y":[nan]}'), ["not a finite number"], "k"),
    "infinite bandwidth": (raw(b"k", b'{"memory bandwidth (GB/s)":inf}'), ["not a finite number"], "k"),
    "negative infinity": (raw(b"k", b'{"x": -Infinity }'), ["not a finite number"], "k"),
    "nan beside a name that spells it": (raw(b"f(a: nan, b)", b'{"x":nan}'), ["not a finite number"], "f(a: nan, b)"),
    "invalid UTF-8": (raw(b"a\xff\xfeb"), ["invalid UTF-8"], "a\ufffd\ufffdb"),
    "UTF-8 cut in a character": (raw(b"a\xe2\x82"), ["invalid UTF-8"], "a\ufffd"),
    "control character": (raw(b"a\x01b"), ["control character in a string"], "a\x01b"),
    "newline in a name": (raw(b"a\nb"), ["control character in a string"], "a\nb"),
    "tab in an argument": (raw(b"k", b'{"note":"a\tb"}'), ["control character in a string"], "k"),
    "Windows path": (
        raw(rb"torch\cuda\__init__.py(219): f"),
        ["unknown escape in a string"],
        r"torch\cuda\__init__.py(219): f",
    ),
    "Windows path with a u": (raw(rb"C:\users\x.py"), ["unknown escape in a string"], r"C:\users\x.py"),
    "half of a pair": (raw(rb"a\ud83db"), ["half of a surrogate pair"], "a\ufffdb"),
    "stray comma": (raw(b"k", b'{"x":1,}'), ["stray comma"], "k"),
    "quotes in a name": (
        raw(b'{"device": "cpu"}(12): run'),
        ["unescaped quote in a name"],
        '{"device": "cpu"}(12): run',
    ),
    "one quote in a name": (raw(b'a"b'), ["unescaped quote in a name"], 'a"b'),
    "quotes in a name with a boundary": (
        raw(b'[{"a": 1}, {"b": 2}](3): run'),
        ["unescaped quote in a name"],
        '[{"a": 1}, {"b": 2}](3): run',
    ),
    "escaped and bare quotes": (raw(rb'a\"b"c'), ["unescaped quote in a name"], 'a"b"c'),
    "quotes and a newline": (
        raw(b'x = "a\nb"'),
        ["control character in a string", "unescaped quote in a name"],
        'x = "a\nb"',
    ),
    "invalid UTF-8 and nan": (raw(b"\xff", b'{"x":nan}'), ["invalid UTF-8", "not a finite number"], "\ufffd"),
}


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("case", MENDED)
def test_a_damaged_event_is_mended_and_counted(folder: Folder, case: str, place: str) -> None:
    event, reasons, name = MENDED[case]
    events = {"first": [event, BEFORE, BEHIND], "middle": [BEFORE, event, BEHIND], "last": [BEFORE, BEHIND, event]}[
        place
    ]

    content = document(*events)
    trace, facts = folder.load(content)

    assert sorted(times_of(trace)) == [(10_000, 2_000), (20_000, 5_000), (90_000, 1_000)]
    assert sorted(names_of(trace)) == sorted(["before", name, "behind"])
    assert trace.repaired.counts == dict.fromkeys(reasons, 1)
    assert trace.repaired.first_offset == dict.fromkeys(reasons, content.index(event))
    assert trace.dropped.counts == {}
    assert facts.truncated is None
    assert trace.header == {"schemaVersion": 1, "traceName": "t"}


@pytest.mark.parametrize("block", [64, 200, 1000])
@pytest.mark.parametrize("case", sorted(set(MENDED) - {"quotes in a name with a boundary"}))
def test_a_damaged_event_is_mended_wherever_the_text_is_cut(folder: Folder, monkeypatch, case: str, block: int) -> None:
    cut_often(monkeypatch, block, block // 2)
    event, reasons, name = MENDED[case]
    around = [kernel(f"k{n}", 100 + n, 1) for n in range(30)]

    trace = folder.trace(document(*around[:15], event, *around[15:], event))

    assert names_of(trace) == [*(f"k{n}" for n in range(15)), name, *(f"k{n}" for n in range(15, 30)), name]
    assert trace.repaired.counts == dict.fromkeys(reasons, 2)
    assert trace.dropped.counts == {}


UNREADABLE = {
    "missing quote before a key": b'{"ph":"X","cat":"kernel","name":"k","pid":0,tid": 0,"ts":20,"dur":5}',
    "missing brace": b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":0,"ts":20,"dur":5,"args":{"x":1}',
    "string never closed": b'{"ph":"X","cat":"kernel","ts":20,"dur":5,"args":{"x":"abc}}',
    "overwritten by zeros": b'{"ph":"X","cat":"kernel","name":"k' + bytes(100) + b',"dur":5}',
    "overwritten by another": b'{"ph":"X","cat":"ker{"ph":"X","cat":"cpu_op","name":"k","pid":0}',
    "number of two points": b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20.5.1,"dur":5}',
    "broken in objects in arguments": b'{"ph":"X","name":"k","args":{"l":[{"a":1},{"b":2},{"c":3}],"x":]},"ts":1}',
}


@pytest.mark.parametrize("block", [1 << 20, 64, 300], ids=["one piece", "small pieces", "middling pieces"])
@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_event_costs_only_itself(folder: Folder, monkeypatch, case: str, block: int) -> None:
    cut_often(monkeypatch, block, block)
    behind = [kernel(f"k{n}", 100 + n, 1) for n in range(20)]

    trace, facts = folder.load(document(BEFORE, UNREADABLE[case], *behind))

    assert names_of(trace) == ["before", *(f"k{n}" for n in range(20))]
    assert trace.dropped.counts == {"unreadable event": 1}
    assert trace.dropped.first_offset == {"unreadable event": FIRST_OFFSET}
    assert trace.repaired.counts == {}
    assert facts.truncated is None


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_last_event_does_not_hide_the_envelope(folder: Folder, case: str) -> None:
    trace, facts = folder.load(document(BEFORE, UNREADABLE[case]))

    assert names_of(trace) == ["before"]
    assert trace.dropped.counts == {"unreadable event": 1}
    assert trace.header == {"schemaVersion": 1, "traceName": "t"}
    assert facts.truncated is None


def test_two_unreadable_events_in_a_row_are_two(folder: Folder) -> None:
    broken = UNREADABLE["number of two points"]

    trace = folder.trace(document(BEFORE, broken, broken, BEHIND))

    assert names_of(trace) == ["before", "behind"]
    assert trace.dropped.counts == {"unreadable event": 2}


def test_a_string_never_closed_does_not_swallow_events_whose_names_hold_boundaries(folder: Folder) -> None:
    behind = [kernel(f"a}},{{{n}", 100 + n, 1, '{"l":[{"x":1},{"x":2}]}') for n in range(5)]

    trace = folder.trace(document(BEFORE, UNREADABLE["string never closed"], *behind))

    assert names_of(trace) == ["before", "a},{0", "a},{1", "a},{2", "a},{3", "a},{4"]
    assert trace.dropped.first_offset == {"unreadable event": FIRST_OFFSET}


def test_values_that_are_no_objects_are_skipped(folder: Folder) -> None:
    trace = folder.trace(document(BEFORE, "null", BEHIND))

    assert names_of(trace) == ["before", "behind"]


def test_text_between_events_is_skipped_and_counted(folder: Folder) -> None:
    trace = folder.trace(document(BEFORE, "12, [log] ", BEHIND))

    assert names_of(trace) == ["before", "behind"]
    assert trace.dropped.counts == {"text between events": 1}
    assert trace.dropped.first_offset == {"text between events": FIRST_OFFSET}


@pytest.mark.parametrize("between", ["", " ", ",,", "\n,\n,\n"], ids=["none", "space", "two", "two on lines"])
def test_commas_between_events_may_be_missing_or_doubled(folder: Folder, between: str) -> None:
    trace = folder.trace(('{"traceEvents":[' + between.join([BEFORE, BEHIND, BEFORE, BEHIND]) + "]}").encode())

    assert names_of(trace) == ["before", "behind", "before", "behind"]
    assert trace.dropped.counts == {}


CUT = document(kernel("before", 10, 2), kernel("a},{b", 20, 5, '{"l":[{"x":1},{"y":"]"}]}'), kernel("behind", 90, 1))
EVENT_ENDS = [
    CUT.index(b',{"ph":"X","cat":"kernel","name":"a}'),
    CUT.index(b',{"ph":"X","cat":"kernel","name":"behind'),
]
EVENT_ENDS.append(CUT.index(b'],"traceName"'))


@pytest.mark.parametrize("block", [1 << 20, 64], ids=["one piece", "small pieces"])
def test_a_document_cut_anywhere_keeps_every_event_before_the_cut(folder: Folder, monkeypatch, block: int) -> None:
    cut_often(monkeypatch, block, block)
    for length in range(CUT.index(b"[") + 1, len(CUT)):
        whole = sum(end <= length for end in EVENT_ENDS)
        if whole == 0:
            with pytest.raises(NotATrace):
                folder.load(CUT[:length])
            continue
        trace, facts = folder.load(CUT[:length])
        # a cut right behind an event or its comma leaves nothing over
        clean = any(length - end in (0, 1) for end in EVENT_ENDS) or length > EVENT_ENDS[2]
        assert len(trace.kind) == whole, CUT[:length]
        assert trace.dropped.counts == ({} if clean else {"event cut short by the end of the file": 1}), CUT[:length]
        assert facts.truncated == ("the event array is not closed" if length <= EVENT_ENDS[2] else None)


def test_many_damaged_events_are_each_counted(folder: Folder) -> None:
    events = [raw(f"k{n}".encode(), b'{"bandwidth":inf}' if n % 3 == 0 else b'{"bandwidth":1.5}') for n in range(6000)]

    trace = folder.trace(document(*events))

    assert names_of(trace) == [f"k{n}" for n in range(6000)]
    assert trace.repaired.counts == {"not a finite number": 2000}


def test_arguments_that_are_recorded_as_text_may_hold_any_bytes(folder: Folder) -> None:
    args = b'{"Input Dims":[[2,3]],"Input type":["float\xff"],"Concrete Inputs":["\\ud800"]}'
    event = b'{"ph":"X","cat":"cpu_op","name":"aten::x","pid":1,"tid":1,"ts":20,"dur":5,"args":' + args + b"}"

    trace = folder.trace(document(event))

    assert trace.signatures[0].dims == [[2, 3]]
    assert trace.signatures[0].types == ["float\ufffd"]
