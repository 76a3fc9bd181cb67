"""The healthy trace written anew: each form holds all of its events.

A dictionary each: of forms about which nothing is to be said; of those about which Trace Health says something, with
what; and of those that have no place for a header.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import zstandard

from tests.support.trace_builder import tar_of, zip_of
from tests.trace.healthy import healthy

if TYPE_CHECKING:
    from collections.abc import Callable

DOCUMENT = healthy().document()
EVENTS: list[dict[str, Any]] = DOCUMENT["traceEvents"]
HEADER = {key: value for key, value in DOCUMENT.items() if key != "traceEvents"}
HEALTHY = healthy().json()
LINES = [json.dumps(event, separators=(",", ":")).encode() for event in EVENTS]


def compact(value: Any, **options: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), **options).encode()


def with_events(events: list[Any]) -> bytes:
    return compact(DOCUMENT | {"traceEvents": events})


def each_event(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> bytes:
    """All events changed: in place, or by what `change` returns."""
    return with_events([change(event) or event for event in copy.deepcopy(EVENTS)])


def each_argument(change: Callable[[str, Any], Any]) -> bytes:
    def changed(event: dict[str, Any]) -> dict[str, Any]:
        return event | {"args": {key: change(key, value) for key, value in event.get("args", {}).items()}}

    return each_event(changed)


def each_time(change: Callable[[Decimal], str]) -> bytes:
    """The text of every start and duration changed."""
    return re.sub(
        rb'("(?:ts|dur)":)([0-9.]+)', lambda m: m.group(1) + change(Decimal(m.group(2).decode())).encode(), HEALTHY
    )


def each_start(change: Callable[[Decimal], str]) -> bytes:
    return re.sub(rb'("ts":)([0-9.]+)', lambda m: m.group(1) + change(Decimal(m.group(2).decode())).encode(), HEALTHY)


def texts(event: dict[str, Any], *keys: str) -> dict[str, Any]:
    return event | {key: str(event[key]) for key in keys if key in event}


def floats(value: Any) -> Any:
    """The value with every whole number as a float."""
    if isinstance(value, list):
        return [floats(item) for item in value]
    if isinstance(value, dict):
        return {key: floats(item) for key, item in value.items()}
    return float(value) if isinstance(value, int) else value


def shuffled() -> bytes:
    events = EVENTS[:]
    random.Random(5).shuffle(events)  # noqa: S311 - any order
    return with_events(events)


def with_larger_ids(by: int) -> bytes:
    """Correlations, and the ids of the flows that are the same, so much larger."""

    def larger(event: dict[str, Any]) -> dict[str, Any]:
        args = event.get("args", {})
        told = {"args": args | {"correlation": args["correlation"] + by}} if "correlation" in args else {}
        return event | told | ({"id": event["id"] + by} if "id" in event else {})

    return each_event(larger)


def halves() -> list[dict[str, Any]]:
    """All complete events as a begin and an end, by time."""
    found: list[tuple[float, int, float, dict[str, Any]]] = []
    for event in EVENTS:
        if event["ph"] != "X":
            found.append((event["ts"], 2, 0, event))
            continue
        begin = {key: value for key, value in event.items() if key != "dur"} | {"ph": "B"}
        end = {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": event["ts"] + event["dur"]}
        found += [(event["ts"], 1, -event["dur"], begin), (end["ts"], 0, 0, end)]
    return [event for *_, event in sorted(found, key=lambda one: one[:3])]


ABSENT = ("correlation", "External id", "stream", "device", "bytes", "Sequence number", "Fwd thread id", "grid")
NULLS = dict.fromkeys(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"))
BEHIND = b'],"traceName"'
GZIP = gzip.compress(HEALTHY, mtime=0)
TIMES, PLACES = ("ts", "dur"), ("pid", "tid", "id")

SAME: dict[str, bytes] = {
    # order
    "events in any order": shuffled(),
    "events from the last to the first": with_events(EVENTS[::-1]),
    "events by time": with_events(sorted(EVENTS, key=lambda event: event["ts"])),
    "keys by name": compact(DOCUMENT, sort_keys=True),
    "keys of events from the last to the first": each_event(lambda event: dict(reversed(event.items()))),
    "arguments first": each_event(lambda event: {"args": event.get("args", {})} | event),
    "events before the header": compact({"traceEvents": EVENTS} | HEADER),
    "events behind the header": compact(HEADER | {"traceEvents": EVENTS}),
    # white space and bytes around
    "spaces": json.dumps(DOCUMENT).encode(),
    "lines": json.dumps(DOCUMENT, indent=0).encode(),
    "indented": json.dumps(DOCUMENT, indent=4).encode(),
    "tabs": json.dumps(DOCUMENT, indent="\t").encode(),
    "CRLF": json.dumps(DOCUMENT, indent=2).replace("\n", "\r\n").encode(),
    "CR": json.dumps(DOCUMENT, indent=2).replace("\n", "\r").encode(),
    "much space between events": HEALTHY.replace(b"},{", b"}" + b" " * 500 + b"," + b"\n" * 500 + b"{"),
    "space before the array": HEALTHY.replace(b'"traceEvents":[', b'"traceEvents"' + b" " * 30 + b":\n   [\n   "),
    "byte order mark": b"\xef\xbb\xbf" + HEALTHY,
    "zeros behind": HEALTHY + bytes(100),
    "zeros between": HEALTHY.replace(b'},{"ph"', b'},\0\0\0{"ph"'),
    "end-of-file sign of DOS": HEALTHY + b"\x1a",
    "log line behind": HEALTHY + b"\n-- done --\n",
    "last bracket missing": HEALTHY[:-1],
    "cut behind the events": HEALTHY[:-5],
    # encodings
    **{f"in {name}": HEALTHY.decode().encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")},
    "in UTF-16 with the other mark": ("\ufeff" + HEALTHY.decode()).encode("utf-16-be"),
    "in UTF-16 in gzip": gzip.compress(HEALTHY.decode().encode("utf-16")),
    "a phase as an escape": HEALTHY.replace(b'"ph":"X"', b'"ph":"\\u0058"'),
    "a key of arguments as an escape": HEALTHY.replace(b'"correlation"', b'"c\\u006frrelation"'),
    # what is around the array
    "in a document": b'{"traceEvents":[' + HEALTHY + b"]}",
    "in an array": b"[" + HEALTHY + b"]",
    "in an array behind an empty object": b"[ {} ," + HEALTHY + b"]",
    "under a key": b'{"data":' + HEALTHY + b"}",
    "behind an empty array of its name": HEALTHY.replace(b'"traceEvents":[', b'"traceEvents":[],"traceEvents":['),
    "before an empty array of its name": HEALTHY[:-1] + b',"traceEvents":[]}',
    "behind another's empty array": HEALTHY.replace(b'{"sch', b'{"x":{"traceEvents":[]},"sch', 1),
    "behind a text that names it": HEALTHY.replace(b'{"sch', b'{"x":"\\"traceEvents\\":[{\\"ph\\"","sch', 1),
    "behind its header": compact(HEADER) + b"\n" + HEALTHY,
    "behind long log lines": HEALTHY.replace(b'{"sch', b'{"ERROR":["' + b"x" * 300_000 + b'"],"sch', 1),
    # numbers
    "times as text": each_event(lambda event: texts(event, *TIMES)),
    "times as text in spaces": each_event(lambda event: event | {k: f" {event[k]} " for k in TIMES if k in event}),
    "places as text": each_event(lambda event: texts(event, *PLACES)),
    "places as floats": each_event(lambda event: event | {k: floats(event[k]) for k in PLACES if k in event}),
    "numbers in arguments as text": each_argument(lambda _, value: str(value) if isinstance(value, int) else value),
    "lists in arguments as text": each_argument(lambda _, v: compact(v).decode() if isinstance(v, list) else v),
    "numbers in arguments as floats": each_argument(lambda _, value: floats(value)),
    "arguments as text": each_event(lambda event: event | {"args": compact(event.get("args", {})).decode()}),
    "times with exponents": each_time(lambda time: f"{time:E}"),
    "times with sixteen decimals": each_time(lambda time: f"{time:.16f}"),
    "ids with exponents": re.sub(
        rb'("(?:correlation|External id|stream|bytes|id)":)([0-9]+)',
        lambda m: m.group(1) + f"{Decimal(m.group(2).decode()):E}".encode(),
        HEALTHY,
    ),
    "ids beyond doubles": with_larger_ids(2**53),
    "ids beyond 63 bits": with_larger_ids(2**63 + 2**62),
    "ids of flows in hexadecimal": each_event(lambda e: e | {"id": hex(e["id"])} if "id" in e else e),
    "times since 1970": each_start(lambda time: str(time + 1_700_000_000_000_000)),
    "times beyond doubles": each_start(lambda time: str(time + 2**43)),
    "times before zero": each_start(lambda time: str(time - 5_000)),
    **{f"unit of display {unit!r}": compact(DOCUMENT | {"displayTimeUnit": unit}) for unit in ("ns", "s", None, 5)},
    # keys
    "keys twice": HEALTHY.replace(b'"ph":"X"', b'"ph":"X","ph":"X"'),
    "arguments twice": HEALTHY.replace(b'"args":{', b'"args":{},"args":{'),
    "durations twice, the last one right": re.sub(rb'("dur":)([0-9.]+)', rb"\1 1,\1\2", HEALTHY),
    "nulls for keys that are absent": each_event(lambda event: NULLS | event),
    "nulls for arguments that are absent": each_event(
        lambda event: event | {"args": dict.fromkeys(ABSENT) | event.get("args", {})}
    ),
    "categories in capitals": each_event(lambda e: e | {"cat": e["cat"].upper()} if "cat" in e else e),
    "neither device nor stream in arguments": each_event(
        lambda e: e | {"args": {k: v for k, v in e.get("args", {}).items() if k not in ("device", "stream")}}
    ),
    "streams by name": each_event(
        lambda e: e | {"tid": f"stream {e['tid']}"} if e.get("cat") in ("kernel", "gpu_memcpy") else e
    ),
    "events in two halves": with_events(halves()),
    # commas
    "comma behind the last event": HEALTHY.replace(BEHIND, b"," + BEHIND),
    "comma behind the last key": HEALTHY[:-1] + b",}",
    "comma before the first event": HEALTHY.replace(b'"traceEvents":[', b'"traceEvents":[,'),
    "two commas between events": HEALTHY.replace(b'},{"ph"', b'},,{"ph"'),
    "no commas between events": HEALTHY.replace(b'},{"ph"', b'}{"ph"'),
    "lines instead of commas between events": HEALTHY.replace(b'},{"ph"', b'}\n{"ph"'),
    "empty objects between events": HEALTHY.replace(b'},{"ph"', b'},{},{"ph"'),
    # wrappings in one another
    "gzip": GZIP,
    "gzip in gzip": gzip.compress(GZIP),
    "gzip in gzip in gzip in gzip": gzip.compress(gzip.compress(gzip.compress(GZIP))),
    "gzip of many members": b"".join(gzip.compress(HEALTHY[at : at + 100]) for at in range(0, len(HEALTHY), 100)),
    "gzip with a byte order mark": gzip.compress(b"\xef\xbb\xbf" + HEALTHY),
    "gzip in zstd": zstandard.ZstdCompressor().compress(GZIP),
    "zstd in gzip": gzip.compress(zstandard.ZstdCompressor().compress(HEALTHY)),
    "zip in tar": tar_of({"run.zip": zip_of({"trace.json": HEALTHY})}),
    "zip in zip": zip_of({"run.zip": zip_of({"trace.json": HEALTHY})}),
    "tar in zip": zip_of({"run.tar": tar_of({"trace.json": HEALTHY})}),
    "tar in tar": tar_of({"run.tar": tar_of({"trace.json": HEALTHY})}),
    "tar.gz in zip": zip_of({"run.tgz": gzip.compress(tar_of({"trace.json": HEALTHY}))}),
}

NUMBERLESS = ("NaN", "Infinity", "-Infinity", "nan", "-nan", "inf", "-inf", "-nan(ind)", "1.#INF", "-1.#IND", "1.#QNAN")
FIRST = HEALTHY.index(b'{"ph":"M"')
SECOND = HEALTHY.index(b'{"ph":"M"', FIRST + 1)
ARGUED = sum(b'"args":{' in line for line in LINES)
PASSED = "What stands between events and is none was passed over: {} times, the first at byte {}."
MENDED = "{} events repaired: {}, the first at byte {}."
SECOND_TRACE = "30 events dropped: second trace in the same file, the first at byte {}."
BETWEEN = {
    "comments": HEALTHY.replace(b'},{"ph"', b'},// log\n{"ph"'),
    "nulls": HEALTHY.replace(b'},{"ph"', b'},null,{"ph"'),
    "numbers": HEALTHY.replace(b'},{"ph"', b'},7,{"ph"'),
    "spaces of Unicode": HEALTHY.replace(b'},{"ph"', '},\u00a0{"ph"'.encode()),
}
# what follows the first event and its comma
TOLD: dict[str, tuple[bytes, list[str]]] = {
    **{
        f"{token} in arguments": (
            HEALTHY.replace(b'"args":{"', b'"args":{"x":' + token.encode() + b',"'),
            [MENDED.format(ARGUED - 6, "not a finite number", FIRST)],
        )
        for token in NUMBERLESS
    },
    "comma behind the last key of events": (
        re.sub(rb"\},\{", rb",},{", HEALTHY),
        [MENDED.format(len(EVENTS) - 1, "stray comma", FIRST)],
    ),
    **{f"{what} between events": (text, [PASSED.format(45, SECOND)]) for what, text in BETWEEN.items()},
    "in an array in the array": (
        HEALTHY.replace(b'"traceEvents":[', b'"traceEvents":[[').replace(BEHIND, b"]" + BEHIND),
        [PASSED.format(1, FIRST)],
    ),
    "behind a damaged header": (
        HEALTHY.replace(b'{"sch', b'{"ERROR":["said "x"",a\n],"sch', 1),
        ["The header is damaged: what could be read of it is used, keys may be missing."],
    ),
    "before another trace": (
        HEALTHY + b"\n" + HEALTHY,
        [SECOND_TRACE.format(len(HEALTHY) + 1 + HEALTHY.index(b'"traceEvents"'))],
    ),
    "before the array again": (
        HEALTHY[:-1] + b',"traceEvents":' + compact(EVENTS) + b"}",
        [SECOND_TRACE.format(len(HEALTHY))],
    ),
}

HEADERLESS: dict[str, bytes] = {
    "an array": compact(EVENTS),
    "an array on lines": b"[\n" + b",\n".join(LINES) + b"\n]\n",
    "a line for each event": b"\n".join(LINES),
    "a line for each event and its end": b"\n".join(LINES) + b"\n",
    "a line for each event, with CRLF": b"\r\n".join(LINES) + b"\r\n",
    "a line for each event, with commas": b",\n".join(LINES),
    "a line for each event, behind a byte order mark": b"\xef\xbb\xbf" + b"\n".join(LINES),
    "a line for each event, in gzip": gzip.compress(b"\n".join(LINES)),
    "a line for each event, in UTF-16": b"\n".join(LINES).decode().encode("utf-16"),
    "an array in two halves": compact(halves()),
}
