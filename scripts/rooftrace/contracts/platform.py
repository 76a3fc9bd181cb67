"""``knowledge/platforms/<slug>.json``: a GPU as a profiler shows it, every ceiling entered twice.

Each figure stands as a document publishes it and as the product it must equal: units x operations per clock
x clock, bus width x data rate, links x rate of one. Only dense figures have a place here.

What ``calibrate`` measured on one machine is a file of another form, ``CalibratedFile``: measurements alone, each
with its statistic and spread. The pack holds none.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rooftrace.contracts.base import Record

Precision = Literal["float64", "float32", "tfloat32", "float16", "bfloat16", "float8", "int8", "float6", "float4"]
Unit = Literal["matrix", "vector"]

_DATE = r"^\d{4}-\d{2}-\d{2}$"
_SOURCE = "Title of the document the figure comes from, with page, table or section where it has one."
_ACCESSED = "Date (YYYY-MM-DD) on which the figure was looked up."


class ComputeProduct(Record):
    """What a peak rate must equal: units x per_clock x clock."""

    units: int = Field(gt=0, description="SMs or CUs of the device.")
    per_clock: int = Field(gt=0, description="Dense FLOPs (a multiply-add is 2) of one unit in one clock.")
    clock_ghz: float = Field(gt=0, description="Clock in GHz that the published figure uses.")
    clock_basis: Literal["published", "implied"] = Field(
        default="published",
        description="`implied` where the vendor publishes the rate but no clock for it: one clock then has "
        "to explain every such rate of the device, so that the rates still check each other.",
    )


class DatasheetRate(Record):
    """A dense peak rate, entered twice."""

    value_tflops: float = Field(gt=0, description="Dense peak in 10^12 operations per second, as published.")
    product: ComputeProduct = Field(description="The same figure from its factors; within 2 % of the value.")
    rounded_to_tflops: float | None = Field(
        default=None,
        gt=0,
        description="Step to which the document rounds, only where that alone takes the product further than "
        "2 % away (13 for 12.7: 1); the product must then round to the value.",
    )
    source: str = Field(min_length=1, description=_SOURCE)
    accessed: str = Field(pattern=_DATE, description=_ACCESSED)


class AchievableRate(Record):
    """The best rate that somebody measured and published."""

    value_tflops: float = Field(gt=0, description="Measured rate in 10^12 operations per second.")
    statistic: str = Field(min_length=1, description="What it is: of which runs and shapes, mean or maximum.")
    source: str = Field(min_length=1, description=_SOURCE)
    accessed: str = Field(pattern=_DATE, description=_ACCESSED)


class ComputeCeiling(Record):
    """The limits of one precision on one kind of unit."""

    precision: Precision = Field(
        description="Type of the inputs in PyTorch's words; every 8-bit float is `float8`, 4-bit `float4`."
    )
    unit: Unit = Field(description="`matrix`: tensor or matrix cores with float32 accumulation; else `vector`.")
    datasheet: DatasheetRate = Field(description="The published dense peak.")
    achievable: AchievableRate | None = Field(
        default=None, description="A published measurement; absent where none is known, never estimated."
    )


class MemoryProduct(Record):
    """What a memory bandwidth must equal: bus width x data rate / 8."""

    bus_bits: int = Field(gt=0, description="Width of the enabled memory interface in bits.")
    rate_gbps: float = Field(gt=0, description="Data rate of one pin in Gbit/s.")


class DatasheetBandwidth(Record):
    """A peak memory bandwidth, entered twice."""

    value_gbytes_per_s: float = Field(gt=0, description="Peak in 10^9 bytes per second, as published.")
    product: MemoryProduct = Field(description="The same figure from its factors; within 2 % of the value.")
    rounded_to_gbytes_per_s: float | None = Field(
        default=None,
        gt=0,
        description="Step to which the document rounds, only where that alone takes the product further than "
        "2 % away (8 TB/s for 8.192: 1000); the product must then round to the value.",
    )
    source: str = Field(min_length=1, description=_SOURCE)
    accessed: str = Field(pattern=_DATE, description=_ACCESSED)


class AchievableBandwidth(Record):
    """The best bandwidth that somebody measured and published."""

    value_gbytes_per_s: float = Field(gt=0, description="Measured bandwidth in 10^9 bytes per second.")
    statistic: str = Field(min_length=1, description="Which benchmark and which of its figures.")
    source: str = Field(min_length=1, description=_SOURCE)
    accessed: str = Field(pattern=_DATE, description=_ACCESSED)


class Bandwidth(Record):
    """The limits of the device memory."""

    datasheet: DatasheetBandwidth = Field(description="The published peak.")
    achievable: AchievableBandwidth | None = Field(
        default=None, description="A published measurement; absent where none is known, never estimated."
    )


class Memory(Record):
    """The device memory."""

    kind: str = Field(min_length=1, description="Technology, such as HBM3 or GDDR6X.")
    capacity_bytes: int = Field(
        gt=0, description="Nominal capacity in bytes; a GB of memory in a product name is 2^30."
    )
    bandwidth: Bandwidth = Field(description="Peak and, where published, measured bandwidth.")


class LastLevelCache(Record):
    """The last cache before the device memory."""

    name: Literal["L2", "Infinity Cache"] = Field(description="Which cache that is.")
    bytes: int = Field(gt=0, description="Its size in bytes.")
    source: str = Field(min_length=1, description=_SOURCE)


class LinkProduct(Record):
    """What a link bandwidth must equal: links x rate of one."""

    links: int = Field(gt=0, description="Links (or PCIe lanes) of the device.")
    gbytes_per_s_each: float = Field(gt=0, description="10^9 bytes per second of one, in one direction.")


class Link(Record):
    """A connection to other devices or to the host, in one direction."""

    gbytes_per_s: float = Field(
        gt=0,
        description="All links in one direction, in 10^9 bytes per second (half of a duplex figure).",
    )
    product: LinkProduct = Field(description="The same figure from its factors; within 2 % of the value.")
    source: str = Field(min_length=1, description=_SOURCE)
    accessed: str = Field(pattern=_DATE, description=_ACCESSED)


class MemoryRange(Record):
    """The memory sizes that devices of one product report, in GiB (2^30 bytes)."""

    min: float = Field(gt=0, description="Lowest, with error correction and driver reserve taken off.")
    max: float = Field(gt=0, description="Highest.")


class Detect(Record):
    """What a trace's device properties say of this product."""

    compute_capability: str = Field(
        pattern=r"^\d+\.\d+$",
        description="computeMajor.computeMinor; AMD puts its gfx version there (gfx942: 9.4).",
    )
    num_units: int = Field(gt=0, description="numSms: SMs, or CUs of the one device that the profiler shows.")
    memory_gib: MemoryRange = Field(description="totalGlobalMem divided by 2^30.")


