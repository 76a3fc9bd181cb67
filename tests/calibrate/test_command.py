"""`calibrate` as it is called: its errors whole, and a real calibration of this CPU where there is a torch."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rooftrace_calibrate import command
from rooftrace_calibrate.device import Device
from rooftrace_calibrate.figures import Figure, NoFigure
from tests.cli.conftest import Outcome, call, here, start, variables  # noqa: F401 - the command line
from tests.repository.files import ROOT, python_files

LAUNCHER = str(ROOT / "scripts" / "rooftrace.py")
EXAMPLE = "/path/to/your/python scripts/rooftrace.py calibrate -o my_gpu.json"
READ_BACK = [sys.executable, "-B", "-m", "rooftrace", "platforms"]


@pytest.fixture
def calibrate(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command in this process."""

    def run(*arguments: str) -> Outcome:
        code = command.main(arguments, READ_BACK)
        out, err = capsys.readouterr()
        return Outcome(code=code, out=out, err=err)

    return run


def error(what: str, hint: str) -> str:
    return f"error: {what}\n\nhint: {hint}\n"


def test_the_help_tells_what_it_reads_writes_and_an_example(start):  # noqa: F811
    outcome = start("calibrate", "--help", program=(LAUNCHER,))

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("usage: rooftrace.py calibrate")
    assert "Measure what this machine's GPU can do and write a platform file." in outcome.out
    assert outcome.out.endswith(f"example:\n  {EXAMPLE}\n")


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (
            (),
            "the following arguments are required: -o/--output",
            "Run `rooftrace.py calibrate --help`",
        ),
        (("-o", "a.json", "--fast"), "unrecognized arguments: --fast", "Run `rooftrace.py calibrate --help`"),
        (("-o", "a.txt"), "`a.txt` is no name of a JSON file", "Give one that ends in .json with -o"),
        (("-o", "no/a.json"), "cannot write in `no`", "Give a file in a folder of yours with -o"),
        (
            ("-o", "mine.json"),
            "`mine.json` exists and is no file of `calibrate`; nothing was written",
            "Give another name with -o",
        ),
        (
            ("-o", "a.json", "--slug", "My_GPU"),
            "`My_GPU` is no slug",
            "Use small letters, digits and single hyphens: my-gpu",
        ),
        (
            ("-o", "a.json", "--slug", "h100-sxm"),
            "`h100-sxm` is a platform of the pack",
            "Give another name with --slug",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_told_before_anything_is_measured(calibrate, here, arguments, what, hint):  # noqa: F811
    (here / "mine.json").write_text('{"slug": "mine"}', encoding="utf-8")

    outcome = calibrate(*arguments)

    assert (outcome.err, outcome.out, outcome.code) == (error(what, hint), "", 2)
    assert [path.name for path in here.iterdir()] == ["mine.json"]


def test_without_torch_the_python_is_named_and_the_one_to_take(start, tmp_path):  # noqa: F811
    # -S hides what is installed; the launcher then needs the standard library only
    outcome = start("calibrate", "-o", "a.json", program=("-I", "-S", LAUNCHER), cwd=tmp_path)

    what = f"torch cannot be imported by `{sys.executable}`: No module named 'torch'"
    assert outcome.err == error(what, f"Run it with the Python that you train with: `{EXAMPLE}`")
    assert (outcome.out, outcome.code, list(tmp_path.iterdir())) == ("", 69, [])


# What is measured, with results that the test gives


CPU = Device(
    torch=None,
    place="cpu",
    name="Test CPU",
    vendor="cpu",
    units=2,
    memory_bytes=2**34,
    capability=None,
    cache_bytes=None,
    software="torch 2.9.0, 2 threads",
)


def figure(value: float, unit: str, spread: float = 1.0) -> Figure:
    return Figure(value=value, unit=unit, statistic="s", spread_pct=spread)


def give(monkeypatch, *, memory: Figure | NoFigure, product: Figure | NoFigure) -> None:
    """Let the device be `CPU`, the copy give `memory` and every product `product`."""
    monkeypatch.setattr(command, "_torch", lambda: None)
    monkeypatch.setattr(command, "open_device", lambda _torch, _wanted: CPU)
    monkeypatch.setattr(command.transfers, "copy_bandwidth", lambda *_a, **_k: memory)
    monkeypatch.setattr(command.products, "measure", lambda *_a, **_k: product)


def test_a_device_whose_bandwidth_is_refused_gets_no_file(calibrate, here, monkeypatch):  # noqa: F811
    give(monkeypatch, memory=figure(9.5, "GB/s", spread=31.26), product=figure(0.1, "TFLOP/s"))

    outcome = calibrate("-o", "a.json")

    assert outcome.err == (
        "measuring Test CPU (cpu) with torch 2.9.0, 2 threads\n"
        "the pack has no datasheet figures of it\n"
        "memory: left out: its batches spread by 31.26 %, more than 20 %: something else uses this device\n"
        "error: the bandwidth of this device could not be measured; nothing was written\n"
        "  memory: its batches spread by 31.26 %, more than 20 %: something else uses this device\n\n"
        "hint: Run it again while nothing else uses the device\n"
    )
    assert (outcome.out, outcome.code, list(here.iterdir())) == ("", 1, [])


def test_a_device_without_any_rate_gets_no_file(calibrate, here, monkeypatch):  # noqa: F811
    give(monkeypatch, memory=figure(9.5, "GB/s"), product=NoFigure(reason="torch cannot here: no"))

    outcome = calibrate("-o", "a.json")

    assert outcome.err.endswith(
        "\nerror: the rates of this device could not be measured; nothing was written\n"
        + "".join(
            f"  {name}: torch cannot here: no\n"
            for name in (
                *(f"{p} matrix" for p in ("float64", "float32", "tfloat32", "float16", "bfloat16", "float8", "int8")),
                "float64 vector",
                "float32 vector",
            )
        )
        + "\nhint: Run it again while nothing else uses the device\n"
    )
    assert (outcome.out, outcome.code, list(here.iterdir())) == ("", 1, [])


def test_what_is_measured_is_told_written_and_replaces_only_its_like(calibrate, here, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts"))
    give(monkeypatch, memory=figure(9.5, "GB/s"), product=figure(0.1, "TFLOP/s"))

    first, second = calibrate("-o", "a.json", "--slug", "mine"), calibrate("-o", "a.json", "--slug", "mine-2")

    assert (first.code, first.out, second.code) == (0, "a.json\n", 0)
    assert first.err.splitlines()[2:4] == [
        "memory: 9.5 GB/s, spread 1 % (s)",
        "float64 matrix: 0.1 TFLOP/s, spread 1 % (s)",
    ]
    assert first.err.splitlines()[-1] == "shortest kernel: left out: a CPU launches no kernels"
    assert [path.name for path in here.iterdir()] == ["a.json"]
    content = json.loads((here / "a.json").read_bytes())
    assert (content["slug"], content["memory"]["bandwidth"]["value_gbytes_per_s"]) == ("mine-2", 9.5)
    assert [entry["what"] for entry in content["left_out"]] == ["host to device", "device to host", "shortest kernel"]


def test_what_the_analysis_refuses_is_not_written(calibrate, here, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts"))
    give(monkeypatch, memory=figure(9.5, "GB/s"), product=figure(0.1, "TFLOP/s"))
    monkeypatch.setattr(command, "slug_of", lambda _name: "Not A Slug")

    outcome = calibrate("-o", "a.json")

    said = outcome.err[outcome.err.index("error: ") :].splitlines()
    assert said[0] == "error: what was measured makes no sound platform file; nothing was written"
    assert "$.slug: String should match pattern" in said[2]
    assert said[-1] == "hint: Please report it with these lines"
    assert (outcome.out, outcome.code, list(here.iterdir())) == ("", 70, [])


# For real


def test_this_cpu_is_calibrated_by_a_real_torch(torch_python, tmp_path, call):  # noqa: F811
    """On a busy machine a figure may be refused, with its reason; three tries find a quiet moment or fail."""
    launch = [torch_python, "-W", "ignore", LAUNCHER, "calibrate", "-o", "cpu.json", "--device", "cpu", "--quick"]
    # Nothing is fetched: where that Python lacks the analysis' packages, the file is read back below only.
    offline = {**os.environ, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "ROOFTRACE_CACHE": str(tmp_path / "cache")}
    for _ in range(3):
        done = subprocess.run(launch, cwd=tmp_path, env=offline, capture_output=True, text=True)
        if done.returncode == 0:
            break

    assert (done.returncode, done.stdout) == (0, "cpu.json\n"), done.stderr
    content = json.loads((tmp_path / "cpu.json").read_bytes())
    assert (content["origin"], content["vendor"]) == ("calibrated", "cpu")
    every = {f"{p} matrix" for p in command.products.PRECISIONS} | {"float64 vector", "float32 vector"}
    every |= {"memory", "host to device", "device to host", "shortest kernel"}
    measured = {f"{entry['precision']} {entry['unit']}" for entry in content["ceilings"]} | {"memory"}
    left_out = {entry["what"] for entry in content["left_out"]}
    assert (measured | left_out, measured & left_out) == (every, set())
    assert {"tfloat32 matrix", "host to device", "device to host", "shortest kernel"} <= left_out
    # any CPU since 2005 copies more than 0.1 GB/s, and none more than 10 TB/s
    assert 0.1 < content["memory"]["bandwidth"]["value_gbytes_per_s"] < 1e4
    shown = call("platforms", tmp_path / "cpu.json")
    assert (shown.code, json.loads(shown.out)["slug"]) == (0, content["slug"])


def test_a_device_that_torch_lacks_is_told_with_those_it_has(torch_python, tmp_path):
    launch = [torch_python, "-W", "ignore", LAUNCHER, "calibrate", "-o", "a.json", "--device", "cuda:99"]

    done = subprocess.run(launch, cwd=tmp_path, capture_output=True, text=True)

    assert done.stderr.startswith("error: torch has no device `cuda:99` here\n\nhint: Known: cpu")
    assert (done.stdout, done.returncode, list(tmp_path.iterdir())) == ("", 2, [])


# Its place in the pack


def test_it_imports_the_standard_library_and_what_needs_no_more():
    paths = [path for path in python_files("scripts") if path.parts[1] == "rooftrace_calibrate"]
    imported = set()
    for path in paths:
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    foreign = {name for name in imported if name.split(".")[0] not in {*sys.stdlib_module_names, "rooftrace_calibrate"}}

    assert foreign == {"rooftrace.errors", "rooftrace.pack"}
    assert Path(command.PLATFORMS).is_dir()
