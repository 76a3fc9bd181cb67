"""What is no trace is refused in one line that says what it is and what to do."""

from __future__ import annotations

import gzip
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rooftrace.errors import InputError, NotATrace, RooftraceError
from rooftrace.trace import load
from tests.support.trace_builder import tar_of, zip_of
from tests.trace.reading import Folder, document

EXPORTED = "Give the Chrome trace that torch.profiler wrote (export_chrome_trace)"
WROTE = "Give the file that torch.profiler wrote"
NOTHING = "The profiler wrote nothing; capture again and let it finish writing"
AGAIN = "The file ends before its events; capture again and let the profiler finish writing"

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def encrypted_zip() -> bytes:
    """An archive whose directory says that its member is encrypted."""
    stored = bytearray(zip_of({"t.json": document()}))
    stored[stored.index(b"PK\x01\x02") + 8] |= 1
    return bytes(stored)


# content, what is said of the file `t`, hint
EMPTY = "Record again, while the workload runs, and let the profiler finish writing"
CONTENTS = {
    "empty": (b"", "`t` is empty (0 bytes)", NOTHING),
    "empty gzip": (gzip.compress(b""), "`t` holds 0 bytes of JSON inside gzip", NOTHING),
    "empty gzip in tar": (
        tar_of({"t.json.gz": gzip.compress(b"")}),
        "`t` holds 0 bytes of JSON inside tar in gzip",
        NOTHING,
    ),
    "gzip cut in its header": (
        gzip.compress(b"{}")[:6],
        "`t` holds no readable content: gzip stream ends early",
        "Copy or download the file again, or capture again and let the profiler finish writing",
    ),
    "white space": (b" \n\n", "`t` is not JSON: it starts with nothing", EXPORTED),
    "HTML": (
        b"<!DOCTYPE html><html>Not found</html>",
        "`t` is an HTML or XML document, not a trace",
        "The download probably returned a web page; fetch the raw file",
    ),
    "HTML in gzip": (
        gzip.compress(b"\n<html>"),
        "`t` is an HTML or XML document, not a trace",
        "The download probably returned a web page; fetch the raw file",
    ),
    "Git LFS pointer": (
        LFS,
        "`t` is a Git LFS pointer, not the file itself",
        "Run `git lfs pull` in the repository it comes from",
    ),
    "old pickle": (
        pickle.dumps({"state": 1}, protocol=2),
        "`t` is a Python pickle (a model checkpoint?), not a trace",
        WROTE,
    ),
    "pickle": (
        pickle.dumps({"segments": []}, protocol=4),
        "`t` is a Python pickle (a memory snapshot?), not a trace",
        WROTE,
    ),
    "checkpoint": (
        zip_of({"model/data.pkl": b"\x80\x02}.", "model/data/0": b"\0" * 64}),
        "`t` is a PyTorch checkpoint, not a trace",
        EXPORTED.replace("Chrome trace", "file"),
    ),
    "SQLite": (
        b"SQLite format 3\0" + bytes(100),
        "`t` is an SQLite database",
        "Export the profile as a Chrome trace (JSON)",
    ),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "`t` is an HDF5 file", WROTE),
    "PDF": (b"%PDF-1.7\n", "`t` is a PDF document", WROTE),
    "program": (b"\x7fELF\x02\x01\x01", "`t` is a program", WROTE),
    "UTF-16": ('\ufeff{"a":1}'.encode("utf-16-le"), "`t` is JSON without `traceEvents`", EXPORTED),
    "gzip of gzip of gzip of gzip of gzip": (
        gzip.compress(gzip.compress(gzip.compress(gzip.compress(gzip.compress(document()))))),
        "`t` is packed more than 4 times over",
        "Unpack it and give the trace inside",
    ),
    "a dict as Python prints it": (
        b"{'traceEvents': [{'ph': 'X'}]}",
        "`t` is Python's text of a dict, not JSON",
        "Write it with `json.dump` instead of `print` or `str`",
    ),
    "text": (b"ncu report `x`\nline 2", "`t` is not JSON: it starts with `ncu report .`", EXPORTED),
    "zeros": (bytes(4096), "`t` is not JSON: it starts with `............`", EXPORTED),
    "damaged zip": (
        b"PK\x03\x04" + b"x" * 100,
        "`t` is a damaged zip archive",
        "Copy it again, or mend it with `zip -FF ARCHIVE --out MENDED` and give that",
    ),
    "encrypted zip": (encrypted_zip(), "`t` is an encrypted zip archive", "Unpack it and give the trace inside"),
    "zip without a trace": (
        zip_of({"notes.txt": b"hello", "config.json": b'{"a":1}'}),
        "`t` holds no trace file",
        "Pack the `.json` or `.json.gz` trace itself",
    ),
    "tar without a trace": (
        tar_of({"notes.txt": b"hello"}),
        "`t` holds no trace file",
        "Pack the `.json` or `.json.gz` trace itself",
    ),
    "JSON without events": (b'{"a":1}', "`t` is JSON without `traceEvents`", EXPORTED),
    "JSON cut short": (b'{"schemaVersion":1,"devicePro', "`t` is JSON without `traceEvents`", AGAIN),
    "events that are no array": (b'{"traceEvents":{}}', "`t` is JSON without `traceEvents`", EXPORTED),
    "rocprofv3": (
        b'{"rocprofiler-sdk-tool":[{"metadata":{}}]}',
        "`t` holds no events",
        EMPTY,
    ),
    "memory snapshot": (
        b'{"segments":[],"device_traces":[[]]}',
        "`t` looks like a PyTorch memory snapshot, not like a profiler trace: it has no `traceEvents`",
        EXPORTED,
    ),
    "execution trace": (
        b'{"schema":"1.1.0","pid":1,"nodes":[{"id":1}]}',
        "`t` looks like a PyTorch execution trace (the graph, without GPU times), not like a profiler trace: "
        "it has no `traceEvents`",
        EXPORTED,
    ),
    "checkpoint index": (
        b'{"metadata":{},"weight_map":{}}',
        "`t` looks like the index of a model checkpoint, not like a profiler trace: it has no `traceEvents`",
        EXPORTED,
    ),
    "model configuration": (
        b'{"model_type":"llama"}',
        "`t` looks like the configuration of a model, not like a profiler trace: it has no `traceEvents`",
        EXPORTED,
    ),
    "no events": (document(), "`t` holds no events", EMPTY),
    "empty array": (b"[]", "`t` holds no events", EMPTY),
    "cut before the first event": (b'{"traceEvents":[', "`t` holds no events", EMPTY),
    "metadata alone": (
        document('{"ph":"M","name":"process_name","pid":1,"tid":0}', '{"ph":"M","name":"x","pid":1}'),
        "`t` holds no intact event with a time (2 read, none usable)",
        EMPTY,
    ),
    "events without times": (
        document('{"ph":"X","cat":"kernel","name":"k","ts":null}'),
        "`t` holds no intact event with a time (1 read, none usable)",
        EMPTY,
    ),
    "unreadable events": (
        document('{"ph":"X",,"name":k}', '{"ph":"X",tid": 3}'),
        "`t` holds no intact event with a time (0 read, none usable)",
        EMPTY,
    ),
    "array of numbers": (b"[1, 2, 3]", "`t` holds no intact event with a time (0 read, none usable)", EMPTY),
}


