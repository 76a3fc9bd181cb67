"""Ranges that a program marks (NVTX, ROCTX) as events: those of PyTorch's ``emit_nvtx`` are ops.

PyTorch names them ``aten::mm, seq = 12, op_id = 40, sizes = [[4, 5], [5, 6]], input_op_ids = [(0,0), (0,0)]``
(its `torch/csrc/profiler/util.cpp`, `getNvtxStr`); sizes stand there with ``record_shapes=True`` alone.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

from rooftrace.trace.formats._events import whole

_FIELD = re.compile(r", (seq|op_id|sizes|input_op_ids) = ")
_SIZES = re.compile(r"\[[\d\s,\[\]]{0,65536}\]")
_OPS = ("aten::", "torch::", "c10d::", "nccl:", "quantized::", "prims::", "_c10d_functional::")


def as_event(text: str) -> tuple[str, str, dict[str, Any]]:
    """Category, name and arguments of a range with this text."""
    name, *rest = _FIELD.split(text)
    fields = dict(zip(rest[::2], rest[1::2], strict=False))
    if not fields and not name.startswith(_OPS):
        return "user_annotation", text, {}
    args: dict[str, Any] = {
        "Sequence number": whole(fields.get("seq")),
        "External id": whole(fields.get("op_id")),
    }
    sizes = _SIZES.match(fields.get("sizes", ""))
    if sizes:
        with suppress(msgspec.DecodeError, RecursionError):
            args["Input Dims"] = msgspec.json.decode(sizes.group())
    return "cpu_op", name, args
