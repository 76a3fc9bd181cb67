"""Every platform file against itself, its generation and the published figures."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from rooftrace.contracts.platform import PlatformFile
from rooftrace.pack import KNOWLEDGE
from rooftrace.platforms import load_platform, load_platforms
from rooftrace.platforms.double_entry import TOLERANCE, agrees, problems

PLATFORMS = load_platforms()
by_slug = pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.slug)

# Dense float16 FLOPs of one SM or CU in one clock, matrix units with float32 accumulation: FMAs x 2, from the
# architecture documents. GeForce cards run at half the rate of data-center parts of the same architecture.
FLOAT16_PER_CLOCK = {
    "Volta": 1024,  # 8 tensor cores x 64 FMA x 2
    "Turing": 1024,  # 8 x 64 x 2
    "Ada Lovelace": 1024,  # 4 x 128 x 2
    "Hopper": 4096,  # 4 x 512 x 2
    "CDNA 2": 1024,  # 4 matrix cores x 128 x 2
    "CDNA 3": 2048,  # 4 x 256 x 2
    "CDNA 4": 4096,  # 4 x 512 x 2
}
# Two chips of one architecture that differ in the tensor core: A100 and B200 against their smaller relatives.
FLOAT16_PER_CLOCK_BY_CAPABILITY = {"8.0": 2048, "8.6": 1024, "10.0": 8192, "12.0": 1024}


def rates(platform: PlatformFile, unit: str = "matrix") -> dict[str, float]:
    return {c.precision: c.datasheet.value_tflops for c in platform.ceilings if c.unit == unit}


@by_slug
def test_what_a_file_says_twice_agrees(platform: PlatformFile):
    # Each part of the rule and the text of its breach: tests/user_files/test_platform_files.py
    assert problems(platform) == []


def test_the_tolerance_refuses_a_sparse_figure_and_a_foreign_bandwidth():
    # 132 SMs x 4,096 x 1.83 GHz = 989.4 TFLOPS; 192 bit x 12.5 Gbit/s / 8 = 300 GB/s
    assert agrees(989.4, 132 * 4096 * 1.83 / 1000, None)
    assert not agrees(1979.0, 132 * 4096 * 1.83 / 1000, None)
    assert not agrees(3350.0, 192 * 12.5 / 8, None)


def test_a_stated_rounding_step_excuses_only_what_rounding_explains():
    assert agrees(8000.0, 8192.0, 1000.0)  # 2.4 % away and rounds to 8,000
    assert not agrees(8000.0, 8192.0, None)
    assert not agrees(8000.0, 8192.0, 100.0)  # would round to 8,200
    assert not agrees(8000.0, 8400.0, 1000.0)  # rounds to 8,000 but is 5 % away
    assert not agrees(8000.0, 8100.0, 1000.0)  # 1.3 % away: needs no excuse


@by_slug
def test_the_matrix_clock_of_the_file_is_that_of_its_float16_rate(platform: PlatformFile):
    clocks = {
        c.datasheet.product.clock_ghz for c in platform.ceilings if (c.precision, c.unit) == ("float16", "matrix")
    }
    assert clocks == {platform.clock_ghz}


@by_slug
def test_no_rate_is_sparse_by_the_flops_per_clock_of_its_architecture(platform: PlatformFile):
    data_center = (
        FLOAT16_PER_CLOCK.get(platform.architecture)
        or FLOAT16_PER_CLOCK_BY_CAPABILITY[platform.detect.compute_capability]
    )
    expected = data_center // 2 if platform.product.startswith("GeForce") else data_center
    per_clock = {c.precision: c.datasheet.product.per_clock for c in platform.ceilings if c.unit == "matrix"}
    assert per_clock["float16"] == expected
    assert per_clock.get("bfloat16", expected) == expected
    assert per_clock.get("tfloat32", expected // 2) == expected // 2


@by_slug
def test_an_implied_clock_is_not_above_the_published_ones(platform: PlatformFile):
    products = [c.datasheet.product for c in platform.ceilings]
    implied = {p.clock_ghz for p in products if p.clock_basis == "implied"}
    assert all(clock <= max(p.clock_ghz for p in products) for clock in implied)


def test_no_device_name_stands_in_two_files():
    for first, second in combinations(PLATFORMS, 2):
        names = [{"".join(name.lower().split()) for name in p.names} for p in (first, second)]
        assert not names[0] & names[1], (first.slug, second.slug)


def test_the_slug_in_a_file_is_its_name():
    files = sorted((KNOWLEDGE / "platforms").glob("*.json"))
    slugs = [json.loads(path.read_text(encoding="utf-8"))["slug"] for path in files]
    assert slugs == [path.stem for path in files]


def test_a_file_with_a_field_for_sparse_rates_is_refused():
    raw = json.loads((KNOWLEDGE / "platforms" / "h100-sxm.json").read_text(encoding="utf-8"))
    raw["ceilings"][0]["datasheet"]["sparse_tflops"] = 1979.0
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        PlatformFile.model_validate(raw)


@pytest.mark.parametrize(
    ("slug", "precision", "tflops"),
    [
        ("h100-sxm", "bfloat16", 989.4),  # not 1,979
        ("h100-sxm", "tfloat32", 494.7),  # not 989
        ("h100-sxm", "float8", 1978.9),  # not 3,958
        ("a100-sxm-80", "float16", 312.0),  # not 624
        ("l40s", "float8", 733.0),  # not 1,466
        ("b200", "float4", 9000.0),  # not 18,000
        ("rtx-4090", "float16", 165.2),  # float32 accumulation: not 330.3, not 660.6
        ("rtx-4090", "float8", 330.3),  # float32 accumulation: not 660.6
        ("rtx-5090", "float4", 1676.0),  # not the advertised 3,352
        ("mi300x", "bfloat16", 1307.4),  # not 2,614.9
        ("mi250x", "float16", 191.5),  # one GCD: half of 383
    ],
)
def test_the_figures_most_often_mistaken_are_dense(slug: str, precision: str, tflops: float):
    assert rates(load_platform(slug))[precision] == tflops


@pytest.mark.parametrize(
    "slug", ["h100-sxm", "h100-pcie", "h200", "l4", "l40s", "mi300x", "mi325x", "mi350x", "mi355x"]
)
def test_eight_bit_rates_are_twice_the_sixteen_bit_ones(slug: str):
    of = rates(load_platform(slug))
    assert of["float8"] / of["bfloat16"] == pytest.approx(2, rel=TOLERANCE)
    assert of["int8"] / of["bfloat16"] == pytest.approx(2, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("slug", "other"),
    [
        ("h200", "h100-sxm"),
        ("a100-pcie-40", "a100-sxm-80"),
        ("v100-sxm2-16", "v100-sxm2-32"),
        ("mi325x", "mi300x"),
    ],
)
def test_products_with_the_same_gpu_have_the_same_rates(slug: str, other: str):
    for unit in ("matrix", "vector"):
        ours, theirs = rates(load_platform(slug), unit), rates(load_platform(other), unit)
        shared = set(ours) & set(theirs)
        assert shared
        for precision in shared:
            assert ours[precision] == pytest.approx(theirs[precision], rel=TOLERANCE), precision


def test_an_mi355x_is_an_mi350x_at_a_higher_clock():
    # 2.4 GHz / 2.2 GHz = 1.0909
    fast, slow = rates(load_platform("mi355x")), rates(load_platform("mi350x"))
    assert fast.keys() == slow.keys()
    for precision in fast:
        assert fast[precision] / slow[precision] == pytest.approx(1.0909, rel=TOLERANCE), precision


REQUIRED = """
a10 a100-pcie-40 a100-pcie-80 a100-sxm-40 a100-sxm-80 a40 b200 h100-pcie h100-sxm h200 l4 l40s
mi210 mi250x mi300x mi325x mi350x mi355x
rtx-2080-ti rtx-3060 rtx-3090 rtx-4080 rtx-4090 rtx-5090 t4 v100-sxm2-16 v100-sxm2-32
"""


def test_the_catalogue_holds_the_gpus_that_traces_come_from():
    assert set(REQUIRED.split()) <= {platform.slug for platform in PLATFORMS}
