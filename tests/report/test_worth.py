"""What an impact is said to be: of which time it is a share, who else holds that time, and what keeps it small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooftrace.report.assemble import assemble, render, write
from tests.report.sample import gpu_files, write_files
from tests.report.sample_findings import _finding, evidence
from tests.report.sample_names import HEAD
from tests.report.test_impact import estimate, impact

Files = dict[str, Any]


def replayed(files: Files, *, host: int, together: tuple[int, ...] = ()) -> Files:
    """The run with a replay whose critical path is `host` ns of 10 ms on the host, the rest compute."""
    names = ("communication", "copy", "launch", "device", "dependency", "synchronisation", "unexplained")
    path = {**dict.fromkeys(names, 0), "compute": 10_000_000 - host, "host": host}
    files["evidence/replay.json"] = {
        **HEAD,
        "replay": {
            "baseline_ns": 10_000_000,
            "measured_ns": 10_000_000,
            "error_pct": 0.0,
            "explained_pct": 100.0,
            "bound_by": "host",
            "paths": [{"device": 0, "span_ns": 10_000_000, "by_resource": path, "strip": ["host:100"]}],
            "if_free": {"compute": host, "host": 10_000_000 - host},
            "half_host_ns": 6_000_000,
            "bound_by_half_host": "host",
            "evidence": {
                "launches": 31,
                "unlinked": 0,
                "waits": {},
                "waits_guessed": 0,
                "dependencies": {},
                "handovers": 0,
                "queue_depth": 0,
                "launch_latency": {"p10": 5_000, "median": 6_000, "p90": 7_000},
                "queued": [0],
            },
        },
        "together": [{"after": after, "span_ns": span} for after, span in enumerate(together, start=1)] or None,
    }
    return files


def fused(files: Files, score: tuple[float, float, float], **facts: Any) -> Files:
    """The run with a fusion finding: 0.1 of 0.16 ms (1.00 % of 10 ms) above its floor, 0.3 ms of the host's time."""
    low, mid, high = score
    values = {
        "pattern": "some_chain",
        "pattern_name": "a chain",
        "instances_count": 25,
        "launches_removed_count": 25,
        "kernels_per_instance": 2,
        "time_ms": 0.16,
        "time_share_pct": 1.6,
        "fused_ms": 0.06,
        "saving_ms": 0.1,
        "host_cut_ms": 0.3,
        "op_chain": "aten::add -> aten::native_layer_norm",
        "kernel_chain": "a -> b",
        "modules": "Norm",
        "shapes": "[4]",
        "bound": "memory",
        "external_bytes": 1_000,
        "separate_bytes": 2_000,
        "inner_bytes": 1_000,
        "notes": "inferred",
        "source": "",
        "kept_op": "",
        "epilogue": "",
        "optimizer": "",
        "one_move": "",
        "graph_replayed": False,
        "replacement": "torch.compile",
        "confidence": "high",
        **facts,
    }
    finding = _finding(
        "fusion.F1",
        "fusion",
        1.0,
        values,
        score={"low": low, "mid": mid, "high": high},
        tier="fusion",
        confidence="high",
        score_basis="replay",
    )
    files["evidence/fusion.json"] = evidence("fusion", [finding])
    files["manifest.json"]["analyzers"] = sorted({*files["manifest.json"]["analyzers"], "fusion"})
    return files


def text_of(tmp_path: Path, files: Files) -> str:
    run = write_files(tmp_path, files)
    return render(run, assemble(run))


def page_of(tmp_path: Path, files: Files, analyzer: str) -> str:
    run = write_files(tmp_path, files)
    write(run)
    return (run / f"findings/{analyzer}.md").read_text(encoding="utf-8")


def test_what_fusing_saves_is_told_apart_from_what_the_chain_takes(tmp_path):
    files = replayed(fused(gpu_files(), (20.0, 24.0, 28.0)), host=6_000_000)

    text = text_of(tmp_path, files)

    # 0.1 of 10 ms is 1.0 %; 0.16 ms is all of the chain's time
    assert impact(text, "fusion.F1") == (
        "20.0 % / 24.0 % / 28.0 % of the span (low / mid / high), 100.0 µs of 160.0 µs above the fused floor and "
        "300.0 µs of the host's time for 25 launches; measured time against a modelled floor, so the high value is an "
        "upper bound; confidence in the diagnosis high."
    )
    assert estimate(text, "fusion-f1") == (
        "100.0 µs of 160.0 µs, which is 1.0 % of the span, lies above the modelled floor of the fused kernels "
        "(60.0 µs); with 75 / 87.5 / 100 % of it closed, as of the 300.0 µs that 25 "
        "launches cost the host, the run is shorter by 20.0 % / 24.0 % / 28.0 % of the span in the replayed run, the "
        "last an upper bound"
    )


