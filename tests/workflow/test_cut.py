"""A trace cut to a step, a window, or without its frames: valid, linked, and analysed to what the whole gives."""

from __future__ import annotations

import gzip
import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from rooftrace.cli.cut import run, window
from rooftrace.errors import RooftraceError, UsageError
from rooftrace.trace import Kind, load
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.cut import Choice, Written, cut
from rooftrace.workflow.prepare import prepare_workload
from tests.support.trace_builder import TraceBuilder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transformer_training_h100.json.gz"


def steps() -> TraceBuilder:
    """Three steps of 100 µs from 1000 µs on; each kernel runs into the next step.

    ::

        step 0    |1000 ................ 1099|1100 step 1
        python    [1001 ............. 1090]
        aten::mm      [1005 . 1015]
        launch         [1006 1009]
        kernel                     [1060 ....... 1110]
    """
    trace = TraceBuilder()
    trace.device()
    trace.header(distributedInfo={"rank": 3, "world_size": 8}, baseTimeNanoseconds=1_700_000_000_000_000_000)
    trace.event(ph="M", name="process_name", pid=4242, tid=0, args={"name": "python"})
    for step in range(3):
        at = 1000 + 100 * step
        trace.annotation(f"ProfilerStep#{step}", ts=at, dur=100)
        trace.python(f"train.py({step}): loop", ts=at + 1, dur=89)
        trace.op(f"aten::op{step}", ts=at + 5, dur=10, dims=[[4, 5], [5, 6]], types=["float", "float"])
        launch = trace.launch(ts=at + 6, dur=3)
        trace.kernel(f"k{step}", ts=at + 60, dur=50, correlation=launch)
        trace.flow(launch, ts=at + 6, to_ts=at + 60)
        trace.event(ph="i", name="mark", pid=4242, tid=1, ts=at + 50, s="t")
    return trace


def made(tmp_path: Path, content: bytes, choice: Choice, name: str = "small.json") -> tuple[Written, dict[str, Any]]:
    path = tmp_path / "whole.json"
    path.write_bytes(content)
    written = cut(path, tmp_path / name, choice)
    data = written.path.read_bytes()
    return written, json.loads(gzip.decompress(data) if name.lower().endswith(".gz") else data)


def names(document: dict[str, Any]) -> list[str]:
    return [event["name"] for event in document["traceEvents"]]


ENVELOPE = [
    "schemaVersion",
    "distributedInfo",
    "baseTimeNanoseconds",
    "deviceProperties",
    "traceEvents",
    "traceName",
]


def test_a_step_is_kept_with_its_kernels_wherever_they_run_and_its_arrows(tmp_path) -> None:
    written, document = made(tmp_path, steps().json(), Choice(steps="1"))

    # k0 runs until 1110 and is of step 0
    assert names(document) == [
        "process_name",
        "ProfilerStep#1",
        "train.py(1): loop",
        "aten::op1",
        "cudaLaunchKernel",
        "k1",
        "ac2g",
        "ac2g",
        "mark",
    ]
    assert list(document) == ENVELOPE
    assert document["distributedInfo"] == {"rank": 3, "world_size": 8}
    assert (written.kept, written.events) == (9, 25)


def test_the_last_step_holds_what_it_launched(tmp_path) -> None:
    _, document = made(tmp_path, steps().json(), Choice(steps="ProfilerStep#2", python=False))

    assert names(document) == [
        "process_name",
        "ProfilerStep#2",
        "aten::op2",
        "cudaLaunchKernel",
        "k2",
        "ac2g",
        "ac2g",
        "mark",
    ]


def test_a_window_keeps_what_overlaps_it_and_what_was_launched_in_it(tmp_path) -> None:
    """From 1106 to 1109 µs, which is 106 to 109 after the first event: k0 ends at 1110, k1 is launched at 1106."""
    _, document = made(tmp_path, steps().json(), Choice(window=(106_000, 109_000)))

    assert [name for name in names(document) if name != "ac2g"] == [
        "process_name",
        "k0",
        "train.py(1): loop",
        "aten::op1",
        "cudaLaunchKernel",
        "k1",
    ]


