"""The one place where units are converted and numbers become text.

Inside the program: integer nanoseconds for time, bytes, FLOPs (a multiply-add is 2). Rounding happens here, once,
when a value is written.
"""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def ns_to_us(ns: float) -> float:
    """Microseconds, rounded to a nanosecond."""
    return round(ns / NS_PER_US, 3)


def ns_to_ms(ns: float) -> float:
    """Milliseconds, rounded to a nanosecond."""
    return round(ns / NS_PER_MS, 6)


def pct(part: float, whole: float) -> float:
    """``part`` as a percentage of ``whole`` with two decimals; a whole of zero gives 0."""
    return round(100.0 * part / whole, 2) if whole else 0.0


def format_ns(ns: float) -> str:
    """A duration for a reader: three to four significant digits in the fitting unit."""
    if abs(ns) >= NS_PER_S:
        return f"{ns / NS_PER_S:.3f} s"
    if abs(ns) >= NS_PER_MS:
        return f"{ns / NS_PER_MS:.2f} ms" if abs(ns) >= 10 * NS_PER_MS else f"{ns / NS_PER_MS:.3f} ms"
    if abs(ns) >= NS_PER_US:
        return f"{ns / NS_PER_US:.1f} µs"
    return f"{ns:.0f} ns"


def format_count(value: float) -> str:
    """An integer with thousands separators."""
    return f"{round(value):,}"


def format_pct(value: float) -> str:
    """A percentage: one decimal, two below one per cent."""
    return f"{value:.2f} %" if 0 < abs(value) < 1 else f"{value:.1f} %"


def format_flops(flops: float) -> str:
    """A FLOP count with the fitting prefix."""
    return _scaled(flops, "FLOP")


def format_flops_per_s(rate: float) -> str:
    """A FLOP rate with the fitting prefix."""
    return _scaled(rate, "FLOP/s")


def format_bytes(count: float) -> str:
    """A byte count in decimal units (1 MB is 10^6 bytes)."""
    return _scaled(count, "B")


def format_bytes_per_s(rate: float) -> str:
    """A byte rate in decimal units."""
    return _scaled(rate, "B/s")


def _scaled(value: float, unit: str) -> str:
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return (
                f"{value / factor:.3g} {prefix}{unit}"
                if value / factor < 100
                else f"{value / factor:.0f} {prefix}{unit}"
            )
    return f"{value:.0f} {unit}"
