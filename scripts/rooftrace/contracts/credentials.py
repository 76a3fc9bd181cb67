"""Names, never values, of what looks like credentials in the header of a trace: runs write their environment there."""

from __future__ import annotations

import re

# The key under which a reader keeps these names, and nothing else of those entries.
KEY = "credentials"
_SECRET = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
_SHORTEST_SECRET = 8
_LONGEST_NAME = 60
_MOST_VALUES = 100_000


def secret_names(header: object) -> set[str]:
    """Keys of non-empty texts, at any depth, that are named like credentials."""
    names: set[str] = set()
    waiting = [header]
    looked_at = 0
    while waiting and looked_at < _MOST_VALUES:
        value = waiting.pop()
        looked_at += 1
        if isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, dict | list):
                    waiting.append(inner)
                elif isinstance(inner, str) and len(inner) >= _SHORTEST_SECRET and _SECRET.search(str(key)):
                    names.add(str(key)[:_LONGEST_NAME])
        elif isinstance(value, list):
            waiting += value
    return names
