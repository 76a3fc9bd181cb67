"""Mutations of a trace: of its bytes, and of the values in its events. A source of choices decides all of them."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**32 - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    10**30,
    0.5,
    -0.0,
    1e300,
    -1e300,
    1e-300,
    "",
    "0",
    "-1",
    "1e5",
    "stream 7",
    "NaN",
    "</td><script>",
    "| a | b |\n# x",
    "{{ 7 * 7 }}",
    "%s%n{0}",
    "\x00\x1b[31m",
    "\u202e\ud7ff",
    "../../etc/passwd",
    "aten::mm",
    "ProfilerStep#0",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "Memcpy DtoH (Device -> Pageable)",
    "cudaGraphLaunch",
    [],
    [[]],
    [[[[[]]]]],
    [0],
    [-1, -1],
    [[10**9, 10**9], [10**9, 10**9]],
    [[0, 0], [0, 0]],
    [["x"], None],
    {},
    {"x": {}},
    {"handle": 2**70},
)
_PIECES = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b"\\",
    b"\x00",
    b"\xff",
    b"nan",
    b"inf",
    b"1e999",
    b'"traceEvents":[',
    b"},{",
    b"\\u0000",
    b"\\ud800",
    b"\n",
)


def mutated(content: bytes, choose: Random) -> bytes:
    """The content with one to four mutations; mostly of events where it is a document."""
    for _ in range(choose.randint(1, 4)):
        change = choose.choice(_OF_BYTES if choose.random() < 0.4 else _OF_EVENTS)
        content = change(content, choose)
        if not content:
            break
    return content


def _flip(content: bytes, choose: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(choose.choice((1, 1, 3, 20))):
        changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
    return bytes(changed)


def _cut(content: bytes, choose: Random) -> bytes:
    return content[: choose.randrange(len(content) + 1)]


def _insert(content: bytes, choose: Random) -> bytes:
    at = choose.randrange(len(content) + 1)
    return content[:at] + choose.choice(_PIECES) * choose.choice((1, 1, 2, 50, 5000)) + content[at:]


def _remove(content: bytes, choose: Random) -> bytes:
    at = choose.randrange(len(content) + 1)
    return content[:at] + content[at + choose.choice((1, 5, 60, 600)) :]


def _repeat(content: bytes, choose: Random) -> bytes:
    start = choose.randrange(len(content) + 1)
    piece = content[start : start + choose.choice((3, 100, 1000))]
    return content[:start] + piece * choose.choice((2, 5, 40)) + content[start:]


_OF_BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (_flip, _cut, _insert, _remove, _repeat)


def _on_events(change: Callable[[list[dict[str, Any]], Random], None]) -> Callable[[bytes, Random], bytes]:
    """A mutation of the events of a document; another of the bytes where there is none."""

    def mutate(content: bytes, choose: Random) -> bytes:
        try:
            document = json.loads(content)
            events = _events(document)
        except (ValueError, RecursionError):
            events = []
        if not events:
            return choose.choice(_OF_BYTES)(content, choose)
        change(events, choose)
        return json.dumps(document, separators=(",", ":")).encode("utf-8", "surrogatepass")

    return mutate


def _events(document: Any) -> list[dict[str, Any]]:
    """The list of events, or all objects of a result that is no Chrome trace."""
    listed = document.get("traceEvents") if isinstance(document, dict) else document
    if isinstance(listed, list) and all(isinstance(event, dict) for event in listed):
        return listed
    found: list[dict[str, Any]] = []
    _collect(document, found)
    return found


def _collect(value: Any, found: list[dict[str, Any]]) -> None:
    if isinstance(value, dict):
        found.append(value)
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, list):
        for item in value:
            _collect(item, found)


def _retype(events: list[dict[str, Any]], choose: Random) -> None:
    """One field of some events gets a value of any type."""
    value = choose.choice(HOSTILE)
    chosen = choose.sample(events, min(len(events), choose.choice((1, 1, 3, 1000))))
    inner = choose.random() < 0.5
    keys = sorted({key for event in chosen for key in _target(event, inner=inner)})
    if keys:
        key = choose.choice(keys)
        for event in chosen:
            _target(event, inner=inner)[key] = value


def _target(event: dict[str, Any], *, inner: bool) -> dict[str, Any]:
    args = event.get("args")
    return args if inner and isinstance(args, dict) else event


def _drop_field(events: list[dict[str, Any]], choose: Random) -> None:
    chosen = choose.choice(events)
    target = _target(chosen, inner=choose.random() < 0.5)
    if target:
        key = choose.choice(sorted(target))
        for event in events if choose.random() < 0.3 else [chosen]:
            _target(event, inner=target is not chosen).pop(key, None)


def _shift(events: list[dict[str, Any]], choose: Random) -> None:
    """Times of some events move, stretch or turn round."""
    by = choose.choice((-1e9, -50.0, -0.001, 0.001, 50.0, 1e9, 4e12))
    for event in choose.sample(events, max(1, len(events) // choose.choice((1, 2, 10)))):
        key = choose.choice(("ts", "dur"))
        if isinstance(event.get(key), int | float):
            event[key] = event[key] + by if choose.random() < 0.7 else event[key] * choose.choice((-1, 0, 1000))


def _long_name(events: list[dict[str, Any]], choose: Random) -> None:
    piece = choose.choice(("x", "void a<", "(", "核", "::", "_Z", "<b>"))
    choose.choice(events)["name"] = piece * choose.choice((300, 5000, 40_000))


def _deep(events: list[dict[str, Any]], choose: Random) -> None:
    depth = choose.choice((50, 400))
    value: Any = 1
    for _ in range(depth):
        value = [value] if choose.random() < 0.5 else {"x": value}
    choose.choice(events)["args"] = {choose.choice(("Input Dims", "grid", "Concrete Inputs", "x")): value}


def _multiply(events: list[dict[str, Any]], choose: Random) -> None:
    """Many copies of one event: in one stack, in as many streams, or under one launch."""
    event = choose.choice(events)
    way = choose.choice(("same", "nested", "lanes", "later"))
    for number in range(choose.choice((10, 300))):
        another = dict(event)
        args = event.get("args")
        another["args"] = dict(args) if isinstance(args, dict) else {}
        ts, dur = event.get("ts"), event.get("dur")
        if way == "lanes":
            another["tid"] = another["args"]["stream"] = number
        elif isinstance(ts, int | float) and isinstance(dur, int | float):
            another["ts"] = ts + number * (dur if way == "later" else 0.001)
            another["dur"] = dur if way != "nested" else max(0, dur - 0.002 * number)
        events.append(another)


def _shuffle(events: list[dict[str, Any]], choose: Random) -> None:
    choose.shuffle(events)


def _swap_values(events: list[dict[str, Any]], choose: Random) -> None:
    """One event takes a field of another."""
    one, other = choose.choice(events), choose.choice(events)
    if other:
        key = choose.choice(sorted(other))
        one[key] = copy.deepcopy(other[key])  # the same value might hold `one`


_OF_EVENTS = tuple(
    _on_events(change)
    for change in (
        _retype,
        _retype,
        _retype,
        _drop_field,
        _shift,
        _shift,
        _long_name,
        _deep,
        _multiply,
        _multiply,
        _shuffle,
        _swap_values,
    )
)
