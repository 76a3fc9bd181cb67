"""Scores by replay: each finding for itself, the first ones together, and what the profiler may have made of it.

Times are µs; scores are per cent of the measured span.
"""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.analyzers.draft import Draft
from rooftrace.analyzers.scoring import score
from rooftrace.contracts.base import Score
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.replay.facts import without_profiler
from rooftrace.workflow.findings import find_and_score, is_inflated
from tests.analyzers.workloads import NVJET, product, vectors, workload_of
from tests.analyzers.workloads import Program as Ops
from tests.schedule.scenes import STREAM_SYNC, Program, Scene, scene_of


def draft(identity: str, edit: Edit, most_us: float = 1e6, *, tier="compute", kind="modelled") -> Draft:
    finding = FindingEvidence(
        id=identity,
        tier=tier,
        category="gemm",
        subject="a test",
        score=Score(low=1, mid=2, high=3),
        score_basis="gap_share",
        gpu_time_score=3,
        kind=kind,
        members=[],
        evidence={"time_ms": 1.0},
        patterns=[],
    )
    return Draft(finding=finding, edit=edit, most_ns=int(most_us * 1_000))


def kernels(scene: Scene, saved: dict[str, float]) -> Edit:
    """Time taken from kernels, by name, µs."""
    return Edit(
        activities=np.array([scene.kernel(name) for name in saved]),
        saved_ns=np.array([int(us * 1_000) for us in saved.values()]),
    )


def host(scene: Scene, start: float, end: float) -> Edit:
    lane = int(scene.tree.lane[0])
    times = np.array([int(start * 1_000)]), np.array([int(end * 1_000)])
    return Edit(host=(HostCut(lane=lane, start=times[0], end=times[1]),))


def scored(scene: Scene, *drafts: Draft, inflated: bool = False):
    replay = scene.replay()
    return score(drafts, replay, halved=without_profiler(replay, {}) if inflated else None)


def queued() -> Scene:
    """a from 10 to 110, b to 210, c to 410, queued back to back: a span of 400."""
    program = Program()
    for name, ts, start, dur in (("a", 0, 10, 100), ("b", 1, 110, 100), ("c", 2, 210, 200)):
        program.launched(name, ts=ts, start=start, dur=dur)
    return scene_of(program)


def test_a_score_is_the_share_of_the_span_saved_at_three_closures():
    # 80 of 400 at 75, 87.5 and 100 %: 60, 70 and 80
    scene = queued()
    (finding,) = scored(scene, draft("gemm.F1", kernels(scene, {"a": 80}))).findings

    assert finding.score == Score(low=15.0, mid=17.5, high=20.0)
    assert finding.score_basis == "replay"
    assert finding.gpu_time_score == 3  # beside it, untouched
    assert finding.evidence == {"time_ms": 1.0}


def test_a_score_is_never_more_than_its_bound():
    # 60, 70 and 80 would be saved, at most 65 can
    scene = queued()
    (finding,) = scored(scene, draft("gemm.F1", kernels(scene, {"a": 80}), most_us=65)).findings

    assert finding.score == Score(low=15.0, mid=16.25, high=16.25)


def test_a_fix_that_would_cost_time_scores_nothing():
    scene = queued()
    (finding,) = scored(scene, draft("gemm.F1", kernels(scene, {"a": -80}))).findings

    assert finding.score == Score(low=0.0, mid=0.0, high=0.0)


def test_compute_time_without_a_model_is_bounded_by_the_whole_of_it_at_every_closure():
    scene = queued()
    (finding,) = scored(scene, draft("gemm.F1", kernels(scene, {"a": 80}), kind="upper_bound")).findings

    assert finding.score == Score(low=20.0, mid=20.0, high=20.0)


def test_an_upper_bound_of_the_system_tier_has_closures():
    scene = queued()
    edit = kernels(scene, {"a": 80})
    (finding,) = scored(scene, draft("idle.F1", edit, kind="upper_bound", tier="system")).findings

    assert finding.score == Score(low=15.0, mid=17.5, high=20.0)


def test_the_first_fixes_together_leave_what_their_replay_leaves():
    # At 87.5 %: 160 of c's 200 give 140, 80 of b's 100 give 70, 2 give 1.75, which is 0.44 % and not ranked
    scene = queued()
    drafts = [
        draft("gemm.F2", kernels(scene, {"b": 80})),
        draft("gemm.F1", kernels(scene, {"c": 160})),
        draft("gemm.F3", kernels(scene, {"a": 2})),
    ]
    result = scored(scene, *drafts)

    assert result.together == [260_000, 190_000]  # 400 - 140, 260 - 70: most first
    assert [finding.id for finding in result.findings] == ["gemm.F2", "gemm.F1", "gemm.F3"]  # as they were given


def test_of_equal_scores_the_first_id_comes_first():
    # Both are fixed at once only where the second one's time is another kernel's: 400 - 70, then - 70
    scene = queued()
    drafts = [draft("gemm.F2", kernels(scene, {"b": 80})), draft("gemm.F1", kernels(scene, {"a": 80}))]

    assert scored(scene, *drafts).together == [330_000, 260_000]


