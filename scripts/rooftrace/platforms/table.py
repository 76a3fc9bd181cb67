"""``knowledge/platforms/README.md``: what the platform files say, as one table."""

from __future__ import annotations

from rooftrace.contracts.platform import PlatformFile, Precision, Unit
from rooftrace.platforms.catalogue import FOLDER, load_platforms

README = FOLDER / "README.md"

_COLUMNS: tuple[tuple[str, Precision, Unit], ...] = (
    ("float64", "float64", "matrix"),
    ("tf32", "tfloat32", "matrix"),
    ("float16", "float16", "matrix"),
    ("bfloat16", "bfloat16", "matrix"),
    ("float8", "float8", "matrix"),
    ("int8", "int8", "matrix"),
    ("float4", "float4", "matrix"),
    ("float32 vector", "float32", "vector"),
)
_HEAD = """# Platforms

Generated from the JSON files of this folder by `rooftrace.platforms.table`; edit those, not this file.

Rates are dense, in 10^12 operations per second, of matrix units unless the title says vector; bandwidth is
in 10^9 bytes per second. Where a measurement is published it follows the datasheet figure after a slash, and
kernels are rated against it. A dash means that the part has no such rate or that no figure could be verified.
One row is one device as a profiler shows it: an MI250X is two.
"""


def markdown() -> str:
    """The text of the README: a heading and one row a platform, sorted by slug."""
    rates = [title for title, _, _ in _COLUMNS]
    titles = ["platform", "product", "units", "memory", "bandwidth", "cache MiB", *rates]
    rule = ["---", "---", *["---:"] * (len(titles) - 2)]
    rows = [titles, rule, *(_row(platform) for platform in load_platforms())]
    return _HEAD + "\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(platform: PlatformFile) -> list[str]:
    bandwidth = platform.memory.bandwidth
    measured = bandwidth.achievable.value_gbytes_per_s if bandwidth.achievable else None
    cache = platform.last_level_cache
    return [
        f"`{platform.slug}`",
        platform.product,
        str(platform.compute_units),
        f"{platform.memory.capacity_bytes // 2**30} GB {platform.memory.kind}",
        _pair(bandwidth.datasheet.value_gbytes_per_s, measured),
        f"{cache.bytes / 2**20:g}" if cache else "-",
        *(_rate(platform, precision, unit) for _, precision, unit in _COLUMNS),
    ]


def _rate(platform: PlatformFile, precision: Precision, unit: Unit) -> str:
    for ceiling in platform.ceilings:
        if (ceiling.precision, ceiling.unit) == (precision, unit):
            measured = ceiling.achievable.value_tflops if ceiling.achievable else None
            return _pair(ceiling.datasheet.value_tflops, measured)
    return "-"


def _pair(published: float, measured: float | None) -> str:
    return f"{published:g}" if measured is None else f"{published:g} / {measured:g}"


def main() -> None:
    """Write the README."""
    README.write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
