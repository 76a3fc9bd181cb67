"""What a platform file says twice, and whether both agree: the rule for the pack's files and a user's.

Each problem is the place in the file and what is wrong there, as ``$.memory.bandwidth.datasheet: …``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.contracts.platform import ComputeCeiling, PlatformFile

TOLERANCE = 0.02
_TOLERANCE_ROUNDED = 0.03  # where the document's own rounding takes the product further away
_LEAST_REPORTED = 0.89  # of the nominal capacity: error correction and the driver's reserve take up to 10 %
_MOST_REPORTED = 1.01


def agrees(value: float, product: float, rounded_to: float | None = None) -> bool:
    """Within 2 %; or, where a rounding step is stated, further but rounding to the value and within 3 %."""
    off = abs(product - value) / value
    if off <= TOLERANCE:
        return rounded_to is None
    return rounded_to is not None and off <= _TOLERANCE_ROUNDED and abs(product - value) <= rounded_to / 2


def problems(platform: PlatformFile) -> list[str]:
    """Every contradiction in a file, in its order; empty for a sound one."""
    found: list[str] = []
    for index, ceiling in enumerate(platform.ceilings):
        found += [f"$.ceilings[{index}].{problem}" for problem in _ceiling_problems(platform, ceiling)]
    found += _bandwidth_problems(platform)
    for name, link in sorted(platform.links.items()):
        product = link.product.links * link.product.gbytes_per_s_each
        if not agrees(link.gbytes_per_s, product):
            factors = f"{link.product.links} links x {link.product.gbytes_per_s_each:g} GB/s"
            found.append(f"$.links.{name}: {_apart(link.gbytes_per_s, product, 'GB/s', factors)}")
    return found + list(_file_problems(platform))


def _ceiling_problems(platform: PlatformFile, ceiling: ComputeCeiling) -> Iterator[str]:
    sheet, factors = ceiling.datasheet, ceiling.datasheet.product
    product = factors.units * factors.per_clock * factors.clock_ghz / 1000
    if not agrees(sheet.value_tflops, product, sheet.rounded_to_tflops):
        text = f"{factors.units} units x {factors.per_clock} a clock x {factors.clock_ghz:g} GHz"
        yield f"datasheet: {_apart(sheet.value_tflops, product, 'TFLOP/s', text, sheet.rounded_to_tflops)}"
    if factors.units != platform.compute_units:
        yield f"datasheet.product.units: {factors.units}, but the device has {platform.compute_units} compute_units"
    measured = ceiling.achievable
    if measured and measured.value_tflops >= sheet.value_tflops:
        yield f"achievable.value_tflops: {measured.value_tflops:g} is not below the datasheet's {sheet.value_tflops:g}"


def _bandwidth_problems(platform: PlatformFile) -> Iterator[str]:
    sheet, measured = platform.memory.bandwidth.datasheet, platform.memory.bandwidth.achievable
    product = sheet.product.bus_bits * sheet.product.rate_gbps / 8
    value, step = sheet.value_gbytes_per_s, sheet.rounded_to_gbytes_per_s
    if not agrees(value, product, step):
        factors = f"{sheet.product.bus_bits} bit x {sheet.product.rate_gbps:g} Gbit/s / 8"
        yield f"$.memory.bandwidth.datasheet: {_apart(value, product, 'GB/s', factors, step)}"
    if measured and measured.value_gbytes_per_s >= value:
        yield (
            f"$.memory.bandwidth.achievable.value_gbytes_per_s: {measured.value_gbytes_per_s:g} "
            f"is not below the datasheet's {value:g}"
        )


def _file_problems(platform: PlatformFile) -> Iterator[str]:
    """What concerns the file as a whole."""
    keys = Counter((ceiling.precision, ceiling.unit) for ceiling in platform.ceilings)
    for (precision, unit), count in sorted(keys.items()):
        if count > 1:
            yield f"$.ceilings: {precision} {unit} stands {count} times"
    if platform.detect.num_units != platform.compute_units:
        yield f"$.detect.num_units: {platform.detect.num_units}, but compute_units says {platform.compute_units}"
    gib, reported = platform.memory.capacity_bytes / 2**30, platform.detect.memory_gib
    if not _LEAST_REPORTED * gib <= reported.min < reported.max <= _MOST_REPORTED * gib:
        yield (
            f"$.detect.memory_gib: {reported.min:g} to {reported.max:g} is not a range from {_LEAST_REPORTED:.0%} "
            f"to {_MOST_REPORTED:.0%} of the {gib:g} GiB of memory.capacity_bytes"
        )
    clocks = [c.datasheet.product.clock_ghz for c in platform.ceilings if c.datasheet.product.clock_basis == "implied"]
    if len(set(clocks)) > 1:
        yield f"$.ceilings: {len(set(clocks))} different implied clocks; one has to explain every rate without its own"


def _apart(value: float, product: float, unit: str, factors: str, rounded_to: float | None = None) -> str:
    """Why two entries do not agree, with both figures."""
    both = f"{value:g} {unit} published, {product:.4g} computed ({factors})"
    if rounded_to is None:
        return f"{both}: more than 2 % apart"
    if abs(product - value) / value <= TOLERANCE:
        return f"{both}: within 2 %, so no rounding step is to be stated"
    return f"{both}: not explained by rounding to {rounded_to:g}"
