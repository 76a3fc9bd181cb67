"""A command's input: a trace, prepared on the spot, or the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.kinds import is_comparison
from rooftrace.errors import InputError, UsageError

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from rooftrace.platforms import Platform
    from rooftrace.workflow.prepare import Prepared


def is_run(path: Path) -> bool:
    """Whether it is the folder of a run; `InputError` if it cannot be looked into."""
    try:
        return path.is_dir() and (path / store.MANIFEST).is_file()
    except OSError as error:
        raise InputError(f"cannot read `{path}`: {error.strerror}", hint="Check its permissions") from None


def run_folder(source: str, *, takes_comparisons: bool = False) -> Path | None:
    """The folder if the source is one; `InputError` if it is a folder but no run, or a comparison where none fits."""
    path = Path(source)
    if is_run(path):
        if is_comparison(path) and not takes_comparisons:
            raise InputError(
                f"`{path}` is a comparison of two traces",
                hint="`next`, `submit`, `report` and `check` take it; for this, give one of its traces",
            )
        return path
    if path.is_dir():
        raise InputError(
            f"`{path}` is a directory and not a run",
            hint="Give a trace file, or a folder that `analyze` wrote",
        )
    return None


def refuse_choices(options: argparse.Namespace, *names: str) -> None:
    """`UsageError` if an option was given that a finished run cannot follow any more."""
    for name in names:
        if getattr(options, name.replace("-", "_")) is not None:
            raise UsageError(
                f"--{name} needs a trace; `{options.source}` is a run, analysed already",
                hint=f"Leave --{name} out, or give the trace file",
            )


def own_platform(options: argparse.Namespace) -> Platform | None:
    """The platform of `--platform-file`, checked before a long trace is read."""
    if options.platform_file is None:
        return None
    if options.platform is not None:
        raise UsageError("--platform and --platform-file cannot be given together", hint="Give one of them")
    from rooftrace.platforms.user import load_platform_file

    return load_platform_file(Path(options.platform_file))


def own_models(options: argparse.Namespace) -> AbstractContextManager[None]:
    """While it lasts, the models of the files that `--models` names hold: it runs them."""
    from rooftrace.opmodels.user import user_models

    return user_models(Path(name) for name in options.models or ())


def prepare_trace(
    source: str, *, platform: str | None = None, own: Platform | None = None, steps: str | None = None
) -> Prepared:
    """A trace, read and analysed as far as the tables need."""
    from rooftrace.platforms import load_platform
    from rooftrace.trace import load
    from rooftrace.workflow.options import AnalyzeOptions
    from rooftrace.workflow.prepare import prepare_workload

    if platform is not None:
        load_platform(platform)  # an unknown one is told before a long file is read
    trace, _ = load(Path(source))
    return prepare_workload(trace, AnalyzeOptions(platform=platform, own_platform=own, steps=steps))
