from __future__ import annotations

import numpy as np

from rooftrace.analyzers.fusion import analyze
from tests.analyzers.workloads import workload_of
from tests.fusion.programs import ADD, BF16, COPY, GEMM, HALF, MUL, OTHER, Model, X, recorded, rms_norm


def findings(model, platform="h100-sxm"):
    return analyze(workload_of(model, platform))


def norms(count=3):
    model = Model()
    for layer in range(count):
        rms_norm(model, layer)
    return model


def test_a_finding_carries_its_instances_time_and_what_fusing_leaves():
    summary, (draft,) = findings(norms())
    finding, evidence = draft.finding, draft.finding.evidence

    assert (finding.id, finding.tier, finding.category, finding.kind) == (
        "fusion.F1",
        "fusion",
        "fusion",
        "modelled",
    )
    assert finding.members == ["fusion.F1.i1", "fusion.F1.i2", "fusion.F1.i3"]
    assert (evidence["pattern"], evidence["instances_count"], evidence["kernels_per_instance"]) == (
        "rms_norm",
        3,
        8.0,
    )
    assert evidence["launches_removed_count"] == 21  # 3 * (8 - 1)
    assert evidence["time_ms"] == 0.312  # 3 * 104 µs
    assert evidence["external_bytes"] == 33_556_480  # 2 * 8192*1024*2 and a weight of 2,048
    assert round(evidence["time_ms"] - evidence["fused_ms"], 6) == evidence["saving_ms"]
    assert summary["time_ms"] == 0.312


def test_the_score_is_the_share_of_the_span_that_closing_the_gap_saves():
    _, (draft,) = findings(norms())

    # three norms of 104 µs are the whole span, so a saving of s ms is 100 * s / 0.312 per cent of it
    high = round(100 * draft.finding.evidence["saving_ms"] / 0.312, 2)
    assert draft.finding.score.high == high
    assert abs(draft.finding.score.low - 0.75 * high) < 0.02
    assert draft.finding.gpu_time_score == high


def test_confidence_is_high_where_a_module_says_the_same_and_medium_where_only_the_calls_do():
    named = findings(norms())[1][0].finding
    model = Model()
    rms_norm(model, name="Scale")
    unnamed = findings(model)[1][0].finding

    assert (named.confidence, unnamed.confidence) == ("high", "medium")


def test_a_chain_of_no_composition_is_of_low_confidence():
    model = Model()
    with model.module("Head_0"):
        model.call("aten::cos", 30, X)
        model.call("aten::tanh", 30, X)
    _, (draft,) = findings(model)

    assert (draft.finding.confidence, draft.finding.patterns[0]) == ("low", "novel_without_source")


def test_the_edit_leaves_one_kernel_of_the_fused_time_and_removes_the_others():
    model = norms()
    workload = workload_of(model)
    _, (draft,) = analyze(workload)
    left = int(
        workload.activities.dur.sum() - workload.activities.dur[draft.edit.removed].sum() - draft.edit.saved_ns.sum()
    )

    assert (draft.edit.activities.size, draft.edit.removed.size) == (3, 21)
    assert left == 3 * round(draft.finding.evidence["fused_ms"] * 1e6 / 3)
    assert draft.claims.tolist() == list(range(24))
    # seven calls of 8 µs an instance are made no more
    assert sum(int((cut.end - cut.start).sum()) for cut in draft.edit.host) == 3 * 7 * 8_000
    assert draft.most_ns == round(draft.finding.evidence["saving_ms"] * 1e6) + 168_000


def test_a_product_is_never_claimed_by_its_epilogue():
    model = Model()
    model.call("aten::mm", 100, HALF, ([1024, 1024], BF16), kernel=GEMM)
    model.call("aten::gelu", 60, HALF, scalars=("none",))
    workload = workload_of(model)
    _, (draft,) = analyze(workload)

    assert draft.claims.tolist() == [1]
    assert (draft.finding.evidence["kept_op"], draft.finding.evidence["launches_removed_count"]) == (
        "aten::mm",
        1,
    )
    assert draft.finding.evidence["op_chain"] == "[aten::mm] -> aten::gelu"


