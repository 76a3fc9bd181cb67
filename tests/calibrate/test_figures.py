"""What is believed and what is refused, with the reason."""

from __future__ import annotations

import math

import pytest

from rooftrace_calibrate.figures import Figure, Limit, NoFigure, believed, rate
from rooftrace_calibrate.known import Known, find, slugs
from rooftrace_calibrate.timing import Sample
from tests.repository.files import ROOT

PLATFORMS = ROOT / "knowledge" / "platforms"


def figure(value: float, spread: float = 1.0, unit: str = "TFLOP/s") -> Figure:
    return Figure(value=value, unit=unit, statistic="s", spread_pct=spread)


def test_a_rate_is_work_over_the_median_and_names_its_statistic():
    found = rate(Sample(seconds=0.002, spread_pct=0.4, batches=9, calls=10), 1.5, "TFLOP/s", "[256,256] @ [256,256]")

    assert found == Figure(
        value=750.0,  # 1.5 / 0.002
        unit="TFLOP/s",
        statistic="[256,256] @ [256,256]; median of 9 batches of 10 calls",
        spread_pct=0.4,
    )


@pytest.mark.parametrize("seconds", [0.0, -1e-9, math.nan, math.inf])
def test_no_time_is_no_rate(seconds: float):
    sample = Sample(seconds=seconds, spread_pct=0.0, batches=9, calls=1)

    assert rate(sample, 1.5, "TFLOP/s", "x") == NoFigure(reason="the clock gave no time for it")


@pytest.mark.parametrize(
    ("found", "limit", "reason"),
    [
        (
            figure(1038.9),
            Limit(value=989.4, margin=1.05, of="h100-sxm"),  # 1.05 * 989.4 = 1038.87
            "1039 TFLOP/s is more than 1.05 times the 989.4 of h100-sxm's datasheet",
        ),
        (
            figure(3351.0, unit="GB/s"),
            Limit(value=3350.0, margin=1, of="h100-sxm"),
            "3351 GB/s is more than the 3350 of h100-sxm's datasheet",
        ),
        (
            figure(700.0, spread=20.01),
            None,
            "its batches spread by 20.01 %, more than 20 %: something else uses this device",
        ),
        (figure(0.0), None, "0 TFLOP/s is no measurement"),
        (figure(math.nan), None, "nan TFLOP/s is no measurement"),
        (NoFigure(reason="torch cannot here: no"), None, "torch cannot here: no"),
    ],
    ids=["rate", "bandwidth", "spread", "zero", "no number", "none"],
)
def test_nonsense_is_refused_with_its_reason(found: Figure | NoFigure, limit: Limit | None, reason: str):
    assert believed(found, limit) == NoFigure(reason=reason)


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (figure(1038.8), Limit(value=989.4, margin=1.05, of="h100-sxm")),
        (figure(3350.0), Limit(value=3350.0, margin=1, of="h100-sxm")),
        (figure(700.0, spread=20.0), None),
    ],
)
def test_what_a_device_can_do_is_believed(found: Figure, limit: Limit | None):
    assert believed(found, limit) is found


# The device that the pack knows


def test_a_device_is_known_by_its_name_with_the_datasheets_limits():
    known = find(PLATFORMS, "nvidia H100 80GB HBM3", 132)

    assert known is not None
    assert (known.slug, known.bandwidth, known.pcie) == ("h100-sxm", 3350.0, 63.0)
    assert known.limit_of_memory() == Limit(value=3350.0, margin=1, of="h100-sxm")
    assert known.limit_of_link() == Limit(value=63.0, margin=1, of="h100-sxm")
    assert known.limit_of_rate("bfloat16", "matrix") == Limit(value=989.4, margin=1.05, of="h100-sxm")
    # no matrix rate in float32: its products run on the vector units
    assert known.limit_of_rate("float32", "matrix") == Limit(value=66.9, margin=1.05, of="h100-sxm")
    assert known.limit_of_rate("float4", "matrix") is None


@pytest.mark.parametrize(
    ("name", "units"),
    [("NVIDIA H100 80GB HBM3", 16), ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16), ("NVIDIA RTX 9999", 132)],
    ids=["fewer units", "partition", "unknown"],
)
def test_a_partition_or_an_unknown_name_is_none(name: str, units: int):
    assert find(PLATFORMS, name, units) is None


def test_a_device_without_a_documented_link_has_no_limit_of_it():
    known = Known(slug="x", rates={}, bandwidth=1.0, pcie=None)

    assert known.limit_of_link() is None


def test_the_slugs_are_those_of_the_pack():
    assert {"h100-sxm", "mi300x"} <= slugs(PLATFORMS)
