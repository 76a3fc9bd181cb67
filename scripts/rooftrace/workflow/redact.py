"""A trace without what tells whose it is: every text that can reach an artifact is replaced here, once, as it is read.

Whatever is made of the trace then holds placeholders, consistently, and no number changes: names that were equal stay
equal, and those that differed go on to differ.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rooftrace.contracts.redaction import Redactor
from rooftrace.trace.events import Inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooftrace.trace import FileFacts, Trace

Read = tuple["Trace", "FileFacts"]
_JSON_TEXT = re.compile(rb'(?P<token>"(?:[^"\\]|\\.)*")(?P<colon>\s*:|)', re.DOTALL)
_MOST_KNOWN = 1_000_000


def redactor_of(*read: Read) -> Redactor:
    """What the traces tell of users, hosts, jobs and home folders; one for all that are reported together."""
    redactor = Redactor()
    for trace, facts in read:
        redactor.learn_header(trace.header)
        redactor.learn_texts(trace.names)
        redactor.file_name(facts.name)
    return redactor


def redacted(trace: Trace, facts: FileFacts, redactor: Redactor) -> Read:
    """The trace and the facts of its file with placeholders; no column changes."""
    text = redactor.text
    header = redactor.value(trace.header)
    changed = replace(
        trace,
        names=[text(name) for name in trace.names],
        lanes=[(_text(process, redactor), _text(thread, redactor)) for process, thread in trace.lanes],
        signatures=[_without_texts(inputs, redactor) for inputs in trace.signatures],
        collectives=[replace(item, name=text(item.name), group=text(item.group)) for item in trace.collectives],
        header=header if isinstance(header, dict) else {},
    )
    known = replace(
        facts,
        name=redactor.file_name(facts.name),
        members=tuple(_member(name, redactor) for name in facts.members),
        member=_member(facts.member, redactor) if facts.member else facts.member,
    )
    return changed, known


class JsonTexts:
    """Replaces the texts in JSON that is written as it stands: no number, space or order changes.

    A key decides over the texts behind it, as in a decoded value. Few texts differ, so what became of one is kept.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._key = b""
        self._known: dict[bytes, dict[bytes, bytes]] = {}
        self._count = 0

    def without(self, content: bytes) -> bytes:
        """The JSON, whole tokens of it, with placeholders."""
        return _JSON_TEXT.sub(self._replaced, content)

    def _replaced(self, match: re.Match[bytes]) -> bytes:
        token, colon = match.groups()
        if colon:
            self._key = token
            about = b""
        else:
            about = self._key
        try:
            return self._known[about][token] + colon
        except KeyError:
            return self._remembered(about, token) + colon

    def _remembered(self, key: bytes, token: bytes) -> bytes:
        found = self._written(_decoded(key) if key else "", token)
        if self._count < _MOST_KNOWN:
            self._count += 1
            self._known.setdefault(key, {})[token] = found
        return found

    def _written(self, key: str, token: bytes) -> bytes:
        before = _decoded(token)
        after = self._redactor.value_of(key, before)
        if after == before:
            return token
        try:
            return json.dumps(after, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # it holds bytes that are no text
            return json.dumps(after).encode()


def _decoded(token: bytes) -> str:
    """The text of a JSON string; as it stands where it is damaged."""
    text = token.decode(errors="surrogateescape")
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]


def private_paths(texts: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Paths of this machine, by name, with placeholders; asked for last, so that they change none of the trace's."""
    with suppress(RuntimeError):  # a process may have no home
        redactor.learn_home(str(Path.home()))
    return {name: redactor.path(text) for name, text in texts.items()}


def _text(value: int | str, redactor: Redactor) -> int | str:
    return redactor.text(value) if isinstance(value, str) else value


def _member(path: str, redactor: Redactor) -> str:
    """The path of a member of an archive; every part may be named like a file."""
    return "/".join(redactor.file_name(part) for part in path.split("/"))


def _without_texts(inputs: Inputs, redactor: Redactor) -> Inputs:
    """The inputs with their texts replaced; most hold none, and stay the same objects."""
    concrete, types = _replaced(inputs.concrete, redactor), _replaced(inputs.types, redactor)
    if concrete is inputs.concrete and types is inputs.types:
        return inputs
    return replace(inputs, concrete=concrete, types=types)


def _replaced(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if not isinstance(value, list):
        return value
    parts: Sequence[Any] = [_replaced(part, redactor) for part in value]
    return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