def error_of(path: Path) -> RooftraceError:
    with pytest.raises(RooftraceError) as caught:
        load(path)
    return caught.value


@pytest.mark.parametrize("case", CONTENTS)
def test_a_file_that_is_no_trace_is_refused(folder: Folder, case: str) -> None:
    content, what, hint = CONTENTS[case]

    error = error_of(folder.write(content, "t"))

    assert str(error) == f"error: {what}" + (f"\n\nhint: {hint}" if hint else "")
    assert isinstance(error, NotATrace)
    assert error.exit_code == 4


def assert_unreadable(error: RooftraceError, text: str) -> None:
    assert str(error) == text
    assert isinstance(error, InputError)
    assert error.exit_code == 3


def test_a_missing_file_is_named(folder: Folder) -> None:
    path = folder.path / "t.json"

    assert_unreadable(
        error_of(path),
        f"error: no such file: `{path}`\n\n"
        "hint: Give the path of a trace written by torch.profiler, such as `trace.json` or `trace.json.gz`",
    )


def test_a_missing_file_with_a_temporary_beside_it_names_that(folder: Folder) -> None:
    folder.write(b"{", "t.json.tmp")
    path = folder.path / "t.json"

    assert_unreadable(
        error_of(path),
        f"error: no such file: `{path}`\n\n"
        "hint: `t.json.tmp` lies beside it: the profiler was stopped while writing; analyse that file",
    )