def test_no_two_findings_claim_one_activity():
    model = norms()
    with model.module("MLP_0"):
        model.call("aten::mm", 100, HALF, ([1024, 1024], BF16), kernel=GEMM)
        model.call("aten::gelu", 60, HALF, scalars=("none",))
        model.call("aten::cos", 30, X)
        model.call("aten::mul", 30, X, X, kernel=MUL)
    drafts = findings(model)[1]

    claims = np.concatenate([draft.claims for draft in drafts])
    assert len(drafts) == 3
    assert np.unique(claims).size == claims.size


def test_without_a_known_gpu_a_finding_claims_nothing():
    model = Model(gpu="")
    rms_norm(model)
    _, (draft,) = findings(model, platform=None)

    assert (draft.finding.kind, draft.finding.score.high, draft.most_ns, draft.claims.size) == (
        "upper_bound",
        0,
        0,
        0,
    )
    assert draft.finding.evidence["unmodelled"] == "GPU unknown: no ceilings"
    assert draft.finding.patterns[0] == "unrated"


def test_a_chain_in_a_graph_says_so_and_claims_nothing():
    model = Model()
    for _ in range(3):
        graph = model.launch("cudaGraphLaunch", ts=model.host, dur=5)
        model.host += 20
        for kernel in (COPY, OTHER, ADD, GEMM):
            model.bare(kernel, 5, correlation=graph)
    _, (draft,) = findings(model)

    assert (draft.finding.patterns[0], draft.finding.confidence, draft.most_ns) == ("in_graph", "low", 0)
    assert draft.finding.evidence["graph_replayed"] is True


def test_a_run_without_kernels_has_no_finding():
    model = Model()
    model.op("aten::add", 0, 5)

    assert findings(model)[1] == []


def test_a_loop_of_one_op_is_of_low_confidence():
    model = Model()
    small = ([1000], "float")
    for _ in range(20):
        model.call("aten::add_", 2, small, small, kernel=ADD, scalars=("1",))
    _, (draft,) = findings(model)

    assert (draft.finding.confidence, draft.finding.patterns[0]) == ("low", "same_op_loop")


def test_of_many_instances_fifty_are_listed_and_all_are_counted():
    _, (draft,) = findings(norms(60))

    assert len(draft.finding.members) == 50
    assert draft.finding.evidence["instances_count"] == 60


def cast(model, source, target, dur):
    """``to``: the op, and the copy that it dispatches."""
    start = model.host
    model.call("aten::copy_", dur, target, source, kernel=COPY, scalars=("False",))
    model.op("aten::_to_copy", start - 1, model.host - start, **recorded((source,), ("15",)))
    model.host += 2


def test_casts_there_and_back_leave_nothing_to_do():
    model = Model()
    for layer in range(2):
        with model.module(f"Gate_{layer}"):
            cast(model, HALF, X, 30)
            cast(model, X, HALF, 20)
        model.call("aten::mm", 5, HALF, ([1024, 1024], BF16), kernel=GEMM)
    _, (draft,) = findings(model)
    evidence = draft.finding.evidence

    assert draft.finding.patterns[0] == "casts_undone"
    assert (evidence["time_ms"], evidence["saving_ms"], evidence["fused_ms"]) == (0.1, 0.1, 0.0)  # 2 * (30 + 20) µs
    assert (evidence["external_bytes"], evidence["launches_removed_count"]) == (0, 4)
    assert (draft.edit.activities.size, draft.edit.removed.size) == (0, 4)
    assert [bar.launch_stays for bar in draft.finding.instance.bars] == [False, False]


def test_casts_that_round_or_that_fill_a_tensor_which_is_there_are_one_cast():
    rounding, filling = Model(), Model()
    with rounding.module("Gate_0"):
        cast(rounding, X, HALF, 30)
        cast(rounding, HALF, X, 30)
    with filling.module("Cache_0"):
        cast(filling, HALF, X, 30)
        filling.call("aten::copy_", 30, HALF, X, kernel=COPY, scalars=("False",))

    for model in (rounding, filling):
        _, (draft,) = findings(model)
        assert draft.finding.patterns[0] == "repeated_casts"
        assert draft.finding.evidence["launches_removed_count"] == 1
