"""What a check is, how checks are found, and running them in order."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooftrace.contracts import kinds, store
from rooftrace.contracts.evidence import ManifestFile
from rooftrace.contracts.renders import notes_of
from rooftrace.errors import InputError, RooftraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from rooftrace.contracts.compare import ComparisonManifest
    from rooftrace.report.grounding.judge import Handed

# What a check may be about: the run of one trace, a comparison of two.
RUN, COMPARISON = "run", "comparison"
CHECKS: dict[str, type[Check]] = {}


class Check:
    """A rule about one kind of file; a subclass registers itself under its class name."""

    file: str = ""  # the file it is about, relative to the run
    only: tuple[str, ...] = ()  # patterns of the files for which it is worth running; empty: all
    requires: tuple[str, ...] = ()  # codes that must have passed
    about: tuple[str, ...] = (RUN, COMPARISON)

    def __init_subclass__(cls) -> None:
        if cls.__name__ in CHECKS:
            raise ValueError(f"{cls.__name__} is registered by {CHECKS[cls.__name__].__module__} already")
        CHECKS[cls.__name__] = cls

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Yield `place: what is wrong` for each violation."""
        raise NotImplementedError


class Problem(Struct, frozen=True, kw_only=True):
    """One violation of one check."""

    code: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"{self.code} {self.text}: {self.message}"

    def as_dict(self) -> dict[str, str]:
        """The problem for machines."""
        return {"code": self.code, "where": self.text, "message": self.message}


class Result(Struct, frozen=True, kw_only=True):
    """Outcome of checking a run."""

    checks: int
    problems: list[Problem]


class Files(Struct, kw_only=True):
    """The files of a run, read once each and only when a check asks for them."""

    run: Path
    _bytes: dict[str, bytes] = field(default_factory=dict)
    _models: dict[str, BaseModel] = field(default_factory=dict)
    _handed: list[Handed] | None = None
    _noted: tuple[bool, bool] | None = None
    _deliverables: dict[str, bytes] | None = None

    def raw(self, path: str) -> bytes:
        """Content of a file; `InputError` if it is missing."""
        if path not in self._bytes:
            self._bytes[path] = store.read_bytes(self.run / path)
        return self._bytes[path]

    def exists(self, path: str) -> bool:
        """Whether the run has the file."""
        return (self.run / path).is_file()

    def model(self, path: str) -> BaseModel:
        """Checked content of a JSON artifact."""
        if path not in self._models:
            model = store.model_of(self._schema_name(path))
            if model is None:
                raise InputError(f"`{path}` has no schema")
            self._models[path] = store.read_artifact(self.run / path, model)
        return self._models[path]

    def _schema_name(self, path: str) -> str:
        if path == store.MANIFEST and kinds.is_comparison(self.run):
            return "comparison_manifest"
        return store.schema_name_of(path) or ""

    def manifest(self) -> ManifestFile | ComparisonManifest:
        """The manifest of the run, or of the comparison."""
        manifest = self.model(store.MANIFEST)
        if isinstance(manifest, ManifestFile):
            return manifest
        from rooftrace.contracts.compare import ComparisonManifest

        if not isinstance(manifest, ComparisonManifest):
            raise InputError("the manifest has another type")
        return manifest

    def text(self, path: str) -> str:
        """Content of a text artifact; bytes that are no UTF-8 become replacement characters."""
        return self.raw(path).decode("utf-8", "replace")

    def paths(self) -> list[str]:
        """Paths the manifest lists."""
        return [entry.path for entry in self.manifest().files]

    def is_as_rendered(self) -> bool:
        """Whether this very content has been rendered on this machine before."""
        return self._notes()[0]

    def _notes(self) -> tuple[bool, bool]:
        if self._noted is None:
            self._noted = notes_of(self.run, self.raw)
        return self._noted

    def deliverables(self) -> dict[str, bytes]:
        """What the run's evidence and prose render to, by path."""
        if self._deliverables is None:
            self._deliverables = _deliverables_of(self.run)
        return self._deliverables

    def handed(self) -> list[Handed]:
        """Every prose file of the run (or the one given as bytes), with its flaws."""
        if self._handed is None:
            given = [path for path in self._bytes if path.startswith(f"{store.PROSE}/")]
            paths = given or store.prose_files(self.run)
            if not given and paths and self._notes()[1]:
                paths = []  # all of it was found sound when this very report was written
            self._handed = examine_prose(self.run, {path: self.raw(path) for path in paths})
        return self._handed

    def flaws(self, code: str) -> Iterator[str]:
        """Violations of one rule of prose."""
        yield from (str(flaw) for item in self.handed() for flaw in item.flaws if flaw.code == code)


