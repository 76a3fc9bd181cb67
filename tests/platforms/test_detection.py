"""Which platform a device is, from device properties as profilers write them."""

from __future__ import annotations

import pytest

from rooftrace.errors import UsageError
from rooftrace.pack import KNOWLEDGE
from rooftrace.platforms import DeviceFacts, detect, load_platform, load_platforms, mismatch


def device(name: str, capability: str = "", units: int | None = None, memory: int | None = None) -> DeviceFacts:
    major, minor = (int(part) for part in capability.split(".")) if capability else (None, None)
    return DeviceFacts(name=name, compute_major=major, compute_minor=minor, num_units=units, memory_bytes=memory)


@pytest.mark.parametrize(
    ("facts", "slug"),
    [
        (device("NVIDIA H100 80GB HBM3", "9.0", 132, 85_018_279_936), "h100-sxm"),
        (device("NVIDIA A100-PG509-200", "8.0", 108, 42_297_524_224), "a100-sxm-40"),
        (device("NVIDIA A100-PG509-200", "8.0", 108, 42_505_273_344), "a100-sxm-40"),
        (device("NVIDIA A100-SXM4-80GB", "8.0", 108, 85_174_583_296), "a100-sxm-80"),
        (device("NVIDIA A100 80GB PCIe", "8.0", 108, 84_987_740_160), "a100-pcie-80"),
        (device("Tesla V100-SXM2-16GB", "7.0", 80, 16_945_512_448), "v100-sxm2-16"),
        (device("Tesla V100-SXM2-32GB", "7.0", 80, 34_079_637_504), "v100-sxm2-32"),
        (device("AMD Instinct MI300X", "9.4", 304, 206_141_652_992), "mi300x"),
        (device("AMD Instinct MI300X VF", "9.4", 304, 205_571_227_648), "mi300x"),
        (device("AMD Instinct MI210", "9.0", 104, 68_702_699_520), "mi210"),
        (device("NVIDIA A10", "8.6", 72, 23_609_475_072), "a10"),
    ],
)
def test_a_device_with_a_known_name_is_found_without_a_warning(facts: DeviceFacts, slug: str):
    found = detect(facts)
    assert found.platform is not None
    assert (found.platform.slug, found.how, found.warning) == (slug, "name", None)


@pytest.mark.parametrize("name", ["nvidia h100 80gb hbm3", " NVIDIA  H100 80GB HBM3 ", "NVIDIA H100 80 GB HBM3"])
def test_case_and_spaces_of_a_name_do_not_matter(name: str):
    assert detect(device(name)).platform == load_platform("h100-sxm")


def test_a_name_alone_is_enough():
    found = detect(device("NVIDIA H200"))
    assert found.platform == load_platform("h200")
    assert found.warning is None


def test_a_device_without_a_name_is_found_by_its_properties():
    found = detect(device("", "9.4", 304, 206_141_652_992))
    assert found.platform == load_platform("mi300x")
    assert (found.how, found.warning) == ("properties", None)


def test_memory_tells_apart_what_compute_capability_and_units_do_not():
    # 256 GiB = 274,877,906,944 bytes
    assert detect(device("", "9.4", 304, 274_877_906_944)).platform == load_platform("mi325x")


def test_an_unknown_name_with_unique_properties_is_found_with_a_warning():
    found = detect(device("AMD Radeon Graphics", "9.0", 104, 68_702_699_520))
    assert found.platform == load_platform("mi210")
    assert found.how == "properties"
    assert found.warning == (
        "no platform is named `AMD Radeon Graphics`; taken for mi210, the only one with "
        "compute capability 9.0, 104 units and 64.0 GiB"
    )


def test_properties_that_fit_two_platforms_find_none():
    found = detect(device("", "8.0", 108, 85_174_583_296))
    assert (found.platform, found.how) == (None, "none")
    assert found.warning == "the device has no name, and its properties fit a100-pcie-80 and a100-sxm-80 alike"


