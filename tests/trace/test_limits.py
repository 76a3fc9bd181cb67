"""What a hostile file may cost: bytes are limited at every wrapping, members stay in their archive."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest
import zstandard

from rooftrace.errors import InputError, NotATrace
from rooftrace.trace import containers, load
from tests.support.trace_builder import tar_of, zip_of
from tests.trace.reading import Folder, document, kernel, names_of

LIMIT = 1_000_000
BOMB = b'{"traceEvents":[' + b" " * (5 * LIMIT)
SMALL = document(kernel("k", 1, 1))


def zstd_of(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def zip_by(method: int, members: dict[str, bytes]) -> bytes:
    """A zip archive whose members are packed by the method."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content, method)
    return buffer.getvalue()


def deflated(members: dict[str, bytes]) -> bytes:
    return zip_by(zipfile.ZIP_DEFLATED, members)


WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd_of,
    "zip": lambda content: deflated({"t.json": content}),
    "tar in gzip": lambda content: gzip.compress(tar_of({"t.json": content})),
    "gzip in gzip": lambda content: gzip.compress(gzip.compress(content)),
    "gzip in zstd in zip": lambda content: deflated({"t.json": zstd_of(gzip.compress(content))}),
    "zip in gzip": lambda content: gzip.compress(deflated({"t.json": content})),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_unpacks_to_more_than_the_limit_is_left_there(folder: Folder, wrapping: str) -> None:
    path = folder.write(WRAPPINGS[wrapping](BOMB), "t.json")

    with pytest.raises(InputError) as error:
        load(path, max_bytes=LIMIT)

    assert str(error.value) == (
        "error: `t.json` unpacks to more than 1 MB\n\n"
        "hint: If it really is a trace of that size, allow more with `--max-bytes`, such as `--max-bytes 100G`"
    )
    assert error.value.exit_code == 3


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_trace_within_the_limit_is_read(folder: Folder, wrapping: str) -> None:
    trace, _ = load(folder.write(WRAPPINGS[wrapping](SMALL)), max_bytes=LIMIT)

    assert names_of(trace) == ["k"]


def test_a_plain_file_has_the_limit_too(folder: Folder) -> None:
    with pytest.raises(InputError, match="`t` holds more than 1 MB"):
        load(folder.write(BOMB, "t"), max_bytes=LIMIT)


def test_what_stands_behind_the_end_of_an_archive_is_not_unpacked(folder: Folder) -> None:
    padded = gzip.compress(tar_of({"t.json": SMALL}) + bytes(5 * LIMIT))

    trace, _ = load(folder.write(padded), max_bytes=LIMIT)

    assert names_of(trace) == ["k"]


def test_without_a_limit_only_what_grows_as_no_trace_does_is_left(folder: Folder, monkeypatch) -> None:
    """Spaces shrink to a thousandth, events less: 5 MB are fine as they are, and a bomb in 5 kB of gzip."""
    monkeypatch.setattr(containers, "_ALWAYS_UNPACKED", LIMIT)
    packed = gzip.compress(BOMB)
    assert len(packed) * 250 < 2 * LIMIT

    with pytest.raises(InputError, match="unpacks to more than"):
        load(folder.write(packed))
    with pytest.raises(NotATrace, match="holds no events"):
        load(folder.write(BOMB + b"]}"))


def test_the_limit_of_all_is_generous() -> None:
    assert containers.MAX_BYTES == 64_000_000_000


def bomb_in_a_tar_header(kind: bytes) -> bytes:
    """A header that announces a name of 8 GB, which the library would hold as a whole; zeros follow."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 8_000_000_000
    return gzip.compress(info.tobuf() + bytes(40 << 20), compresslevel=1)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_name_of_gigabytes_in_a_tar_archive_is_damage(folder: Folder, kind: bytes) -> None:
    path = folder.write(bomb_in_a_tar_header(kind), "t.tar.gz")
    tracemalloc.start()
    try:
        with pytest.raises(NotATrace, match="is a damaged tar archive"):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 24 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "LZMA"])
def test_members_that_unpack_without_bounds_are_not_unpacked(folder: Folder, method: int) -> None:
    with pytest.raises(NotATrace) as error:
        load(folder.write(zip_by(method, {"t.json": SMALL}), "t.zip"))

    assert str(error.value) == (
        "error: `t.zip` is packed in a way that is not read (neither stored nor deflated)\n\n"
        "hint: Unpack it and give the trace inside"
    )


def damaged_zip_member() -> bytes:
    """The directory is whole, the deflated text of the only member is not."""
    packed = bytearray(deflated({"t.json": document(*(kernel(f"k{n}", n, 1) for n in range(100)))}))
    packed[60:70] = b"\xff" * 10
    return bytes(packed)


DAMAGED = {
    "zip without its directory": (zip_of({"t.json": SMALL})[:-30], "zip"),
    "zip with a damaged member": (damaged_zip_member(), "zip"),
    "tar with a damaged header": (tar_of({"t.json": SMALL}).replace(b"t.json", b"u.json", 1), "tar"),
}
HINTS = {
    "zip": "Copy it again, or mend it with `zip -FF ARCHIVE --out MENDED` and give that",
    "tar": "Copy it again; `tar -xf ARCHIVE` unpacks what stands before the damage, give the trace among that",
}


@pytest.mark.parametrize(
    "case", ["zip without its directory", "zip with a damaged member", "tar with a damaged header"]
)
def test_a_damaged_archive_is_told_with_what_to_do_about_it(folder: Folder, case: str) -> None:
    stored, kind = DAMAGED[case]

    with pytest.raises(NotATrace) as error:
        load(folder.write(stored, "t"))

    assert str(error.value) == f"error: `t` is a damaged {kind} archive\n\nhint: {HINTS[kind]}"


ESCAPES = ("../../escaped.json", "/rooftrace-escaped.json", "..\\escaped.json", "a/../../escaped.json")


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("pack", [zip_of, tar_of], ids=["zip", "tar"])
def test_no_member_leaves_its_archive(folder: Folder, pack: Callable[[dict[str, bytes]], bytes], name: str) -> None:
    inner = folder.path / "a" / "b"
    inner.mkdir(parents=True)
    path = inner / "t"
    path.write_bytes(pack({name: SMALL}))

    trace, facts = load(path)

    assert names_of(trace) == ["k"]
    assert facts.member == name
    assert sorted(entry.name for entry in folder.path.rglob("*")) == ["a", "b", "t"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_archive_are_passed_over(folder: Folder, kind: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("first.json")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
        info = tarfile.TarInfo("second.json")
        info.size = len(SMALL)
        archive.addfile(info, io.BytesIO(SMALL))

    _, facts = load(folder.write(buffer.getvalue()))

    assert facts.members == ("second.json",)
