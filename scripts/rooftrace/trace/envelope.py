"""The keys around the event array: header before it, tail after it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

from rooftrace.contracts import credentials, identities
from rooftrace.trace.rawevents import MALFORMED

_KEEP = (
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "displayTimeUnit",
    "traceName",
    "record_shapes",
    "with_stack",
    "with_modules",
    "with_flops",
    "profile_memory",
    "synthetic",
)
# The key under which is said that the header was no JSON as a whole, so that keys of it may be missing.
DAMAGED = "damaged"
_VERSION_KEY = re.compile(r"^[a-z_]+_version$")
# Of a damaged envelope this much is searched: the keys stand at its beginning.
_MAX_SEARCHED = 1 << 20
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)|[{}]', re.DOTALL)
_SIMPLE_PAIR = re.compile(
    rb'"([A-Za-z_ ]{1,64})"\s*:\s*("[^"\\]{0,4096}"|-?[0-9.]{1,64}|\{[^{}]{0,4096}\}|\[[^\[\]]{0,65536}\])'
)


def parse_envelope(head: bytes, tail: bytes) -> dict[str, Any]:
    """The keys that are used, from the text before and after the events."""
    before, behind = _object_text(head, b""), _object_text(b"", _own_tail(tail))
    header = _loads(before)
    merged = {**(_pairs(before) if header is None else header)}
    header_behind = _loads(behind)
    merged.update(_pairs(behind) if header_behind is None else header_behind)
    kept = {key: merged[key] for key in _KEEP if key in merged}
    kept |= {key: value for key, value in sorted(merged.items()) if _VERSION_KEY.match(key)}
    named = identities.by_kind({key: value for key, value in merged.items() if key not in kept})
    secret = sorted(credentials.secret_names(merged))
    found = {identities.KEY: named, credentials.KEY: secret, DAMAGED: header is None}
    return kept | {key: value for key, value in found.items() if value}


def _own_tail(tail: bytes) -> bytes:
    """The text behind the events up to the end of their own document, where another one follows."""
    second = tail.find(b'"traceEvents"')
    if second < 0:
        return tail
    depth = 0
    for token in _TOKEN.finditer(tail, 0, second):
        depth += {b"{": 1, b"}": -1}.get(token.group(), 0)
        if depth < 0:
            return tail[: token.start()]
    return tail[:second]


def _object_text(head: bytes, tail: bytes) -> bytes:
    if tail:
        body = tail.strip(b" \t\r\n\x00").lstrip(b",")
        return b"{" + _balanced(body) + b"}"
    body = head.strip()
    if not body:
        return b"{}"
    return (body if body.startswith(b"{") else b"{" + body).rstrip(b", \t\r\n") + b"}"


def _balanced(body: bytes) -> bytes:
    """The text without the brackets at its end that close more than it opened."""
    core = body.rstrip(b"}] \t\r\n")
    closing = body[len(core) :]
    braces, brackets = core.count(b"{") - core.count(b"}"), core.count(b"[") - core.count(b"]")
    at = 0
    while at < len(closing) and (braces > 0 or brackets > 0):
        braces -= closing[at : at + 1] == b"}"
        brackets -= closing[at : at + 1] == b"]"
        at += 1
    return core + closing[:at]


def _loads(text: bytes) -> dict[str, Any] | None:
    """The object; None if the text is damaged."""
    try:
        value = msgspec.json.decode(text)
    except MALFORMED:
        return None
    return value if isinstance(value, dict) else {}


def _pairs(text: bytes) -> dict[str, Any]:
    """What can be read of a damaged envelope: its simple key-value pairs."""
    found: dict[str, Any] = {}
    for key, value in _SIMPLE_PAIR.findall(text[:_MAX_SEARCHED]):
        with suppress(*MALFORMED):
            found.setdefault(key.decode(), msgspec.json.decode(value))
    return found