def test_fixes_of_one_kernel_are_not_added_up_beyond_it():
    # Two findings take 80 of a's 100 each: 70, then what is left of it, 30
    scene = queued()
    drafts = [draft("gemm.F1", kernels(scene, {"a": 80})), draft("moe.F1", kernels(scene, {"a": 80}))]

    assert scored(scene, *drafts).together == [330_000, 300_000]


def test_time_without_a_model_is_not_counted_among_the_fixes():
    # a without a model could give 100 of 400 and ranks first; b gives 70
    scene = queued()
    drafts = [
        draft("gemm.F1", kernels(scene, {"a": 100}), kind="upper_bound"),
        draft("gemm.F2", kernels(scene, {"b": 80})),
    ]

    assert scored(scene, *drafts).together == [400_000, 330_000]


def test_without_anything_to_rank_there_is_nothing_together():
    scene = queued()

    assert scored(scene, draft("gemm.F1", kernels(scene, {"a": 1}))).together == []
    assert scored(scene).together == []


def in_parallel() -> Scene:
    """Streams 7 and 8 both busy from 10 on: a until 110, b until 100. Neither alone shortens the run by much."""
    program = Program()
    program.launched("a", ts=0, start=10, dur=100, stream=7)
    program.launched("b", ts=1, start=10, dur=90, stream=8)
    return scene_of(program)


def test_a_fix_that_pays_once_the_first_one_is_made_says_so():
    # a at 80 less 87.5 %: 30, so b decides: 90 of 100 left, 10 % saved. b alone saves nothing; after the first fix
    # 70 % of b's 80 count: b takes 20, a takes 30: 90 - 30 = 60 saved of 100
    scene = in_parallel()
    result = scored(scene, draft("gemm.F1", kernels(scene, {"a": 80})), draft("gemm.F2", kernels(scene, {"b": 80})))

    assert [finding.score.mid for finding in result.findings] == [10.0, 0.0]
    assert result.findings[1].evidence == {"time_ms": 1.0, "after_first_pct": 60.0, "first_id": "gemm.F1"}
    assert "after_first_pct" not in result.findings[0].evidence


def hidden_by_the_host() -> Scene:
    """Kernels of 40 launched every 100: the GPU waits for the host."""
    program = Program()
    for number in range(4):
        program.launched(f"k{number}", ts=100 * number, start=100 * number + 10, dur=40)
    return scene_of(program)


def test_a_fix_that_pays_as_well_with_host_time_halved_is_not_sensitive_and_one_that_pays_half_as_much_is():
    # Span 340, from 10 to 350. Taking 30 from k0 saves nothing: the host is late. With launches every 50 the kernels
    # run from 10, 60, 110 and 160 to 200: nothing either. A fix of the last kernel saves in both
    scene = hidden_by_the_host()
    first = draft("gemm.F1", kernels(scene, {"k0": 30}))
    last = draft("gemm.F2", kernels(scene, {"k3": 30}))
    host_fix = draft("idle.F1", host(scene, 250, 300), tier="system")
    result = scored(scene, first, last, host_fix, inflated=True)

    assert [finding.score.mid for finding in result.findings] == [0.0, 7.72, 12.87]  # 26.25 and 43.75 of 340
    # Halved, the span is 190. Of the last kernel 26.25 are gone; of the host's 50, 43.75 instead of 25: k3 is launched
    # 18.75 earlier, but k2 ends at 150, so it starts at 151 instead of 160
    assert result.findings[0].evidence == {"time_ms": 1.0}
    assert result.findings[1].evidence == {"time_ms": 1.0, "half_host_score_pct": 13.82, "profiler_sensitive": False}
    # 12.87 is more than twice 4.74, and more than two points away
    assert result.findings[2].evidence == {"time_ms": 1.0, "half_host_score_pct": 4.74, "profiler_sensitive": True}


def test_a_fix_hidden_by_host_time_is_sensitive_to_the_profiler():
    # Kernels of 80 launched every 100, the first of them 30 too long: with host time as recorded the GPU waits anyway,
    # halved (every 50) the kernels run back to back and each µs counts
    program = Program()
    for number in range(4):
        program.launched(f"k{number}", ts=100 * number, start=100 * number + 10, dur=80)
    scene = scene_of(program)
    (finding,) = scored(scene, draft("gemm.F1", kernels(scene, {"k0": 30})), inflated=True).findings

    # Halved: 10 to 90, then 91 to 171, 172 to 252, 253 to 333 (a usual gap of 1 between): 323. With 26.25 less for k0:
    # from 90 - 26.25 = 63.75 on, but k1 is launched at 50 and starts at 64.75 at the earliest: 26.25 saved
    assert finding.score.mid == 0.0
    assert finding.evidence["half_host_score_pct"] == 8.13  # 26.25 of 323
    assert finding.evidence["profiler_sensitive"] is True


