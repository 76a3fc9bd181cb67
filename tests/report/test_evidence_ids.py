"""Every quantity that prose may cite: its id, what it measures and its text."""

from __future__ import annotations

import pytest

from rooftrace.contracts.report import CriticalPath, Remaining, Replay
from rooftrace.report.assemble import assemble, open_grounds
from rooftrace.report.evidence_ids import evidence_values, quantities
from rooftrace.report.slots import SlotText
from tests.report.sample import cpu_files, gpu_files, write_files


@pytest.fixture
def table(tmp_path):
    grounds = open_grounds(write_files(tmp_path, gpu_files()))
    return {item.id: item for item in quantities(grounds.values)}


@pytest.mark.parametrize(
    ("name", "measures", "text"),
    [
        ("gemm.F1.time_ms", "time", "3.200 ms"),
        ("gemm.F1.efficiency_pct", "percentage", "43.0 %"),
        ("gemm.F1.score_mid_pct", "percentage", "16.0 %"),
        ("gemm.F1.rank", "number", "2"),
        ("gemm.F1.kernels_count", "count", "4"),
        ("gemm.F1.m", "number", "4096"),
        ("gemm.F1.tf32", "yes or no", "no"),
        ("gemm.F1.top_op", "text", "aten::mm"),
        ("gemm.F1.m1.op", "text", "aten::mm"),
        ("gemm.F1.m1.shapes", "text", "4096x4096 (x2)"),
        ("gemm.F1.m1.time_ms", "time", "3.200 ms"),
        ("gemm.F1.m1.floor_us", "time", "343.6 µs"),
        ("gemm.F1.m1.work_flops", "FLOP", "137 GFLOP"),
        ("gemm.F2.achieved_gbps", "byte/s", "423 GB/s"),
        ("gemm.time_ms", "time", "1.000 ms"),
        ("ledger.span_ms", "time", "10.00 ms"),
        ("ledger.idle_ms", "time", "2.500 ms"),
        ("ledger.idle_pct", "percentage", "25.0 %"),
        ("ledger.compute_gemm_pct", "percentage", "40.0 %"),
        ("ledger.total_comm_ms", "time", "1.400 ms"),
        ("ledger.devices_count", "count", "1"),
        ("steps.steps_count", "count", "2"),
        ("steps.mean_ms", "time", "5.000 ms"),
        ("coverage.rated_pct", "percentage", "74.6 %"),  # 5.52 of 7.4 ms
        ("trace.workload", "text", "training"),
        ("platform.gpu_name", "text", "NVIDIA H100 SXM5 80 GB"),
    ],
)
def test_a_quantity_has_an_id_a_measure_and_a_text(table, name, measures, text):
    assert (table[name].measures, table[name].text) == (measures, text)


def test_every_evidence_field_of_every_finding_is_citable(tmp_path):
    run = write_files(tmp_path, gpu_files())
    report, values = assemble(run), open_grounds(run).values

    for finding in [*report.findings, *report.unranked]:
        assert {f"{finding.id}.{name}" for name in finding.evidence} <= set(values)


def test_a_cited_id_reads_in_prose_as_in_the_report(tmp_path):
    grounds = open_grounds(write_files(tmp_path, gpu_files()))

    assert SlotText(raw="{{gemm.F1.top_op}} takes {{ gemm.F1.time_ms }} & more").markdown(grounds.values) == (
        "`aten::mm` takes 3.200 ms &amp; more"
    )


def test_ids_of_several_devices(tmp_path):
    files = gpu_files()
    device = files["evidence/ledger.json"]["devices"][0]
    files["evidence/ledger.json"]["devices"] = [device, {**device, "device": 3}]
    report = assemble(write_files(tmp_path, files))

    values = evidence_values(report, {})
    assert values["ledger.d3.idle_pct"] == 25.0
    assert values["ledger.idle_ms"] == 5.0  # 2.5 ms on each of two devices
    assert "replay.baseline_ms" not in values


def test_ids_of_the_replay(tmp_path):
    report = assemble(write_files(tmp_path, gpu_files()))
    replay = Replay.model_construct(
        baseline_ns=9_900_000,
        measured_ns=10_000_000,
        error_pct=-1.0,
        explained_pct=92.5,
        bound_by="host",
        half_host_ns=7_000_000,
        if_free={"compute": 8_000_000},
        paths=[CriticalPath.model_construct(device=0, span_ns=10_000_000, by_resource={"host": 6_000_000}, strip=[])],
    )
    together = [Remaining(after=2, span_ns=6_500_000)]

    values = evidence_values(report.model_copy(update={"replay": replay, "together": together}), {})
    assert {name: value for name, value in values.items() if name.startswith(("replay.", "together."))} == {
        "replay.baseline_ms": 9.9,
        "replay.measured_ms": 10.0,
        "replay.error_pct": -1.0,
        "replay.explained_pct": 92.5,
        "replay.bound_by": "host",
        "replay.half_host_ms": 7.0,
        "replay.compute_free_ms": 8.0,
        "replay.path_host_pct": 60.0,
        "together.after2_ms": 6.5,
    }


def test_a_run_without_gpu_has_no_ledger_to_cite(tmp_path):
    values = evidence_values(assemble(write_files(tmp_path, cpu_files())), {})

    assert [name for name in values if name.startswith(("ledger.", "coverage.", "platform."))] == []
    assert values["trace.gpu_events_count"] == 0
