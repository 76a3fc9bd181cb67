"""A trace in, a run folder out: whole, valid, the same bytes every time, and nobody else's files touched."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rooftrace.contracts import store
from rooftrace.contracts.evidence import ManifestFile
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError, NotATrace, UsageError
from rooftrace.pack import ROOT
from rooftrace.validators import check_run
from rooftrace.workflow import AnalyzeOptions, analyze
from rooftrace.workflow.folder import new_folder
from tests.support.trace_builder import TraceBuilder

SCRIPTS = ROOT / "scripts"
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"


def step(builder, number, at):
    """One training step of everything the report has a section for; times in µs."""
    builder.annotation(f"ProfilerStep#{number}", at, 900)
    builder.python("train.py(7): main", at + 1, 800)
    builder.python("nn.Module: Linear_0", at + 2, 300)
    for name, offset, kernel, dur, shapes in (
        ("aten::mm", 5, GEMM, 90, [[2048, 2048], [2048, 2048]]),
        ("aten::add", 25, "add_kernel", 40, [[4096, 4096], [4096, 4096], []]),
        ("mylib::unknown", 45, "mine", 30, [[8], [8]]),
    ):
        types = ["c10::BFloat16", "c10::BFloat16", "Scalar"][: len(shapes)]
        builder.op(name, at + offset, 10, dims=shapes, types=types, concrete=["", "", "1"][: len(shapes)])
        launched = builder.launch(ts=at + offset + 1)
        builder.kernel(kernel, ts=at + 100 + 4 * offset, dur=dur, correlation=launched)
    copied = builder.launch("cudaMemcpyAsync", ts=at + 60)
    builder.memcpy("HtoD", ts=at + 400, dur=70, bytes=4096, correlation=copied)
    reduced = builder.launch(ts=at + 70)
    builder.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", ts=at + 480, dur=90, stream=20, correlation=reduced)


def training(steps=3):
    builder = TraceBuilder()
    builder.device()
    builder.kernel("carried in", ts=0, dur=9)
    for number in range(steps):
        step(builder, number, 50 + 1000 * number)
    return builder


def cpu_only():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10)
    return builder


def kernels_only():
    builder = TraceBuilder()
    for number in range(4):
        builder.kernel("k", ts=10 * number, dur=5, device=number % 2)
    return builder


def without_durations():
    builder = TraceBuilder()
    for number in range(4):
        builder.kernel("k", ts=10 * number, dur=0)
    return builder


def only_copies():
    builder = TraceBuilder()
    builder.memcpy("DtoH", ts=0, dur=5, bytes=10)
    builder.memset(ts=20, dur=0)
    return builder


def graphs():
    builder = TraceBuilder()
    builder.device("NVIDIA Imaginary 9000")
    for number in range(3):
        graph = builder.launch("cudaGraphLaunch", ts=100 * number)
        for at in range(3):
            builder.kernel(GEMM, ts=100 * number + 10 + 20 * at, dur=15, correlation=graph)
    return builder


def hostile_names():
    builder = TraceBuilder()
    for number, name in enumerate(("", "a|b`c<d>{{e}}", "x" * 3000, "tab\tnew\nline", "日本語", "=SUM(A1)", "--> -->")):
        builder.op(name, 100 * number, 10, dims=[[4]], types=["float"])
        builder.kernel(name, ts=100 * number + 20, dur=30, correlation=builder.launch(name, ts=100 * number + 1))
        builder.annotation(f"ProfilerStep#{number}", 100 * number, 90)
    return builder


def one_step_of_four_with_work():
    builder = TraceBuilder()
    for number in range(4):
        builder.annotation(f"ProfilerStep#{number}", 100 * number, 90)
    for ts in (5, 10):
        builder.kernel("k", ts=ts + 20, dur=5, correlation=builder.launch(ts=ts))
    return builder


def a_huge_device_number():
    builder = TraceBuilder()
    builder.device()
    builder.kernel("k", ts=0, dur=5, device=2_000_000_000)
    return builder


def damaged_inputs():
    builder = TraceBuilder()
    builder.device()
    for number, (dims, types) in enumerate((([[2**70, 8], [8, 2]], ["float", "float"]), ("x", 3), ([[True]], [None]))):
        builder.op("aten::mm", 100 * number, 10, dims=dims, types=types, strides={}, concrete=[1, None])
        builder.kernel(GEMM, ts=100 * number + 20, dur=9, correlation=builder.launch(ts=100 * number + 1))
    return builder


SMALL = [
    training,
    cpu_only,
    kernels_only,
    without_durations,
    only_copies,
    graphs,
    hostile_names,
    one_step_of_four_with_work,
    a_huge_device_number,
    damaged_inputs,
]


@pytest.fixture
def trace(tmp_path):
    return training().write(tmp_path / "trace.json.gz")


def digests(run):
    return {
        path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(run.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("make", SMALL, ids=lambda make: make.__name__)
def test_what_is_written_passes_every_check(make, tmp_path):
    path = make().write(tmp_path / "trace.json.gz")

    assert analyze(path, tmp_path / "run") == tmp_path / "run" / "analysis.md"
    assert [f"{problem.code}: {problem.text}" for problem in check_run(tmp_path / "run").problems] == []


def test_the_manifest_lists_every_file_with_its_digest(trace, tmp_path):
    analyze(trace, tmp_path / "run")
    manifest = store.read_artifact(tmp_path / "run" / store.MANIFEST, ManifestFile)
    written = digests(tmp_path / "run")

    del written[store.MANIFEST]
    assert {entry.path: entry.sha256 for entry in manifest.files} == written
    assert {"analysis.md", "report.json", "evidence/ledger.json", "evidence/ops.csv"} <= set(written)
    assert manifest.source_sha256 == hashlib.sha256(trace.read_bytes()).hexdigest()


def test_two_runs_from_different_folders_write_the_same_bytes(trace, tmp_path):
    def run_from(name, seed):
        folder = tmp_path / name
        (folder / "input").mkdir(parents=True)
        copy = folder / "input" / trace.name
        copy.write_bytes(trace.read_bytes())
        environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"}
        arguments = (str(copy), "-o", "out") if seed == "1" else (f"input/{trace.name}", "-o", str(folder / "out"))
        subprocess.run(
            [sys.executable, "-m", "rooftrace", "analyze", *arguments],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
        )
        return digests(folder / "out")

    first, second = run_from("one", "1"), run_from("a longer name", "2")

    assert first == second
    assert len(first) > 8


def test_ids_and_scores_do_not_depend_on_the_name_of_the_folder(trace, tmp_path):
    analyze(trace, tmp_path / "x")
    analyze(trace, tmp_path / "some" / "where" / "else")

    assert digests(tmp_path / "x") == digests(tmp_path / "some" / "where" / "else")


@pytest.mark.parametrize(
    ("content", "options", "error"),
    [
        pytest.param(b"<html>not found</html>", AnalyzeOptions(), NotATrace, id="no trace"),
        pytest.param(b"", AnalyzeOptions(), NotATrace, id="empty"),
        pytest.param(None, AnalyzeOptions(), InputError, id="missing"),
        pytest.param(training().json(), AnalyzeOptions(platform="h1000"), UsageError, id="unknown platform"),
        pytest.param(training().json(), AnalyzeOptions(steps="7-9"), UsageError, id="no such steps"),
    ],
)
def test_a_failure_leaves_no_folder_behind_and_an_older_run_alone(content, options, error, tmp_path):
    older = tmp_path / "runs" / "older"
    analyze(training().write(tmp_path / "good.json.gz"), older)
    before = digests(tmp_path / "runs")
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)

    for run in (tmp_path / "runs" / "new", older):
        with pytest.raises(error):
            analyze(path, run, options)

    assert digests(tmp_path / "runs") == before
    assert [entry.name for entry in (tmp_path / "runs").iterdir()] == ["older"]


def test_a_failure_while_writing_leaves_nothing_half_written(tmp_path):
    def fail():
        with new_folder(tmp_path / "runs" / "new") as folder:
            (folder / "half.json").write_text("{", encoding="utf-8")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert list((tmp_path / "runs").iterdir()) == []


def test_a_folder_that_is_no_run_is_refused_and_stays_as_it_is(trace, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")

    with pytest.raises(UsageError) as caught:
        analyze(trace, mine)

    assert str(caught.value) == (
        f"error: `{mine}` exists and is not a run of rooftrace; nothing was written\n\n"
        "hint: Give an empty or new folder with -o, or --force to write the run into it beside what it holds"
    )
    assert [entry.name for entry in mine.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param('{"name": "my extension", "manifest_version": 3}', id="of a browser extension"),
        pytest.param("not even JSON", id="no JSON"),
    ],
)
def test_a_folder_with_a_manifest_of_something_else_is_no_run(manifest, trace, tmp_path):
    mine = tmp_path / "extension"
    mine.mkdir()
    (mine / "manifest.json").write_text(manifest, encoding="utf-8")
    (mine / "background.js").write_text("years of work", encoding="utf-8")

    with pytest.raises(UsageError):
        analyze(trace, mine)

    assert sorted(entry.name for entry in mine.iterdir()) == ["background.js", "manifest.json"]


def test_a_file_in_the_runs_place_is_refused_and_stays_as_it_is(trace, tmp_path):
    (tmp_path / "run").write_text("years of work", encoding="utf-8")

    with pytest.raises(UsageError, match="exists and is not a folder"):
        analyze(trace, tmp_path / "run")

    assert (tmp_path / "run").read_text(encoding="utf-8") == "years of work"


def test_an_empty_folder_is_filled_and_an_own_run_replaced_with_all_it_held(trace, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    analyze(trace, run)
    first = digests(run)
    (run / "evidence" / "left over.json").write_text("{}", encoding="utf-8")

    analyze(cpu_only().write(tmp_path / "cpu.json.gz"), run)
    assert "evidence/left over.json" not in digests(run)
    assert not check_run(run).problems

    analyze(trace, run)
    assert digests(run) == first
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cpu.json.gz", "run", "trace.json.gz"]


def test_the_only_gpu_listed_is_the_one_that_ran_whatever_its_number(tmp_path):
    builder = TraceBuilder()
    builder.device("AMD Instinct MI300X VF")  # listed as 0
    builder.kernel("k", ts=10, dur=5, device=2, correlation=builder.launch(ts=1))
    analyze(builder.write(tmp_path / "trace.json.gz"), tmp_path / "run")
    report = store.read_artifact(tmp_path / "run" / store.REPORT, ReportFile)

    assert [(found.id, found.name) for found in report.trace.devices] == [(2, "AMD Instinct MI300X VF")]


def test_only_the_chosen_steps_are_analysed(trace, tmp_path):
    analyze(trace, tmp_path / "run", AnalyzeOptions(steps="1-2"))
    report = store.read_artifact(tmp_path / "run" / store.REPORT, ReportFile)

    assert [found.name for found in report.trace.steps] == ["ProfilerStep#1", "ProfilerStep#2"]
    # the first kernel of step 1 starts 100 + 4 * 5 µs after it, the last activity ends 570 µs after step 2's 2,050
    assert report.ledger.devices[0].span_ns == 1_450_000  # 1,170 to 2,620
    assert report.trace.gpu_events == 10


def test_an_unknown_gpu_gets_everything_but_a_roofline(tmp_path):
    path = graphs().write(tmp_path / "trace.json.gz")
    analyze(path, tmp_path / "run")
    report = store.read_artifact(tmp_path / "run" / store.REPORT, ReportFile)

    assert report.platform is None
    assert report.ledger.devices[0].compute_ns == 135_000  # nine kernels of 15 µs
    assert {"unknown_gpu", "graph_replay"} <= {note.code for note in report.health.notes}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trace.json", "trace"),
        ("trace.json.gz", "trace"),
        ("host_1234.170000.pt.trace.json.gz", "host_1234.170000"),
        ("a.json.zst", "a"),
        ("a.tar.gz", "a"),
        ("A.JSON.GZ", "A"),
        ("run of 3 steps.json", "run_of_3_steps"),
        ("weird|*?name.json", "weird_name"),
        ("été.json", "été"),
        ("日本語.json", "日本語"),
        (".json", "trace"),
        ("...", "trace"),
        ("-o.json", "-o"),
        ("$(reboot).json", "reboot"),
        ("new\nline.json", "new_line"),
        ("json", "json"),
    ],
)
def test_the_default_folder_of_a_run_is_the_traces_name_made_harmless(name, expected):
    from rooftrace.cli.analyze import default_run

    assert default_run(Path("somewhere") / name) == Path("rooftrace-runs") / expected


def test_the_default_folder_of_a_very_long_name_can_be_made(tmp_path, monkeypatch):
    from rooftrace.cli.analyze import default_run

    monkeypatch.chdir(tmp_path)
    path = cpu_only().write(tmp_path / f"{'n' * 245}.json", "plain")

    assert analyze(path, default_run(path)).is_file()
