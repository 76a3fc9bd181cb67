"""``platforms``: the GPUs known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace import platforms
from rooftrace.cli.output import put, put_json, put_table

if TYPE_CHECKING:
    import argparse

    from rooftrace.contracts.platform import PlatformFile
    from rooftrace.platforms import Platform

_HEADER = ("slug", "product", "units", "memory", "bandwidth", "bf16 or fp16 matrix", "kind")


def run(options: argparse.Namespace) -> int:
    """List all, or show one with its sources."""
    if options.slug:
        platform = _platform(options.slug)
        put(platform.model_dump_json(indent=2, exclude_none=True))
        return 0
    known = platforms.load_platforms()
    if options.json:
        put_json([platform.model_dump(mode="json", exclude_none=True) for platform in known])
    else:
        put_table(_HEADER, [_line(platform) for platform in known], right=(2, 3, 4, 5))
    return 0


def _platform(wanted: str) -> Platform:
    """That of a slug, or of a file of the user's."""
    if not wanted.lower().endswith(".json"):
        return platforms.load_platform(wanted)
    from rooftrace.platforms.user import load_platform_file

    return load_platform_file(Path(wanted))


def _line(platform: PlatformFile) -> list[str]:
    bandwidth = platforms.bandwidth_ceiling(platform)
    matrix = platforms.compute_ceiling(platform, "bfloat16", "matrix") or platforms.compute_ceiling(
        platform, "float16", "matrix"
    )
    return [
        platform.slug,
        platform.product,
        str(platform.compute_units),
        f"{platform.memory.capacity_bytes / 2**30:.0f} GiB",
        f"{bandwidth.bytes_per_s / 1e9:,.0f} GB/s",
        f"{matrix.flops_per_s / 1e12:,.0f} TFLOP/s" if matrix else "-",
        matrix.kind if matrix else bandwidth.kind,
    ]
