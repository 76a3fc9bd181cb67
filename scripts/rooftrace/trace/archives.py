"""Archives of trace files: the chosen member of a zip or a tar, as a stream.

Nothing is unpacked onto the disk and no name of a member is taken for a path, so no member can leave its archive.
"""

from __future__ import annotations

import io
import struct
import tarfile
import tempfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any

from rooftrace.errors import NotATrace
from rooftrace.trace.gzipped import MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.trace.containers import Source

# What is handed on at once.
_CHUNK = 1 << 20
# What is read of a member at once; of a damaged one the last of these is lost.
_MEMBER_CHUNK = 1 << 14
# Of an archive's member, this much tells what it is: the envelope before the events is shorter.
_LOOK = 1 << 16
# A name or an extended header in a tar archive is no longer; the library holds it as a whole.
_MAX_TAR_HEADER = 1 << 20
# What to do about a damaged archive.
REPAIR = {
    "zip": "Copy it again, or mend it with `zip -FF ARCHIVE --out MENDED` and give that",
    "tar": "Copy it again; `tar -xf ARCHIVE` unpacks what stands before the damage, give the trace among that",
}
# What the libraries raise on damaged archives.
_ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, struct.error)
_TAR_DAMAGE = (tarfile.TarError, EOFError, ValueError, OverflowError)
# Ways of packing a member that the library unpacks in bounded pieces.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def container_of(head: bytes) -> str | None:
    """The container that begins with these bytes; None if none does."""
    if head.startswith(MAGIC):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    return None


def open_zip(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chosen member of a zip archive; its directory stands at the end, so a nested one is put aside first."""
    nested = source.container != ["zip"]
    handle: IO[bytes]
    with tempfile.TemporaryFile() if nested else source.path.open("rb") as handle:
        for chunk in chunks:  # reads to the end in any case, for the digest
            if nested:
                handle.write(chunk)
        try:
            archive = zipfile.ZipFile(handle)
        except _ZIP_DAMAGE:
            raise _damaged(source, "zip") from None
        with archive:
            yield from _zip_member(source, archive)


def _zip_member(source: Source, archive: zipfile.ZipFile) -> Iterator[bytes]:
    files = sorted((info for info in archive.infolist() if not info.is_dir()), key=lambda info: info.filename)
    if any(info.filename.endswith("data.pkl") for info in files):
        raise NotATrace(
            f"`{source.path.name}` is a PyTorch checkpoint, not a trace",
            hint="Give the file that torch.profiler wrote (export_chrome_trace)",
        )
    if any(info.flag_bits & 1 for info in files):
        raise NotATrace(f"`{source.path.name}` is an encrypted zip archive", hint="Unpack it and give the trace inside")
    if files and all(info.compress_type not in _BOUNDED for info in files):
        raise NotATrace(
            f"`{source.path.name}` is packed in a way that is not read (neither stored nor deflated)",
            hint="Unpack it and give the trace inside",
        )
    damaged, traces = False, []
    for info in files:
        if info.compress_type not in _BOUNDED:
            continue
        try:
            with archive.open(info) as member:
                if _looks_like_trace(member.read(_LOOK)):
                    traces.append(info)
        except _ZIP_DAMAGE:
            damaged = True
    if not traces:
        raise _damaged(source, "zip") if damaged else _no_member(source)
    outer = source.member
    _opened(source, outer)
    source.members += [_path(outer, info.filename) for info in traces]
    source.member = _path(outer, traces[0].filename)
    try:
        with archive.open(traces[0]) as member:
            yield from _read_chunks(member)
    except _ZIP_DAMAGE as error:
        source.truncated = f"damaged zip member ({error})"


def _opened(source: Source, outer: str | None) -> None:
    """The members of an archive that is a member itself are listed in its place."""
    if outer is not None:
        source.members.remove(outer)


def _path(outer: str | None, name: str) -> str:
    """A member's name; of an archive in an archive, with that of the outer one before it."""
    return name if outer is None else f"{outer}/{name}"


def open_tar(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The first trace of a tar archive, in the archive's order, since a stream cannot be rewound."""
    stream = io.BufferedReader(ChunkStream(chunks), _CHUNK)
    outer, found = source.member, False
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:
            for info in archive:
                member = archive.extractfile(info) if info.isfile() else None
                head = member.read(_LOOK) if member is not None else b""
                if member is None or not _looks_like_trace(head):
                    continue
                if not found:
                    _opened(source, outer)
                source.members.append(_path(outer, info.name))
                if not found:
                    found, source.member = True, source.members[-1]
                    yield head
                    yield from _read_chunks(member)
    except _TAR_DAMAGE as error:
        source.truncated = f"damaged tar archive ({error})"
    if not found:
        raise _damaged(source, "tar") if source.truncated else _no_member(source)


class _Member(tarfile.TarInfo):
    """A member of a tar archive whose name is no bomb."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        """The member of a header block."""
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HELD_AS_A_WHOLE and member.size > _MAX_TAR_HEADER:
            raise tarfile.ReadError("a header of impossible length")
        return member


_HELD_AS_A_WHOLE = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


def _looks_like_trace(head: bytes) -> bool:
    """Whether a member's first bytes are an event array, a document that has or may still have one, or compressed."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    document = text[:1] == b"{" and (b'"traceEvents"' in text or len(head) == _LOOK)
    return document or text[:1] == b"[" or container_of(head) is not None


def _damaged(source: Source, kind: str) -> NotATrace:
    return NotATrace(f"`{source.path.name}` is a damaged {kind} archive", hint=REPAIR[kind])


def _no_member(source: Source) -> NotATrace:
    return NotATrace(f"`{source.path.name}` holds no trace file", hint="Pack the `.json` or `.json.gz` trace itself")


def _read_chunks(handle: IO[bytes]) -> Iterator[bytes]:
    while chunk := handle.read(_MEMBER_CHUNK):
        yield chunk


class ChunkStream(io.RawIOBase):
    """File view of an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, as far as the current chunk goes."""
        if not self._rest:
            self._rest = next(self._chunks, b"")
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)
