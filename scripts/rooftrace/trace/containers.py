"""Opens a trace file whatever it is wrapped in, and says what it is where it is no trace.

The container is found by content, never by name: plain, gzip (several members, cut short), zstd, zip, tar, and those
in one another. The content is handed out in chunks of bytes and never held as a whole.
"""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rooftrace.errors import InputError, NotATrace
from rooftrace.trace.gzipped import MAGIC, GzipReader

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20
_MAX_NESTING = 4
# A zstd block of 4 bytes may hold 128 KiB: this much input bounds the output of a call to 8 MiB.
_ZSTD_INPUT = 1 << 8
# What is read of a member at once; of a damaged one the last of these is lost.
_MEMBER_CHUNK = 1 << 14
# Of an archive's member, this much tells what it is: the envelope before the events is shorter.
_LOOK = 1 << 16
_TRACE_SUFFIXES = (".json", ".json.gz", ".gz", ".zst", ".trace", ".pt.trace.json", ".tar")


@dataclass(slots=True)
class Source:
    """A trace file being read: chunks of its innermost content, and what was learnt on the way."""

    path: Path
    container: list[str] = field(default_factory=list)
    truncated: str | None = None
    members: list[str] = field(default_factory=list)
    member: str | None = None
    content_bytes: int = 0
    any_content: bool = False  # whether content is given out that is neither JSON nor otherwise known here
    _digest: Any = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        """Digest of the file as stored; complete once all chunks were read."""
        return str(self._digest.hexdigest())

    def rewind(self) -> None:
        """Forget what was learnt, to read the file again from its start."""
        self.container, self.members, self.member, self.truncated = [], [], None, None
        self.content_bytes, self._digest = 0, hashlib.sha256()

    def chunks(self, *, digest: bool = True) -> Iterator[bytes]:
        """The content in pieces of about a mebibyte; without `digest`, `sha256` says nothing."""
        raw = _raw_chunks(self, digest=digest)
        for chunk in _unwrap(self, raw, 0):
            self.content_bytes += len(chunk)
            yield chunk
        for _ in raw:  # padding behind the content belongs to the digest
            pass


def open_source(path: Path) -> Source:
    """A readable trace file; `InputError` for what cannot be opened as a regular file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"no such file: `{path}`", hint=_nearby(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read `{path}`: {_reason(error)}", hint="Check the path and its permissions") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"`{path}` is a directory", hint=_inside(path))
    if not stat.S_ISREG(mode):
        raise InputError(f"`{path}` is not a regular file", hint="Write the trace to a file and give its path")
    return Source(path=path)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _nearby(path: Path) -> str:
    temporary = path.with_name(path.name + ".tmp")
    if temporary.exists():
        return f"`{temporary.name}` lies beside it: the profiler was stopped while writing; analyse that file"
    return "Give the path of a trace written by torch.profiler, such as `trace.json` or `trace.json.gz`"


def _inside(path: Path) -> str:
    try:
        names = sorted(entry.name for entry in path.iterdir() if entry.name.lower().endswith(_TRACE_SUFFIXES))
    except OSError:
        names = []
    if names:
        return f"Give one file in it, such as `{path / names[0]}`"
    return "Give the path of one trace file"


def _raw_chunks(source: Source, *, digest: bool) -> Iterator[bytes]:
    try:
        with source.path.open("rb", buffering=0) as handle:
            while chunk := handle.read(CHUNK):
                if digest:
                    source._digest.update(chunk)
                yield chunk
    except OSError as error:
        raise InputError(
            f"cannot read `{source.path}`: {_reason(error)}", hint="Check the file's permissions"
        ) from None


def _unwrap(source: Source, chunks: Iterator[bytes], depth: int) -> Iterator[bytes]:
    """Peel one container after another off a stream of chunks."""
    first = b""
    for chunk in chunks:
        first += chunk
        if len(first) >= 512:  # a tar header tells itself at byte 257
            break
    if not first and source.truncated:
        raise NotATrace(
            f"`{source.path.name}` holds no readable content: {source.truncated}",
            hint="Copy or download the file again, or capture again and let the profiler finish writing",
        )
    if not first:
        raise NotATrace(_empty(source), hint="The profiler wrote nothing; capture again and let it finish writing")
    kind = _container_of(first)
    if kind is None or depth >= _MAX_NESTING:
        if not source.any_content:
            _refuse_other_formats(source, first)
        yield first
        yield from chunks
        return
    source.container.append(kind)
    stream = _chain(first, chunks)
    opened = _OPENERS[kind](source, stream)
    yield from _unwrap(source, opened, depth + 1)


def _empty(source: Source) -> str:
    if not source.container:
        return f"`{source.path.name}` is empty (0 bytes)"
    return f"`{source.path.name}` holds 0 bytes of JSON inside {' in '.join(source.container)}"


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _container_of(head: bytes) -> str | None:
    if head.startswith(MAGIC):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    return None


def _open_gzip(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Members one after the other; damage ends the content where it begins and is noted."""
    reader = GzipReader(chunks)
    yield from reader
    source.truncated = source.truncated or reader.problem


