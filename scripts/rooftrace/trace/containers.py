"""Opens a trace file whatever it is wrapped in, and says what it is where it is no trace.

The container is found by content, never by name: plain, gzip (several members, cut short), zstd, zip, tar, and those
in one another. Text in UTF-16 or UTF-32 and events on lines of their own are handed out as an array in UTF-8. The
content is handed out in chunks of bytes and never held as a whole.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
import stat
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from rooftrace.errors import InputError, NotATrace
from rooftrace.trace.archives import REPAIR, container_of, open_tar, open_zip
from rooftrace.trace.gzipped import GzipReader
from rooftrace.trace.repair import read_intact
from rooftrace.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 1 << 20
_MAX_NESTING = 4
# The most that is unpacked unless the caller says otherwise. Traces shrink to a tenth to a fortieth: what grows by far
# more is a bomb, and is left before it fills the disk of a report or an afternoon.
MAX_BYTES = 64 * 10**9
_ALWAYS_UNPACKED = 10**9
_MOST_INFLATED = 250
# A zstd block of 4 bytes may hold 128 KiB: this much input bounds the output of a call to 8 MiB.
_ZSTD_INPUT = 1 << 8
_TRACE_SUFFIXES = (".json", ".json.gz", ".gz", ".zst", ".trace", ".pt.trace.json", ".tar")


class Source(Struct):
    """A trace file being read: chunks of its innermost content, and what was learnt on the way."""

    path: Path
    container: list[str] = field(default_factory=list)
    truncated: str | None = None
    members: list[str] = field(default_factory=list)
    member: str | None = None
    content_bytes: int = 0
    any_content: bool = False  # whether content is given out that is neither JSON nor otherwise known here
    stored_bytes: int = 0
    max_bytes: int | None = None  # the most that is unpacked; None: as much as a trace of the file's size may hold
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
        for chunk in _unwrap(self, _limited(self, raw), 0):
            self.content_bytes += len(chunk)
            yield chunk
        for _ in raw:  # padding behind the content belongs to the digest
            pass

    def chunks_from(self, place: int) -> Iterator[bytes]:
        """What follows a place in the content, of a file with nothing around it (no `container`); not digested."""
        return _raw_chunks(self, digest=False, start=place)


def open_source(path: Path, max_bytes: int | None = None) -> Source:
    """A readable trace file; `InputError` for what cannot be opened as a regular file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read `{path}`: {_reason(error)}", hint="Check the path and its permissions") from None
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise InputError(f"`{path}` is a directory", hint=_inside(path))
    if not stat.S_ISREG(mode):
        what = next((what for test, what in _SPECIAL if test(mode)), "not a regular file")
        raise InputError(f"`{path}` is {what}", hint="Write the trace to a file and give its path")
    return Source(path=path, stored_bytes=status.st_size, max_bytes=max_bytes)


_SPECIAL = (
    (stat.S_ISFIFO, "a pipe, not a regular file"),
    (stat.S_ISSOCK, "a socket, not a regular file"),
    (stat.S_ISCHR, "a device, not a regular file"),
    (stat.S_ISBLK, "a device, not a regular file"),
)
# A path loses one of the slashes of an address.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,15}):/{1,2}(.+)", re.DOTALL)


def _missing(path: Path) -> InputError:
    address = _ADDRESS.fullmatch(path.as_posix())
    if address is None:
        return InputError(f"no such file: `{path}`", hint=_nearby(path))
    whole = f"{address[1]}://{address[2]}"
    return InputError(f"`{whole}` is an address, not a file", hint="Download the trace and give the path of the file")


def _limited(source: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks; `InputError` once they are more than may be unpacked."""
    limit, given = source.max_bytes, 0
    if limit is None:
        limit = min(MAX_BYTES, max(_ALWAYS_UNPACKED, _MOST_INFLATED * source.stored_bytes))
    for chunk in chunks:
        given += len(chunk)
        if given > limit:
            packed = "unpacks to" if source.container else "holds"
            raise InputError(
                f"`{source.path.name}` {packed} more than {format_bytes(limit)}",
                hint="If it really is a trace of that size, allow more with `--max-bytes`, such as `--max-bytes 100G`",
            )
        yield chunk


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


def _raw_chunks(source: Source, *, digest: bool, start: int = 0) -> Iterator[bytes]:
    try:
        with source.path.open("rb", buffering=0) as handle:
            handle.seek(start)
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
            hint=REPAIR.get(
                source.container[-1],
                "Copy or download the file again, or capture again and let the profiler finish writing",
            ),
        )
    if not first:
        raise NotATrace(_empty(source), hint="The profiler wrote nothing; capture again and let it finish writing")
    kind = container_of(first) or _form_of(first)
    if kind is None or depth >= _MAX_NESTING:
        if not source.any_content:
            if kind is not None:
                raise NotATrace(
                    f"`{source.path.name}` is packed more than {_MAX_NESTING} times over",
                    hint="Unpack it and give the trace inside",
                )
            _refuse_other_formats(source, first)
        yield first
        yield from chunks
        return
    source.container.append(kind)
    stream = _chain(first, chunks)
    opened = _limited(source, _OPENERS[kind](source, stream))
    yield from _unwrap(source, opened, depth + 1)


def _empty(source: Source) -> str:
    if not source.container:
        return f"`{source.path.name}` is empty (0 bytes)"
    return f"`{source.path.name}` holds 0 bytes of JSON inside {' in '.join(source.container)}"


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


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


_JSON = re.compile(r"[{\[]\s*[\"{\[\]}]")


def _form_of(first: bytes) -> str | None:
    """How the text is written, where it is not a document in UTF-8."""
    if _encoding_of(first):
        return "UTF-16"
    line = first.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    event = read_intact(line.rstrip(b", \t\r"))
    return "JSON lines" if event is not None and event.ph else None


def _encoding_of(first: bytes) -> str | None:
    """UTF-16 or UTF-32 with its order of bytes, if JSON in it begins so."""
    encoding = json.detect_encoding(first[:4])
    if encoding.startswith("utf-8"):
        return None
    text = first[:512].decode(encoding, "replace").lstrip("\ufeff \t\r\n")
    return encoding if _JSON.match(text) else None


def _open_utf16(_: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    decoder = None
    for chunk in chunks:
        decoder = decoder or codecs.getincrementaldecoder(_encoding_of(chunk) or "utf-16")("replace")
        if text := decoder.decode(chunk).lstrip("\ufeff"):
            yield text.encode()


def _open_lines(_: Source, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines as an array: their ends need no commas between them."""
    start = b"["
    for chunk in chunks:
        yield start + (chunk.removeprefix(b"\xef\xbb\xbf") if start else chunk)
        start = b""
    yield b"]"


_OPENERS = {
    "gzip": _open_gzip,
    "zstd": _open_zstd,
    "zip": open_zip,
    "tar": open_tar,
    "UTF-16": _open_utf16,
    "JSON lines": _open_lines,
}

# (start of the content, what it is, what to do)
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs",
        "is a Git LFS pointer, not the file itself",
        "Run `git lfs pull` in the repository it comes from",
    ),
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