def test_a_folder_names_a_trace_in_it(folder: Folder) -> None:
    (folder.path / "run").mkdir()
    assert_unreadable(
        error_of(folder.path / "run"),
        f"error: `{folder.path / 'run'}` is a directory\n\nhint: Give the path of one trace file",
    )

    for name in ("rank1.json.gz", "rank0.json.gz", "notes.txt"):
        folder.write(b"", f"run/{name}")
    assert_unreadable(
        error_of(folder.path / "run"),
        f"error: `{folder.path / 'run'}` is a directory\n\n"
        f"hint: Give one file in it, such as `{folder.path / 'run' / 'rank0.json.gz'}`",
    )


def test_a_path_through_a_file_is_an_error_of_the_path(folder: Folder) -> None:
    path = folder.write(b"{}", "t") / "x.json"

    assert_unreadable(
        error_of(path), f"error: cannot read `{path}`: Not a directory\n\nhint: Check the path and its permissions"
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting(folder: Folder) -> None:
    os.mkfifo(folder.path / "pipe")

    assert_unreadable(
        error_of(folder.path / "pipe"),
        f"error: `{folder.path / 'pipe'}` is a pipe, not a regular file\n\n"
        "hint: Write the trace to a file and give its path",
    )


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_an_endless_device_is_refused(folder: Folder) -> None:
    assert_unreadable(
        error_of(Path("/dev/zero")),
        "error: `/dev/zero` is a device, not a regular file\n\nhint: Write the trace to a file and give its path",
    )


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no sockets in the file system")
def test_a_socket_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)  # the whole path may be longer than a socket's name
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")

        assert_unreadable(
            error_of(Path("s")),
            "error: `s` is a socket, not a regular file\n\nhint: Write the trace to a file and give its path",
        )


@pytest.mark.parametrize(
    "address", ["https://example.com/trace.json.gz", "s3://bucket/trace.json", "file:///tmp/trace.json"]
)
def test_an_address_is_told_from_a_missing_file(address: str) -> None:
    shown = address.replace(":///", "://")  # a path knows of one slash only

    assert_unreadable(
        error_of(Path(address)),
        f"error: `{shown}` is an address, not a file\n\nhint: Download the trace and give the path of the file",
    )


_AS_NOBODY = """
import os, sys
from pathlib import Path
from rooftrace.errors import RooftraceError
from rooftrace.trace import load
os.chdir(sys.argv[1])  # before the rights are gone: the folders above are private to their owner
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    load(Path("t.json"))
except RooftraceError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no permissions of this kind")
def test_a_file_without_permission_is_an_error_of_its_own(folder: Folder) -> None:
    folder.write(document(), "t.json").chmod(0)
    folder.path.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(folder.path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert done.stdout == "error: cannot read `t.json`: Permission denied\n\nhint: Check the file's permissions\n"
    assert done.returncode == 3