@pytest.mark.parametrize(
    ("score", "gpu_time", "words"),
    [
        # 33.72 of 33.88 is 99.5 %; 33.88 of 44.08 is 77 %
        (
            (33.72, 33.8, 33.88),
            44.08,
            "; then the host limits the run, so the three stay below the gap and hardly differ; confidence",
        ),
        (
            (7.9, 8.0, 8.0),
            7.45,
            "upper bound; then the host limits the run, so the three hardly differ; confidence",
        ),
        ((24.0, 28.0, 32.0), 32.0, "so the high value is an upper bound; confidence"),  # 75 %
    ],
    ids=["held back and flat", "flat", "neither"],
)
def test_scores_that_hardly_differ_or_stay_below_the_gap_say_why(tmp_path, score, gpu_time, words):
    files = replayed(fused(gpu_files(), score), host=6_000_000)
    files["evidence/fusion.json"]["findings"][0]["gpu_time_score"] = gpu_time

    assert words in impact(text_of(tmp_path, files), "fusion.F1")


def test_a_faster_kernel_that_the_host_holds_back_says_so(tmp_path):
    files = replayed(gpu_files(), host=9_000_000)
    found = files["evidence/gemm.json"]["findings"][0]  # its gap is 18.26 % of the span
    found |= {"score_basis": "replay", "score": {"low": 12.0, "mid": 12.1, "high": 12.2}}

    words = "; then the host limits the run, so the three stay below the gap and hardly differ"
    assert estimate(text_of(tmp_path, files), "gemm-f1").endswith(words)


def with_claim(files: Files, *, own: float, op: str) -> Files:
    """`gemm.F1` (gap 1,825,612 ns of 10 ms: 18.3 %) with most of its 3.2 ms held by a fusion finding."""
    found = files["evidence/gemm.json"]["findings"][0]
    found["evidence"]["claimed_by_fusion_ms"] = 3.1
    found |= {"gpu_time_score": own, "score": {"low": 0.75 * own, "mid": 0.875 * own, "high": own}}
    return fused(files, (20.0, 24.0, 28.0), op_chain=f"aten::bmm -> {op}")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (
            0.08,
            "of which 0.08 % of the span counts here (3.100 ms of its 3.200 ms is part of `fusion.F1`); closing 75 / "
            "87.5 / 100 % of that saves 0.06 % / 0.07 % / 0.08 % of the span, the last an upper bound",
        ),
        (
            0.0,
            "none of which counts here (3.100 ms of its 3.200 ms is part of `fusion.F1`), so that nothing is left for "
            "this finding to save",
        ),
    ],
    ids=["a rest", "nothing left"],
)
def test_a_gap_that_fusion_claims_is_whole_in_time_and_in_share_and_names_the_claimer(tmp_path, own, words):
    page = page_of(tmp_path, with_claim(gpu_files(), own=own, op="aten::mm"), "gemm")

    assert estimate(page, "gemm-f1") == f"1.826 ms, which is 18.3 % of the span, lies above the modelled floor, {words}"


def test_the_claimer_is_the_fusion_finding_that_replaces_the_op(tmp_path):
    files = with_claim(gpu_files(), own=0.0, op="aten::mm")
    (first,) = files["evidence/fusion.json"]["findings"]
    kept = {**first["evidence"], "op_chain": "[aten::mm] -> aten::gelu"}  # the product stays: its gap is not claimed
    files["evidence/fusion.json"]["findings"].append({**first, "id": "fusion.F2", "evidence": kept})

    assert "is part of `fusion.F1`)" in estimate(page_of(tmp_path, files, "gemm"), "gemm-f1")


def test_a_last_score_far_above_the_middle_one_is_an_upper_bound(tmp_path):
    files = gpu_files()
    files["evidence/idle.json"]["findings"][0]["score"] = {"low": 1.36, "mid": 2.7, "high": 27.86}

    text = text_of(tmp_path, files)

    bound = "; the high value is an upper bound, reached only if no other call blocks the host in its place."
    assert impact(text, "idle.F1").endswith(bound)


@pytest.mark.parametrize(
    ("facts", "words", "short"),
    [
        (
            {"gap_ms": 0.3},
            "300.0 µs, which is 3.0 % of the span, lies above the modelled floor; with",
            "above the floor;",
        ),
        ({}, "500.0 µs, which is 3.0 % of the span, is what it takes; with", "in all;"),
    ],
    ids=["a floor", "no floor"],
)
def test_a_system_finding_speaks_of_a_floor_where_it_has_one(tmp_path, facts, words, short):
    files = gpu_files()
    found = files["evidence/idle.json"]["findings"][0]
    found |= {"kind": "modelled", "gpu_time_score": 3.0}
    found["evidence"] = {**found["evidence"], "idle_ms": 0.5, **facts}

    text = text_of(tmp_path, files)

    assert estimate(text, "idle-f1").startswith(words)
    assert f"µs {short}" in impact(text, "idle.F1")


