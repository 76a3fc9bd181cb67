"""The least a reader can do: decompress the file, cut it into blocks and decode every event into a typed record.

Run as ``python -m benchmarks.floor TRACE``; prints the seconds it took, without start-up and imports.
"""

from __future__ import annotations

import gc
import sys
import time
import zlib

import msgspec

_BLOCK = 1 << 20


class Event(msgspec.Struct, gc=False):
    """The fields every reader needs; arguments stay undecoded."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: float = 0.0
    dur: float = 0.0
    args: msgspec.Raw = msgspec.Raw(b"")


def chunks(path: str) -> list[bytes]:
    """The file's content, decompressed."""
    try:
        from isal import igzip as opener
    except ImportError:
        import gzip as opener  # type: ignore[no-redef]
    with open(path, "rb") as raw:  # noqa: PTH123
        packed = raw.read(2) == b"\x1f\x8b"
    handle = opener.open(path, "rb") if packed else open(path, "rb")  # noqa: PTH123, SIM115
    with handle:
        return list(iter(lambda: handle.read(_BLOCK), b""))


def decode(path: str) -> int:
    """Number of events decoded."""
    decoder = msgspec.json.Decoder(list[Event])
    pieces = chunks(path)
    rest, count = b"", 0
    started = False
    for number, piece in enumerate(pieces):
        rest += piece
        if not started:
            at = rest.find(b'"traceEvents"')
            if at < 0:
                continue
            rest, started = rest[rest.index(b"[", at) + 1 :], True
        if number == len(pieces) - 1:
            break
        cut = rest.rfind(b"},")
        while cut > 0 and not rest[cut + 2 : cut + 64].lstrip().startswith(b"{"):
            cut = rest.rfind(b"},", 0, cut)
        if cut > 0:
            count += len(decoder.decode(b"[" + rest[: cut + 1] + b"]"))
            rest = rest[cut + 2 :]
    return count


def main() -> None:
    """Print the time of one decoding."""
    gc.disable()
    started = time.perf_counter()
    count = decode(sys.argv[1])
    print(f"{time.perf_counter() - started:.4f} {count} {zlib.ZLIB_VERSION}")


if __name__ == "__main__":
    main()