def test_properties_that_fit_no_platform_find_none():
    # 102,085,492,736 / 2^30 = 95.07 GiB: an H100 with more memory than the 80 GB product
    found = detect(device("NVIDIA H100", "9.0", 132, 102_085_492_736))
    assert (found.platform, found.how) == (None, "none")
    assert found.warning == (
        "no platform is named `NVIDIA H100`, and none has compute capability 9.0, 132 units and 95.1 GiB"
    )


def test_an_integrated_gpu_under_a_generic_name_stays_unknown():
    assert detect(device("AMD Radeon Graphics", "11.0", 12, 8_589_934_592)).platform is None


def test_an_unknown_name_with_incomplete_properties_names_what_is_missing():
    found = detect(device("", "9.0"))
    assert found.platform is None
    assert found.warning == "the device has no name, and the trace does not report number of units and memory"


def test_a_name_and_properties_that_contradict_give_the_named_platform_and_a_warning():
    # 42,505,273,344 / 2^30 = 39.59 GiB
    found = detect(device("NVIDIA H100 80GB HBM3", "8.0", 108, 42_505_273_344))
    assert found.platform == load_platform("h100-sxm")
    assert found.warning == (
        "`NVIDIA H100 80GB HBM3` is h100-sxm, but the trace reports compute capability 8.0 instead of 9.0, "
        "108 units instead of 132 and 39.6 GiB of memory instead of 78 to 80.1"
    )


def test_a_partition_of_a_gpu_keeps_its_name_but_is_reported():
    # CPX mode: one XCD of 38 CUs, 24 GiB
    found = detect(device("AMD Instinct MI300X", "9.4", 38, 25_769_803_776))
    assert found.platform == load_platform("mi300x")
    assert found.warning is not None
    assert "38 units instead of 304" in found.warning


def test_a_chosen_platform_that_is_the_device_of_the_trace_is_no_mismatch():
    assert mismatch(load_platform("h100-sxm"), device("NVIDIA H100 80GB HBM3", "9.0", 132, 85_018_279_936)) is None


def test_a_chosen_platform_of_another_name_is_a_mismatch():
    assert mismatch(load_platform("mi300x"), device("NVIDIA H100 80GB HBM3", "9.0", 132, 85_018_279_936)) == (
        "the trace was recorded on `NVIDIA H100 80GB HBM3`, which is h100-sxm, not mi300x"
    )


def test_a_chosen_platform_with_other_properties_is_a_mismatch():
    assert mismatch(load_platform("h100-sxm"), device("NVIDIA H100", "9.0", 132, 102_085_492_736)) == (
        "the trace's device is not h100-sxm: it reports 95.1 GiB of memory instead of 78 to 80.1"
    )


def test_nothing_speaks_against_a_chosen_platform_where_the_trace_says_nothing():
    assert mismatch(load_platform("l4"), device("")) is None


def test_every_platform_is_found_by_every_name_it_lists():
    for platform in load_platforms():
        assert [detect(device(name)).platform for name in platform.names] == [platform] * len(platform.names)


def test_an_unknown_slug_names_the_nearest_and_then_all():
    with pytest.raises(UsageError) as caught:
        load_platform("h100-sxmm")
    known = ", ".join(sorted(path.stem for path in (KNOWLEDGE / "platforms").glob("*.json")))
    assert known.startswith("a10, a100-pcie-40, ")
    assert str(caught.value) == (
        f"error: unknown platform: `h100-sxmm`\n\nhint: Did you mean `h100-sxm`? Known: {known}"
    )
    assert caught.value.exit_code == 2


def test_a_slug_is_known_in_any_case():
    assert load_platform("MI300X").slug == "mi300x"


def test_platforms_are_sorted_by_slug():
    slugs = [platform.slug for platform in load_platforms()]
    assert slugs == sorted(slugs)
