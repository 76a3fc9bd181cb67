"""A platform from a file of the user's: written by hand like those of the pack, or by ``calibrate``.

Both are checked when they are loaded, a hand-written one by the rule of the pack's own files. A problem is a usage
error that names the place in the file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from rooftrace.contracts.platform import (
    AchievableBandwidth,
    AchievableRate,
    CalibratedFile,
    ComputeCeiling,
    MeasuredCeiling,
    PlatformFile,
)
from rooftrace.contracts.store import json_path
from rooftrace.errors import InputError, UsageError
from rooftrace.platforms import double_entry
from rooftrace.platforms.catalogue import load_platform, platform_slugs
from rooftrace.platforms.ceilings import datasheet_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rooftrace.platforms.catalogue import Platform

_Form = TypeVar("_Form", PlatformFile, CalibratedFile)

MOST_ABOVE_DATASHEET = 1.05  # a boost clock above the datasheet's explains that much, nothing more
_MAX_PROBLEMS = 20
_HINT_PLATFORM = "Take the form of `rooftrace platforms h100-sxm`; every datasheet figure stands twice in it"
_HINT_CALIBRATED = "Run `calibrate` again; its file is generated and not to be edited"


def load_platform_file(path: Path) -> Platform:
    """The platform of a file; `InputError` if it cannot be read, `UsageError` with JSON paths if it is not sound."""
    data = _read(path)
    if _is_calibrated(data):
        return _merged(path, _validated(path, data, CalibratedFile, _HINT_CALIBRATED))
    platform = _validated(path, data, PlatformFile, _HINT_PLATFORM)
    problems = [*_slug_problems(platform.slug), *double_entry.problems(platform)]
    if problems:
        raise _unsound(path, problems, _HINT_PLATFORM)
    return platform


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"`{path}` is not a file", hint="Give the path of a platform file (JSON)")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read `{path}`: {error.strerror}", hint="Give the path of a platform file") from None


def _is_calibrated(data: bytes) -> bool:
    """Whether the file says so; of what is no JSON, the check of a platform file tells."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "origin" in content


def _validated(path: Path, data: bytes, form: type[_Form], hint: str) -> _Form:
    try:
        return form.model_validate_json(data, strict=True)  # as the schema: text is no number
    except ValidationError as error:
        problems = [f"{json_path(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False)]
        raise _unsound(path, problems, hint) from None


def _unsound(path: Path, problems: Sequence[str], hint: str) -> UsageError:
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    details = [f"{path.name}::{problem}" for problem in problems[:_MAX_PROBLEMS]]
    return UsageError(f"`{path}` is not a sound platform file: {count}", details=details, hint=hint)


def _slug_problems(slug: str) -> list[str]:
    return [f"$.slug: `{slug}` is a platform of the pack; take another"] if slug in platform_slugs() else []


def _merged(path: Path, measured: CalibratedFile) -> Platform:
    """The measurements, laid over the pack's figures where the pack knows the device."""
    problems = _slug_problems(measured.slug)
    if measured.datasheet_of is None:
        if problems:
            raise _unsound(path, problems, _HINT_CALIBRATED)
        return measured
    if measured.datasheet_of not in platform_slugs():
        problems.append(f"$.datasheet_of: the pack has no platform `{measured.datasheet_of}`")
        raise _unsound(path, problems, _HINT_CALIBRATED)
    known = load_platform(measured.datasheet_of)
    problems += _above_datasheet(known, measured)
    if problems:
        raise _unsound(path, problems, _HINT_CALIBRATED)
    return _overlaid(known, measured)


def _above_datasheet(known: PlatformFile, measured: CalibratedFile) -> Iterator[str]:
    """Measurements that no clock explains, and those without a figure to hold them against."""
    for index, ceiling in enumerate(measured.ceilings):
        sheet, rate = datasheet_rate(known, ceiling.precision, ceiling.unit), ceiling.achievable.value_tflops
        where = f"$.ceilings[{index}]"
        if sheet is None:
            yield f"{where}: {known.slug} has no datasheet figure for {ceiling.precision} {ceiling.unit}"
        elif rate > MOST_ABOVE_DATASHEET * sheet.value_tflops:
            yield f"{where}.achievable: {rate:g} TFLOP/s is above the datasheet's {sheet.value_tflops:g}"
    bandwidth = measured.memory.bandwidth.value_gbytes_per_s
    peak = known.memory.bandwidth.datasheet.value_gbytes_per_s
    if bandwidth > peak:
        yield f"$.memory.bandwidth: {bandwidth:g} GB/s is above the datasheet's {peak:g}"


def _overlaid(known: PlatformFile, measured: CalibratedFile) -> PlatformFile:
    """A platform of the pack under the file's slug and names, with its measurements as what is achievable."""
    rates = {(ceiling.precision, ceiling.unit): ceiling for ceiling in measured.ceilings}
    ceilings = [
        ceiling.model_copy(update={"achievable": _rate(measured, rates.pop((ceiling.precision, ceiling.unit)))})
        if (ceiling.precision, ceiling.unit) in rates
        else ceiling
        for ceiling in known.ceilings
    ]
    for (precision, unit), ceiling in rates.items():
        sheet = datasheet_rate(known, precision, unit)
        if sheet is not None:  # checked before
            achievable = _rate(measured, ceiling)
            ceilings.append(ComputeCeiling(precision=precision, unit=unit, datasheet=sheet, achievable=achievable))
    bandwidth = measured.memory.bandwidth
    achieved = AchievableBandwidth(
        value_gbytes_per_s=bandwidth.value_gbytes_per_s,
        statistic=_statistic(bandwidth.statistic, bandwidth.spread_pct),
        source=_source(measured),
        accessed=measured.measured_on,
    )
    memory = known.memory.model_copy(
        update={"bandwidth": known.memory.bandwidth.model_copy(update={"achievable": achieved})}
    )
    return known.model_copy(
        update={
            "slug": measured.slug,
            "names": sorted({*known.names, *measured.names}),
            "memory": memory,
            "latency_floor_ns": measured.latency.value_ns if measured.latency else known.latency_floor_ns,
            "ceilings": ceilings,
        }
    )


def _rate(measured: CalibratedFile, ceiling: MeasuredCeiling) -> AchievableRate:
    rate = ceiling.achievable
    return AchievableRate(
        value_tflops=rate.value_tflops,
        statistic=_statistic(rate.statistic, rate.spread_pct),
        source=_source(measured),
        accessed=measured.measured_on,
    )


def _source(measured: CalibratedFile) -> str:
    return f"measured on this device by `calibrate` with {measured.software}"


def _statistic(text: str, spread_pct: float) -> str:
    return f"{text}; spread {spread_pct:g} %"