def _deliverables_of(run: Path) -> dict[str, bytes]:
    if kinds.is_comparison(run):
        from rooftrace.report import compare_run

        return compare_run.deliverables(run)
    from rooftrace.report.assemble import deliverables

    return deliverables(run)


def load_checks(about: str | None = None) -> dict[str, type[Check]]:
    """All checks in order of their codes, or those about a run or a comparison."""
    package = importlib.import_module("rooftrace.validators")
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"rooftrace.validators.{module}")
    return {code: check for code, check in sorted(CHECKS.items()) if about is None or about in check.about}


def check_run(run: Path, only: str | None = None) -> Result:
    """Run every check; a check whose requirement failed is left out.

    With `only`, the problems of that file are told, and those that keep any file from being checked.
    """
    files = Files(run=run)
    result, failed = _run(files, only)
    listed = (store.MANIFEST, *files.paths(), *store.prose_files(run)) if "RUN001" not in failed else ()
    if only is not None and listed and only not in listed:
        raise InputError(
            f"`{only}` is no file of the run `{run}`",
            hint=f"Paths are relative to the run's folder: {', '.join(files.paths()[:3])}, …",
        )
    return result


def check_prose(run: Path, analyzer: str, data: bytes) -> Result:
    """Check prose that is not stored yet, as if it stood in the run: what `submit` asks before it writes."""
    path = store.prose_path(analyzer)
    return _run(Files(run=run, _bytes={path: data}), path)[0]


def examine_prose(run: Path, contents: dict[str, bytes]) -> list[Handed]:
    """Prose by path with the flaws of each; the rules and what they need are loaded only for it."""
    if not contents:
        return []
    from rooftrace.report.compare_run import basis_of
    from rooftrace.report.grounding.judge import examine

    grounds = basis_of(run)
    return [examine(path, data, grounds) for path, data in sorted(contents.items())]


def _run(files: Files, only: str | None) -> tuple[Result, set[str]]:
    """The result, and the codes that failed or were left out."""
    problems: list[Problem] = []
    failed: set[str] = set()
    done = 0
    about = COMPARISON if kinds.is_comparison(files.run) else RUN
    for code, check in _in_order(_wanted(load_checks(about), only)):
        if failed & set(check.requires):
            failed.add(code)
            continue
        texts = _texts(check, files)
        done += 1
        if texts:
            failed.add(code)
        problems += [
            Problem(code=code, text=text, message=inspect.cleandoc(check.__doc__ or ""))
            for text in texts
            if only is None or not check.requires or _is_about(text, only)
        ]
    return Result(checks=done, problems=problems), failed


def _wanted(checks: dict[str, type[Check]], only: str | None) -> dict[str, type[Check]]:
    """Checks worth running for one file, with all that they require; all checks where no file is given."""
    if only is None:
        return checks
    own = {code for code, check in checks.items() if any(fnmatchcase(only, pattern) for pattern in check.only)}
    wanted = own if only.startswith(f"{store.PROSE}/") else own | {c for c, check in checks.items() if not check.only}
    for _ in checks:  # what they require, and what that requires
        wanted |= {needed for code in wanted for needed in checks[code].requires}
    return {code: check for code, check in checks.items() if code in wanted}


def _is_about(text: str, path: str) -> bool:
    """Whether a problem's text begins with the file, or with its name where a JSON path follows."""
    return text.startswith((path, f"{path.rsplit('/', 1)[-1]}::"))


def _in_order(checks: dict[str, type[Check]]) -> list[tuple[str, type[Check]]]:
    """Required checks first, else by code."""
    ordered: dict[str, type[Check]] = {}

    def add(code: str) -> None:
        if code in ordered:
            return
        for needed in checks[code].requires:
            add(needed)
        ordered[code] = checks[code]

    for code in checks:
        add(code)
    return list(ordered.items())


def _texts(check: type[Check], files: Files) -> list[str]:
    try:
        return list(check.check(files))
    except RooftraceError as error:
        return list(error.details) or [error.what]
