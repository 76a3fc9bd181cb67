# ruff: noqa: S108 - names of folders are data here
"""What else tells whose a trace is: credentials, folders of clusters, pods; in what is cut and in what is printed."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from rooftrace.cli import main
from rooftrace.contracts.redaction import PLACEHOLDER, Redactor
from rooftrace.workflow import AnalyzeOptions, analyze
from rooftrace.workflow.cut import Choice, cut
from rooftrace.workflow.redact import JsonTexts
from tests.golden_runs.cases import gpu_training

KEY = "AKIAIOSFODNN7EXAMPLE"  # the one of the vendor's own documentation
TELLING = re.compile(rf"grace|hopper|node17|secret-job|10\.1\.2\.3|/home/|Users|{KEY}|s3cr3t|x2x9z", re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/scratch/grace/run/a.py(3): f", "/scratch/<user>/run/a.py(3): f"),
        ("/lustre/scratch4/users/grace/x/y", "~/x/y"),
        ("/fsx/grace/llm/train.py", "/fsx/<user>/llm/train.py"),
        ("/checkpoint/grace/a/b.py", "/checkpoint/<user>/a/b.py"),
        ("/tmp/pytest-of-grace/pytest-0/x", "/tmp/pytest-of-<user>/pytest-0/x"),
        ("/afs/cs.example.edu/user/g/grace/x.py", "/afs/cs.example.edu/user/g/<user>/x.py"),
        ("~grace/x.py(1): f", "~/x.py(1): f"),
        (f"s3://{KEY}:s3cr3t@bucket/x", "s3://<user>@bucket/x"),
        (
            f"https://b.s3.amazonaws.com/x?X-Amz-Credential={KEY}/2026&X-Amz-Signature=ab12&part=1",
            "https://b.s3.amazonaws.com/x?X-Amz-Credential=<secret>&X-Amz-Signature=<secret>&part=1",
        ),
        (
            "https://x.blob.core.windows.net/c?sv=2020&sig=aBc%3D",
            "https://x.blob.core.windows.net/c?sv=2020&sig=<secret>",
        ),
        (f"key {KEY} here", "key <secret> here"),
        ("login hf_" + "abcde" * 7, "login <secret>"),
        ("train-llama-7d9f8b6c5x-x2x9z", "<host>"),
        ("pod train-7d9f8b6c5-x2x9z.default", "pod <host>.default"),
        ("tcp://203.0.113.7/x", "tcp://<ip>/x"),
        ("2001:db8::1", "<ip>"),
        ("[2001:db8:0:1::5]:29500", "[<ip>]:29500"),
        (r"\\filer\share\x", r"\\<host>\share\x"),
    ],
)
def test_what_tells_whose_it_is_by_its_place_or_form_is_replaced(text: str, expected: str) -> None:
    hidden = Redactor().text(text)

    assert hidden == expected
    assert Redactor().text(hidden) == hidden
    assert PLACEHOLDER.search(hidden) or "\\<host>" in hidden


@pytest.mark.parametrize(
    "text",
    [
        "/scratch/models/x/y",  # no person
        "~Tensor()",
        "a/~b/c",
        "203.0.113.7",  # which may be a version
        "cudnn 9.1.0.70",
        "at::native::add",
        "ad::be::cd",  # hexadecimal, but a name
        "12:30:45",
        "sk-learn",
        "flash-fwd-split-kernel",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64-warpgroup",
        "triton_red_fused_native_layer_norm-bcdfg",
        "foo(a, b) & tokens=3",
        "kernel<a&b=c>",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("HF_TOKEN", "0123456789", "<secret>"),
        ("aws_secret_access_key", "0123456789", "<secret>"),
        ("SLURM_JOB_USER", "grace", "<user>"),
        ("SUDO_USER", "grace", "<user>"),
        ("SLURM_SUBMIT_HOST", "login", "<host>"),
        ("SLURM_JOB_NODELIST", "n[1-4]", "<host>"),
        ("MY_POD_NAME", "train-0", "<host>"),
        ("POD_IP", "203.0.113.7", "<ip>"),
        ("PATH", "/home/grace/bin:/usr/bin", "~/bin:/usr/bin"),
        ("CUDA_VERSION", "10.1.2.3", "10.1.2.3"),
        ("name", "grace", "grace"),
        ("Process Group Name", "default_pg", "default_pg"),
        ("tokens", "0123456789", "0123456789"),
    ],
)
def test_a_variable_of_the_environment_is_replaced_by_what_its_name_says(key: str, value: str, expected: str) -> None:
    assert Redactor().value({key: value}) == {key: expected}


def test_json_keeps_its_numbers_spaces_and_order() -> None:
    before = (
        b'{ "ts": 1700000000123456.0010,"a" : ["/home/grace/x", 1e5, "caf\\u00e9 \\"q\\""] ,"host":"node17","n":-0}'
    )

    assert JsonTexts(Redactor()).without(before) == (
        b'{ "ts": 1700000000123456.0010,"a" : ["~/x", 1e5, "caf\\u00e9 \\"q\\""] ,"host":"<host>","n":-0}'
    )


@pytest.mark.parametrize("text", [b'"/home/grace/\xff"', b'"/home/grace/\\ud800"', b'"/home/grace/\\q\x01"'])
def test_a_damaged_text_is_replaced_too_and_is_json_after_it(text: bytes) -> None:
    after = JsonTexts(Redactor()).without(text)

    assert b"grace" not in after
    assert json.loads(after).startswith("~/")


def telling(path: Path) -> Path:
    trace = gpu_training()
    env = {"USER": "grace", "HF_TOKEN": "hf_s3cr3t_value", "SLURM_SUBMIT_HOST": "node17", "PWD": "/home/grace/run"}
    trace.header(host_name="node17", job_name="secret-job", metadata={"env": env})
    for number in range(2):
        at = 500.0 * number
        trace.python(r"C:\Users\Grace Hopper\lib.py(3): f", at + 130, 100, tid=2)
        trace.annotation("store tcp://10.1.2.3:29500 on node17", at + 9, 2)
        trace.op("aten::load", at + 3, 5, dims=[[2, 2]], types=["float"], concrete=[f"s3://b/w?token={KEY}"])
    return trace.write(path, "plain")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = telling(tmp_path / "a.json")
    text = path.read_bytes()
    path.write_bytes(text.replace(b"train.py(10): main", b"/home/grace/train.py(10): main on train-7d9f8b6c5-x2x9z"))
    assert {word.lower() for word in TELLING.findall(path.read_text(encoding="utf-8"))} >= {"grace", "x2x9z", "s3cr3t"}
    return path


def evidence(run: Path) -> bytes:
    report = json.loads((run / "report.json").read_bytes())
    return json.dumps({name: report[name] for name in ("ledger", "ops", "findings")}, sort_keys=True).encode()


@pytest.mark.parametrize("choice", [Choice(redact=True), Choice(steps="0-1", redact=True)], ids=["whole", "steps"])
def test_a_trace_that_was_cut_for_others_tells_nothing_and_says_the_same(trace, tmp_path, choice) -> None:
    written = cut(trace, tmp_path / "b.json.gz", choice)

    text = gzip.decompress(written.path.read_bytes()).decode()
    assert TELLING.findall(text) == []
    analyze(trace, tmp_path / "one", AnalyzeOptions(redact=True))
    analyze(written.path, tmp_path / "two")
    assert evidence(tmp_path / "one") == evidence(tmp_path / "two")


def test_numbers_of_a_redacted_trace_are_those_of_the_file(trace, tmp_path) -> None:
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', "", trace.read_text(encoding="utf-8"))
    written = cut(trace, tmp_path / "b.json", Choice(redact=True))
    hidden = re.sub(r'"(?:[^"\\]|\\.)*"', "", written.path.read_text(encoding="utf-8"))

    number = re.compile(r"-?[0-9][0-9.eE+-]*")
    assert number.findall(hidden) == number.findall(plain)
    assert len(number.findall(plain)) > 100


def test_nothing_to_leave_out_or_hide_is_told(trace, tmp_path, capsys) -> None:
    assert main(["cut", str(trace), "-o", str(tmp_path / "b.json")]) == 2
    assert capsys.readouterr().err == (
        "error: nothing to leave out\n\nhint: Give --steps, --window, --no-python or --redact\n"
    )
    assert main(["cut", str(trace), "--redact", "-o", str(tmp_path / "b.json")]) == 0


COMMANDS = ("tree --python", "ops", "ledger", "idle", "fusion", "replay")


@pytest.mark.parametrize("options", ["", "--json"], ids=["table", "json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_stage_prints_nothing_that_tells(trace, capsys, command, options) -> None:
    name, *more = command.split()
    arguments = [name, str(trace), *more, *options.split()]

    assert main(arguments) == 0
    plain = capsys.readouterr().out
    assert main([*arguments, "--redact"]) == 0
    hidden = capsys.readouterr().out

    assert TELLING.findall(hidden) == []
    assert hidden.count("\n") == plain.count("\n")


def test_the_tree_of_this_trace_does_tell(trace, capsys) -> None:
    assert main(["tree", str(trace), "--python"]) == 0
    assert {"/home/", "x2x9z"} <= set(TELLING.findall(capsys.readouterr().out))


@pytest.mark.parametrize("command", ["ops", "ledger"])
def test_a_run_is_printed_without_what_tells_itself(trace, tmp_path, capsys, command) -> None:
    analyze(trace, tmp_path / "run")

    assert main([command, str(tmp_path / "run"), "--json", "--redact"]) == 0

    assert TELLING.findall(capsys.readouterr().out) == []
