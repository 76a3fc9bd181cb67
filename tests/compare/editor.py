"""Edited copies of a trace: the same run with one thing changed, and what that is worth, in integer ns.

Times of a document are µs with three decimals; all arithmetic here is in ns.
"""

from __future__ import annotations

import copy
import gzip
import json
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Any

Document = dict[str, Any]
Event = dict[str, Any]
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")


def read(path: Path) -> Document:
    """A trace file, gzipped or not."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def write(document: Document, path: Path) -> Path:
    """The document as a plain file; returns its path."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def slowed(document: Document, name: str, factor: int) -> tuple[Document, int]:
    """Every kernel whose name holds `name` takes `factor` times as long; what that adds to the run."""
    slow = [event for event in gpu_events(document) if name in event["name"]]
    pieces = [(start(event), end(event), factor) for event in slow]
    return warped(document, pieces), sum((factor - 1) * (end(event) - start(event)) for event in slow)


def removed(document: Document, op: str) -> tuple[Document, int]:
    """The op is called no more and its kernels are gone, with everything else where it was; what they took."""
    calls = [event for event in document["traceEvents"] if event.get("name") == op and event.get("cat") == "cpu_op"]
    gone = {id(event) for event in document["traceEvents"] if any(_inside(event, call) for call in calls)}
    ids = {_correlation(event) for event in document["traceEvents"] if id(event) in gone and event.get("cat") in CALLS}
    work = [event for event in gpu_events(document) if _correlation(event) in ids]
    gone |= {id(event) for event in work}
    kept = [event for event in document["traceEvents"] if id(event) not in gone and not _is_flow(event, ids)]
    return {**document, "traceEvents": kept}, sum(end(event) - start(event) for event in work)


def synced(document: Document, wait_ns: int) -> tuple[Document, int]:
    """The host waits for the GPU before every launch that can take a wait; the gaps that this makes, summed.

    Such a launch call at L finds the last kernel (end E) running, and its own kernel starts at K with nothing queued
    before it. The wait lasts from L to E + wait, and everything later moves by E + wait - L. The gap is then
    K + (E + wait - L) - E = wait + K - L.
    """
    result = copy.deepcopy(document)
    total = 0
    for number, (call, before, kernel) in enumerate(reversed(_late_launches(result))):
        begins, ends = start(call), end(before)
        total += wait_ns + start(kernel) - begins
        moved = ends + wait_ns - begins
        for event in result["traceEvents"]:
            if "ts" not in event:
                continue
            is_gpu = event.get("cat") in GPU
            if start(event) >= (ends if is_gpu else begins):
                _put(event, start(event) + moved)
            elif not is_gpu and event.get("ph") == "X" and end(event) > begins:
                event["dur"] = _us(end(event) + moved - start(event))
        result["traceEvents"].append(_wait_call(call, begins, moved - 1, 900_000_001 + number))
    return result, total


def _wait_call(beside: Event, begins: int, lasts: int, correlation: int) -> Event:
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaStreamSynchronize",
        "pid": beside["pid"],
        "tid": beside["tid"],
        "ts": _us(begins),
        "dur": _us(lasts),
        "args": {"correlation": correlation, "cbid": 131},
    }


def serialised(document: Document, stream: int, onto: int) -> tuple[Document, int]:
    """What ran on one stream beside others runs on another one after them; the time in which it ran beside them."""
    result = copy.deepcopy(document)
    moves: list[tuple[int, int]] = []  # time of the recorded run, by how much what starts then or later moves
    placed: dict[int, int] = {}
    beside = 0
    for cluster in _clusters(gpu_events(result)):
        mine = [event for event in cluster if event["args"]["stream"] == stream]
        others = [event for event in cluster if event["args"]["stream"] != stream]
        if not mine or not others:
            continue
        at = max(map(end, others))
        for event in sorted(mine, key=start):
            placed[id(event)] = at
            at += end(event) - start(event)
        last = max(map(end, cluster))
        beside += sum(end(event) - start(event) for event in cluster) - (last - min(map(start, cluster)))
        moves.append((last, at - last))
    times, total = [time for time, _ in moves], [0]
    for _, by in moves:
        total.append(total[-1] + by)
    for event in result["traceEvents"]:
        if "ts" not in event:
            continue
        began = start(event)
        if id(event) in placed:
            _put(event, placed[id(event)] + total[bisect_right(times, began)])
            event["tid"] = event["args"]["stream"] = onto
            continue
        if event.get("ph") == "X" and event.get("cat") not in GPU:
            event["dur"] = _us(_moved(end(event), times, total) - _moved(began, times, total))
        _put(event, _moved(began, times, total))
    return result, beside


def _moved(time: int, times: list[int], total: list[int]) -> int:
    return time + total[bisect_right(times, time)]


def warped(document: Document, pieces: list[tuple[int, int, int]]) -> Document:
    """The document on another clock: inside each piece (start, end, factor) time passes at this factor."""
    pieces = sorted(pieces)
    ends = [high for _, high, _ in pieces]
    grown = [0]
    for low, high, factor in pieces:
        grown.append(grown[-1] + (factor - 1) * (high - low))

    def new(time: int) -> int:
        at = bisect_right(ends, time)
        inside = max(0, time - pieces[at][0]) * (pieces[at][2] - 1) if at < len(pieces) else 0
        return time + grown[at] + inside

    result = copy.deepcopy(document)
    for event in result["traceEvents"]:
        if "ts" in event:
            low = start(event)
            if event.get("ph") == "X":
                event["dur"] = _us(new(end(event)) - new(low))
            event["ts"] = _us(new(low))
    return result


def gpu_events(document: Document) -> list[Event]:
    """Kernels, copies and fills."""
    return [event for event in document["traceEvents"] if event.get("cat") in GPU]


def start(event: Event) -> int:
    """Begin of an event, ns."""
    return _ns(event["ts"])


def end(event: Event) -> int:
    """End of an event, ns."""
    return start(event) + _ns(event.get("dur", 0))


def _ns(us: float) -> int:
    return round(us * 1000)


def _us(ns: int) -> float:
    return ns / 1000


def _put(event: Event, time: int) -> None:
    event["ts"] = _us(time)


def _correlation(event: Event) -> int:
    value = event.get("args", {}).get("correlation", -1)
    return value if isinstance(value, int) else -1


def _inside(event: Event, call: Event) -> bool:
    if event.get("ph") != "X" or event.get("tid") != call["tid"] or event.get("pid") != call["pid"]:
        return False
    return start(call) <= start(event) and end(event) <= end(call)


def _is_flow(event: Event, ids: set[int]) -> bool:
    return event.get("cat") == "ac2g" and event.get("id") in ids


def _clusters(events: list[Event]) -> list[list[Event]]:
    """Events in groups that overlap or touch."""
    clusters: list[list[Event]] = []
    reach = -1
    for event in sorted(events, key=start):
        if start(event) >= reach:
            clusters.append([])
        clusters[-1].append(event)
        reach = max(reach, end(event))
    return clusters


def _late_launches(document: Document) -> list[tuple[Event, Event, Event]]:
    """(call, kernel before, its kernel): called while the last one ran, started with nothing queued before it."""
    calls = {_correlation(event): event for event in document["traceEvents"] if event.get("cat") in CALLS}
    work = sorted(gpu_events(document), key=start)
    found = []
    for before, kernel in pairwise(work):
        call = calls.get(_correlation(kernel))
        if call is not None and start(before) < start(call) < end(before) < start(kernel):
            found.append((call, before, kernel))
    return found