def _open_zstd(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    inflater, finished = decompressor.decompressobj(), True
    for data in _slices(chunks, _ZSTD_INPUT):
        rest = data
        while rest:
            finished = False
            try:
                out = inflater.decompress(rest)
            except zstandard.ZstdError as error:
                source.truncated = f"damaged zstd data ({error})"
                return
            if out:
                yield out
            if not inflater.eof:
                break
            rest, inflater, finished = inflater.unused_data, decompressor.decompressobj(), True
    if not finished:
        source.truncated = "zstd stream ends early"


def _slices(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        for at in range(0, len(chunk), size):
            yield chunk[at : at + size]


def _open_zip(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chosen member of a zip archive; its directory stands at the end, so a nested one is put aside first."""
    nested = source.container != ["zip"]
    handle: IO[bytes]
    with tempfile.TemporaryFile() if nested else source.path.open("rb") as handle:
        for chunk in chunks:  # reads to the end in any case, for the digest
            if nested:
                handle.write(chunk)
        try:
            archive = zipfile.ZipFile(handle)
        except zipfile.BadZipFile:
            raise NotATrace(
                f"`{source.path.name}` is a damaged zip archive",
                hint="Unpack it with `zip -FF` and give the trace inside",
            ) from None
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
    damage = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError)
    for info in files:
        with suppress(*damage), archive.open(info) as member:
            if _looks_like_trace(member.read(_LOOK)):
                source.members.append(info.filename)
    if not source.members:
        raise _no_member(source)
    source.member = source.members[0]
    try:
        with archive.open(source.member) as member:
            yield from _read_chunks(member)
    except damage as error:
        source.truncated = f"damaged zip member ({error})"


def _open_tar(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The first trace of a tar archive, in the archive's order, since a stream cannot be rewound."""
    stream = io.BufferedReader(ChunkStream(chunks), CHUNK)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for info in archive:
                member = archive.extractfile(info) if info.isfile() else None
                head = member.read(_LOOK) if member is not None else b""
                if member is None or not _looks_like_trace(head):
                    continue
                source.members.append(info.name)
                if source.member is None:
                    source.member = info.name
                    yield head
                    yield from _read_chunks(member)
    except (tarfile.TarError, EOFError) as error:
        source.truncated = f"damaged tar archive ({error})"
    if source.member is None:
        raise _no_member(source)


def _looks_like_trace(head: bytes) -> bool:
    """Whether a member's first bytes are an event array, a document that has or may still have one, or compressed."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    document = text[:1] == b"{" and (b'"traceEvents"' in text or len(head) == _LOOK)
    return document or text[:1] == b"[" or _container_of(head) is not None


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


_OPENERS = {"gzip": _open_gzip, "zstd": _open_zstd, "zip": _open_zip, "tar": _open_tar}

# (start of the content, what it is, what to do)
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs",
        "is a Git LFS pointer, not the file itself",
        "Run `git lfs pull` in the repository it comes from",
    ),
    (b"\xff\xfe", "is UTF-16 text", "Convert it to UTF-8: `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfd7zXZ", "is compressed with xz, which is not read", "Unpack it with `xz -d` and give the result"),
    (b"BZh", "is compressed with bzip2, which is not read", "Unpack it with `bzip2 -d` and give the result"),
    (b"SQLite format 3", "is an SQLite database", "Export the profile as a Chrome trace (JSON)"),
    (
        b"\x80\x02",
        "is a Python pickle (a model checkpoint?), not a trace",
        "Give the file that torch.profiler wrote",
    ),
    (
        b"\x80\x04",
        "is a Python pickle (a memory snapshot?), not a trace",
        "Give the file that torch.profiler wrote",
    ),
    (b"\x89HDF", "is an HDF5 file", "Give the file that torch.profiler wrote"),
    (b"%PDF", "is a PDF document", "Give the file that torch.profiler wrote"),
    (b"\x7fELF", "is a program", "Give the file that torch.profiler wrote"),
)


def _refuse_other_formats(source: Source, head: bytes) -> None:
    text = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    for start, what, hint in _FOREIGN:
        if text.startswith(start):
            raise NotATrace(f"`{source.path.name}` {what}", hint=hint)
    if text[:1] == b"<":
        raise NotATrace(
            f"`{source.path.name}` is an HTML or XML document, not a trace",
            hint="The download probably returned a web page; fetch the raw file",
        )
    if text[:1] not in (b"{", b"["):
        raise NotATrace(
            f"`{source.path.name}` is not JSON: it starts with {_printable(text[:12])}",
            hint="Give the Chrome trace that torch.profiler wrote (export_chrome_trace)",
        )


def _printable(data: bytes) -> str:
    return "`" + "".join(chr(b) if 32 <= b < 127 and b != 96 else "." for b in data) + "`" if data else "nothing"
