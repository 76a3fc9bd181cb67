"""What the name of a copy or memset says about its ends."""

from __future__ import annotations

import re

from rooftrace.kernelnames.model import CopyFacts
from rooftrace.kernelnames.text import printable

_COPY = re.compile(
    r"^\s*memcpy\s*(?P<way>[hdp]to[hdp]|unknown)?\b(?:\s*\((?P<from>[\w ]+?)\s*->\s*(?P<to>[\w ]+?)\))?", re.I
)
_MEMSET = re.compile(r"^\s*memset\b(?:\s*\((?P<to>[\w ]+?)\))?", re.I)
_ROCM_COPY = re.compile(r"^(?:MEMORY_COPY_|Copy)(?P<from>HOST|DEVICE)_?TO_?(?P<to>HOST|DEVICE)", re.I)
_WAYS = {"htod": "HtoD", "dtoh": "DtoH", "dtod": "DtoD", "ptop": "PtoP", "htoh": "HtoH"}
_MAX_NAME = 200


def describe_copy(name: str) -> CopyFacts:
    """Facts of ``Memcpy HtoD (Pageable -> Device)``, ``Memset (Device)``, ``MEMORY_COPY_HOST_TO_DEVICE``."""
    text = printable(name[:_MAX_NAME])
    memset = _MEMSET.match(text)
    if memset:
        return CopyFacts(direction="memset", source=None, destination=_end(memset["to"]))
    rocm = _ROCM_COPY.match(text)
    if rocm:
        way = f"{rocm['from'][0]}to{rocm['to'][0]}"
        return CopyFacts(
            direction=_WAYS[way.lower()],  # type: ignore[arg-type]  # the table's values are the literal's
            source=_end(rocm["from"]),
            destination=_end(rocm["to"]),
        )
    copy = _COPY.match(text)
    if copy is None:
        return CopyFacts(direction=None, source=None, destination=None)
    return CopyFacts(
        direction=_WAYS.get((copy["way"] or "").lower()),  # type: ignore[arg-type]  # as above
        source=_end(copy["from"]),
        destination=_end(copy["to"]),
    )


def _end(text: str | None) -> str | None:
    """Kind of memory in lower case; None where the profiler did not know."""
    kind = (text or "").strip().lower()
    return None if kind in {"", "unknown"} else kind
