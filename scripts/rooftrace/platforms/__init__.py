"""GPUs: their ceilings with sources, and which of them a trace was recorded on."""

from __future__ import annotations

from rooftrace.platforms.catalogue import Platform, load_platform, load_platforms, platform_slugs
from rooftrace.platforms.ceilings import (
    BandwidthCeiling,
    Ceiling,
    CeilingKind,
    bandwidth_ceiling,
    compute_ceiling,
    last_level_cache_bytes,
    latency_floor_ns,
)
from rooftrace.platforms.detection import Detection, DeviceFacts, detect, mismatch

__all__ = [
    "BandwidthCeiling",
    "Ceiling",
    "CeilingKind",
    "Detection",
    "DeviceFacts",
    "Platform",
    "bandwidth_ceiling",
    "compute_ceiling",
    "detect",
    "last_level_cache_bytes",
    "latency_floor_ns",
    "load_platform",
    "load_platforms",
    "mismatch",
    "platform_slugs",
]
