"""Fractions without their zeros: which files show them, and that a correct file is never altered."""

from __future__ import annotations

import pytest

from rooftrace.trace import unpadded
from tests.trace.reading import Folder, document, kernel, times_of

WEEKS = b'"schemaVersion":1,"displayTimeUnit":"ns",'
# Times of kernels 10 µs apart whose fractions are 0, 5, 50, 500 and 123 ns, twice and a bit.
NANOSECONDS = (0, 5, 50, 500, 123, 7, 70, 700, 10, 999, 1, 100)


def written(*fractions: str, header: bytes = WEEKS) -> bytes:
    """Kernels at 10 µs, 20 µs … and a fraction, which last 2 µs and the same fraction."""
    events = [kernel("k", f"{10 * at}.{digits}", f"2.{digits}") for at, digits in enumerate(fractions, start=1)]
    return document(*events).replace(b'"schemaVersion":1,', header, 1)


def meant(nanoseconds: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(10_000 * at + ns, 2_000 + ns) for at, ns in enumerate(nanoseconds, start=1)]


UNPADDED = tuple(str(ns) for ns in NANOSECONDS)
PADDED = tuple(f"{ns:03d}" for ns in NANOSECONDS)
# As a program writes them that read the padded ones as numbers: 0.05, not 0.050.
SHORTENED = tuple(f"{ns:03d}".rstrip("0") or "0" for ns in NANOSECONDS)


def test_the_nanoseconds_of_an_unpadded_file_are_the_numbers_behind_the_points(folder: Folder) -> None:
    trace, facts = folder.load(written(*UNPADDED))

    assert times_of(trace) == meant(NANOSECONDS)
    # all but 0, 500, 123, 700, 999 and 100, which have no zeros in front
    assert trace.repaired.counts == {unpadded.REASON: 6}
    assert trace.repaired.first_offset == {unpadded.REASON: written(*UNPADDED).index(b"20.5") + 3}
    assert facts.unclear_fractions == 0
    assert facts.sha256  # of the file as it was read the second time


@pytest.mark.parametrize("digits", [PADDED, SHORTENED], ids=["three digits", "as numbers"])
def test_a_correct_file_of_the_same_weeks_is_read_as_it_stands(folder: Folder, digits: tuple[str, ...]) -> None:
    trace, facts = folder.load(written(*digits))

    assert times_of(trace) == meant(NANOSECONDS)
    assert (trace.repaired.counts, facts.unclear_fractions) == ({}, 0)


@pytest.mark.parametrize(
    "header",
    [
        b'"schemaVersion":1,',
        b'"schemaVersion":1,"displayTimeUnit":"ms",',
        b'"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1712000000000000000,',
        b'"displayTimeUnit":"ns",',
    ],
    ids=["no unit", "ms", "with a base", "of another program"],
)
def test_a_file_of_any_other_time_is_read_as_it_stands(folder: Folder, header: bytes) -> None:
    trace, facts = folder.load(written(*UNPADDED, header=header))

    assert times_of(trace)[1] == (20_500, 2_500)
    assert (trace.repaired.counts, facts.unclear_fractions) == ({}, 0)


@pytest.mark.parametrize(
    ("fractions", "unclear"),
    [
        (("5", "25", "125") * 5, 20),  # numbers as programs shorten them: no zero at an end
        (("50",) * 20, 40),  # two digits throughout
        (("500", "250") * 10, 0),  # three digits mean the same either way
        (("5", "50"), 4),  # too few
    ],
    ids=["no zero at an end", "equal in length", "three digits", "few"],
)
def test_digits_that_prove_nothing_change_nothing(folder: Folder, fractions: tuple[str, ...], unclear: int) -> None:
    trace, facts = folder.load(written(*fractions))

    assert trace.dur.tolist() == [2_000 + int(digits.ljust(3, "0")) for digits in fractions]
    assert (trace.repaired.counts, facts.unclear_fractions) == ({}, unclear)


def test_flows_get_their_zeros_with_the_events_that_they_join(folder: Folder) -> None:
    flow = '{"ph":"s","cat":"ac2g","id":1,"pid":0,"tid":7,"ts":20.5}'
    content = written(*UNPADDED).replace(b'"traceEvents":[', b'"traceEvents":[' + flow.encode() + b",", 1)

    trace = folder.trace(content)

    assert (trace.flows.ts + trace.base_ns).tolist() == [20_005]


def test_a_fraction_is_found_wherever_the_file_is_cut_into_chunks(folder: Folder, monkeypatch) -> None:
    from rooftrace.trace import containers

    path = folder.write(written(*UNPADDED))
    whole = unpadded.look_at(containers.open_source(path))
    for size in (1, 7, 64):
        monkeypatch.setattr(containers, "CHUNK", size)
        assert unpadded.look_at(containers.open_source(path)) == whole
    assert (whole.ones, whole.twos, whole.threes) == (6, 6, 10)  # 5 7 1, 50 70 10, 500 123 700 999 100: twice each
