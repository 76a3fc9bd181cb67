"""The file that is written: what ``CalibratedFile`` of the package's contracts describes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rooftrace_calibrate.device import Device
from rooftrace_calibrate.figures import Figure, NoFigure

MEMORY = "memory"
HOST_TO_DEVICE = "host to device"
DEVICE_TO_HOST = "device to host"
LATENCY = "shortest kernel"
_MEMORY_MARGIN = 0.01  # devices of one product differ by what the driver keeps
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Every result by what it is of; that of a ceiling is `precision unit`."""

    device: Device
    slug: str
    datasheet_of: str | None
    date: str
    results: dict[str, Figure | NoFigure]

    def figures(self) -> dict[str, Figure]:
        """Those that have a figure."""
        return {what: found for what, found in self.results.items() if isinstance(found, Figure)}


def slug_of(name: str) -> str:
    """A slug from a device's name."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"{words[:60].strip('-') or 'device'}-calibrated"


def document(calibration: Calibration) -> dict[str, object]:
    """The content of the file; a figure has four significant digits, more than repetitions agree on."""
    device, figures = calibration.device, calibration.figures()
    content: dict[str, object] = {
        "schema_version": "1.0",
        "origin": "calibrated",
        "slug": calibration.slug,
        "names": [device.name],
        "vendor": device.vendor,
        "product": device.name,
        "compute_units": device.units,
        "datasheet_of": calibration.datasheet_of,
        "detect": _detect(device),
        "measured_on": calibration.date,
        "software": device.software,
        "memory": {
            "capacity_bytes": device.memory_bytes,
            "bandwidth": _measured("value_gbytes_per_s", figures[MEMORY]),
        },
        "last_level_cache": _cache(device),
        "links": {
            what.replace(" ", "_"): _measured("value_gbytes_per_s", figures[what])
            for what in (HOST_TO_DEVICE, DEVICE_TO_HOST)
            if what in figures
        },
        "latency": _measured("value_ns", figures[LATENCY]) if LATENCY in figures else None,
        "ceilings": [_ceiling(what, found) for what, found in figures.items() if found.unit == "TFLOP/s"],
        "left_out": [
            {"what": what, "reason": found.reason}
            for what, found in calibration.results.items()
            if isinstance(found, NoFigure)
        ],
    }
    return {key: value for key, value in content.items() if value is not None}


def _ceiling(what: str, found: Figure) -> dict[str, object]:
    precision, unit = what.split(" ")
    return {"precision": precision, "unit": unit, "achievable": _measured("value_tflops", found)}


def _measured(field: str, found: Figure) -> dict[str, object]:
    value: float = float(f"{found.value:.4g}")
    if found.unit == "ns":
        value = max(1, round(found.value))
    return {field: value, "statistic": found.statistic, "spread_pct": found.spread_pct}


def _detect(device: Device) -> dict[str, object] | None:
    if device.capability is None or device.memory_bytes is None:
        return None
    gib = device.memory_bytes / _GIB
    return {
        "compute_capability": ".".join(map(str, device.capability)),
        "num_units": device.units,
        "memory_gib": {"min": round(gib * (1 - _MEMORY_MARGIN), 2), "max": round(gib * (1 + _MEMORY_MARGIN), 2)},
    }


def _cache(device: Device) -> dict[str, object] | None:
    if device.cache_bytes is None:
        return None
    return {"name": "L2", "bytes": device.cache_bytes, "source": f"device properties, {device.software}"}
