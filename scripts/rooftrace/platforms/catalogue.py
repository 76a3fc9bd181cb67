"""The GPUs of ``knowledge/platforms``, read once."""

from __future__ import annotations

from functools import cache

from rooftrace.contracts.platform import CalibratedFile, PlatformFile
from rooftrace.errors import unknown_name
from rooftrace.pack import KNOWLEDGE

# A file of the pack or of the same form, or what `calibrate` measured on a device that the pack does not know.
Platform = PlatformFile | CalibratedFile

FOLDER = KNOWLEDGE / "platforms"


@cache
def platform_slugs() -> tuple[str, ...]:
    """The slugs of all platforms, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


@cache
def load_platforms() -> tuple[PlatformFile, ...]:
    """All platforms, sorted by slug."""
    return tuple(load_platform(slug) for slug in platform_slugs())


@cache
def load_platform(slug: str) -> PlatformFile:
    """The platform of that slug, in any case; an unknown one is a usage error that names the nearest."""
    wanted = slug.lower()
    if wanted not in platform_slugs():
        raise unknown_name("platform", slug, platform_slugs())
    return PlatformFile.model_validate_json((FOLDER / f"{wanted}.json").read_bytes())
