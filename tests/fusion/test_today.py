"""What the calls of a chain reach today, and the low end of what fusing them saves. Times are µs."""

from __future__ import annotations

import pytest

from rooftrace.analyzers.fusion import analyze
from tests.analyzers.workloads import workload_of
from tests.fusion.programs import ADD, BF16, OTHER, Model, X

ROW = ([1, 197, 768], BF16)
TOKENS = ([4, 197, 768], BF16)


def add_and_norm(add, norm, other=TOKENS):
    model = Model()
    with model.module("ViTLayer_0"):
        model.call("aten::add", add, TOKENS, other, kernel=ADD, scalars=("1",))
        model.op(
            "aten::native_layer_norm",
            model.host,
            8,
            dims=[[4, 197, 768], [], [768], [768], []],
            types=[BF16, "ScalarList", BF16, BF16, "Scalar"],
            concrete=["", "[768]", "", "", "1e-12"],
        )
        launched = model.launch(ts=model.host + 2, dur=3)
        model.kernel("vectorized_layer_norm_kernel", ts=model.gpu, dur=norm, correlation=launched)
        model.gpu += norm
        model.host += 10
    return model


def evidence_of(model):
    return analyze(workload_of(model))[1][0].finding.evidence


def test_the_low_end_is_a_fused_kernel_as_efficient_as_the_best_call_today():
    # [4, 197, 768] in bf16 are 1,210,368 bytes. The add moves three of them: 3,631,104 at 3.18 TB/s are 1,142 ns,
    # below the latency of 2 µs: 50 % of its 4 µs. The norm has the same floor, 20 % of its 10 µs. So a fused kernel
    # at half of its floor of 2,000 ns takes 4,000 and saves 14 - 4 = 10 of the 14 µs.
    evidence = evidence_of(add_and_norm(4, 10))

    assert evidence["pattern"] == "add_norm"
    assert evidence["best_member_pct"] == 50.0
    assert (evidence["longest_us"], evidence["slow_fused_ms"]) == (10.0, 0.004)
    assert evidence["least_saving_ms"] == 0.01
    assert evidence["fused_us"] < 4.0


@pytest.mark.parametrize(
    ("add", "norm", "least_share"),
    [
        (4, 10, 0.75),  # 10 of about 11.8 µs are more than three quarters: the usual low end holds
        (5, 5, None),  # at 40 % a fused kernel takes 5 µs and saves 5 of about 7.8: less than three quarters
    ],
)
def test_the_low_score_is_no_more_than_that_saves(add, norm, least_share):
    (draft,) = analyze(workload_of(add_and_norm(add, norm)))[1]
    evidence = draft.finding.evidence
    expected = least_share or evidence["least_saving_ms"] / evidence["saving_ms"]

    assert draft.closures == (pytest.approx(expected), 0.875, 1.0)
    assert draft.finding.score.low == pytest.approx(expected * draft.finding.score.high, abs=0.02)
    assert (evidence["least_saving_ms"] < 0.75 * evidence["saving_ms"]) is (least_share is None)


def test_a_product_that_takes_in_what_follows_stays_as_estimated():
    model = Model()
    with model.module("Mlp_0"):
        wide = ([8192, 4096], BF16)
        model.call("aten::mm", 100, ([8192, 1024], BF16), ([1024, 4096], BF16), kernel="nvjet_tst_128x256_64x4_TNT")
        model.call("aten::gelu", 60, wide, kernel=OTHER)
    evidence = evidence_of(model)

    assert evidence["pattern"] == "gemm_epilogue"
    assert evidence["slow_fused_ms"] == evidence["fused_ms"]
    assert evidence["least_saving_ms"] == evidence["saving_ms"]


def test_an_add_that_broadcasts_is_told_to_be_no_residual():
    broadcast, residual = evidence_of(add_and_norm(4, 10, ROW)), evidence_of(add_and_norm(4, 10))

    assert "some adds broadcast: no residual" in broadcast["notes"]
    assert "broadcast" not in residual["notes"]


def test_the_chain_that_is_shown_is_counted_beside_all_of_the_finding():
    model = Model()
    for number, tensor in enumerate((X, X, ([16, 1024], BF16))):
        with model.module(f"QuickGELUActivation_{number}"):
            model.call("aten::mul", 30, tensor, scalars=("", "1.702"))
            model.call("aten::sigmoid", 30, tensor)
            model.call("aten::mul", 30, tensor, tensor)
    evidence = evidence_of(model)

    assert (evidence["instances_count"], evidence["kinds_count"], evidence["shown_count"]) == (3, 2, 2)
