"""``calibrate``: from the arguments to a platform file that the analysis accepts.

stdout gets the path written; what was found, and what was left out and why, goes to stderr as it is found.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from rooftrace.errors import CheckFailed, EnvironmentMissing, InternalError, RooftraceError, UsageError
from rooftrace.pack import KNOWLEDGE
from rooftrace_calibrate import known, products, transfers, units
from rooftrace_calibrate.device import Device, open_device
from rooftrace_calibrate.document import (
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    LATENCY,
    MEMORY,
    Calibration,
    document,
    slug_of,
)
from rooftrace_calibrate.figures import Figure, Limit, NoFigure, believed
from rooftrace_calibrate.timing import FULL, QUICK

PLATFORMS = KNOWLEDGE / "platforms"
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_EXAMPLE = "/path/to/your/python scripts/rooftrace.py calibrate -o my_gpu.json"
_DESCRIPTION = """Measure what this machine's GPU can do and write a platform file.

reads:  nothing; it runs on the GPU, a few minutes (--quick: less than one), with the torch of this Python
writes: FILE.json, for `analyze TRACE --platform-file FILE.json`; prints its path
"""


class _Parser(argparse.ArgumentParser):
    """argparse with this program's form of errors."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong instead of printing it."""
        raise UsageError(message, hint=f"Run `{self.prog} --help`")


def main(arguments: Sequence[str], read_back: Sequence[str]) -> int:
    """Measure and write; ``read_back`` and a path are the command that checks a platform file."""
    try:
        options = _parser().parse_args(arguments)
        output = Path(options.output)
        _check_options(output, options.slug)
        device = open_device(_torch(), options.device)
        calibration = _calibrate(device, options.slug, quick=options.quick)
        _write(output, document(calibration), read_back)
    except SystemExit as done:  # argparse has printed the help
        return int(done.code or 0)
    except RooftraceError as error:
        _say(str(error))
        return error.exit_code
    sys.stdout.write(f"{output}\n")
    return 0


def _parser() -> _Parser:
    parser = _Parser(
        prog="rooftrace.py calibrate",
        description=_DESCRIPTION,
        epilog=f"example:\n  {_EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", required=True, help="the file to write", metavar="FILE.json")
    parser.add_argument("--slug", help="name of the platform in reports (default: from the device's)", metavar="NAME")
    parser.add_argument("--device", help="`cuda:1`, `cpu` (default: the first GPU)", metavar="DEVICE")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and shorter batches")
    return parser


def _check_options(output: Path, slug: str | None) -> None:
    """Told before minutes of measuring."""
    if output.suffix.lower() != ".json":
        raise UsageError(f"`{output}` is no name of a JSON file", hint="Give one that ends in .json with -o")
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
        raise UsageError(f"cannot write in `{output.parent}`", hint="Give a file in a folder of yours with -o")
    if output.exists() and not _is_calibration(output):
        raise UsageError(
            f"`{output}` exists and is no file of `calibrate`; nothing was written", hint="Give another name with -o"
        )
    if slug is not None and not _SLUG.fullmatch(slug):
        raise UsageError(f"`{slug}` is no slug", hint="Use small letters, digits and single hyphens: my-gpu")
    if slug in known.slugs(PLATFORMS):
        raise UsageError(f"`{slug}` is a platform of the pack", hint="Give another name with --slug")


def _is_calibration(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("origin") == "calibrated"


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:  # OSError: a library that it needs is missing
        raise EnvironmentMissing(
            f"torch cannot be imported by `{sys.executable}`: {products.first_line(error)}",
            hint=f"Run it with the Python that you train with: `{_EXAMPLE}`",
        ) from None


def _calibrate(device: Device, slug: str | None, *, quick: bool) -> Calibration:
    """Every result, told as it comes."""
    found = known.find(PLATFORMS, device.name, device.units) if device.is_gpu else None
    _say(f"measuring {device.name} ({device.place}) with {device.software}")
    _say(f"held against the datasheet figures of {found.slug}" if found else "the pack has no datasheet figures of it")
    effort = QUICK if quick else FULL
    results: dict[str, Figure | NoFigure] = {}

    def keep(what: str, result: Figure | NoFigure, limit: Limit | None = None) -> None:
        results[what] = believed(result, limit)
        _tell(what, results[what])

    keep(MEMORY, transfers.copy_bandwidth(device, effort, quick=quick), found.limit_of_memory() if found else None)
    _refuse_without(MEMORY, results)
    for precision in products.PRECISIONS:
        keep(*_rate(precision, "matrix", products.measure(device, precision, effort, quick=quick), found))
    for precision in units.PRECISIONS:
        product = results[f"{precision} matrix"]
        keep(*_rate(precision, "vector", units.measure(device, precision, effort, product), found))
    _refuse_without("TFLOP/s", results)
    for what in (HOST_TO_DEVICE, DEVICE_TO_HOST):
        copied = transfers.link_bandwidth(device, effort, to_device=what == HOST_TO_DEVICE)
        keep(what, copied, found.limit_of_link() if found else None)
    keep(LATENCY, transfers.shortest_kernel(device))
    return Calibration(
        device=device,
        slug=slug or slug_of(device.name),
        datasheet_of=found.slug if found else None,
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        results=results,
    )


def _refuse_without(needed: str, results: dict[str, Figure | NoFigure]) -> None:
    """A platform has a bandwidth and at least one rate; without them there is nothing to write."""
    if any(isinstance(found, Figure) and needed in (what, found.unit) for what, found in results.items()):
        return
    raise CheckFailed(
        f"the {'bandwidth' if needed == MEMORY else 'rates'} of this device could not be measured; nothing was written",
        details=[f"{what}: {found.reason}" for what, found in results.items() if isinstance(found, NoFigure)],
        hint="Run it again while nothing else uses the device",
    )


def _rate(
    precision: str, unit: str, result: Figure | NoFigure, found: known.Known | None
) -> tuple[str, Figure | NoFigure, Limit | None]:
    """A rate with its limit; of a device that the pack knows, one without a datasheet figure is left out."""
    limit = found.limit_of_rate(precision, unit) if found else None
    if found is not None and limit is None and isinstance(result, Figure):
        result = NoFigure(
            reason=f"{found.slug} has no datasheet figure to hold {result.value:.4g} {result.unit} against"
        )
    return f"{precision} {unit}", result, limit


def _tell(what: str, result: Figure | NoFigure) -> None:
    if isinstance(result, NoFigure):
        _say(f"{what}: left out: {result.reason}")
    else:
        _say(f"{what}: {result.value:.4g} {result.unit}, spread {result.spread_pct:g} % ({result.statistic})")


def _write(output: Path, content: dict[str, object], read_back: Sequence[str]) -> None:
    """Write what the analysis accepts; under another name until it has."""
    draft = output.with_name(f".{output.stem}.{os.getpid()}.json")
    try:
        draft.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        command = [*read_back, str(draft)]
        checked = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)  # noqa: S603
        if checked.returncode == EnvironmentMissing.exit_code:
            _say("not read back, since the analysis has no environment here; `--platform-file` checks it")
        elif checked.returncode:
            raise InternalError(
                f"what was measured makes no sound platform file; nothing was written\n{checked.stderr.strip()}",
                hint="Please report it with these lines",
            )
        draft.replace(output)
    except OSError as error:
        raise UsageError(f"cannot write `{output}`: {error.strerror}", hint="Give another file with -o") from None
    finally:
        draft.unlink(missing_ok=True)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
