"""Floors, bounds and efficiencies with the arithmetic written out.

Ceilings used, achievable where published, else datasheet (knowledge/platforms):

                    H100 SXM                        MI300X
    bf16 matrix     794.5 (datasheet 989.4)         708 (1,307.4)            TFLOP/s
    fp16 matrix     989.4                           654 (1,307.4)
    tf32 matrix     494.7                           653.7
    fp32 vector     66.9                            163.4
    memory          3,180 (3,350)                   4,260 (5,325)            GB/s
    last cache      52,428,800                      268,435,456              bytes
    latency floor   2,000                           2,000                    ns

A product of two 2,000 x 2,000 matrices takes 2 * 2,000^3 = 16e9 FLOP; in 16 bits it moves 3 * 2,000^2 * 2 = 24e6 bytes.
"""

from __future__ import annotations

import pytest

from rooftrace.platforms import load_platform
from rooftrace.roofline import Rating, Unrated, is_inferred, latency_floor, rate
from tests.roofline.runs import BF16, FP16, FP32, addition, groups_of, one_group, product
from tests.support.trace_builder import TraceBuilder

TF32_KERNEL = "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4"
FP32_KERNEL = "ampere_sgemm_128x64_tn"


def rated(slug, name, inputs, *durations, **further):
    activities, group = one_group(name, inputs, *durations, **further)
    platform = load_platform(slug) if slug else None
    floor = latency_floor(platform, activities) if platform else 0
    return rate(group, activities, platform, floor)


@pytest.mark.parametrize(
    ("slug", "dtype", "floors", "efficiencies", "kind"),
    [
        # 16e9 / 794.5e12 = 20,138.45 ns; over 989.4e12: 16,171.42; of 50,000: 40.28 % and 32.34 %
        pytest.param("h100-sxm", BF16, (20_138, 16_171), (40.28, 32.34), "achievable", id="H100 bf16"),
        # no achievable rate: 16e9 / 989.4e12 both times; the memory's is achievable, hence mixed
        pytest.param("h100-sxm", FP16, (16_171, 16_171), (32.34, 32.34), "mixed", id="H100 fp16"),
        # 16e9 / 708e12 = 22,598.87; over 1,307.4e12: 12,238.03; of 50,000: 45.20 % and 24.48 %
        pytest.param("mi300x", BF16, (22_599, 12_238), (45.20, 24.48), "achievable", id="MI300X bf16"),
        # 16e9 / 654e12 = 24,464.83; of 50,000: 48.93 %
        pytest.param("mi300x", FP16, (24_465, 12_238), (48.93, 24.48), "achievable", id="MI300X fp16"),
    ],
)
def test_a_large_product_is_bound_by_the_matrix_units(slug, dtype, floors, efficiencies, kind):
    found = rated(slug, "aten::mm", product(2000, dtype), 50)

    assert isinstance(found, Rating)
    assert (found.bound, found.flag, found.ceilings_kind) == ("compute", None, kind)
    assert (found.floor_ns, found.datasheet_floor_ns) == floors
    assert (found.efficiency_pct, found.datasheet_efficiency_pct) == efficiencies
    assert found.gap_ns == 50_000 - floors[0]


@pytest.mark.parametrize(
    ("slug", "floor", "sheet", "efficiency", "sheet_efficiency"),
    [
        # two reads and a write of 100e6 bf16: 600e6 bytes / 3,180e9 = 188,679.25 ns; / 3,350e9 = 179,104.48
        pytest.param("h100-sxm", 188_679, 179_104, 75.47, 71.64, id="H100"),
        # / 4,260e9 = 140,845.07; / 5,325e9 = 112,676.06
        pytest.param("mi300x", 140_845, 112_676, 56.34, 45.07, id="MI300X"),
    ],
)
def test_an_addition_is_bound_by_the_memory(slug, floor, sheet, efficiency, sheet_efficiency):
    found = rated(slug, "aten::add", addition(100_000_000, BF16), 250, kernel="add")

    assert isinstance(found, Rating)
    assert (found.bound, found.flag) == ("memory", None)
    assert (found.floor_ns, found.datasheet_floor_ns) == (floor, sheet)
    assert (found.efficiency_pct, found.datasheet_efficiency_pct) == (efficiency, sheet_efficiency)


def test_a_copy_needs_no_compute_ceiling():
    # 100e6 fp32 written, as many bf16 read: 600e6 bytes, no FLOP
    inputs = {**addition(100_000_000, FP32), "types": [FP32, BF16, "Scalar"], "concrete": ["", "", "False"]}
    found = rated("h100-sxm", "aten::copy_", inputs, 200, kernel="copy")

    assert isinstance(found, Rating)
    assert (found.bound, found.floor_ns, found.ceilings_kind) == ("memory", 188_679, "achievable")


def test_what_is_too_small_for_either_limit_is_bound_by_latency():
    # 8 x 8: 1,024 FLOP and 384 bytes, both under a nanosecond; the floor is the platform's 2,000 ns
    found = rated("h100-sxm", "aten::mm", product(8, BF16), 8)

    assert isinstance(found, Rating)
    assert (found.bound, found.floor_ns, found.gap_ns, found.efficiency_pct) == ("latency", 2_000, 6_000, 25.0)


