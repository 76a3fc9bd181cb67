"""What the pack says of the device at hand: the datasheet figures that a measurement cannot exceed.

Reads the platform files as plain JSON, since the contracts need packages that this interpreter may lack.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooftrace_calibrate.figures import MOST_ABOVE_DATASHEET, Limit

if TYPE_CHECKING:
    from pathlib import Path

_ON_VECTOR = ("float32", "float64")  # their products run on the vector units where there is no matrix rate


@dataclass(frozen=True, kw_only=True)
class Known:
    """A platform of the pack: TFLOP/s by precision and unit, GB/s of the memory and of one direction of PCIe."""

    slug: str
    rates: dict[tuple[str, str], float]
    bandwidth: float
    pcie: float | None

    def limit_of_rate(self, precision: str, unit: str) -> Limit | None:
        """The datasheet's rate, for a product without one its vector rate; ``None`` where there is neither."""
        peak = self.rates.get((precision, unit))
        if peak is None and precision in _ON_VECTOR:
            peak = self.rates.get((precision, "vector"))
        return None if peak is None else Limit(value=peak, margin=MOST_ABOVE_DATASHEET, of=self.slug)

    def limit_of_memory(self) -> Limit:
        """The datasheet's bandwidth."""
        return Limit(value=self.bandwidth, margin=1, of=self.slug)

    def limit_of_link(self) -> Limit | None:
        """The documented rate of one direction."""
        return None if self.pcie is None else Limit(value=self.pcie, margin=1, of=self.slug)


def slugs(folder: Path) -> set[str]:
    """The names that the pack's platforms have."""
    return {path.stem for path in folder.glob("*.json")}


def find(folder: Path, name: str, units: int) -> Known | None:
    """The platform that lists this device name; a partition of it, which has fewer units, is none."""
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if _key(name) in map(_key, content["names"]) and units == content["compute_units"]:
            return Known(
                slug=content["slug"],
                rates={(c["precision"], c["unit"]): c["datasheet"]["value_tflops"] for c in content["ceilings"]},
                bandwidth=content["memory"]["bandwidth"]["datasheet"]["value_gbytes_per_s"],
                pcie=content.get("links", {}).get("pcie", {}).get("gbytes_per_s"),
            )
    return None


def _key(name: str) -> str:
    """A name without case and spaces, as detection compares them."""
    return "".join(name.lower().split())
