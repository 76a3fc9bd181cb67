"""Names that mean the same: ops across frameworks and dispatch, kernels across vendors.

The table is ``knowledge/equivalents.json``.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
from msgspec import Struct

from rooftrace.errors import InternalError
from rooftrace.pack import KNOWLEDGE

_PREFIX = re.compile(r"^(?:autograd::engine::evaluate_function: |torch::autograd::|[A-Za-z0-9_]+::)")


class EquivalenceRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file; `contracts.compare.Equivalence` says what the fields mean."""

    name: str
    why: str
    members: list[str] = []
    patterns: list[str] = []


class EquivalentsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file; `contracts.compare.EquivalentsFile` says what the fields mean."""

    schema_version: str
    ops: list[EquivalenceRecord]
    kernels: list[EquivalenceRecord]


class _Table(Struct, frozen=True):
    exact: dict[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]

    def find(self, name: str) -> str | None:
        found = self.exact.get(name)
        if found is not None:
            return found
        return next((meaning for pattern, meaning in self.patterns if pattern.search(name)), None)


@lru_cache(maxsize=1)
def _tables() -> tuple[_Table, _Table]:
    path = KNOWLEDGE / "equivalents.json"
    try:
        record = msgspec.json.decode(path.read_bytes(), type=EquivalentsRecord)
    except msgspec.MsgspecError as error:
        raise InternalError(f"`{path.name}` does not match its schema: {error}") from None
    return _table(record.ops), _table(record.kernels)


def _table(entries: list[EquivalenceRecord]) -> _Table:
    return _Table(
        exact={member: entry.name for entry in entries for member in entry.members},
        patterns=tuple((re.compile(pattern), entry.name) for entry in entries for pattern in entry.patterns),
    )


@lru_cache(maxsize=16_384)
def same_op(name: str) -> str:
    """The word for what an op does: that of the table, else its name without namespace and in-place mark."""
    found = _tables()[0].find(name)
    if found is not None:
        return found
    return _PREFIX.sub("", name).rstrip("_") or name


@lru_cache(maxsize=16_384)
def same_kernel(short: str, category: str) -> str:
    """The word for what a kernel does, whoever wrote it: that of the table, else its category."""
    return _tables()[1].find(short) or category