class PlatformFile(Record):
    """A GPU: how traces name it and what it can do at most."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    slug: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="The file's name without `.json`.")
    names: list[str] = Field(
        min_length=1, description="Device names as profilers spell them; no name stands in two files."
    )
    vendor: Literal["nvidia", "amd"] = Field(description="Who makes the GPU.")
    product: str = Field(min_length=1, description="Product name for reports; says where a device is one die.")
    architecture: str = Field(min_length=1, description="Architecture, such as Hopper or CDNA 3.")
    compute_units: int = Field(gt=0, description="SMs or CUs, as the profiler reports them in numSms.")
    clock_ghz: float = Field(gt=0, description="Clock in GHz that the published matrix rates use.")
    detect: Detect = Field(description="Properties by which a device without a known name is recognised.")
    memory: Memory = Field(description="Device memory.")
    last_level_cache: LastLevelCache | None = Field(
        default=None, description="Working sets that fit here need not move through the device memory."
    )
    links: dict[str, Link] = Field(
        default_factory=dict, description="Connections by name (`pcie`, `nvlink`, `xgmi`), where documented."
    )
    latency_floor_ns: int = Field(
        default=2000,
        gt=0,
        description="Shortest plausible kernel in ns; the default is a rule of thumb.",
    )
    ceilings: list[ComputeCeiling] = Field(min_length=1, description="Compute limits by precision and unit.")


_SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_STATISTIC = "Which figure of which runs: shape, number of batches, what one run does."


class Measured(Record):
    """How a measurement was taken and how far its batches lie apart."""

    statistic: str = Field(min_length=1, description=_STATISTIC)
    spread_pct: float = Field(
        ge=0,
        le=20,
        description="Interquartile range of the batches in per cent of their median; more than 20 is refused.",
    )


class MeasuredRate(Measured):
    """A rate that was measured."""

    value_tflops: float = Field(gt=0, description="Median rate in 10^12 operations per second.")


class MeasuredBandwidth(Measured):
    """A bandwidth that was measured."""

    value_gbytes_per_s: float = Field(gt=0, description="Median bandwidth in 10^9 bytes per second.")


class MeasuredTime(Measured):
    """A duration that was measured."""

    value_ns: int = Field(gt=0, description="Median duration in ns.")


class MeasuredCeiling(Record):
    """The measured limit of one precision on one kind of unit."""

    precision: Precision = Field(description="As in a platform file.")
    unit: Unit = Field(description="`matrix`: a matrix product, whatever executes it; `vector`: multiply-adds.")
    achievable: MeasuredRate = Field(description="The best rate found.")


class MeasuredMemory(Record):
    """The memory as it was measured."""

    capacity_bytes: int | None = Field(default=None, gt=0, description="Bytes that the device reports.")
    bandwidth: MeasuredBandwidth = Field(description="Reads and writes of a copy together.")


class MeasuredLinks(Record):
    """Copies between host and device from and to pinned memory."""

    host_to_device: MeasuredBandwidth | None = Field(default=None, description="Towards the device.")
    device_to_host: MeasuredBandwidth | None = Field(default=None, description="Towards the host.")


class LeftOut(Record):
    """A measurement that has no figure in the file."""

    what: str = Field(min_length=1, description="What was to be measured.")
    reason: str = Field(min_length=1, description="Why there is no figure.")


class CalibratedFile(Record):
    """What `calibrate` measured on one device: no figure without a measurement."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    origin: Literal["calibrated"] = Field(description="Tells this form from a platform file.")
    slug: str = Field(pattern=_SLUG, description="Name of the platform in reports.")
    names: list[str] = Field(min_length=1, description="Device names as profilers spell them.")
    vendor: Literal["nvidia", "amd", "cpu"] = Field(description="Who makes the GPU; `cpu` for the host processor.")
    product: str = Field(min_length=1, description="Product name for reports.")
    compute_units: int = Field(gt=0, description="SMs or CUs; of a CPU, the threads used.")
    datasheet_of: str | None = Field(
        default=None,
        pattern=_SLUG,
        description="Platform of the pack that this device is; its datasheet figures stand beside the measurements, "
        "and what was not measured is taken from it. Absent for a device that the pack does not know.",
    )
    detect: Detect | None = Field(default=None, description="Properties of the device, absent for a CPU.")
    measured_on: str = Field(pattern=_DATE, description="Date of the measurement (YYYY-MM-DD).")
    software: str = Field(min_length=1, description="Versions of torch and of the runtime that measured.")
    memory: MeasuredMemory = Field(description="Device memory.")
    last_level_cache: LastLevelCache | None = Field(default=None, description="As in a platform file.")
    links: MeasuredLinks = Field(default_factory=MeasuredLinks, description="The link to the host, each way.")
    latency: MeasuredTime | None = Field(default=None, description="The shortest kernel found.")
    ceilings: list[MeasuredCeiling] = Field(min_length=1, description="Measured limits by precision and unit.")
    left_out: list[LeftOut] = Field(default_factory=list, description="What was refused or cannot run here, and why.")
