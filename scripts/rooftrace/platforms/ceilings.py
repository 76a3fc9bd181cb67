"""The limits that an operation meets on a platform.

A limit is `achievable` where somebody measured it, else the dense datasheet figure, which stands beside it. Of a
calibrated device that the pack does not know there are measurements only: the measurement then stands for both, so
that a kernel beyond it shows as inconsistent. Missing figures are ``None``, never zero and never estimated.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from rooftrace.contracts.platform import (
    CalibratedFile,
    ComputeCeiling,
    DatasheetRate,
    MeasuredCeiling,
    PlatformFile,
)
from rooftrace.platforms.catalogue import Platform

CeilingKind = Literal["achievable", "datasheet-dense"]

_TERA = 1e12
_GIGA = 1e9

# Other names of a precision, and the formats of which all variants run at one rate.
_PRECISION = {"double": "float64", "float": "float32", "half": "float16", "uint8": "int8"}
_FAMILIES = ("float8", "float6", "float4")
# What executes a matrix product that no matrix unit takes: the vector units, at their own rate for the type.
_MATRIX_ON_VECTOR = ("float32", "float64")
_LATENCY_NS = 2000  # the default of a platform file, a rule of thumb


class Ceiling(Struct, frozen=True, kw_only=True):
    """A compute limit; ``flops_per_s`` is the one to rate against, ``datasheet`` the dense peak in FLOP/s."""

    flops_per_s: float
    kind: CeilingKind
    datasheet: float
    source: str


class BandwidthCeiling(Struct, frozen=True, kw_only=True):
    """The memory's limit; ``bytes_per_s`` is the one to rate against, ``datasheet`` the peak in bytes/s."""

    bytes_per_s: float
    kind: CeilingKind
    datasheet: float
    source: str


def compute_ceiling(platform: Platform, precision: str, unit: str) -> Ceiling | None:
    """The limit for inputs of a PyTorch dtype (or ``tfloat32``) on ``matrix`` or ``vector`` units.

    Vector work in a type without a published rate counts at the float32 rate (not float64, which may be 64
    times slower); matrix products in float32 or float64 on a part without such a matrix rate count at the
    vector rate of the type. The source then says so. ``None`` where the part has no rate for the type.
    """
    wanted = _precision(precision)
    own = _find(platform, wanted, unit)
    if own is not None:
        return _ceiling(own)
    if unit == "matrix" and wanted in _MATRIX_ON_VECTOR:
        return _borrowed(platform, wanted, f"no {wanted} matrix rate is published, so its vector rate counts")
    if unit == "vector" and wanted != "float64":
        return _borrowed(platform, "float32", f"no {wanted} vector rate is published, so float32 counts")
    return None


def bandwidth_ceiling(platform: Platform) -> BandwidthCeiling:
    """The limit of the device memory, reads and writes together."""
    if isinstance(platform, CalibratedFile):
        found = platform.memory.bandwidth
        rate = _exact(found.value_gbytes_per_s, _GIGA)
        return BandwidthCeiling(bytes_per_s=rate, kind="achievable", datasheet=rate, source=found.statistic)
    bandwidth = platform.memory.bandwidth
    peak = _exact(bandwidth.datasheet.value_gbytes_per_s, _GIGA)
    if bandwidth.achievable is None:
        return BandwidthCeiling(
            bytes_per_s=peak, kind="datasheet-dense", datasheet=peak, source=bandwidth.datasheet.source
        )
    measured = bandwidth.achievable
    return BandwidthCeiling(
        bytes_per_s=_exact(measured.value_gbytes_per_s, _GIGA),
        kind="achievable",
        datasheet=peak,
        source=f"{measured.source}: {measured.statistic}",
    )


def latency_floor_ns(platform: Platform) -> int:
    """The shortest plausible duration of a kernel in ns."""
    if isinstance(platform, CalibratedFile):
        return platform.latency.value_ns if platform.latency else _LATENCY_NS
    return platform.latency_floor_ns


def last_level_cache_bytes(platform: Platform) -> int | None:
    """Size of the last cache before the device memory (L2 or Infinity Cache), ``None`` if not published."""
    return platform.last_level_cache.bytes if platform.last_level_cache else None


def datasheet_rate(platform: PlatformFile, precision: str, unit: str) -> DatasheetRate | None:
    """The datasheet figure that a measured rate stands beside, borrowed as `compute_ceiling` borrows it."""
    units = [unit, "vector"] if precision in _MATRIX_ON_VECTOR else [unit]
    figures = {(ceiling.precision, ceiling.unit): ceiling.datasheet for ceiling in platform.ceilings}
    return next((sheet for name in units for key, sheet in figures.items() if key == (precision, name)), None)


def _precision(dtype: str) -> str:
    """The precision that rates are listed under: ``float8_e4m3fn`` is ``float8``, ``uint8`` is ``int8``."""
    name = dtype.removeprefix("torch.").lower()
    family = name.partition("_")[0]
    return family if family in _FAMILIES else _PRECISION.get(name, name)


def _find(platform: Platform, precision: str, unit: str) -> ComputeCeiling | MeasuredCeiling | None:
    return next((c for c in platform.ceilings if c.precision == precision and c.unit == unit), None)


def _borrowed(platform: Platform, precision: str, why: str) -> Ceiling | None:
    entry = _find(platform, precision, "vector")
    return None if entry is None else _ceiling(entry, why)


def _ceiling(entry: ComputeCeiling | MeasuredCeiling, why: str | None = None) -> Ceiling:
    if isinstance(entry, MeasuredCeiling):
        rate, source = _exact(entry.achievable.value_tflops, _TERA), entry.achievable.statistic
        return Ceiling(
            flops_per_s=rate, kind="achievable", datasheet=rate, source=f"{source} ({why})" if why else source
        )
    peak = _exact(entry.datasheet.value_tflops, _TERA)
    rate, source = peak, entry.datasheet.source
    kind: CeilingKind = "datasheet-dense"
    if entry.achievable is not None:
        rate, kind = _exact(entry.achievable.value_tflops, _TERA), "achievable"
        source = f"{entry.achievable.source}: {entry.achievable.statistic}"
    return Ceiling(flops_per_s=rate, kind=kind, datasheet=peak, source=f"{source} ({why})" if why else source)


def _exact(value: float, factor: float) -> float:
    """``value * factor`` without the last bit that binary fractions add (66.9e12, not 66900000000000.01)."""
    return float(round(value * factor))