def test_an_open_window_reaches_to_the_end(tmp_path) -> None:
    _, document = made(tmp_path, steps().json(), Choice(window=(200_000, None)))

    # k1 runs until 1210, which is 210 after the first event
    assert names(document)[:6] == [
        "process_name",
        "k1",
        "ac2g",
        "ac2g",
        "ProfilerStep#2",
        "train.py(2): loop",
    ]


def test_without_frames_all_else_stays_as_it_was(tmp_path) -> None:
    written, document = made(tmp_path, steps().json(), Choice(python=False))

    kept = [event for event in steps().document()["traceEvents"] if event.get("cat") != "python_function"]
    assert document["traceEvents"] == kept
    assert (written.kept, written.events) == (22, 25)


def test_events_are_written_as_they_stand(tmp_path) -> None:
    """Numbers keep their digits, unknown fields and arguments stay."""
    text = (
        b'{"ph":"X","cat":"kernel","name":"k\\u00e9","pid":0,"tid":7,"ts":10.100,"dur":1e1,"args":{"x":1.50},"q":[1]}'
    )
    path = tmp_path / "whole.json"
    path.write_bytes(b'{"traceEvents":[' + text + b"]}")

    cut(path, tmp_path / "small.json", Choice(window=(0, 1)))

    assert text in (tmp_path / "small.json").read_bytes()


@pytest.mark.parametrize("name", ["small.json.gz", "small.GZ"])
def test_a_name_that_ends_in_gz_is_compressed_and_the_same_each_time(tmp_path, name: str) -> None:
    written, document = made(tmp_path, steps().json(), Choice(steps="1"), name)
    first = written.path.read_bytes()
    written.path.unlink()
    again, _ = made(tmp_path, steps().json(), Choice(steps="1"), name)

    assert len(document["traceEvents"]) == 9
    assert again.path.read_bytes() == first


def test_an_array_stays_an_array(tmp_path) -> None:
    content = json.dumps(steps().document()["traceEvents"]).encode()
    path = tmp_path / "whole.json"
    path.write_bytes(content)

    cut(path, tmp_path / "small.json", Choice(steps="0"))

    events = json.loads((tmp_path / "small.json").read_bytes())
    assert [event["name"] for event in events][:3] == ["process_name", "ProfilerStep#0", "train.py(0): loop"]


def test_damage_is_mended_and_a_cut_file_is_closed(tmp_path) -> None:
    content = steps().json().replace(b'"train.py(1): loop"', b'"say "hi""')
    _, document = made(tmp_path, content[: content.rindex(b'"mark"')], Choice(steps="1"))

    assert names(document)[1:4] == ["ProfilerStep#1", 'say "hi"', "aten::op1"]
    assert document["distributedInfo"] == {"rank": 3, "world_size": 8}


PARTS = ("span_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")


@pytest.mark.parametrize("chosen", ["0", "1", "2", "0-1", "1-2"])
@pytest.mark.parametrize("python", [True, False], ids=["with frames", "without frames"])
@pytest.mark.parametrize("whole", ["example", "built"])
def test_a_cut_step_is_analysed_to_what_the_step_of_the_whole_is(
    tmp_path, whole: str, chosen: str, python: bool
) -> None:
    path = EXAMPLE
    if whole == "built":
        path = steps().write(tmp_path / "whole.json")
    cut(path, tmp_path / "small.json.gz", Choice(steps=chosen, python=python))

    expected = prepare_workload(load(path)[0], AnalyzeOptions(steps=chosen)).workload
    found = prepare_workload(load(tmp_path / "small.json.gz")[0], AnalyzeOptions()).workload

    assert found.steps.names == expected.steps.names
    assert [_parts(ledger) for ledger in found.ledgers] == [_parts(ledger) for ledger in expected.ledgers]
    assert [[_parts(step) for step in ledger.steps] for ledger in found.ledgers] == [
        [_parts(step) for step in ledger.steps] for ledger in expected.ledgers
    ]
    assert sorted((group.name, group.kernel_ns) for group in found.groups) == sorted(
        (group.name, group.kernel_ns) for group in expected.groups
    )
    assert found.platform == expected.platform


