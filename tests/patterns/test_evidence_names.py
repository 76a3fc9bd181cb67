"""`knowledge/evidence_names.json`: what each field of a finding's evidence is."""

from __future__ import annotations

import json

import pytest

from rooftrace.contracts.base import COMPUTE_ANALYZERS
from rooftrace.pack import KNOWLEDGE
from tests.fusion import fields as fusion_fields
from tests.patterns import fields

NAMES = json.loads((KNOWLEDGE / "evidence_names.json").read_bytes())
_SYSTEM = ("idle", "multi_kernel", "fusion")
_LONGEST = 130


def all_fields() -> set[str]:
    """Every name in the sets of the two lists of fields."""
    found: set[str] = set()
    for module in (fields, fusion_fields):
        for value in vars(module).values():
            sets = value.values() if isinstance(value, dict) else [value]
            found |= {name for names in sets if isinstance(names, frozenset) for name in names}
    return found


def test_every_field_that_findings_carry_is_explained():
    assert sorted(all_fields() - set(NAMES["names"])) == []


def test_nothing_else_is_explained():
    own = {name for analyzer in _SYSTEM for name in NAMES[analyzer]}

    assert sorted((set(NAMES["names"]) | own) - all_fields()) == []
    assert set(NAMES) == {"what", "names", *_SYSTEM}
    assert not set(_SYSTEM) & set(COMPUTE_ANALYZERS)  # compute findings take the common meaning


@pytest.mark.parametrize("group", ["names", *_SYSTEM])
def test_a_share_says_of_what_and_every_phrase_is_short(group):
    phrases = NAMES[group]

    assert [name for name, text in phrases.items() if name.endswith("_pct") and "%" not in text] == []
    assert [name for name, text in phrases.items() if len(text) > _LONGEST or text.endswith(".")] == []


def test_a_name_of_one_meaning_is_explained_once():
    assert [
        (analyzer, name)
        for analyzer in _SYSTEM
        for name, text in NAMES[analyzer].items()
        if text == NAMES["names"].get(name)
    ] == []
