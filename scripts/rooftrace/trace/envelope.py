"""The keys around the event array: header before it, tail after it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

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
_VERSION_KEY = re.compile(r"^[a-z_]+_version$")
_SIMPLE_PAIR = re.compile(rb'"([A-Za-z_ ]+)"\s*:\s*("[^"\\]*"|-?[0-9.]+|\{[^{}]*\}|\[[^\[\]]*\])')


def parse_envelope(head: bytes, tail: bytes) -> dict[str, Any]:
    """The keys that are used, from the text before and after the events."""
    merged: dict[str, Any] = {}
    for part in (_object_text(head, b""), _object_text(b"", tail)):
        merged.update(_loads(part))
    kept = {key: merged[key] for key in _KEEP if key in merged}
    kept |= {key: value for key, value in sorted(merged.items()) if _VERSION_KEY.match(key)}
    return kept


def _object_text(head: bytes, tail: bytes) -> bytes:
    if tail:
        body = tail.strip().lstrip(b",").rstrip(b"\x00").strip()
        while body.endswith((b"}", b"]")) and body.count(b"}") > body.count(b"{"):
            body = body[:-1].rstrip()
        return b"{" + body + b"}"
    body = head.strip()
    if not body:
        return b"{}"
    return (body if body.startswith(b"{") else b"{" + body).rstrip(b", \t\r\n") + b"}"


def _loads(text: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _pairs(text)
    return value if isinstance(value, dict) else {}


def _pairs(text: bytes) -> dict[str, Any]:
    """What can be read of a damaged envelope: its simple key-value pairs."""
    found: dict[str, Any] = {}
    for key, value in _SIMPLE_PAIR.findall(text):
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            found.setdefault(key.decode(), msgspec.json.decode(value))
    return found
