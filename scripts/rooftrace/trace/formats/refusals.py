"""What is no trace that can be analysed, told by its first bytes: what it is and what to give instead."""

from __future__ import annotations

import re

from rooftrace.errors import NotATrace

_RECORD = "Record with torch.profiler and give what export_chrome_trace wrote"
_NSYS_REP = (
    "is an Nsight Systems report (.nsys-rep), which only Nsight Systems reads",
    "Export it with `nsys export --type sqlite REPORT.nsys-rep` and give the .sqlite file",
)
_NCU_REP = (
    "is an Nsight Compute report (.ncu-rep): metrics of single kernels, no timeline",
    "Give a trace of the whole run: of torch.profiler, or what `nsys export --type sqlite` wrote",
)
# How the content begins: what it is, what to do. The mark of .ncu-rep files is three letters and a zero.
_BEGINNINGS: dict[bytes, tuple[str, str]] = {
    b"NVR\x00": _NCU_REP,
    b"QDSTRM": _NSYS_REP,
    b"PERFILE2": ("is data of Linux `perf`, not a GPU trace", _RECORD),
    b"OTF2": ("is an OTF2 archive, not a GPU trace", _RECORD),
}
# Where the content is binary and bears no mark that is known, its name may still say what it is.
_SUFFIXES: dict[str, tuple[str, str]] = {
    ".nsys-rep": _NSYS_REP,
    ".qdrep": _NSYS_REP,
    ".qdstrm": _NSYS_REP,
    ".ncu-rep": _NCU_REP,
    ".otf2": ("is an OTF2 archive, not a GPU trace", _RECORD),
}
_VIZTRACER = "a VizTracer file (Python calls, no GPU events)"
# Texts that all occur in JSON: what it is, what to do. VizTracer's own key stands at the end of its files, the
# category of its events from the beginning on; with `log_torch` it holds kernels, too.
_JSON: tuple[tuple[tuple[bytes, ...], str, str], ...] = (
    ((b'"viztracer_metadata"',), _VIZTRACER, _RECORD),
    ((b'"cat":"FEE"',), _VIZTRACER, _RECORD),
    ((b'"cat": "FEE"',), _VIZTRACER, _RECORD),
    (
        (b'"$schema"', b"speedscope"),
        "a speedscope profile (py-spy and others: samples of a CPU, no GPU events)",
        _RECORD,
    ),
    ((b'"nodes"', b'"timeDeltas"'), "a CPU profile of Chrome DevTools or Node.js (no GPU events)", _RECORD),
)
_PERF_SCRIPT = re.compile(rb"\S[^\n]{0,40}?\s\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:\d+\s+)?[\w:.-]+:")
_SPACES = b"\xef\xbb\xbf \t\r\n"


def refuse(head: bytes, name: str) -> None:
    """`NotATrace` if the content is of a kind that is known and cannot be analysed."""
    found = _beginning(head) or _json(head) or _text(head) or _binary(head, name)
    if found is not None:
        what, hint = found
        raise NotATrace(f"`{name}` {what}", hint=hint)


def _beginning(head: bytes) -> tuple[str, str] | None:
    return next((found for start, found in _BEGINNINGS.items() if head.startswith(start)), None)


def _json(head: bytes) -> tuple[str, str] | None:
    if head.lstrip(_SPACES)[:1] != b"{":
        return None
    for keys, what, hint in _JSON:
        absent = b'"kernel"' if what == _VIZTRACER else b'"traceEvents"'
        if all(key in head for key in keys) and absent not in head:
            return f"looks like {what}, not like a trace that can be analysed", hint
    return None


def _text(head: bytes) -> tuple[str, str] | None:
    if _PERF_SCRIPT.match(head.lstrip(_SPACES)[:512]):
        return "is the text of `perf script`, not a GPU trace", _RECORD
    return None


def _binary(head: bytes, name: str) -> tuple[str, str] | None:
    if not head or head.lstrip(_SPACES)[:1] in (b"{", b"[", b"<"):
        return None
    return next((found for suffix, found in _SUFFIXES.items() if name.lower().endswith(suffix)), None)