@pytest.mark.parametrize(
    ("durations", "floor"),
    [
        pytest.param((8, 3), 2_000, id="no shorter kernel: the platform's"),
        pytest.param((8, 1.25), 1_250, id="a shorter kernel"),
        pytest.param((8, 0), 2_000, id="a kernel without duration proves nothing"),
        pytest.param((), 2_000, id="no kernels"),
    ],
)
def test_the_latency_floor_is_the_platforms_or_the_shortest_kernel(durations, floor):
    builder = TraceBuilder()
    builder.memcpy("HtoD", ts=0, dur=0.5)  # a copy is no kernel
    for number, dur in enumerate(durations):
        builder.kernel("k", ts=10 * number, dur=dur)

    assert latency_floor(load_platform("h100-sxm"), groups_of(builder)[0]) == floor


def test_a_latency_bound_kernel_is_never_better_than_its_floor():
    activities, group = one_group("aten::mm", product(8, BF16), 1)
    found = rate(group, activities, load_platform("h100-sxm"), 2_000)  # the floor of a longer trace

    assert isinstance(found, Rating)
    assert (found.efficiency_pct, found.datasheet_efficiency_pct, found.gap_ns) == (100.0, 100.0, 0)


def test_efficiency_is_of_the_mean_instance_and_the_gap_of_each():
    # floors of 20,138 ns; instances of 15, 25 and 50 µs: 3 * 20,138.45 / 90,000 = 67.13 %
    found = rated("h100-sxm", "aten::mm", product(2000, BF16), 15, 25, 50)

    assert isinstance(found, Rating)
    assert found.efficiency_pct == 67.13
    assert found.gap_ns == 34_724  # 0 + 4,862 + 29,862: the one below the floor does not pay for the others


@pytest.mark.parametrize(
    ("kernel", "dtype", "precision", "floor"),
    [
        # 16e9 / 494.7e12 = 32,342.83
        pytest.param(TF32_KERNEL, FP32, "tfloat32", 32_343, id="fp32 inputs, TF32 in the name"),
        # no fp32 matrix rate on this part: the vector units, 16e9 / 66.9e12 = 239,162.93
        pytest.param(FP32_KERNEL, FP32, "float32", 239_163, id="fp32 inputs, an fp32 kernel"),
        pytest.param(TF32_KERNEL, BF16, "bfloat16", 20_138, id="the name of a TF32 kernel does not change bf16"),
    ],
)
def test_tf32_counts_only_for_fp32_inputs_whose_kernel_names_it(kernel, dtype, precision, floor):
    found = rated("h100-sxm", "aten::mm", product(2000, dtype), 500, kernel=kernel)

    assert isinstance(found, Rating)
    assert (found.precision, found.floor_ns) == (precision, floor)


def test_an_fp32_product_has_a_matrix_rate_of_its_own_on_mi300x():
    found = rated("mi300x", "aten::mm", product(2000, FP32), 500, kernel="Cijk_Ailk_Bljk_SB_MT128x128x16")

    assert isinstance(found, Rating)
    assert found.floor_ns == 97_919  # 16e9 / 163.4e12 = 97,919.22


@pytest.mark.parametrize(
    ("count", "dur", "flag", "efficiency"),
    [
        # 6 bytes an element; 4e6 elements: 24e6 bytes fit the 52.4e6 of L2; floor 24e6 / 3,180e9 = 7,547.17 ns
        pytest.param(4_000_000, 7.25, None, 104.1, id="104 % is believed"),
        pytest.param(4_000_000, 6, "cache-resident", 125.79, id="126 %, and fits the cache"),
        # 10e6 elements: 60e6 bytes do not; floor 18,867.92
        pytest.param(10_000_000, 15, "inconsistent", None, id="126 %, and does not fit"),
    ],
)
def test_what_beats_the_memory_is_cache_resident_or_inconsistent(count, dur, flag, efficiency):
    found = rated("h100-sxm", "aten::add", addition(count, BF16), dur, kernel="add")

    assert found.flag == flag
    if flag == "inconsistent":
        assert isinstance(found, Unrated)
        assert found.reason == "inconsistent: faster than its ceiling allows"
        assert found.cost is not None
    else:
        assert isinstance(found, Rating)
        assert (found.efficiency_pct, found.gap_ns) == (efficiency, 0)


@pytest.mark.parametrize(
    ("slug", "name", "inputs", "dur", "efficiencies"),
    [
        # floor 20,138.45 ns, by the datasheet 16,171.42: 108.86 and 87.41 % of 18,500
        pytest.param("h100-sxm", "aten::mm", product(2000, BF16), 18.5, (108.86, 87.41), id="H100 matrix units"),
        # 600e6 bytes: 140,845.07 and 112,676.06 of 120,000
        pytest.param("mi300x", "aten::add", addition(100_000_000, BF16), 120, (117.37, 93.9), id="MI300X memory"),
    ],
)
def test_what_beats_a_published_measurement_but_not_the_datasheet_is_rated_and_says_so(
    slug, name, inputs, dur, efficiencies
):
    found = rated(slug, name, inputs, dur)

    assert isinstance(found, Rating)
    assert (found.flag, found.gap_ns) == ("above-achievable", 0)
    assert (found.efficiency_pct, found.datasheet_efficiency_pct) == efficiencies