@pytest.mark.parametrize(("hidden", "sensitive"), [(2, False), (3, True)], ids=["first to third", "first to fourth"])
def test_a_fix_whose_place_changes_is_sensitive_although_its_score_is_not(hidden, sensitive):
    # Kernels of 80 launched every 100: only the last one's 8 count, 7 of 480 at 87.5 %. With launches every 50 they run
    # back to back, 5 * 80 + 4 * 1 = 404: 7 of that, and 26.25 for each of the others
    program = Program()
    for number in range(5):
        program.launched(f"k{number}", ts=100 * number, start=100 * number + 10, dur=80)
    scene = scene_of(program)
    others = [draft(f"gemm.F{number + 2}", kernels(scene, {f"k{number}": 30})) for number in range(hidden)]
    last, *rest = scored(scene, draft("gemm.F1", kernels(scene, {"k4": 8})), *others, inflated=True).findings

    assert (last.score.mid, last.evidence["half_host_score_pct"]) == (1.46, 1.73)
    assert [finding.score.mid for finding in rest] == [0.0] * hidden
    assert {finding.evidence["half_host_score_pct"] for finding in rest} == {6.5}  # 26.25 of 404
    assert last.evidence["profiler_sensitive"] is sensitive


def test_without_recorded_stacks_or_shapes_the_profiler_is_not_doubted():
    scene = hidden_by_the_host()
    (finding,) = scored(scene, draft("gemm.F1", kernels(scene, {"k3": 30}))).findings

    assert finding.evidence == {"time_ms": 1.0}


@pytest.mark.parametrize("kind", ["shapes", "stacks", "neither"])
def test_a_profile_with_shapes_or_stacks_took_host_time(kind):
    ops = Ops()
    ops.call("aten::mm", NVJET, 50, **(product(64, 64, 64) if kind == "shapes" else {}))
    if kind == "stacks":
        ops.python("train.py(3): main", 0, 10)

    assert is_inflated(workload_of(ops)) is (kind != "neither")


def loosely(late: float) -> Ops:
    """Additions of 100 queued at the beginning, the last of them later than its stream or its launch tells."""
    ops = Ops(first_kernel=30)
    for gap in (0, 2, 2, 2, late):
        ops.call("aten::add", "add_kernel", 100, gap=gap, **vectors(1_000_000))
    return ops


@pytest.mark.parametrize(
    ("late", "basis"), [(202, "replay"), (262, "gap_share")], ids=["72 % explained", "67 % explained"]
)
def test_a_run_that_is_explained_too_little_keeps_gap_shares(late, basis):
    # 500 of kernels, 4 gaps of 2 as usual, and 200 or 260 unexplained: 508 of 708, or of 768
    results = find_and_score(workload_of(loosely(late)))

    assert {finding.score_basis for finding in results.findings["elementwise"]} == {basis}
    assert results.replay is not None
    assert results.replay["replay"].explained_pct == {202: 71.75, 262: 66.15}[late]
    assert (results.replay["together"] is None) is (basis == "gap_share")


def test_a_trace_without_gpu_activity_has_no_replay():
    ops = Ops()
    ops.op("aten::mm", 0, 5)
    results = find_and_score(workload_of(ops))

    assert (results.replay, results.findings) == (None, {})


def test_a_wait_that_is_removed_scores_what_its_replay_saves():
    # a until 110, the call returns at 115, b is launched at 120 and ends at 140. Unblocked at 75, 87.5 and 100 %:
    # the call ends 81, 94.5 and 108 earlier, and b, held by a, runs from 111 to 121: 19 of 130 in each case
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launch(STREAM_SYNC, ts=2, dur=113)
    program.launched("b", ts=120, start=130, dur=10)
    scene = scene_of(program)
    (finding,) = scored(scene, draft("idle.F1", Edit(unblocked=np.array([0])), tier="system")).findings

    assert finding.score == Score(low=14.62, mid=14.62, high=14.62)
    assert "wait_may_move" not in finding.evidence


def waiting_in_a_row(count: int) -> Scene:
    """Calls in a row that all wait for a, then host work of 1,000, then b: only the first has to wait as recorded."""
    #           0  10             1010 1015                2050 2060
    # host     [a][---- sync ----------][sync]…[sync][work][b]
    # GPU            [------ a ------]                          [b]
    program = Program()
    program.launched("a", ts=0, start=10, dur=1000)
    program.launch(STREAM_SYNC, ts=2, dur=1013)
    for number in range(1, count):
        program.launch(STREAM_SYNC, ts=1015 + number, dur=0.5)
    program.op("work", 1045, 1000)
    program.launched("b", ts=2050, start=2060, dur=10)
    return scene_of(program)


@pytest.mark.parametrize(("count", "told"), [(1, {}), (16, {"wait_may_move": True})])
def test_waits_of_which_only_all_of_all_save_much_are_marked_as_such_that_may_move(count, told):
    # Of one wait, an eighth left is an eighth lost. Of sixteen each leaves an eighth of what is still to wait for
    scene = waiting_in_a_row(count)
    (finding,) = scored(scene, draft("idle.F1", Edit(unblocked=np.arange(count)), tier="system")).findings

    assert finding.evidence == {"time_ms": 1.0, **told}
