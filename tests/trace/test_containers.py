"""Every wrapping of a trace gives the same trace, told by content and not by name."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
import zlib

import pytest
import zstandard

from tests.support.trace_builder import TraceBuilder, tar_of, wrapped, zip_of
from tests.trace.reading import Folder, document, kernel, names_of, times_of

CONTENT = document(kernel("a", 10, 2), kernel("b", 15, 3.25))
TIMES = [(10_000, 2_000), (15_000, 3_250)]
HALF = document(*[kernel(f"k{i}", i, 1) for i in range(4000)])


def gzip_of(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def gzip_with_name_and_comment(content: bytes) -> bytes:
    plain = gzip_of(content)
    extra = b"\x03\x00abc"
    return (
        plain[:3] + bytes([4 | 8 | 16 | 2]) + plain[4:10] + extra + b"trace.json\0" + b"note\0" + b"\0\0" + plain[10:]
    )


def tar_gz_of(members: dict[str, bytes]) -> bytes:
    return gzip_of(tar_of(members))


HALVES = (CONTENT[:40], CONTENT[40:])
WRAPPINGS = {
    "plain": (CONTENT, "plain"),
    "gzip": (gzip_of(CONTENT), "gzip"),
    "gzip header with every field": (gzip_with_name_and_comment(CONTENT), "gzip"),
    "gzip of two members": (gzip_of(HALVES[0]) + gzip_of(HALVES[1]), "gzip"),
    "gzip with an empty member between": (gzip_of(HALVES[0]) + gzip_of(b"") + gzip_of(HALVES[1]), "gzip"),
    "gzip with zeros behind it": (gzip_of(CONTENT) + bytes(3 << 20), "gzip"),
    "gzip with text behind it": (gzip_of(CONTENT) + b"-- end of upload --\n", "gzip"),
    "gzip in gzip": (gzip_of(gzip_of(CONTENT)), "gzip+gzip"),
    "zstd": (zstandard.ZstdCompressor().compress(CONTENT), "zstd"),
    "zstd without its size": (zstandard.ZstdCompressor(write_content_size=False).compress(CONTENT), "zstd"),
    "zstd of two frames": (b"".join(zstandard.ZstdCompressor().compress(part) for part in HALVES), "zstd"),
    "zip": (zip_of({"trace.json": CONTENT}), "zip"),
    "zip of a name without suffix": (zip_of({"trace": CONTENT}), "zip"),
    "tar": (tar_of({"trace.json": CONTENT}), "tar"),
    "tar of a name without suffix": (tar_of({"trace": CONTENT}), "tar"),
    "tar.gz": (tar_gz_of({"run/trace.json": CONTENT}), "gzip+tar"),
    "tar.zst": (zstandard.ZstdCompressor().compress(tar_of({"trace.json": CONTENT})), "zstd+tar"),
    "gzip in zip": (zip_of({"trace.json.gz": gzip_of(CONTENT)}), "zip+gzip"),
    "gzip in tar": (tar_of({"trace.json.gz": gzip_of(CONTENT)}), "tar+gzip"),
    "zip in gzip": (gzip_of(zip_of({"trace.json": CONTENT})), "gzip+zip"),
}


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.bin"])
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_trace_is_read_from_any_wrapping_under_any_name(folder: Folder, wrapping: str, name: str) -> None:
    stored, container = WRAPPINGS[wrapping]

    trace, facts = folder.load(stored, name)

    assert times_of(trace) == TIMES
    assert facts.format == f"{container}, object"
    assert facts.truncated is None
    assert facts.content_bytes == len(CONTENT)
    assert facts.sha256 == hashlib.sha256(stored).hexdigest()


def test_the_builder_writes_every_container(folder: Folder) -> None:
    builder = TraceBuilder()
    builder.kernel("a", ts=10, dur=2)
    for container in ("plain", "gzip", "zstd", "zip", "tar"):
        assert wrapped(builder.json(), container) == builder.write(folder.path / "t", container).read_bytes()
        trace, facts = folder.load((folder.path / "t").read_bytes())
        assert (times_of(trace), facts.format) == ([(10_000, 2_000)], f"{container}, object")


@pytest.mark.parametrize("pack", [zip_of, tar_of, tar_gz_of], ids=["zip", "tar", "tar.gz"])
def test_an_archive_of_several_traces_names_them_all_and_the_one_it_gave(folder: Folder, pack) -> None:
    other = document(kernel("other", 1, 1))
    members = {
        "config.json": b'{"model_type":"llama"}',
        "._rank0.json": b"\0\5\x16\7",
        "rank0.json": CONTENT,
        "rank1.json": other,
    }

    trace, facts = folder.load(pack(members))

    assert names_of(trace) == ["a", "b"]
    assert facts.member == "rank0.json"
    assert facts.members == ("rank0.json", "rank1.json")


@pytest.mark.parametrize("outer", [zip_of, tar_of], ids=["zip", "tar"])
@pytest.mark.parametrize("inner", [zip_of, tar_of, tar_gz_of], ids=["zip", "tar", "tar.gz"])
def test_members_of_an_archive_in_an_archive_are_named_with_it(folder: Folder, outer, inner) -> None:
    ranks = inner({"rank0.json": CONTENT, "rank1.json": document(kernel("other", 1, 1))})

    trace, facts = folder.load(outer({"README": b"two ranks", "run": ranks}))

    assert names_of(trace) == ["a", "b"]
    assert facts.member == "run/rank0.json"
    assert facts.members == ("run/rank0.json", "run/rank1.json")


@pytest.mark.parametrize("pack", [zip_of, tar_of], ids=["zip", "tar"])
def test_a_trace_in_an_archive_may_begin_with_a_long_header(folder: Folder, pack) -> None:
    content = b'{"WARNING":["' + b"x" * 100_000 + b'"],' + CONTENT[1:]

    assert times_of(folder.trace(pack({"config.json": b"{}", "t": content}))) == TIMES


@pytest.mark.parametrize("kept", [0.98, 0.9, 0.5, 0.2])
def test_a_gzip_file_cut_short_keeps_every_event_before_the_cut(folder: Folder, kept: float) -> None:
    stored = gzip_of(HALF)
    cut = stored[: int(len(stored) * kept)]
    inflated = zlib.decompressobj(wbits=31).decompress(cut)
    whole = inflated.count(b"}}")  # each event ends in its arguments' bracket and its own

    trace, facts = folder.load(cut)

    assert facts.truncated == "gzip stream ends early"
    assert len(trace.kind) == whole > 500
    assert trace.dropped.counts == {"event cut short by the end of the file": 1}
    assert trace.dropped.first_offset["event cut short by the end of the file"] == inflated.rindex(b'{"ph"')


@pytest.mark.parametrize("missing", [1, 8])
def test_a_gzip_file_without_its_checksum_is_noted_and_whole(folder: Folder, missing: int) -> None:
    trace, facts = folder.load(gzip_of(CONTENT)[:-missing])

    assert times_of(trace) == TIMES
    assert facts.truncated == "gzip stream ends early"


def test_a_wrong_gzip_checksum_is_noted_and_costs_no_event(folder: Folder) -> None:
    stored = bytearray(gzip_of(CONTENT))
    stored[-8] ^= 1  # first byte of the checksum

    trace, facts = folder.load(bytes(stored))

    assert times_of(trace) == TIMES
    assert facts.truncated == "the gzip checksum does not match: some of the content is damaged"


def test_a_member_with_a_wrong_checksum_does_not_hide_the_next(folder: Folder) -> None:
    first = bytearray(gzip_of(HALVES[0]))
    first[-8] ^= 1

    assert times_of(folder.trace(bytes(first) + gzip_of(HALVES[1]))) == TIMES


def test_gzip_data_damaged_in_the_middle_keeps_what_lies_before(folder: Folder) -> None:
    content = document(*[kernel(f"k{i * 7919 % 10007}", i, 1) for i in range(10_000)])
    stored = bytearray(gzip_of(content))
    middle = len(stored) // 2
    stored[middle : middle + 64] = b"\xff" * 64

    trace, facts = folder.load(bytes(stored))

    # Half of 10,000 events, less the 64 KiB (about 800 events) that one call of the decoder may lose; the bytes that
    # the wrong data still gave may hold a few unreadable ones.
    assert 4_000 < len(trace.kind) < 5_500
    assert facts.truncated is not None
    assert facts.truncated.startswith(("damaged gzip data", "the gzip checksum does not match"))


@pytest.mark.parametrize("kept", [0.9, 0.5])
def test_a_zstd_file_cut_short_keeps_its_first_blocks(folder: Folder, kept: float) -> None:
    content = document(*[kernel(f"k{i * 7919 % 10007}", i, 1) for i in range(40_000)])
    stored = zstandard.ZstdCompressor().compress(content)

    trace, facts = folder.load(stored[: int(len(stored) * kept)])

    # zstd gives its content in blocks of 128 KiB, about 1,500 events
    assert kept * 40_000 - 4_000 < len(trace.kind) < kept * 40_000 + 4_000
    assert facts.truncated == "zstd stream ends early"


def test_a_tar_file_cut_short_keeps_the_events_before_the_cut(folder: Folder) -> None:
    stored = tar_of({"trace.json": HALF})

    trace, facts = folder.load(stored[: 512 + 100_000])

    # the archive's reader gives only whole pieces of 16 KiB: six of them fit into 100,000 bytes
    assert len(trace.kind) == HALF[: 6 * 16_384].count(b"}}")
    assert facts.truncated == "damaged tar archive (unexpected end of data)"


def test_a_tar_archive_may_hold_folders_and_links(folder: Folder) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("run", tarfile.DIRTYPE), ("latest.json", tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "run/trace.json" if kind == tarfile.SYMTYPE else ""
            archive.addfile(info)
        info = tarfile.TarInfo("run/trace.json")
        info.size = len(CONTENT)
        archive.addfile(info, io.BytesIO(CONTENT))

    assert times_of(folder.trace(buffer.getvalue())) == TIMES


def test_a_zip_member_with_a_wrong_checksum_is_noted(folder: Folder) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("trace.json", HALF)
    stored = buffer.getvalue().replace(b'"k3999"', b'"k4000"', 1)

    trace, facts = folder.load(stored)

    assert facts.truncated == "damaged zip member (Bad CRC-32 for file 'trace.json')"
    # the archive's reader keeps back the last of its pieces of 16 KiB
    assert len(trace.kind) == HALF[: len(HALF) // 16_384 * 16_384].count(b"}}")