@pytest.mark.parametrize(
    ("has_graph", "words"),
    [
        (
            True,
            "`fusion.F1` adds nothing there: the launches that it removes are replayed by the graph of `idle.F1` "
            "already, and its kernel time is not what limits the run then; without that graph it is worth its score.",
        ),
        (False, "`fusion.F1` adds nothing there: something else limits the run then."),
    ],
)
def test_a_fix_that_saves_nothing_after_the_first_ones_says_why(tmp_path, has_graph, words):
    files = replayed(fused(gpu_files(), (18.0, 20.0, 22.0)), host=6_000_000, together=(5_000_000, 5_000_000))
    files["evidence/idle.json"]["findings"][0]["evidence"]["graph_candidate"] = has_graph  # idle.F1 ranks first

    line = next(line for line in text_of(tmp_path, files).splitlines() if line.startswith("Fixed one after the other"))

    assert line.endswith(f"1 leaves 5.000 ms (50.0 % less), 2 leave 5.000 ms (50.0 % less). {words}")


def test_a_finding_below_the_limit_has_no_rank(tmp_path):
    files = gpu_files()
    files["evidence/gemm.json"]["findings"][1]["score"] = {"low": 0.3, "mid": 0.4, "high": 0.5}
    run = write_files(tmp_path, files)
    write(run)

    assert "\n| - | `gemm.F2` |" in (run / "analysis.md").read_text(encoding="utf-8")
    page = (run / "findings/gemm.md").read_text(encoding="utf-8")
    assert "- **Identification**: rank 2, compute tier" in page
    assert "- **Identification**: not ranked, compute tier" in page


def test_shares_of_a_path_add_up_to_no_more_than_all_of_it(tmp_path):
    text = text_of(tmp_path, replayed(gpu_files(), host=9_998_000))  # 0.02 % is left for compute

    assert "is host threads, launches and returns of blocking calls for over 99.9 %. Faster kernels" in text
    assert "| GPU compute | 2.0 µs | 0.02 % | 9.998 ms |" in text


def test_the_ledger_is_told_in_a_sentence_without_parts_that_are_empty(tmp_path):
    files = replayed(gpu_files(), host=6_000_000)
    device = files["evidence/ledger.json"]["devices"][0]
    device.update(compute_ns=7_500_000, exposed_comm_ns=0, exposed_copy_ns=0, steps=[])
    device.update(compute_by_category={"gemm": 7_500_000})

    assert "By the ledger the GPU runs compute kernels for 75.0 % of the span and is idle for 25.0 %." in text_of(
        tmp_path, files
    )


def test_time_that_one_chain_holds_is_not_told_as_that_of_a_category(tmp_path):
    files = fused(gpu_files(), (20.0, 24.0, 28.0), time_ms=4.5, time_share_pct=45.0)  # gemm, the largest, is 40 %

    assert (
        "Most compute is what `fusion.F1` would fuse (45.0 % of the span), counted under the categories of its "
        "kernels; of these most is gemm (40.0 % of the span)."
    ) in text_of(tmp_path, files)


def test_answers_name_what_is_there(tmp_path):
    files = fused(gpu_files(), (20.0, 24.0, 28.0))
    gemm = files["evidence/gemm.json"]["findings"]
    gemm[0]["evidence"]["misaligned"] = gemm[1]["evidence"]["misaligned"] = True
    gemm[1]["evidence"]["batched"] = True
    files["evidence/multi_kernel.json"]["findings"] = []

    rows = [line for line in text_of(tmp_path, files).splitlines() if line.startswith("| ") and "?" in line]

    assert (
        "| Is data moved well? | exposed copies take 500.0 µs (5.0 % of the span), too little for a finding |" in rows
    )
    assert any(
        "off a multiple of 8: `gemm.F1` and, as batched products of activations, `gemm.F2`;" in row for row in rows
    )
    assert any("; compilation: for the chains of `fusion.F1` |" in row for row in rows)
    assert any("| Where does the time go? | Executive Summary (steps), Compute" in row for row in rows)


def test_a_run_without_backward_and_steps_is_not_asked_about_them(tmp_path):
    files = gpu_files()
    for row in files["evidence/ops.csv"]:
        row["phase"] = "forward"
    files["evidence/ledger.json"]["devices"][0]["steps"] = []

    text = text_of(tmp_path, files)

    assert "| Is forward work recomputed in backward? | there is no backward pass in this trace |" in text
    assert "| Where does the time go? | Executive Summary (ledger), Compute" in text