def test_what_is_inferred_and_beats_a_published_measurement_is_inconsistent():
    # as above, but the file has no element types: the kernel's name gives float32, 12 bytes an element
    # 1,200e6 bytes: 281,690.14 ns at 4,260 GB/s, 117.37 % of 240,000; 93.9 % by the datasheet
    bare = {"dims": [[100_000_000], [100_000_000], []], "types": []}
    slow = rated("mi300x", "aten::add_", bare, 400, kernel="add<float>")
    fast = rated("mi300x", "aten::add_", bare, 240, kernel="add<float>")

    assert isinstance(slow, Rating)
    assert slow.efficiency_pct == 70.42
    assert slow.cost.notes == ("inferred: dtype float32 from the kernel's name",)
    assert isinstance(fast, Unrated)
    assert (fast.flag, fast.cost is not None and is_inferred(fast.cost)) == ("inconsistent", True)


def test_what_beats_the_matrix_units_is_inconsistent_even_if_it_fits_the_cache():
    # floor 20,138 ns, measured 10,000: 201 %; its 24e6 bytes fit the cache, which makes no matrix unit faster
    found = rated("h100-sxm", "aten::mm", product(2000, BF16), 10)

    assert isinstance(found, Unrated)
    assert found.flag == "inconsistent"


def test_a_cache_of_the_other_platform_holds_more():
    # 60e6 bytes fit the 268e6 of MI300X; floor 60e6 / 4,260e9 = 14,084.5 ns, measured 12,000: 117.37 %
    found = rated("mi300x", "aten::add", addition(10_000_000, BF16), 12, kernel="add")

    assert isinstance(found, Rating)
    assert (found.flag, found.efficiency_pct) == ("cache-resident", 117.37)


def test_an_unknown_gpu_leaves_the_cost_and_no_rating():
    found = rated(None, "aten::mm", product(2000, BF16), 50)

    assert isinstance(found, Unrated)
    assert (found.reason, found.flag) == ("GPU unknown: no ceilings", None)
    assert found.cost is not None
    assert (found.cost.flops, found.cost.bytes_total) == (16_000_000_000, 24_000_000)


def test_a_precision_the_part_does_not_have_has_no_ceiling():
    found = rated("mi300x", "aten::mm", product(2000, "c10::complex<float>"), 50)

    assert isinstance(found, Unrated)


@pytest.mark.parametrize(
    ("name", "inputs", "launch", "reason"),
    [
        ("aten::mm", {}, "cudaLaunchKernel", "no input shapes recorded"),
        ("mylib::op", product(8, BF16), "cudaLaunchKernel", "no cost model"),
        ("aten::mm", product(8, BF16), "cudaGraphLaunch", "graph replay: no op and no shapes recorded"),
        ("aten::mm", product(8, ""), "cudaLaunchKernel", "dtype not recorded"),
        ("aten::mm", {"dims": "8 by 8", "types": 3}, "cudaLaunchKernel", "shapes not recorded"),
        ("aten::mm", product(2**70, BF16), "cudaLaunchKernel", "arguments not as the op defines them"),
    ],
)
def test_what_has_no_cost_says_why(name, inputs, launch, reason):
    found = rated("h100-sxm", name, inputs, 50, launch=launch)

    assert isinstance(found, Unrated)
    assert (found.reason, found.cost) == (reason, None)


def test_kernels_without_an_op_say_why():
    #             0    5    10   15   20   25
    # call                 [L]
    # stream 7   [a]            [b]      [c]      before the window, outside any op, lost
    builder = TraceBuilder()
    builder.kernel("a", ts=0, dur=5)
    builder.kernel("b", ts=15, dur=4, correlation=builder.launch(ts=10))
    builder.kernel("c", ts=25, dur=3)
    activities, groups = groups_of(builder)

    assert [rate(group, activities, load_platform("h100-sxm"), 2_000).reason for group in groups] == [
        "launched before the recorded window",
        "launched outside any op",
        "launch not recorded",
    ]


def test_kernels_without_duration_cannot_be_rated():
    found = rated("h100-sxm", "aten::mm", product(8, BF16), 0)

    assert isinstance(found, Unrated)
    assert found.reason == "no duration recorded"


def test_an_instance_of_two_kernels_at_once_is_rated_by_their_union():
    # two halves of a split product on two streams: 30 µs each, 10 µs together; 20,138.45 / 50,000 = 40.28 %
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10, **product(2000, BF16))
    for ts, stream in ((20, 7), (40, 9)):
        builder.kernel("half", ts=ts, dur=30, stream=stream, correlation=builder.launch(ts=1))
    activities, (group,) = groups_of(builder)
    found = rate(group, activities, load_platform("h100-sxm"), 2_000)

    assert group.instance_busy.tolist() == [50_000]
    assert isinstance(found, Rating)
    assert found.efficiency_pct == 40.28
