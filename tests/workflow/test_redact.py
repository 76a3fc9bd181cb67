"""A run that can be given away: no artifact names a person or a machine, and no number differs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from rooftrace.cli import main
from rooftrace.validators import check_run
from rooftrace.workflow import AnalyzeOptions, analyze
from rooftrace.workflow.agents import prepare, submit
from tests.golden_runs.cases import gpu_training
from tests.workflow.prose import prose_for

TRACES = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
TELLING = re.compile(r"grace|hopper|gpu-box|node17|secret-job|10\.1\.2\.3|/home/|C:\\\\?Users", re.IGNORECASE)
NAME = "gpu-box-3_4242.1700000000000.pt.trace.json"


def telling(path: Path) -> Path:
    """The training run of the golden cases, whose frames, ops and header name Grace and her machine everywhere."""
    trace = gpu_training()
    trace.header(host_name="node17", username="grace", job_name="secret-job", traceName=f"/home/grace/{NAME}")
    for number in range(2):
        at = 500.0 * number
        trace.python(r"C:\Users\Grace Hopper\lib.py(3): f", at + 130, 100, tid=2)
        trace.op("grace::custom_op", at + 3, 5, dims=[[2, 2]], types=["float"], concrete=["/scratch/grace/weights.bin"])
        trace.annotation("store tcp://10.1.2.3:29500 on node17", at + 9, 2)
    path.write_bytes(trace.json().replace(b"train.py(10): main", b"/home/grace/proj/train.py(12): step"))
    return path


def files(run: Path) -> dict[str, str]:
    return {
        path.relative_to(run).as_posix(): path.read_text(encoding="utf-8") for path in run.rglob("*") if path.is_file()
    }


def told(run: Path) -> dict[str, list[str]]:
    found = {name: TELLING.findall(text) for name, text in files(run).items()}
    return {name: words for name, words in found.items() if words}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "grace").mkdir()
    return telling(tmp_path / "grace" / NAME)


def test_the_trace_of_these_tests_does_tell(trace, tmp_path) -> None:
    analyze(trace, tmp_path / "run")

    found = told(tmp_path / "run")
    assert {"report.json", "manifest.json", "analysis.md", "evidence/ops.csv"} <= set(found)
    assert {"/home/", "gpu-box"} <= set(found["analysis.md"])


def test_no_file_of_a_redacted_run_tells_whose_it_is(trace, tmp_path) -> None:
    run = tmp_path / "run"
    prepare(trace, run, AnalyzeOptions(redact=True), {"models": "/home/grace/m.py"})

    # The op's own namespace is a name like any other; only paths, keys and addresses tell.
    assert {name: [word for word in words if word != "grace"] for name, words in told(run).items()} == {
        name: [] for name in told(run)
    }
    assert all(
        "grace::custom_op" in line for text in files(run).values() for line in text.splitlines() if "grace" in line
    )
    assert [str(problem) for problem in check_run(run).problems] == []
    state = json.loads((run / "state.json").read_bytes())
    assert state["options"] == {"models": "~/m.py"}
    assert state["trace_path"].endswith("<host2>_4242.1700000000000.pt.trace.json")


def test_the_briefs_of_any_run_are_redacted_and_its_report_is_not(trace, tmp_path) -> None:
    run = tmp_path / "run"
    prepare(trace, run, AnalyzeOptions(), {})

    found = told(run)
    assert "report.json" in found
    assert [name for name in found if name.startswith("tasks/") and set(found[name]) != {"grace"}] == []
    assert all(
        "grace::" in line
        for n in found
        if n.startswith("tasks/")
        for line in files(run)[n].splitlines()
        if "grace" in line
    )


def numbers(value: Any) -> list[Any]:
    """All of a document but its texts, in order."""
    if isinstance(value, dict):
        return [number for name in value for number in numbers(value[name])]
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [] if isinstance(value, str) else [value]


def report(path: Path, run: Path, *, redact: bool) -> Any:
    analyze(path, run, AnalyzeOptions(redact=redact))
    return json.loads((run / "report.json").read_bytes())


def test_no_number_changes(trace, tmp_path) -> None:
    plain, hidden = (report(trace, tmp_path / str(redact), redact=redact) for redact in (False, True))

    assert numbers(plain) == numbers(hidden)
    assert len(numbers(plain)) > 100


@pytest.mark.real_traces
@pytest.mark.parametrize(
    "name",
    ["mi210/gpu_only_trace.json.gz", "nvidia/alexnet.json.gz", "mi300/gaunernst_bert-small-uncased__1016001.json.gz"],
)
def test_a_real_trace_has_the_same_numbers_and_passes_its_checks(tmp_path, name: str) -> None:
    path = TRACES / name
    if not path.is_file():
        pytest.skip(f"no {name} in {TRACES}")
    plain, hidden = (report(path, tmp_path / str(redact), redact=redact) for redact in (False, True))

    assert numbers(plain) == numbers(hidden)
    assert check_run(tmp_path / "True").problems == []


def test_prose_may_quote_a_name_as_the_brief_has_it(trace, tmp_path) -> None:
    run = tmp_path / "run"
    prepare(trace, run, AnalyzeOptions(), {})
    words = prose_for("gemm.F1").replace("Compile the step, keep", "Compile `~/proj/train.py(12): step`, keep")

    _, problems = submit(run, "gemm", words)
    _, others = submit(run, "gemm", words.replace("train.py(12)", "other.py(7)"))

    assert problems == []
    assert any("other.py" in line for line in others)


def test_two_traces_share_their_placeholders(trace, tmp_path, capsys) -> None:
    other = telling(tmp_path / "gpu-box-9_1.1700000000001.pt.trace.json")
    run = tmp_path / "run"

    assert main(["compare", str(trace), str(other), "-o", str(run), "--redact", "-q"]) == 0
    capsys.readouterr()

    content = json.loads((run / "compare.json").read_bytes())
    assert content["base"]["trace"]["file"] == "<host2>_4242.1700000000000.pt.trace.json"
    assert content["target"]["trace"]["file"] == "<host3>_1.1700000000001.pt.trace.json"
    assert {word for words in told(run).values() for word in words} <= {"grace"}
    assert main(["check", str(run)]) == 0


def test_the_default_folder_does_not_name_the_host_either(trace, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["analyze", str(trace), "--redact", "-q"]) == 0
    assert capsys.readouterr().out == "rooftrace-runs/host__4242.1700000000000/analysis.md\n"
