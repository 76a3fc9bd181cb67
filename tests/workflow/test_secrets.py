"""Names of credentials that a trace's header holds."""

from __future__ import annotations

import json

import pytest

from rooftrace.contracts.credentials import secret_names
from rooftrace.workflow import analyze
from tests.support.trace_builder import TraceBuilder


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ({"metadata": {"env": {"HF_TOKEN": "hf_0123456789", "TOKENIZERS_PARALLELISM": "false"}}}, {"HF_TOKEN"}),
        ({"runs": [{"AWS_SECRET_ACCESS_KEY": "0123456789"}]}, {"AWS_SECRET_ACCESS_KEY"}),
        ({"api_key": "0123456789", "apikey": "0123456789"}, {"api_key", "apikey"}),
        ({"DB_PASSWORD": "x"}, set()),  # too short to be one
        ({"WANDB_API_KEY": 12345678}, set()),  # a number is none
        ({"token_count": {"a": 1}, "tokens": "0123456789"}, set()),
    ],
)
def test_a_text_named_like_a_credential_is_one(header, names):
    assert secret_names(header) == names


def test_a_file_whose_header_holds_one_is_told_of_by_name_and_its_value_is_in_no_file_of_the_run(tmp_path):
    builder = TraceBuilder()
    builder.header(metadata={"env": {"HF_TOKEN": "hf_0123456789abcdef"}})
    builder.kernel("k", ts=0, dur=10)
    path = builder.write(tmp_path / "trace.json.gz")
    run = tmp_path / "run"
    analyze(path, run)
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))

    (note,) = [note for note in report["health"]["notes"] if note["code"] == "secrets_in_file"]
    assert (note["count"], "`HF_TOKEN`" in note["text"]) == (1, True)
    files = [path for path in run.rglob("*") if path.is_file()]
    assert files
    assert not [path.name for path in files if b"hf_0123456789abcdef" in path.read_bytes()]
