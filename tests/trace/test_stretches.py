"""However many processes read a file, the result is the same, down to the numbering of names."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rooftrace import stretches
from rooftrace.cli import main
from rooftrace.errors import NotATrace
from rooftrace.stretches import Division
from rooftrace.trace import Trace, containers, fast
from tests.support.trace_builder import TraceBuilder, collective, wrapped
from tests.trace.reading import Folder, kernel, names_of

ROOT = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")


def long_trace(count: int = 300) -> bytes:
    """A trace with something in every column, new names and lanes all along; about 1 kB a round."""
    builder = TraceBuilder()
    builder.device()
    for at in range(count):
        ts = 10.0 * at
        comm = collective("allreduce", at % 7)
        builder.python(f"model.py({at % 40}): forward", ts, 9, tid=1 + at // 100)
        builder.op("aten::mm", ts, 4, dims=[[at % 9, 4], [4, 5]], types=["float", "float"], external_id=at, **comm)
        correlation = builder.launch(ts=ts + 1, external_id=at)
        builder.kernel(f"gemm_{at}", ts + 3, 2, correlation=correlation, stream=at % 4, grid=[at % 11, 1, 1], **comm)
        builder.sync(ts=ts + 6, wait_stream=at % 5, wait_record=correlation)
        builder.flow(correlation, ts=ts + 1, to_ts=ts + 3, stream=50 + at % 60)
    return builder.json()


def same(one: Trace, other: Trace) -> bool:
    """Equal in everything, numbers of names and lanes included."""
    for name in one.__struct_fields__:
        mine, theirs = getattr(one, name), getattr(other, name)
        if name == "flows":
            equal = all(np.array_equal(getattr(mine, f), getattr(theirs, f)) for f in mine.__struct_fields__)
        elif isinstance(mine, np.ndarray):
            equal = mine.dtype == theirs.dtype and np.array_equal(mine, theirs)
        else:
            equal = mine == theirs
        if not equal:
            return False
    return True


def facts(source: containers.Source) -> tuple[object, ...]:
    """What reading tells of the file."""
    return source.sha256, source.truncated, source.content_bytes, source.container, source.members


def read_alone_and_divided(path: Path, places: Sequence[int], shared: int = 0) -> Trace:
    """The trace, having held the divided reading to the other; `shared` stretches at the end are for who is free."""
    alone, divided = containers.open_source(path), containers.open_source(path)
    trace = fast.read(alone, divided=Division())
    assert same(trace, fast.read(divided, divided=Division(tuple(places), shared)))
    assert facts(alone) == facts(divided)
    return trace


@pytest.mark.parametrize("container", ["plain", "gzip", "zstd", "tar"])
def test_a_divided_file_gives_the_same_trace(folder: Folder, container) -> None:
    content = long_trace()
    path = folder.write(wrapped(content, container))
    size = len(content)

    trace = read_alone_and_divided(path, [size // 4, size // 2, size * 3 // 4])

    assert trace.event_count == 300 * 7
    assert len(trace.collectives) == 7
    assert trace.header["deviceProperties"][0]["id"] == 0


def test_the_later_stretches_are_read_by_the_helpers(folder: Folder, monkeypatch) -> None:
    # What is left of reading here, once the pieces of the first stretch are taken, are no events.
    content = long_trace()
    taken: list[int] = []
    take = fast._Reader.take
    monkeypatch.setattr(fast._Reader, "take", lambda self, piece: (taken.append(len(piece.text)), take(self, piece)))

    fast.read(containers.open_source(folder.write(content)), divided=Division((len(content) // 2,)))

    assert abs(sum(taken) - len(content) // 2) < 2_000  # to the next event


# what stands where the stretches meet
SEAMS = {
    "boundaries in a name": kernel("},{" * 4000),
    "a list of objects": kernel(args='{"list":[' + ",".join(['{"a":1}'] * 2000) + "]}"),
    "an unreadable event": kernel(ts="5.5.5", name="x" * 4000),
    "an event to mend": kernel("x" * 4000 + "\x01"),
    "the end of the array": None,
}


@pytest.mark.parametrize("seam", SEAMS)
def test_what_stands_where_stretches_meet_does_not_matter(folder: Folder, seam: str) -> None:
    before, after = (b",".join(kernel(f"{side}{n}", n).encode() for n in range(200)) for side in "ab")
    middle = SEAMS[seam]
    if middle is None:
        content = b'{"traceEvents":[' + before + b'],"deviceProperties":[{"id":0},{"id":1},{"id":2}]}'
        place = content.index(b"deviceProperties")
    else:
        content = b'{"traceEvents":[' + b",".join([before, middle.encode(), after]) + b"]}"
        place = len(content) // 2

    trace = read_alone_and_divided(folder.write(content), [place])

    kept = [name for name in names_of(trace) if name[0] in "ab"]
    assert kept == [f"a{n}" for n in range(200)] + ([] if middle is None else [f"b{n}" for n in range(200)])


@pytest.mark.parametrize("kept", [0.9, 0.6, 0.2])
@pytest.mark.parametrize("container", ["plain", "gzip"])
def test_a_divided_file_may_be_cut_short(folder: Folder, container, kept: float) -> None:
    content = long_trace()
    stored = wrapped(content, container)

    trace = read_alone_and_divided(folder.write(stored[: int(len(stored) * kept)]), [len(content) // 2])

    assert 100 < trace.event_count < 300 * 7


# the program of the helper
FAILURES = {
    "fails at once": "raise SystemExit(1)",
    "fails late": "import time; time.sleep(1); raise SystemExit(1)",
    "writes nothing": "",
    "writes something else": "print('hello')",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_a_helper_fails_to_read_is_read_here(folder: Folder, monkeypatch, failure: str) -> None:
    program = folder.path / "helper.py"
    program.write_text(FAILURES[failure])
    monkeypatch.setattr(stretches, "_HELPER", program)
    content = long_trace()

    for stored in (content, gzip.compress(content)):
        trace = read_alone_and_divided(folder.write(stored), [len(content) // 3, len(content) // 2])
        assert trace.event_count == 300 * 7


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_without_an_interpreter_to_start_all_is_read_here(folder: Folder, monkeypatch, executable: str) -> None:
    monkeypatch.setattr(stretches.sys, "executable", executable)
    content = long_trace(20)

    assert read_alone_and_divided(folder.write(content), [len(content) // 2]).event_count == 20 * 7


def test_no_helper_outlives_a_refusal(folder: Folder, monkeypatch) -> None:
    path = folder.write(b'{"a":1}')

    started = []
    start = stretches._start
    monkeypatch.setattr(stretches, "_start", lambda job: started.append(start(job)) or started[-1])

    with pytest.raises(NotATrace):
        fast.read(containers.open_source(path), divided=Division((3,)))

    assert [process.poll() is None for process in started] == [False]


@pytest.fixture
def four_processors(monkeypatch) -> None:
    monkeypatch.setattr(stretches, "processors", lambda: 4)
    monkeypatch.setattr(stretches, "_STRETCH", 1000)


# content, container, places
DIVIDED = {
    "less than two stretches": (b"{" + bytes(1998), "plain", ()),
    "two stretches": (b"{" + bytes(1999), "plain", (1000,)),
    "an array": (b"[" + bytes(2999), "plain", (1000, 2000)),
    "more stretches than processes": (b"{" + bytes(9999), "plain", (2500, 5000, 7500)),
    "gzip tells its content's size": (bytes(range(250)) * 8, "gzip", (1000,)),
    "zstd does not": (b"{" + bytes(9999), "zstd", ()),
    "no JSON": (b"<" + bytes(9999), "plain", ()),
    "nothing": (b"", "plain", ()),
}


@pytest.mark.usefixtures("four_processors")
@pytest.mark.parametrize("case", DIVIDED)
def test_a_file_is_divided_by_the_size_of_its_content(folder: Folder, case: str) -> None:
    content, container, places = DIVIDED[case]

    assert stretches.division(folder.write(wrapped(content, container))) == Division(places)


@pytest.mark.usefixtures("four_processors")
def test_a_gzip_file_that_claims_too_much_is_not_divided(folder: Folder) -> None:
    stored = gzip.compress(b"{" + bytes(1999))[:-4] + b"\xff\xff\xff\x7f"

    assert stretches.division(folder.write(stored)) == Division()


def test_one_processor_reads_alone(folder: Folder, monkeypatch) -> None:
    monkeypatch.setattr(stretches, "processors", lambda: 1)
    monkeypatch.setattr(stretches, "_STRETCH", 1000)

    assert stretches.division(folder.write(b"{" + bytes(9999))) == Division()


@pytest.mark.real_traces
@pytest.mark.parametrize("name", ["ranks/dlrm8/rank0", "nvidia/a100_nccl_metadata", "nvidia/v100_torch18_old_format"])
def test_a_divided_real_trace_is_the_same(name: str) -> None:
    path = ROOT / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {name} under {ROOT} (set ROOFTRACE_TRACES)")
    with gzip.open(path) as handle:
        size = handle.seek(0, os.SEEK_END)

    assert read_alone_and_divided(path, [size // 3, size * 2 // 3]).event_count > 3000


# bytes of content, processors: where the stretches meet of a file that is read while modules are imported
AHEAD = {
    "too small": (999, 2, ()),
    "its first stretch tells what it is": (3_000, 2, (100,)),  # (3,000 + 4,000) / 2 would leave nothing
    "two processes": (20_000, 2, (8_000,)),  # the helper gets (20,000 + 4,000) / 2 = 12,000
    "four processes": (20_000, 8, (2_000, 8_000, 14_000)),  # (20,000 + 4,000) / 4 = 6,000 each
    "as many as pay": (2_500, 8, (100, 1_300)),  # 2 of 1,000 or more; (2,500 + 4,000) / 3 would leave nothing
    "one processor": (20_000, 1, ()),
}


@pytest.mark.parametrize("case", AHEAD)
def test_stretches_read_ahead_are_longer_than_the_one_left(folder: Folder, monkeypatch, case: str) -> None:
    size, processors, places = AHEAD[case]
    for name, value in {"_LEAST_AHEAD": 1_000, "_LEAD": 4_000, "_FIRST": 100, "_DIGEST": 0, "_SHARED": 0}.items():
        monkeypatch.setattr(stretches, name, value)
    monkeypatch.setattr(stretches, "processors", lambda: processors)

    assert stretches.division_ahead(folder.write(b"{" + bytes(size - 1))) == Division(places)


SHARING = {"_LEAST_AHEAD": 1_000, "_LEAD": 4_000, "_FIRST": 100, "_DIGEST": 0, "_SHARED": 0.3, "_SHORT": 1_000}


def test_the_last_stretches_are_short_and_for_whoever_is_free(folder: Folder, monkeypatch) -> None:
    for name, value in SHARING.items():
        monkeypatch.setattr(stretches, name, value)
    monkeypatch.setattr(stretches, "processors", lambda: 2)

    # Of 20,000 the helper is expected to read (20,000 + 4,000) / 2 = 12,000; of that and of the whole, three tenths
    # are shared: 8,400 are the helper's, 20,000 - 6,000 - 8,400 = 5,600 this process's, the rest is six of 1,000.
    expected = Division((5_600, 14_000, 15_000, 16_000, 17_000, 18_000, 19_000), shared=6)
    assert stretches.division_ahead(folder.write(b"{" + bytes(19_999))) == expected


def test_where_a_pipe_cannot_be_shared_every_stretch_is_somebodys(folder: Folder, monkeypatch) -> None:
    for name, value in SHARING.items():
        monkeypatch.setattr(stretches, name, value)
    monkeypatch.setattr(stretches, "processors", lambda: 2)
    monkeypatch.setattr(stretches, "os", SimpleNamespace(**{**vars(os), "name": "nt"}))

    assert stretches.division_ahead(folder.write(b"{" + bytes(19_999))) == Division((8_000,))


@pytest.mark.parametrize("container", ["plain", "gzip", "zstd", "tar"])
def test_shared_stretches_give_the_same_trace_and_each_is_read_once(folder: Folder, monkeypatch, container) -> None:
    content = long_trace()
    path = folder.write(wrapped(content, container))
    places = [len(content) * part // 10 for part in range(1, 10)]
    absorbed = []
    absorb = fast._Reader.absorb
    monkeypatch.setattr(fast._Reader, "absorb", lambda self, state: (absorbed.append(state), absorb(self, state)))
    monkeypatch.setattr(containers.Source, "rewind", lambda _: pytest.fail("something was not read by anybody"))

    trace = read_alone_and_divided(path, places, shared=7)

    assert trace.event_count == 300 * 7
    assert len(absorbed) == 9


def test_who_is_free_first_reads_what_is_left(folder: Folder, monkeypatch) -> None:
    program = folder.path / "helper.py"
    program.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(stretches, "_HELPER", program)
    monkeypatch.setattr(stretches.Helpers, "results", lambda _: {})
    content = long_trace()
    read = []
    read_those = fast._Walk.read_those
    monkeypatch.setattr(fast._Walk, "read_those", lambda *given: read.append(read_those(*given)) or read[-1])

    fast.read(containers.open_source(folder.write(content)), divided=Division((10_000, 20_000, 30_000, 40_000), 3))

    assert [sorted(states) for states in read] == [[2, 3, 4]]


@pytest.mark.parametrize("seam", [name for name, middle in SEAMS.items() if middle is not None])
@pytest.mark.parametrize("shared", [1, 3, 5])
def test_what_stands_where_shared_stretches_meet_does_not_matter(folder: Folder, seam: str, shared: int) -> None:
    before, after = (b",".join(kernel(f"{side}{n}", n).encode() for n in range(200)) for side in "ab")
    content = b'{"traceEvents":[' + b",".join([before, SEAMS[seam].encode(), after]) + b"]}"
    middle, step = len(content) // 2, 3_000

    places = [middle + step * at for at in range(-3, 3)]
    trace = read_alone_and_divided(folder.write(content), places, shared)

    kept = [name for name in names_of(trace) if name[0] in "ab"]
    assert kept == [f"{side}{n}" for side in "ab" for n in range(200)]


def test_where_no_pipe_can_be_made_the_shared_stretches_are_read_here(folder: Folder, monkeypatch) -> None:
    def refuse(_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(stretches, "_hand_out", refuse)
    content = long_trace()
    places = [len(content) * part // 8 for part in range(1, 8)]

    assert read_alone_and_divided(folder.write(content), places, shared=5).event_count == 300 * 7


@pytest.mark.parametrize("kept", [0.95, 0.6, 0.2])
@pytest.mark.parametrize("container", ["plain", "gzip"])
def test_a_file_with_shared_stretches_may_be_cut_short(folder: Folder, container, kept: float) -> None:
    content = long_trace()
    stored = wrapped(content, container)
    places = [len(content) * part // 8 for part in range(1, 8)]

    trace = read_alone_and_divided(folder.write(stored[: int(len(stored) * kept)]), places, shared=5)

    assert 100 < trace.event_count < 300 * 7


@pytest.mark.parametrize(("container", "place"), [("plain", 7_000), ("gzip", 8_000)])
def test_who_digests_a_plain_file_reads_less_of_it(folder: Folder, monkeypatch, container: str, place: int) -> None:
    for name, value in {"_LEAST_AHEAD": 1_000, "_LEAD": 4_000, "_FIRST": 100, "_DIGEST": 0.1, "_SHARED": 0}.items():
        monkeypatch.setattr(stretches, name, value)
    monkeypatch.setattr(stretches, "processors", lambda: 2)
    content = b"{" + bytes(range(250)) * 80

    # The helper gets (20,001 + 4,000 + a tenth) / 2 of a plain file, and (20,001 + 4,000) / 2 of one that is packed.
    assert stretches.division_ahead(folder.write(wrapped(content, container))) == Division((place + 1,))


@pytest.fixture
def started(monkeypatch) -> list:
    """The helpers that are started, two processors and small stretches given."""
    for name, value in {"_LEAST_AHEAD": 1_000, "_LEAD": 4_000, "_FIRST": 2_000}.items():
        monkeypatch.setattr(stretches, name, value)
    monkeypatch.setattr(stretches, "processors", lambda: 2)
    start, processes = stretches._start, []
    monkeypatch.setattr(stretches, "_start", lambda job: processes.append(start(job)) or processes[-1])
    return processes


def test_who_reads_a_file_takes_over_what_was_read_ahead(folder: Folder, started) -> None:
    path = folder.write(long_trace())
    alone = fast.read(containers.open_source(path), divided=Division())

    with stretches.reading_ahead(path):
        ahead = fast.read(containers.open_source(path))
        assert len(started) == 1
        again = fast.read(containers.open_source(path))

    assert same(alone, ahead)
    assert same(alone, again)  # by this process, or by new ones


def test_nobody_reads_on_ahead_once_a_command_is_done(folder: Folder, started) -> None:
    with pytest.raises(NotATrace), stretches.reading_ahead(folder.write(long_trace())):
        raise NotATrace("it ends early")

    assert [process.poll() is None for process in started] == [False]
    assert not stretches._ahead


def test_a_command_has_its_trace_read_while_it_imports(folder: Folder, started, capsys) -> None:
    path = folder.write(long_trace())

    assert main(["ledger", str(path)]) == 0

    assert len(started) == 1
    assert "2.992 ms" in capsys.readouterr().out  # from the first kernel's start at 3 µs to the last one's end at 2,995


def test_a_process_that_ends_at_once_leaves_no_helper_behind(folder: Folder, started) -> None:
    with stretches.reading_ahead(folder.write(long_trace())):
        stretches.kill_helpers()
        assert started[0].wait(timeout=10) != 0

    assert not stretches._running


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_file_is_not_read_ahead(folder: Folder) -> None:
    os.mkfifo(folder.path / "pipe")

    assert stretches.division_ahead(folder.path / "pipe") == Division()
    assert stretches.division_ahead(folder.path) == Division()
    assert stretches.division_ahead(Path("a\0b")) == Division()


def test_the_first_file_that_a_command_line_names_is_what_it_is_about(folder: Folder, monkeypatch) -> None:
    path = folder.write(b"{}")
    monkeypatch.chdir(path.parent)
    (path.parent / "runs").mkdir()

    assert stretches.first_file(["analyze", "-q", "-o", "runs", path.name, "other.json"]) == Path(path.name)
    assert stretches.first_file(["analyze", str(path)]) == path
    assert stretches.first_file(["analyze", "-o", "runs", "no\0name", "x" * 5000]) is None
    assert stretches.first_file([path.name]) is None  # it stands for the command
    assert stretches.first_file([]) is None


def test_a_file_that_is_read_ahead_already_is_not_read_twice(folder: Folder, started) -> None:
    path = folder.write(long_trace())

    with stretches.reading_ahead(path), stretches.reading_ahead(path), stretches.reading_ahead(None):
        fast.read(containers.open_source(path))

    assert len(started) == 1
