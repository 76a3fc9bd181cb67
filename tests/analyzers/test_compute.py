"""Findings about kernels. Floors on the H100: see tests/roofline/test_rating.py; times are µs."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.analyzers import compute
from rooftrace.contracts.base import Score
from tests.analyzers.workloads import BF16, CUTLASS, NVJET, Program, product, vectors, workload_of
from tests.patterns import fields
from tests.support.trace_builder import TraceBuilder


def analysed(builder, platform="h100-sxm"):
    """Summary and findings of each analyzer."""
    return {
        name: (summary, [draft.finding for draft in drafts])
        for name, (summary, drafts) in compute.analyze(workload_of(builder, platform)).items()
    }


def findings_of(builder, analyzer="gemm", platform="h100-sxm"):
    return analysed(builder, platform)[analyzer][1]


def test_a_finding_tells_gap_time_and_efficiency_of_its_members():
    # 2,000^3 in bf16: floor 20,138 ns; two calls of 80 µs; the span is 2 * 80 + 40 of idle
    program = Program()
    program.call("aten::mm", NVJET, 80, **product(2000, 2000, 2000))
    program.call("aten::mm", NVJET, 80, gap=40, **product(2000, 2000, 2000))
    (finding,) = findings_of(program)
    evidence = finding.evidence

    assert finding.id == "gemm.F1"
    assert (finding.tier, finding.category, finding.kind, finding.score_basis) == (
        "compute",
        "gemm",
        "modelled",
        "gap_share",
    )
    assert evidence["time_ms"] == 0.16
    assert evidence["time_share_pct"] == 80.0  # 160 of 200
    assert evidence["gap_ms"] == 0.119724  # 2 * (80,000 - 20,138)
    assert evidence["floor_ms"] == 0.040276
    assert evidence["efficiency_pct"] == 25.17  # 40.276 / 160
    assert evidence["datasheet_efficiency_pct"] == 20.21  # 2 * 16,171 / 160,000
    assert evidence["achieved_tflops"] == 200.0  # 2 * 16e9 FLOP in 160 µs
    assert evidence["achieved_gbps"] == 300.0  # 2 * 24e6 bytes in 160 µs
    assert (evidence["bound"], evidence["precision"], evidence["ceilings_kind"]) == (
        "compute",
        "bfloat16",
        "achievable",
    )
    assert (evidence["instances_count"], evidence["kernels_count"], evidence["members_count"]) == (2, 2, 1)
    assert (evidence["mean_kernel_us"], evidence["kernels_per_instance"]) == (80.0, 1.0)
    assert finding.gpu_time_score == 59.86  # 119,724 of 200,000
    assert finding.score == Score(low=44.9, mid=52.38, high=59.86)


def test_groups_gather_by_category_bound_and_library():
    program = Program()
    for size, kernel, dur in (
        (2000, NVJET, 100),  # 20.1 % of the ceiling: below 30
        (2048, NVJET, 100),  # 17.2e9 / 794.5e12 = 21.6 µs: 21.6 %, below 30
        (2000, CUTLASS, 100),  # another library
        (1984, NVJET, 25),  # 15.6e9: 19.7 µs: 78.6 %, above 60
        (8, NVJET, 9),  # latency
    ):
        program.call("aten::mm", kernel, dur, **product(size, size, size))

    found = {finding.subject: len(finding.members) for finding in findings_of(program)}

    assert found == {
        "gemm kernels of cuBLAS/cuBLASLt (nvjet), compute-bound, below 30 % of the ceiling": 2,
        "gemm kernels of CUTLASS, compute-bound, below 30 % of the ceiling": 1,
        "gemm kernels of cuBLAS/cuBLASLt (nvjet), compute-bound, above 60 % of the ceiling": 1,
        "gemm kernels of cuBLAS/cuBLASLt (nvjet), latency-bound, below 30 % of the ceiling": 1,
    }


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        # 2,000^3 at a floor of 20.1 µs: 20.1 % and 44.8 %, 27.8 % together: one remedy for all below 60 %
        ((100, 45), {"below 30 % and 30 to 60 % of the ceiling": ["low_compute_efficiency", 2]}),
        # 20.1 % and 80.6 %: what is near the ceiling is told something else
        (
            (100, 25),
            {
                "below 30 % of the ceiling": ["low_compute_efficiency", 1],
                "above 60 % of the ceiling": ["near_ceiling", 1],
            },
        ),
    ],
    ids=["same remedy", "other remedy"],
)
def test_bands_of_efficiency_are_one_finding_where_the_remedy_is_the_same(durations, expected):
    program = Program()
    for dur, rows in zip(durations, (2000, 2001), strict=True):
        program.call("aten::mm", NVJET, dur, **product(rows, 2000, 2000))

    found = {
        finding.subject.rpartition(", ")[2]: [finding.patterns[0], len(finding.members)]
        for finding in findings_of(program)
    }
    assert found == expected


def test_findings_are_numbered_by_score_and_members_by_gap():
    program = Program()
    program.call("aten::mm", CUTLASS, 100, **product(2000, 2000, 2000))
    program.call("aten::mm", NVJET, 100, **product(2000, 2000, 2000))
    program.call("aten::mm", NVJET, 150, **product(2048, 2048, 2048))
    workload = workload_of(program)
    findings = [draft.finding for draft in compute.analyze(workload)["gemm"][1]]

    assert [finding.id for finding in findings] == ["gemm.F1", "gemm.F2"]
    by_id = dict(zip(workload.op_ids, workload.groups, strict=True))
    assert [[by_id[member].kernel_ns for member in finding.members] for finding in findings] == [
        [150_000, 100_000],
        [100_000],
    ]


def test_of_findings_with_equal_scores_the_one_with_the_first_op_group_comes_first():
    program = Program()
    for kernel in (NVJET, CUTLASS):
        program.call("aten::mm", kernel, 100, **product(2000, 2000, 2000))

    assert [(finding.id, finding.members) for finding in findings_of(program)] == [
        ("gemm.F1", ["op1"]),
        ("gemm.F2", ["op2"]),
    ]


def test_kernels_without_a_rating_are_an_upper_bound_with_the_reason_of_most_of_their_time():
    program = Program()
    program.call("aten::mm", NVJET, 30)  # no shapes
    program.call("aten::mm", CUTLASS, 20)
    program.call("aten::mm", NVJET, 10, **product(2000, 2000, 2000) | {"types": ["", ""]})
    (finding,) = findings_of(program)

    assert finding.kind == "upper_bound"
    assert finding.evidence["unmodelled"] == "no input shapes recorded"  # 50 of 60
    assert finding.score == Score(low=100.0, mid=100.0, high=100.0)  # nothing else runs
    assert finding.subject == "gemm kernels without a rating"
    assert "unrated" in finding.patterns


def test_what_was_launched_before_the_window_is_in_no_finding():
    builder = TraceBuilder()
    builder.kernel(NVJET, ts=0, dur=50)
    builder.op("aten::mm", 60, 5, **product(2000, 2000, 2000))
    builder.kernel(NVJET, ts=100, dur=50, correlation=builder.launch(ts=61))
    workload = workload_of(builder)
    findings = [draft.finding for draft in compute.analyze(workload)["gemm"][1]]

    (member,) = [member for finding in findings for member in finding.members]
    assert workload.groups[workload.op_ids.index(member)].name == "aten::mm"
    assert len(workload.groups) == 2


def test_a_rating_that_cannot_be_believed_is_in_no_finding():
    program = Program()
    program.call("aten::mm", NVJET, 5, **product(2000, 2000, 2000))  # its floor is 20 µs
    summary, findings = analysed(program)["gemm"]

    assert findings == []
    assert (summary["time_ms"], summary["rated_pct"], summary["groups_count"]) == (0.005, 0.0, 1)
    assert "efficiency_pct" not in summary


def test_the_summary_is_about_the_whole_category():
    # rated 100 µs with a floor of 20,138 ns, unrated 50 µs; an addition of 50 µs beside them
    program = Program()
    program.call("aten::mm", NVJET, 100, **product(2000, 2000, 2000))
    program.call("aten::mm", CUTLASS, 50)
    program.call("aten::add", "add_kernel", 50, **vectors(1_000_000))
    results = analysed(program)

    assert list(results) == ["gemm", "elementwise"]
    assert results["gemm"][0] == {
        "time_ms": 0.15,
        "time_share_pct": 75.0,
        "rated_pct": 66.67,
        "groups_count": 2,
        "efficiency_pct": 20.14,
    }


def test_categories_without_an_analyzer_of_their_own_go_to_the_one_that_looks_after_them():
    program = Program()
    program.call("aten::copy_", "copy_kernel", 10)
    program.call("aten::embedding", "embedding_kernel", 10)
    results = analysed(program)

    assert [(name, [f.category for f in findings]) for name, (_, findings) in results.items()] == [
        ("elementwise", ["memory"]),
        ("generic", ["embedding"]),
    ]


def test_a_finding_names_its_place():
    builder = Program()
    builder.python("train.py(7): main", 0, 100)
    builder.python("nn.Module: Block_1", 0, 100)
    builder.python("nn.Module: Linear_12", 0, 100)
    builder.python("torch/nn/linear.py(3): forward", 0, 100)
    builder.call("aten::mm", NVJET, 90, **product(2000, 2000, 2000))
    builder.call("aten::mm", NVJET, 110, **product(2000, 2000, 2000))
    (finding,) = findings_of(builder)

    assert finding.evidence["modules"] == "Linear"  # the class, without the instance's number
    assert finding.evidence["source"] == "train.py(7): main"
    assert finding.evidence["phase"] == "forward"
    assert finding.evidence["variation_pct"] == 10.0  # 90 and 110 around 100


def test_layout_kernels_inside_other_ops_are_listed_as_extra():
    builder = TraceBuilder()
    builder.op("aten::addmm", 0, 9)
    for name, ts, dur in ((NVJET, 20, 50), ("__amd_rocclr_fillBufferAligned", 80, 5)):
        builder.kernel(name, ts=ts, dur=dur, correlation=builder.launch(ts=1))
    (finding,) = findings_of(builder)

    assert finding.evidence["extra_kernels"] == "__amd_rocclr_fillBufferAligned"
    assert finding.evidence["kernels_per_instance"] == 2.0


def test_kernels_of_a_compiler_are_apart_from_others_without_a_rating():
    program = Program()
    for kernel, dur in (("triton_poi_fused_add_0", 30), ("triton_poi_fused_mul_1", 10), ("elementwise_kernel<4>", 20)):
        program.call("aten::mul", kernel, dur)

    assert {finding.subject: finding.evidence["time_ms"] for finding in findings_of(program, "elementwise")} == {
        "elementwise kernels of Inductor without a rating": 0.04,
        "elementwise kernels without a rating": 0.02,
    }


def test_time_without_a_rating_tells_its_share_of_all_such_time():
    program = Program()
    program.call("aten::mm", NVJET, 30)
    program.call("aten::add", "add_kernel", 10)
    program.call("aten::mm", NVJET, 60, **product(2000, 2000, 2000))
    unrated = next(finding for finding in findings_of(program) if finding.kind == "upper_bound")

    assert unrated.evidence["unmodelled_share_pct"] == 75.0  # 30 of 40


GEMMS = [
    # name, shapes, (m, n, k), misaligned
    pytest.param("aten::mm", [[64, 32], [32, 16]], (64, 16, 32), False, id="mm"),
    pytest.param("aten::mm", [[64, 30], [30, 16]], (64, 16, 30), True, id="odd k"),
    pytest.param("aten::mm", [[64, 32], [32, 15]], (64, 15, 32), True, id="odd n"),
    pytest.param("aten::mm", [[1, 32], [32, 16]], (1, 16, 32), False, id="a single row is not misaligned"),
    pytest.param("aten::mm", [[64, 32], [32, 1]], (64, 1, 32), False, id="a single column is a vector"),
    pytest.param("aten::bmm", [[5, 64, 32], [5, 32, 16]], (64, 16, 32), False, id="bmm"),
    pytest.param("aten::addmm", [[16], [64, 32], [32, 16]], (64, 16, 32), False, id="addmm, a bias first"),
    pytest.param("aten::baddbmm", [[5, 64, 16], [5, 64, 32], [5, 32, 16]], (64, 16, 32), False, id="baddbmm"),
    pytest.param("aten::linear", [[2, 5, 32], [16, 32]], (10, 16, 32), False, id="linear, weight transposed"),
    pytest.param("aten::linear", [[10, 32], [15, 32], [15]], (10, 15, 32), True, id="linear, odd n"),
]


@pytest.mark.parametrize(("name", "shapes", "sizes", "misaligned"), GEMMS)
def test_a_product_tells_its_sizes_and_whether_they_suit_the_matrix_units(name, shapes, sizes, misaligned):
    program = Program()
    program.call(name, NVJET, 50, dims=shapes, types=[BF16] * len(shapes))
    (finding,) = findings_of(program)

    assert tuple(finding.evidence[size] for size in "mnk") == sizes
    assert finding.evidence["misaligned"] is misaligned
    assert bool(finding.evidence["odd_dims"]) is misaligned


def test_rows_count_for_the_alignment_where_the_first_factor_is_stored_transposed():
    # the gradient of a weight: x^T [30, 64] is x [64, 30] read along its columns
    program = Program()
    program.call("aten::mm", NVJET, 50, **product(30, 16, 64) | {"strides": [[1, 30], [16, 1]]})

    (finding,) = findings_of(program)
    assert (finding.evidence["misaligned"], finding.evidence["odd_dims"]) == (True, "M")


@pytest.mark.parametrize(("dtype", "misaligned"), [("float", False), (BF16, True), ("double", False)])
def test_wider_elements_need_fewer_of_them_for_a_full_load(dtype, misaligned):
    # 12 elements: 48 bytes in fp32 are three loads of 16; 24 bytes in bf16 are one and a half
    program = Program()
    program.call("aten::mm", NVJET, 50, **product(64, 12, 12, dtype))

    assert findings_of(program)[0].evidence["misaligned"] is misaligned


@pytest.mark.parametrize(
    "shapes",
    [[[64, 32]], [[64, 32], []], [[64, 32], [0, 4]], [["a", 32], [32, 4]], [64, 32], [[2**70, 8], [8, 2**70]]],
    ids=["one factor", "a scalar", "a size of zero", "text", "no lists", "beyond all memory"],
)
def test_shapes_that_are_no_product_tell_no_sizes(shapes):
    program = Program()
    program.call("aten::mm", NVJET, 50, dims=shapes, types=[BF16, BF16])

    assert not fields.PRODUCT & set(findings_of(program)[0].evidence)


@pytest.mark.parametrize(
    ("inputs", "promised"),
    [
        pytest.param(product(2000, 2000, 2000), fields.COMPUTE | fields.RATED | fields.PRODUCT, id="rated"),
        pytest.param({}, fields.COMPUTE | fields.UNRATED, id="unrated"),
    ],
)
def test_every_field_that_patterns_rely_on_is_there(inputs, promised):
    program = Program()
    program.call("aten::mm", NVJET, 100, **inputs)

    assert promised <= set(findings_of(program)[0].evidence)


def test_a_trace_without_kernels_has_no_results():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5)

    assert analysed(builder) == {}


def edits_of(builder, analyzer="gemm", claimed=None):
    """(summed savings by kernel name in ns, bound in ns) of each finding."""
    workload = workload_of(builder)
    names, activities = workload.trace.names, workload.activities
    chosen = None if claimed is None else np.array([names[code] in claimed for code in activities.name.tolist()])
    found = []
    for draft in compute.analyze(workload, chosen)[analyzer][1]:
        saved: dict[str, int] = {}
        for at, ns in zip(draft.edit.activities.tolist(), draft.edit.saved_ns.tolist(), strict=True):
            name = names[activities.name[at]]
            saved[name] = saved.get(name, 0) + ns
        found.append((saved, draft.most_ns))
    return found


def test_the_edit_brings_every_instance_to_its_floor():
    # 2,000^3 in bf16: floor 20,138 ns. 80 - 20.138 and 60 - 20.138; an instance below its floor gives nothing
    program = Program()
    for dur in (80, 60, 20):
        program.call("aten::mm", NVJET, dur, **product(2000, 2000, 2000))

    assert edits_of(program) == [({NVJET: 59_862 + 39_862}, 99_724)]


def test_the_kernels_of_an_instance_give_in_proportion_to_their_time():
    # 60 + 20 µs one after the other: a gap of 80,000 - 20,138 = 59,862, three quarters of it from the first:
    # 60,000 * 0.748275 = 44,896.5 and 20,000 * 0.748275 = 14,965.5, both rounded down
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9, **product(2000, 2000, 2000))
    for name, ts, dur in ((NVJET, 20, 60), (CUTLASS, 80, 20)):
        builder.kernel(name, ts=ts, dur=dur, correlation=builder.launch(ts=1))

    assert edits_of(builder) == [({NVJET: 44_896, CUTLASS: 14_965}, 59_861)]


def test_what_cannot_be_rated_gives_all_its_time():
    program = Program()
    program.call("aten::mm", NVJET, 30)
    program.call("aten::mm", CUTLASS, 20)

    assert edits_of(program) == [({NVJET: 30_000, CUTLASS: 20_000}, 50_000)]


def test_kernels_that_run_at_once_save_no_more_than_the_time_in_which_one_of_them_runs():
    # Two without a rating: 0 to 30 and 10 to 40 on two streams
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 3)
    builder.kernel(NVJET, ts=5, dur=30, correlation=builder.launch(ts=1))
    builder.op("aten::mm", 3, 3)
    builder.kernel(NVJET, ts=15, dur=30, stream=8, correlation=builder.launch(ts=4))

    assert edits_of(builder) == [({NVJET: 60_000}, 40_000)]


def test_what_a_fusion_claims_is_left_to_it():
    program = Program()
    program.call("aten::mm", NVJET, 30)
    program.call("aten::mm", CUTLASS, 20)
    workload = workload_of(program)
    claimed = np.array([True, False])
    (draft,) = compute.analyze(workload, claimed)["gemm"][1]

    assert edits_of(program, claimed={NVJET}) == [({CUTLASS: 20_000}, 20_000)]
    assert draft.finding.evidence["claimed_by_fusion_ms"] == 0.03
    assert draft.finding.score.mid == 40.0  # 20 of 50
