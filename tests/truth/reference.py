"""The peer's tables, read as they stand; its named differences are stated here and nowhere else.

The tables leave every activity without a linked launch out of the timeline, and group operators by the
outermost one that they can model. Times are differences of binary floats around 1e12 us, good to about 1 ns.
"""

from __future__ import annotations

import ast
import csv
import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from tests.truth.independent import Trace, owner_of_each
from tests.truth.traces import traces_root

TIMELINE_ROWS = {
    "computation_time": "compute_ns",
    "exposed_comm_time": "exposed_comm_ns",
    "exposed_memcpy_time": "exposed_copy_ns",
    "busy_time": "busy_ns",
    "idle_time": "idle_ns",
    "total_time": "span_ns",
    "total_comm_time": "total_comm_ns",
    "total_memcpy_time": "total_copy_ns",
}

# One call goes through several ops; the package may charge it to another of them than the peer does.
CONVOLUTIONS_WITH_BIAS = ("aten::convolution", "aten::conv2d", "aten::_convolution")
# A library's convolution op is given no bias: another op adds it, so that its own cost has none.
SAME_CALL = {
    "aten::convolution": (*CONVOLUTIONS_WITH_BIAS, "aten::cudnn_convolution", "aten::miopen_convolution"),
    "aten::_scaled_dot_product_flash_attention": (
        "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_flash_attention_forward",
    ),
}

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A row of the unified table with a cost: `flops` of one call, corrected by the named difference."""

    name: str
    shapes: Shapes
    count: int
    printed: Fraction
    flops: Fraction
    difference: str


def rows(reference: str, table: str) -> list[dict[str, str]]:
    """The rows of one CSV file of a reference folder."""
    csv.field_size_limit(1 << 24)
    path = traces_root() / "reference" / reference / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def timeline(reference: str) -> dict[str, float]:
    """The peer's timeline in nanoseconds, by our names."""
    return {TIMELINE_ROWS[row["type"]]: float(row["time ms"]) * 1e6 for row in rows(reference, "gpu_timeline")}


def kernel_sums(reference: str) -> dict[tuple[str, str, int], tuple[int, int]]:
    """(owner op or "", kernel, stream) to (count, nanoseconds), over all activities, linked or not."""
    return {
        (row["Parent cpu_op"], row["Kernel name"], int(row["Kernel stream"])): (
            int(row["Kernel duration (µs)_count"]),
            round(float(row["Kernel duration (µs)_sum"]) * 1000),
        )
        for row in rows(reference, "kernel_summary")
    }


def own_kernel_sums(trace: Trace) -> dict[tuple[str, str, int], tuple[int, int]]:
    """The same table from the independent program; the peer lists kernels, not copies or memsets."""
    count: Counter[tuple[str, str, int]] = Counter()
    duration: Counter[tuple[str, str, int]] = Counter()
    for activity, owner in owner_of_each(trace):
        if activity.category == "kernel":
            key = (owner or "", activity.name, activity.stream)
            count[key] += 1
            duration[key] += activity.duration
    return {key: (count[key], duration[key]) for key in count}


def costs(reference: str) -> list[Cost]:
    """The GEMM, convolution and attention rows that have a cost."""
    found = []
    for row in rows(reference, "unified_perf_summary"):
        family = row["op category"].split("_")[0]
        if family in ("GEMM", "CONV", "SDPA") and row["GFLOPS"]:
            printed = Fraction(row["GFLOPS"]) * 10**9
            flops, difference = corrected(family, printed, ast.literal_eval(row["perf_params"]))
            found.append(
                Cost(
                    name=row["name"],
                    shapes=tensor_shapes(ast.literal_eval(row["Input Dims"])),
                    count=int(row["operation_count"]),
                    printed=printed,
                    flops=flops,
                    difference=difference,
                )
            )
    return found


def corrected(family: str, printed: Fraction, params: dict[str, Any]) -> tuple[Fraction, str]:
    """The peer's FLOPs without its named differences from the exact count, and which one applied."""
    if family == "GEMM" and params["bias"]:
        return printed - params["B"] * params["M"] * params["N"], "bias MN counted"
    if family == "SDPA" and params["causal"]:
        # Half where the exact share of the lower triangle, diagonal included, is (N + 1) / 2N.
        return printed * Fraction(params["N_KV"] + 1, params["N_KV"]), "causal counted as one half"
    return printed, ""


def expected_flops(row: Cost, charged_to: str) -> Fraction:
    """FLOPs of one call if it is charged to this op: the peer never counts the bias of a convolution."""
    if charged_to not in CONVOLUTIONS_WITH_BIAS or len(row.shapes) < 3:
        return row.flops
    output = row.flops / (2 * prod(row.shapes[1][1:]))  # flops = 2 * output * (channels per group * taps)
    return row.flops + output


def tensor_shapes(recorded: Any) -> Shapes:
    """Shapes of the tensor inputs, scalars and absent ones left out; takes lists, tuples or their JSON."""
    if isinstance(recorded, str):
        recorded = json.loads(recorded)
    return tuple(tuple(shape) for shape in recorded if shape and all(isinstance(size, int) for size in shape))


def is_same_call(row: Cost, name: str, shapes: Shapes) -> bool:
    """Whether an op group of the package holds this row's calls."""
    if row.name not in SAME_CALL:
        return name == row.name and shapes == row.shapes
    if name not in SAME_CALL[row.name] or len(shapes) < 2:
        return False
    if name == "aten::_flash_attention_forward":
        # Heads and sequence change places between the wrapper and the launching op.
        batch, heads, length, size = row.shapes[0]
        return shapes[0] == (batch, length, heads, size)
    return shapes[:2] == row.shapes[:2]
