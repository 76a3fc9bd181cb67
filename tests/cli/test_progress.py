"""How far a long file is read: a rate and what is left, in few lines, and none of short files."""

from __future__ import annotations

import gzip
import io
import os
import sys
import time

import pytest

from rooftrace.cli.output import say, say_over
from rooftrace.cli.progress import content_size, line, progress
from tests.golden_runs.cases import gpu_training


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("done", "whole", "seconds", "expected"),
    [
        # 300 MB in 2 s is 150 MB/s; 600 of 900 MB are left, which is 4 s
        (300_000_000, 900_000_000, 2.0, "reading a.json: 300 of 900 MB, 150 MB/s, about 4 s left"),
        # 10 MB/s; 2,000 MB are left, which is 200 s
        (500_000_000, 2_500_000_000, 50.0, "reading a.json: 500 of 2500 MB, 10 MB/s, about 3 min 20 s left"),
        (300_000_000, None, 2.0, "reading a.json: 300 MB, 150 MB/s"),
        (950_000_000, 900_000_000, 5.0, "reading a.json: 950 MB, 190 MB/s"),  # more than the file told
        (890_000_000, 900_000_000, 2.0, "reading a.json: 890 of 900 MB, 445 MB/s"),  # 22 ms left
        (1_000_000, 900_000_000, 0.5, "reading a.json: 1 of 900 MB, 2 MB/s"),  # too early to tell
    ],
)
def test_a_line_tells_rate_and_time_left(done, whole, seconds, expected) -> None:
    assert line("a.json", done, whole, seconds) == expected


def reported(monkeypatch, capsys, stream, times: list[float]) -> list[str]:
    """What is told where content comes in at these seconds after the start."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    if stream is not None:
        monkeypatch.setattr(sys, "stderr", stream)
    from pathlib import Path

    tell = progress(Path("absent.json"))
    for seconds in times:
        now[0] = seconds
        tell(int(seconds * 1e8))
    return (capsys.readouterr().err if stream is None else stream.getvalue()).replace("\r", "\n").split("\n")


def test_a_log_has_a_line_every_five_seconds_and_none_before(monkeypatch, capsys) -> None:
    lines = reported(monkeypatch, capsys, None, [0.1, 1.0, 4.9, 5.0, 5.1, 9.0, 10.2, 12.0])

    assert lines == ["reading absent.json: 500 MB, 100 MB/s", "reading absent.json: 1020 MB, 100 MB/s", ""]


def test_a_terminal_has_one_line_that_is_renewed(monkeypatch, capsys) -> None:
    lines = reported(monkeypatch, capsys, Terminal(), [0.5, 1.0, 1.1, 1.3])

    assert [text for text in lines if text.strip()] == [
        "reading absent.json: 100 MB, 100 MB/s",
        "reading absent.json: 130 MB, 100 MB/s",
    ]


def test_what_is_said_next_wipes_the_line_first(monkeypatch) -> None:
    say("")  # ends what another test left on its terminal
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "9")

    say_over("reading \x1b[2Ja")
    say("done")

    assert stream.getvalue() == "reading \r        \rdone\n"


def test_the_size_of_the_content_is_told_by_plain_files_and_gzip(tmp_path) -> None:
    plain, packed, other = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "a.zst"
    plain.write_bytes(b"{" + b" " * 999)
    packed.write_bytes(gzip.compress(b"{" + b"abc" * 999))
    other.write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 100)

    assert [content_size(path) for path in (plain, packed, other, tmp_path / "gone")] == [1000, 2998, None, None]


def test_a_short_run_tells_no_progress_and_a_quiet_one_none_at_all(call, here, monkeypatch) -> None:
    gpu_training().write(here / "a.json", "plain")
    assert "reading" not in call("analyze", "a.json", "-o", "run").err

    monkeypatch.setattr("rooftrace.cli.progress._FIRST_IN_LOG_S", 0.0)
    assert call("analyze", "a.json", "-o", "run").err.startswith("reading a.json: 0 of 0 MB, ")
    assert "reading" not in call("analyze", "a.json", "-o", "run", "-q").err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_nothing_waits_for_a_pipe(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert content_size(tmp_path / "pipe") is None
