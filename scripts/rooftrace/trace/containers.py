"""Opens a trace file whatever it is wrapped in, and says what it is where it is no trace.

The container is found by content, never by name: plain, gzip (several members, cut short), zstd, zip, tar, and those
in one another. The content is handed out in chunks of bytes and never held as a whole.
"""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from rooftrace.errors import InputError, NotATrace

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20
_MAX_NESTING = 4
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
    file_bytes: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        """Digest of the file as stored; complete once all chunks were read."""
        return str(self._digest.hexdigest())

    def chunks(self) -> Iterator[bytes]:
        """The content in pieces of about a mebibyte."""
        for chunk in _unwrap(self, _raw_chunks(self), 0):
            self.content_bytes += len(chunk)
            yield chunk


def open_source(path: Path) -> Source:
    """A readable trace file; `InputError` for what cannot be opened as a regular file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"no such file: `{path}`", hint=_nearby(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read `{path}`: {_reason(error)}") from None
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


def _raw_chunks(source: Source) -> Iterator[bytes]:
    try:
        with source.path.open("rb", buffering=0) as handle:
            while chunk := handle.read(CHUNK):
                source.file_bytes += len(chunk)
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
    if not first:
        raise NotATrace(_empty(source), hint="The profiler wrote nothing; capture again and let it finish writing")
    kind = _container_of(first)
    if kind is None or depth >= _MAX_NESTING:
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
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    return None


class _Inflater(Protocol):
    """The part of zlib's decompressor that isal shares."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _new_inflater() -> _Inflater:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj(wbits=31)
    inflater: _Inflater = isal_zlib.decompressobj(wbits=31)
    return inflater


def _gzip_errors() -> tuple[type[Exception], ...]:
    try:
        from isal import isal_zlib
    except ImportError:
        return (zlib.error,)
    return (zlib.error, EOFError, cast("type[Exception]", isal_zlib.error))


def _open_gzip(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Members one after the other; damage ends the content where it begins and is noted."""
    errors = _gzip_errors()
    inflater, started = _new_inflater(), False
    for chunk in chunks:
        data = chunk
        while data:
            if not started and not data.startswith(b"\x1f\x8b") and not b"\x1f\x8b".startswith(data[:2]):
                return  # zero padding or foreign bytes after the last member
            started = True
            try:
                out = inflater.decompress(data, CHUNK)  # bounded: a small input may hold a huge output
            except errors as error:
                source.truncated = f"damaged gzip data ({error})"
                return
            if out:
                yield out
            if inflater.eof:
                data, inflater, started = inflater.unused_data, _new_inflater(), False
            else:
                data = inflater.unconsumed_tail
    while started and not inflater.eof:  # output that the last bounded call held back
        try:
            out = inflater.decompress(b"", CHUNK)
        except errors:
            out = b""
        if not out:
            source.truncated = "gzip stream ends early"
            return
        yield out


def _open_zstd(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    import zstandard

    inflater = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
    finished = True
    for chunk in chunks:
        data = chunk
        while data:
            finished = False
            try:
                out = inflater.decompress(data)
            except zstandard.ZstdError as error:
                source.truncated = f"damaged zstd data ({error})"
                return
            if out:
                yield out
            if not inflater.eof:
                break
            data, finished = inflater.unused_data, True
            inflater = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
    if not finished:
        source.truncated = "zstd stream ends early"


def _open_zip(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chosen member of a zip archive; the directory stands at its end, so the file is opened again for it."""
    handle: io.BufferedIOBase
    if source.container == ["zip"]:
        for _ in chunks:  # reads on for the digest
            pass
        handle = source.path.open("rb")
    else:
        handle = io.BytesIO(b"".join(chunks))
    try:
        archive = zipfile.ZipFile(handle)
    except zipfile.BadZipFile:
        raise NotATrace(
            f"`{source.path.name}` is a damaged zip archive",
            hint="Unpack it with `zip -FF` and give the trace inside",
        ) from None
    with handle, archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        if any(name.endswith("data.pkl") for name in names):
            raise NotATrace(
                f"`{source.path.name}` is a PyTorch checkpoint, not a trace",
                hint="Give the file that torch.profiler wrote (export_chrome_trace)",
            )
        name = _choose_member(source, names)
        try:
            with archive.open(name) as member:
                yield from _read_chunks(member)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            source.truncated = f"damaged zip member ({error})"


def _open_tar(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The first trace of a tar archive, in the archive's order, since a stream cannot be rewound."""
    stream = io.BufferedReader(_ChunkStream(chunks), CHUNK)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for info in archive:
                if not info.isfile() or not info.name.lower().endswith(_TRACE_SUFFIXES):
                    continue
                source.members.append(info.name)
                if source.member is not None:
                    continue
                source.member = info.name
                member = archive.extractfile(info)
                if member is not None:
                    yield from _read_chunks(member)
    except (tarfile.TarError, EOFError) as error:
        source.truncated = f"damaged tar archive ({error})"
    if source.member is None:
        raise _no_member(source)
    for _ in chunks:  # the digest covers the whole file
        pass


def _choose_member(source: Source, names: list[str]) -> str:
    """The first member, by name, that looks like a trace."""
    source.members = sorted(name for name in names if name.lower().endswith(_TRACE_SUFFIXES))
    if not source.members and len(names) == 1:
        source.members = names
    if not source.members:
        raise _no_member(source)
    source.member = source.members[0]
    return source.member


def _no_member(source: Source) -> NotATrace:
    return NotATrace(f"`{source.path.name}` holds no trace file", hint="Pack the `.json` or `.json.gz` trace itself")


def _read_chunks(handle: Any) -> Iterator[bytes]:
    while chunk := handle.read(CHUNK):
        yield chunk


class _ChunkStream(io.RawIOBase):
    """File view of an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
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