def _parts(ledger: Any) -> dict[str, int]:
    return {part: getattr(ledger, part) for part in PARTS if hasattr(ledger, part)}


def refusal(tmp_path: Path, choice: Choice, out: Path | None = None) -> str:
    path = tmp_path / "whole.json"
    path.write_bytes(steps().json())
    with pytest.raises(UsageError) as caught:
        cut(path, out or tmp_path / "small.json", choice)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_file_that_is_there_is_not_overwritten(tmp_path) -> None:
    out = tmp_path / "small.json"
    out.write_bytes(b"mine")

    assert refusal(tmp_path, Choice(steps="1"), out) == (
        f"error: `{out}` exists; nothing was written\n\nhint: Give the path of a new file with -o"
    )
    assert out.read_bytes() == b"mine"
    assert "exists; nothing was written" in refusal(tmp_path, Choice(steps="1"), tmp_path / "whole.json")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere")
    assert "exists; nothing was written" in refusal(tmp_path, Choice(steps="1"), link)


REFUSALS = {
    "nothing": (Choice(), "error: nothing to leave out\n\nhint: Give --steps, --window, --no-python or --redact"),
    "no such step": (
        Choice(steps="7"),
        "error: no such steps: `7`\n\n"
        "hint: The trace has 3 steps, 0 to 2: ProfilerStep#0, ProfilerStep#1, ProfilerStep#2",
    ),
    "a window behind the end": (
        Choice(window=(10**9, 2 * 10**9)),
        "error: no event lies in what was chosen\n\nhint: Give a longer window, or other steps",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_cut_is_refused_and_leaves_no_file(tmp_path, case: str) -> None:
    choice, text = REFUSALS[case]

    assert refusal(tmp_path, choice) == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["whole.json"]


def test_a_folder_that_is_missing_is_named(tmp_path) -> None:
    out = tmp_path / "no" / "small.json"

    assert refusal(tmp_path, Choice(steps="1"), out) == (
        f"error: no such folder: `{out.parent}`\n\nhint: Make it, or give another path with -o"
    )


def test_other_formats_are_not_cut(tmp_path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(
        json.dumps(
            {
                "rocprofiler-sdk-tool": [
                    {"buffer_records": {"hip_api": [{"start_timestamp": 1, "end_timestamp": 2, "operation": "hipX"}]}}
                ]
            }
        ).encode()
    )

    with pytest.raises(UsageError) as caught:
        cut(path, tmp_path / "small.json", Choice(python=False))

    assert str(caught.value) == (
        "error: `results.json` is of the format rocprofv3, which is not cut\n\n"
        "hint: Give a trace of torch.profiler; `analyze` takes --steps for any format"
    )


def options(trace: Path, out: Path | None, **chosen: object) -> Namespace:
    """What the command line gives the command."""
    return Namespace(
        trace=str(trace),
        output=None if out is None else str(out),
        **(
            {
                "steps": None,
                "window": None,
                "no_python": False,
                "json": False,
                "quiet": True,
                "max_bytes": None,
                "redact": False,
            }
            | chosen
        ),
    )


def test_the_command_prints_the_path_and_tells_how_much_was_kept(tmp_path, capsys) -> None:
    path, out = steps().write(tmp_path / "whole.json"), tmp_path / "small.json.gz"

    assert run(options(path, out, window="106us:109us", no_python=True)) == 0

    printed = capsys.readouterr()
    assert printed.out == f"{out}\n"
    # the name of the process, k0 and k1, an op, a call and the arrows of both kernels
    assert printed.err == "wrote small.json.gz: 9 of 25 events\n"


def test_the_command_prints_json_when_asked(tmp_path, capsys) -> None:
    out = tmp_path / "small.json"

    run(options(steps().write(tmp_path / "whole.json"), out, steps="1", json=True))

    assert json.loads(capsys.readouterr().out) == {"path": str(out), "kept": 9, "events": 25}


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (
            {"out": None, "steps": "1"},
            "error: no place to write to\n\nhint: Give the path of the smaller trace with -o",
        ),
        (
            {"steps": "1", "window": "1:2"},
            "error: --steps and --window cannot be given together\n\nhint: Give one of them",
        ),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(tmp_path, chosen: dict[str, Any], text: str) -> None:
    out = chosen.pop("out", tmp_path / "small.json")

    with pytest.raises(UsageError) as caught:
        run(options(steps().write(tmp_path / "whole.json"), out, **chosen))

    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12:40.5", (12_000_000, 40_500_000)),
        ("100us:2s", (100_000, 2_000_000_000)),
        ("5ms:", (5_000_000, None)),
        (":7ns", (None, 7)),
        ("0.000001s:1ms", (1_000, 1_000_000)),
    ],
)
def test_a_window_is_two_times_after_the_first_event(text: str, expected: tuple[int | None, int | None]) -> None:
    assert window(text) == expected


@pytest.mark.parametrize("text", ["", ":", "5", "5:4", "5:5", "a:b", "1:2:3", "-1:2", "1e3:", "5 m:6"])
def test_what_is_no_window_is_told_with_the_form(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        window(text)

    assert str(caught.value) == (
        f"error: no window: `{text}`\n\nhint: Give its start and end after the first event, in ms or with a unit: "
        "`12:40.5`, `100us:2s`, `5:`"
    )


TRACES = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
WITH_STEPS = ("nvidia/v100_ns_resolution", "nvidia/a100_nccl_metadata", "mi300/resnet_act_checkpoint")


@pytest.fixture(scope="module", params=WITH_STEPS)
def real(request: pytest.FixtureRequest) -> Path:
    path = TRACES / f"{request.param}.json.gz"
    if not path.is_file():
        pytest.skip(f"no {request.param} in {TRACES}")
    return path


def ledgers(path: Path, steps: str | None = None) -> list[Any]:
    """Parts of every device and of each of its steps, and the steps' names."""
    workload = prepare_workload(load(path)[0], AnalyzeOptions(steps=steps)).workload
    return [
        (ledger.device, _parts(ledger), [(step.name, _parts(step)) for step in ledger.steps])
        for ledger in workload.ledgers
    ]


@pytest.mark.real_traces
@pytest.mark.parametrize("chosen", ["0", "2", "1-2"])
def test_a_step_cut_from_a_real_trace_has_the_ledger_of_the_step(tmp_path, real: Path, chosen: str) -> None:
    cut(real, tmp_path / "small.json.gz", Choice(steps=chosen, python=chosen != "2"))

    assert ledgers(tmp_path / "small.json.gz") == ledgers(real, chosen)


@pytest.mark.real_traces
def test_a_real_trace_without_frames_has_the_same_ledger(tmp_path, real: Path) -> None:
    cut(real, tmp_path / "small.json", Choice(python=False))

    assert ledgers(tmp_path / "small.json") == ledgers(real)


@pytest.mark.real_traces
def test_a_window_of_a_real_trace_holds_the_kernels_that_run_in_it(tmp_path, real: Path) -> None:
    trace, _ = load(real)
    end = int(trace.end.max())
    low, high = end // 3, 2 * end // 3
    rows = trace.of_kind(Kind.KERNEL)
    expected = int(((trace.end[rows] > low) & (trace.start[rows] < high)).sum())

    cut(real, tmp_path / "small.json", Choice(window=(low, high)))

    small, _ = load(tmp_path / "small.json")
    moved = trace.base_ns - small.base_ns
    rows = small.of_kind(Kind.KERNEL)
    found = int(((small.end[rows] - moved > low) & (small.start[rows] - moved < high)).sum())
    assert found == expected > 0


def test_a_trace_that_unpacks_to_too_much_is_not_cut(tmp_path) -> None:
    path = steps().write(tmp_path / "whole.json.gz", "gzip")

    with pytest.raises(RooftraceError, match="100"):
        cut(path, tmp_path / "small.json", Choice(steps="1"), max_bytes=100)

    assert [entry.name for entry in tmp_path.iterdir()] == ["whole.json.gz"]
