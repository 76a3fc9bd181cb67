"""A file that ends early is analysed as far as it goes, and the report says so."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.cli.conftest import EXAMPLE


def health_of(run) -> dict[str, object]:
    health: dict[str, object] = json.loads((run / "report.json").read_bytes())["health"]
    return health


@pytest.mark.parametrize("share", [0.15, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["gzip", "plain"])
def test_a_trace_cut_anywhere_is_analysed(call, here, kind, share):
    whole = EXAMPLE.read_bytes() if kind == "gzip" else gzip.decompress(EXAMPLE.read_bytes())
    name = "cut.json.gz" if kind == "gzip" else "cut.json"
    (here / name).write_bytes(whole[: int(share * len(whole))])

    outcome = call("analyze", name, "-o", "run")

    assert (outcome.out, outcome.code) == ("run/analysis.md\n", 0)
    health = health_of(here / "run")
    assert health["verdict"] == "limited"
    assert "truncated" in [note["code"] for note in health["notes"]]
    assert call("check", "run").code == 0


def test_a_trace_that_only_lacks_its_last_bracket_loses_no_event(call, here):
    whole = gzip.decompress(EXAMPLE.read_bytes())
    (here / "whole.json").write_bytes(whole)
    (here / "cut.json").write_bytes(whole[: whole.rindex(b"]")])
    for name in ("whole", "cut"):
        assert call("analyze", f"{name}.json", "-o", name).code == 0

    counts = [json.loads((here / name / "report.json").read_bytes())["trace"]["events"] for name in ("whole", "cut")]
    assert counts[0] == counts[1]


def test_a_flipped_byte_is_told(call, here):
    whole = bytearray(gzip.decompress(EXAMPLE.read_bytes()))
    at = whole.index(b'"ph"', len(whole) // 2)
    whole[at] = 0  # half of the file is behind it
    (here / "flipped.json").write_bytes(whole)

    assert call("analyze", "flipped.json", "-o", "run").code == 0
    assert health_of(here / "run")["verdict"] == "limited"
