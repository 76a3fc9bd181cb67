"""Trace Health beyond the file: what the profiler cost the host, and hints in the recorder's own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooftrace.contracts.report import Health
from rooftrace.trace import FileFacts, load
from rooftrace.workflow import AnalyzeOptions, health
from rooftrace.workflow.capture import recorder_of
from rooftrace.workflow.findings import Results, find_and_score
from rooftrace.workflow.prepare import Prepared, prepare_workload
from tests.support.trace_builder import TraceBuilder
from tests.trace.formats import test_nsys_sqlite, test_rocprofv3, test_xla
from tests.trace.formats.reports import analysed
from tests.trace.reading import Folder

LAUNCHES = 60
EVERY = 14.0
SHAPES = {"dims": [[256, 256], [256, 256]], "types": ["c10::BFloat16", "c10::BFloat16"]}


def launches(kernel: float, *, shapes: bool = True) -> TraceBuilder:
    """An op of 13 µs every 14 µs, which launches a kernel 4 µs before the next op."""
    trace = TraceBuilder()
    trace.device()
    end = 0.0
    for number in range(LAUNCHES):
        ts = EVERY * number
        trace.op("aten::mm", ts, EVERY - 1, **(SHAPES if shapes else {}))
        correlation = trace.launch(ts=ts + EVERY - 4, dur=2)
        start = max(ts + EVERY, end)
        trace.kernel("sm90_xmma_gemm_bf16bf16", start, kernel, correlation=correlation)
        end = start + kernel
    return trace


def read(tmp_path: Path, trace: TraceBuilder) -> tuple[Prepared, FileFacts, Results]:
    columns, facts = load(trace.write(tmp_path / "trace.json", "plain"))
    prepared = prepare_workload(columns, AnalyzeOptions())
    return prepared, facts, find_and_score(prepared.workload)


def inflation(found: Health) -> list[str]:
    return [note.text for note in found.notes if note.code == "profiler_inflated"]


class TestWhatTheProfilerCostTheHost:
    def test_a_run_that_is_bound_by_the_host_only_as_recorded_says_so(self, tmp_path: Path) -> None:
        # A kernel of 10 every 14: without host time 600 of 836 are left, without kernels 826. Launched every 7 the
        # kernels of 10 decide, and what can be done about them comes before what can be done about the host
        found = health.assess(*read(tmp_path, launches(10)))

        assert inflation(found) == [
            "With recorded host time halved the run would be bound by compute instead of host and the first findings "
            "would be `gemm.F1` instead of `idle.F1`, `gemm.F1`: what recording it cost the host may be what makes "
            "the host look like the limit. Capture again with record_shapes=False and with_stack=False before acting "
            "on findings about the host."
        ]
        assert found.verdict == "limited"

    @pytest.mark.parametrize(
        "trace",
        [
            # Launched every 7 a kernel of 2 still waits for the host
            pytest.param(launches(2), id="bound by the host with half its time, too"),
            # Kernels of 30 queue up behind launches every 14
            pytest.param(launches(30), id="bound by kernels as recorded"),
            pytest.param(launches(10, shapes=False), id="neither shapes nor stacks were recorded"),
        ],
    )
    def test_a_run_whose_bound_and_order_stay_says_nothing(self, tmp_path: Path, trace: TraceBuilder) -> None:
        prepared, facts, results = read(tmp_path, trace)

        assert results.replay is not None
        assert inflation(health.assess(prepared, facts, results)) == []

    def test_another_order_alone_is_told_and_another_bound_alone_too(self, tmp_path: Path) -> None:
        prepared, facts, results = read(tmp_path, launches(10))
        assert results.replay is not None
        told = results.replay["replay"]
        same_bound = replace(
            results,
            replay={**results.replay, "replay": told.model_copy(update={"bound_by_half_host": told.bound_by})},
        )
        same_order = replace(results, findings={})

        [order], [bound] = (inflation(health.assess(prepared, facts, one)) for one in (same_bound, same_order))
        assert order.startswith(
            "With recorded host time halved the first findings would be `gemm.F1` instead of `idle.F1`"
        )
        assert bound.startswith(
            "With recorded host time halved the run would be bound by compute instead of host: what"
        )

    def test_nothing_is_said_where_too_little_is_explained_to_replay(self, tmp_path: Path) -> None:
        prepared, facts, results = read(tmp_path, launches(10))
        assert results.replay is not None

        unexplained = replace(results, replay={**results.replay, "together": None})

        assert inflation(health.assess(prepared, facts, unexplained)) == []

    def test_nothing_is_said_where_nothing_was_replayed(self, tmp_path: Path) -> None:
        prepared, facts, _ = read(tmp_path, launches(10))

        assert inflation(health.assess(prepared, facts)) == []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


TORCH = re.compile(r"ProfilerActivity|[Pp]rofile with (?:record_shapes|with_stack)|prof\.step")


class TestHintsInTheRecordersOwnWords:
    def test_files_of_torch_are_told_its_flags(self) -> None:
        trace = TraceBuilder()
        trace.op("aten::mm", 0, 10)
        trace.kernel("k", 20, 5, correlation=trace.launch(ts=2))

        assert recorder_of(trace.build()).shapes == " Profile with record_shapes=True."

    def test_an_nsight_export_is_told_options_of_nsys(self, folder: Folder) -> None:
        rows = dict(test_nsys_sqlite.ROWS)
        rows["NVTX_EVENTS"] = [(1_000, 7_000, 59, "aten::mm, seq = 3, op_id = 5", None, test_nsys_sqlite.GLOBAL_TID)]
        found = analysed(folder, test_nsys_sqlite.export(folder.path / "made.sqlite", rows=rows), "export.sqlite")

        assert found.note("no_shapes") == (
            "No input shapes recorded: kernels cannot be rated. Run the loop under "
            "`torch.autograd.profiler.emit_nvtx(record_shapes=True)` and record with `nsys profile --trace=cuda,nvtx`."
        )
        assert "NVTX ranges" in found.note("no_stacks")
        assert not [note.text for note in found.health.notes if TORCH.search(note.text)]

    def test_a_result_of_rocprofv3_is_told_its_options(self, folder: Folder) -> None:
        records = {"kernel_dispatch": [test_rocprofv3.kernel(10_000, 20_000, 1)]}
        found = analysed(folder, test_rocprofv3.document(test_rocprofv3.tool(**records)))

        assert "add `--marker-trace` to `rocprofv3 --kernel-trace --hip-trace" in found.note("no_ops")
        assert not [note.text for note in found.health.notes if TORCH.search(note.text)]

    def test_a_trace_of_xla_is_told_options_of_jax(self, folder: Folder) -> None:
        host = [one for one in test_xla.EVENTS if not one.get("args")]
        found = analysed(folder, test_xla.document(*test_xla.LANES, *host))

        assert "jax.profiler" in found.note("no_gpu_events")
        assert not [note.text for note in found.health.notes if TORCH.search(note.text)]

    @pytest.mark.parametrize(
        "layout", ["Nsight Systems JSON", "Nsight Systems SQLite", "rocprofv3", "XLA Chrome trace", "XPlane"]
    )
    def test_no_other_profiler_is_told_flags_of_torch_profiler(self, layout: str) -> None:
        trace = TraceBuilder()
        trace.op("aten::mm", 0, 10)
        recorder = recorder_of(replace(trace.build(), layout=layout))
        hints = (recorder.gpu, recorder.ops, recorder.shapes, recorder.stacks, recorder.light)

        assert not [hint for hint in hints if TORCH.search(hint) or "with_stack" in hint]
        assert all(hints)
