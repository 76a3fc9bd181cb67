"""Which platform a device of a trace is, from the name and the properties that the profiler recorded.

A known name decides; properties decide where the name is missing or unknown and only one platform has them.
Whatever is doubtful becomes a warning, and no platform is ever chosen by resemblance.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from msgspec import Struct

from rooftrace.platforms.catalogue import Platform, load_platforms

_GIB = 2**30

How = Literal["name", "properties", "none"]


class DeviceFacts(Struct, frozen=True, kw_only=True):
    """A device as ``deviceProperties`` of a trace describes it; ``None`` for what the trace leaves out."""

    name: str
    compute_major: int | None = None
    compute_minor: int | None = None
    num_units: int | None = None
    memory_bytes: int | None = None


class Detection(Struct, frozen=True, kw_only=True):
    """The platform found and how; ``warning`` gives a contradiction, or the reason why there is none."""

    platform: Platform | None
    how: How
    warning: str | None = None


def detect(device: DeviceFacts) -> Detection:
    """The platform of a device: by its exact name, else by its properties where they fit only one."""
    named = _platform_by_name().get(_key(device.name))
    if named is None:
        return _detect_by_properties(device)
    contradictions = _contradictions(named, device)
    warning = f"`{device.name}` is {named.slug}, but the trace reports {_listed(contradictions)}"
    return Detection(platform=named, how="name", warning=warning if contradictions else None)


def _detect_by_properties(device: DeviceFacts) -> Detection:
    has_name = bool(device.name.strip())
    unnamed = f"no platform is named `{device.name}`" if has_name else "the device has no name"
    missing = _missing(device)
    if missing:
        return _undetected(f"{unnamed}, and the trace does not report {_listed(missing)}")
    fitting = [platform for platform in load_platforms() if not _contradictions(platform, device)]
    if not fitting:
        return _undetected(f"{unnamed}, and none has {_properties(device)}")
    if len(fitting) > 1:
        slugs = _listed([platform.slug for platform in fitting])
        return _undetected(f"{unnamed}, and its properties fit {slugs} alike")
    guess = f"{unnamed}; taken for {fitting[0].slug}, the only one with {_properties(device)}"
    return Detection(platform=fitting[0], how="properties", warning=guess if has_name else None)


def _undetected(reason: str) -> Detection:
    return Detection(platform=None, how="none", warning=reason)


def mismatch(platform: Platform, device: DeviceFacts) -> str | None:
    """Why a platform chosen by hand is not the trace's device, ``None`` where nothing speaks against it.

    The names of the platform itself come first: a file of the user's may be of a device that the pack knows too.
    """
    named = _platform_by_name().get(_key(device.name))
    is_own = _key(device.name) in map(_key, platform.names)
    if named is not None and named.slug != platform.slug and not is_own:
        return f"the trace was recorded on `{device.name}`, which is {named.slug}, not {platform.slug}"
    contradictions = _contradictions(platform, device)
    if contradictions:
        return f"the trace's device is not {platform.slug}: it reports {_listed(contradictions)}"
    return None


@cache
def _platform_by_name() -> dict[str, Platform]:
    return {_key(name): platform for platform in load_platforms() for name in platform.names}


def _key(name: str) -> str:
    """A name without case and spaces, which profilers and drivers spell differently."""
    return "".join(name.lower().split())


def _capability(device: DeviceFacts) -> str | None:
    if device.compute_major is None or device.compute_minor is None:
        return None
    return f"{device.compute_major}.{device.compute_minor}"


def _contradictions(platform: Platform, device: DeviceFacts) -> list[str]:
    """Every reported property that differs from the platform's, with both values."""
    found: list[str] = []
    expected = platform.detect
    if expected is None:  # a CPU has none of these properties
        return found
    capability = _capability(device)
    if capability not in (None, expected.compute_capability):
        found.append(f"compute capability {capability} instead of {expected.compute_capability}")
    if device.num_units not in (None, expected.num_units):
        found.append(f"{device.num_units} units instead of {expected.num_units}")
    if device.memory_bytes is not None:
        gib, allowed = device.memory_bytes / _GIB, expected.memory_gib
        if not allowed.min <= gib <= allowed.max:
            found.append(f"{gib:.1f} GiB of memory instead of {allowed.min:g} to {allowed.max:g}")
    return found


def _missing(device: DeviceFacts) -> list[str]:
    facts = {
        "compute capability": _capability(device),
        "number of units": device.num_units,
        "memory": device.memory_bytes,
    }
    return [what for what, value in facts.items() if value is None]


def _properties(device: DeviceFacts) -> str:
    gib = (device.memory_bytes or 0) / _GIB
    return f"compute capability {_capability(device)}, {device.num_units} units and {gib:.1f} GiB"


def _listed(parts: list[str]) -> str:
    """The parts as a phrase: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)
