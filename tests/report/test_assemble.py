from __future__ import annotations

import pytest

from rooftrace.contracts import store
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import CheckFailed
from rooftrace.report.assemble import assemble, write
from tests.report.sample import cpu_files, gpu_files, write_files


@pytest.fixture
def files():
    return gpu_files()


def test_findings_of_all_tiers_are_ranked_in_one_list_by_mid_score(tmp_path, files):
    report = assemble(write_files(tmp_path, files))

    assert [(finding.rank, finding.id, finding.score.mid) for finding in report.findings] == [
        (1, "idle.F1", 21.88),
        (2, "gemm.F1", 15.97),
        (3, "multi_kernel.F1", 8.75),
        (4, "elementwise.F1", 7.25),
        (5, "gemm.F2", 6.01),
        (6, "elementwise.F2", 4.8),  # ties with the next one: ids decide
        (7, "multi_kernel.F2", 4.8),
    ]


def test_findings_below_half_a_per_cent_are_listed_and_go_on_counting(tmp_path, files):
    report = assemble(write_files(tmp_path, files))

    assert [(finding.rank, finding.id) for finding in report.unranked] == [(8, "reduction.F1")]


@pytest.mark.parametrize(("mid", "is_ranked"), [(0.5, True), (0.49, False)])
def test_the_ranking_limit_is_inclusive(tmp_path, files, mid, is_ranked):
    files["evidence/reduction.json"]["findings"][0]["score"]["mid"] = mid

    report = assemble(write_files(tmp_path, files))

    assert ("reduction.F1" in [finding.id for finding in report.findings]) is is_ranked


def test_op_groups_are_read_with_their_types(tmp_path, files):
    first = assemble(write_files(tmp_path, files)).ops[0]

    assert (first.id, first.name, first.count, first.floor_ns, first.cov) == (
        "op1",
        "aten::mm",
        4,
        343_597,
        0.0,
    )
    assert (first.kernels[0].ns, first.kernels[0].library) == (3_200_000, "cuBLASLt")
    assert first.shapes == [[4096, 4096], [4096, 4096]]
    assert first.dtypes == ["c10::BFloat16", "c10::BFloat16"]
    assert first.modules == ["Model/Block_0/Linear_0"]
    assert first.carry_in is False


def test_empty_cells_of_optional_columns_are_unknown_not_zero(tmp_path, files):
    unrated = assemble(write_files(tmp_path, files)).ops[3]

    assert (unrated.flops, unrated.floor_ns, unrated.bound) == (None, None, None)
    assert unrated.unmodelled == "no input shapes recorded"


def test_the_pattern_of_highest_priority_writes_and_the_others_add_their_action(tmp_path, files):
    finding = files["evidence/gemm.json"]["findings"][1]
    finding["patterns"] = ["default", "memory_bound", "skinny_memory_bound"]

    written = next(f for f in assemble(write_files(tmp_path, files)).findings if f.id == "gemm.F2")

    assert written.patterns == ["skinny_memory_bound", "memory_bound", "default"]
    assert written.title == "Matrix products read weights for few rows (M 16, N 4096, K 4096)"
    also = [part for part in written.resolution.split("\n\n") if part.startswith("Also: ")]
    assert also == ["Also: Raise the rows per weight read (batch, sequence packing), or store operands in fewer bytes."]


def test_a_finding_without_patterns_gets_the_default_words(tmp_path, files):
    for finding in files["evidence/elementwise.json"]["findings"]:
        finding["patterns"] = []

    found = {f.id: f.patterns for f in assemble(write_files(tmp_path, files)).findings}

    assert found["elementwise.F1"] == ["default"]
    assert found["elementwise.F2"] == ["unrated"]


def test_an_unknown_pattern_is_named(tmp_path, files):
    files["evidence/gemm.json"]["findings"][0]["patterns"] = ["no_such"]

    with pytest.raises(CheckFailed) as caught:
        assemble(write_files(tmp_path, files))

    assert str(caught.value) == (
        "error: pattern `no_such` of analyzer `gemm` is not among the knowledge patterns\n"
        "\n"
        "hint: The run comes from another version of rooftrace: analyze the trace again"
    )


def test_a_pattern_whose_citation_the_evidence_lacks_is_named(tmp_path, files):
    del files["evidence/gemm.json"]["findings"][0]["evidence"]["efficiency_pct"]

    with pytest.raises(CheckFailed, match="pattern `gemm/default` cites `efficiency_pct`"):
        assemble(write_files(tmp_path, files))


def test_recorded_shapes_that_are_no_list_are_unknown(tmp_path, files):
    files["evidence/ops.csv"][0].update(shapes='"damaged"', dtypes="null")

    first = assemble(write_files(tmp_path, files)).ops[0]

    assert (first.shapes, first.dtypes) == (None, None)


def test_a_cell_that_is_not_json_is_named(tmp_path, files):
    files["evidence/ops.csv"][0]["shapes"] = "[[4096, "

    with pytest.raises(CheckFailed, match="a cell of column `shapes` that is not JSON"):
        assemble(write_files(tmp_path, files))


def test_a_row_that_does_not_match_the_table_is_located(tmp_path, files):
    files["evidence/ops.csv"][2]["count"] = "many"

    with pytest.raises(CheckFailed) as caught:
        assemble(write_files(tmp_path, files))

    assert caught.value.details[0].startswith("evidence/ops.csv::$[2].count: ")


def test_a_report_without_gpu_activity_has_no_devices_and_no_findings(tmp_path):
    report = assemble(write_files(tmp_path, cpu_files()))

    assert (report.ledger.devices, report.findings, report.unranked, report.platform) == ([], [], [], None)


def test_written_files_are_listed_by_path_and_the_report_reads_back(tmp_path, files):
    paths = write(write_files(tmp_path, files))

    assert paths == [
        "analysis.md",
        "findings/elementwise.md",
        "findings/gemm.md",
        "findings/idle.md",
        "findings/multi_kernel.md",
        "findings/reduction.md",
        "plots/ledger.svg",
        "plots/roofline.svg",
        "plots/steps.svg",
        "report.json",
    ]
    assert store.read_artifact(tmp_path / "report.json", ReportFile) == assemble(tmp_path)


def test_two_runs_write_identical_bytes(tmp_path, files):
    first, second = write_files(tmp_path / "a", files), write_files(tmp_path / "b", files)
    paths = write(first)

    assert write(second) == paths
    assert [(first / path).read_bytes() for path in paths] == [(second / path).read_bytes() for path in paths]
