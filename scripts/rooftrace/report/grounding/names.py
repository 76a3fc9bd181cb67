"""The names of a trace, and the names that are no trace's: APIs, settings, tools, data types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from typing import TYPE_CHECKING

import orjson

from rooftrace.pack import KNOWLEDGE
from rooftrace.report.view import shapes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooftrace.contracts.report import ReportFile
    from rooftrace.report.files import KernelRow

# Names are looked for in their first characters; a name longer than this spells its whole configuration.
_NAME_LIMIT = 4_000
_SHOWN = 80  # a longer name is not proposed
_MOST_COMPARED = 1_000  # names, of which likeness is told letter by letter
_INSTANCE = re.compile(r"_[0-9]+(?=\.|$)")
_DIMS = re.compile(r"[0-9]+(?:x[0-9]+)+")
_LIST = re.compile(r"[\[(]\s*([0-9]+(?:\s*,\s*[0-9]+)+)\s*[\])]")
DTYPE = re.compile(
    r"(?:b?float|bf|fp|tf|tfloat|u?int|complex|mxfp|nvfp|mxint)_?(?:4|6|8|16|19|32|64|128)(?:_?e[2-5]m[1-5]\w*)?"
    r"|e[2-5]m[1-5]\w*|W[48]A(?:8|16)",
    re.IGNORECASE,
)
_DTYPES_IN_WORDS = ("half", "double", "bool")
# A tool of the list with options and words, no number.
_COMMAND = re.compile(r"([a-z][\w-]*)(?: --?[a-z][\w-]*| [A-Za-z][\w./-]*)*")
_VARIABLE = re.compile(r"([A-Z]+(?:_[A-Z0-9]+)*)(?:=[\w:,.+-]{0,40})?")
_SETTING = re.compile(r"([A-Za-z_][\w.]*)\s*=\s*(.{1,80})")
_FLAG = re.compile(r"--?([a-z][a-z-]*)(?:[ =]([\w./:-]{1,40}))?")
_DOTTED = re.compile(r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CALL = re.compile(r"(\.?[A-Za-z_][\w.]*)\((.{0,120})\)")
_DIGIT = re.compile(r"[0-9]")
_FILE = re.compile(r"(?:evidence|findings|plots|prose|tasks)/[\w.<>-]+|(?:report|manifest|state)\.json|analysis\.md")


@cache
def _listed() -> dict[str, frozenset[str]]:
    """The lists of names that are no trace's, by kind."""
    content = orjson.loads((KNOWLEDGE / "prose_names.json").read_bytes())
    return {kind: frozenset(names) for kind, names in content.items() if kind != "about"}


def layer_names() -> frozenset[str]:
    """Classes of layers that any text may name."""
    return _listed()["layers"]


def _is_variable(name: str) -> bool:
    """Whether it is an environment variable of a known family, alone or with a value."""
    found = _VARIABLE.fullmatch(name)
    return found is not None and any(found.group(1).startswith(f"{word}_") for word in _listed()["variables"])


def _is_command(text: str) -> bool:
    found = _COMMAND.fullmatch(text)
    return found is not None and found.group(1) in _listed()["tools"] and not _DIGIT.search(text)


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the trace names, one name a line, and its recorded shapes."""

    lines: str
    tiled: str  # names of kernels whose name spells a tile
    shapes: frozenset[str]
    products: tuple[str, ...]  # names of GPUs, as the run spells them
    ids: frozenset[str]  # finding and op ids

    def holds(self, text: str) -> bool:
        """Whether the trace has this name, or a name of which it is a whole part."""
        name = text.strip().removesuffix("()").rstrip("…").strip()
        if len(name) < 2 or not re.search(r"[A-Za-z]", name):
            return False
        return _is_part(name, self.lines)

    def holds_shape(self, text: str) -> bool:
        """Whether the trace recorded this shape or a part of one, or a kernel's name spells it (a tile)."""
        found = _LIST.fullmatch(text.strip())
        dims = re.sub(r"\s*,\s*", "x", found.group(1)) if found else text.strip()
        if not _DIMS.fullmatch(dims):
            return False
        if any(f"x{dims}x" in f"x{shape}x" for shape in self.shapes):
            return True
        return re.search(rf"(?<![0-9x]){dims}(?![0-9x])", self.lines) is not None

    def is_api(self, text: str) -> bool:
        """Whether it is written like an API, a setting, a tool, a file of a run or a data type; digits are data."""
        name = text.strip()
        if name in self.ids or name in _listed()["tools"] or DTYPE.fullmatch(name) or _FILE.fullmatch(name):
            return True
        if name in self.known_api or name in _DTYPES_IN_WORDS or _is_variable(name) or _is_command(name):
            return True
        if "::" in name or "_kernel" in name or "<" in name:
            return False  # written like a kernel or an op: only the trace can vouch for it
        return self._is_python(name)

    def _is_python(self, name: str) -> bool:
        setting = _SETTING.fullmatch(name)
        if setting:
            return self._is_setting(setting.group(1), setting.group(2))
        call = _CALL.fullmatch(name)
        if call:
            parts = [part.strip() for part in call.group(2).split(",")]
            named = [found for part in parts if (found := _SETTING.fullmatch(part))]
            bare = [part for part in parts if not _SETTING.fullmatch(part)]
            return not any(map(_DIGIT.search, [call.group(1), *bare])) and all(
                self._is_setting(found.group(1), found.group(2)) for found in named
            )
        flag = _FLAG.fullmatch(name)
        if flag:
            return self._is_setting(flag.group(1).replace("-", "_"), flag.group(2) or "")
        dotted = _DOTTED.fullmatch(name)
        return bool(dotted) and not _DIGIT.search(name) and (name[0] == "." or name.split(".")[0] in _listed()["roots"])

    @staticmethod
    def _is_setting(name: str, value: str) -> bool:
        """A setting whose value is a word, or one of those whose value is a whole number."""
        if not _DIGIT.search(DTYPE.sub("", value)):
            return True
        return name.rpartition(".")[2] in _listed()["number_settings"] and value.strip().isdigit()

    @cached_property
    def known_api(self) -> frozenset[str]:
        """Pieces of code that the knowledge base itself writes, read when they are first needed."""
        spans: set[str] = set()
        for path in sorted((KNOWLEDGE / "patterns").glob("*/*.json")):
            content = orjson.loads(path.read_bytes())
            for field in ("title", "insight", "action", "reasoning", "resolution", "verify", "cannot_see"):
                spans.update(re.findall(r"`([^`{]+)`", content.get(field) or ""))
        words = {word for span in spans for word in re.findall(r"[A-Za-z_]\w*", span) if not _DIGIT.search(word)}
        return frozenset(spans | words | _listed()["apis"])

    def nearest(self, text: str) -> list[str]:
        """Up to three names of the trace that are like `text`, else those that share its longest word."""
        lines = sorted({line for line in self.lines.split("\n") if len(line) <= _SHOWN})
        close = get_close_matches(text[:_SHOWN], lines[:_MOST_COMPARED], n=3, cutoff=0.6)
        if close:
            return close
        for word in sorted(re.findall(r"[A-Za-z]{3,}", text), key=lambda word: (-len(word), word))[:4]:
            found = [line for line in lines if word.lower() in line.lower()]
            if found:
                return sorted(found, key=lambda line: (len(line), line))[:3]
        return []


def collect_names(report: ReportFile, kernels: Iterable[KernelRow], more: Iterable[str] = ()) -> Names:
    """Names of ops, kernels, modules, frames, steps, files and devices, and `more`."""
    lines: dict[str, None] = {}
    tiled: list[str] = []
    for kernel in kernels:
        lines.update(dict.fromkeys((kernel.name[:_NAME_LIMIT], kernel.short, *kernel.owners)))
        if kernel.spells_tile:
            tiled += [kernel.name[:_NAME_LIMIT], kernel.short]
    for name in (*_report_names(report), *more):
        lines[name] = None
    return Names(
        lines="\n".join(line.replace("\n", " ") for line in lines if line),
        tiled="\n".join(tiled),
        shapes=frozenset(_shapes(report)),
        products=tuple(sorted(_products(report), key=lambda name: (-len(name), name))),
        ids=frozenset({op.id for op in report.ops} | {f.id for f in [*report.findings, *report.unranked]}),
    )


def _report_names(report: ReportFile) -> Iterator[str]:
    for op in report.ops:
        yield op.name
        yield from (kernel.name[:_NAME_LIMIT] for kernel in op.kernels)
        for path in op.modules:
            yield path
            yield _INSTANCE.sub("", path)  # `GPT.Block.Linear` of `GPT_0.Block_3.Linear_11`
        if op.source:
            yield op.source
    yield from (op.name for op in report.cpu_ops)
    yield from (step.name for step in report.trace.steps)
    yield report.trace.file
    for finding in [*report.findings, *report.unranked]:
        yield from (value for value in finding.evidence.values() if isinstance(value, str))
    yield from _products(report)


def _shapes(report: ReportFile) -> Iterator[str]:
    for op in report.ops:
        yield from shapes_text(op.shapes).split(", ")


def _products(report: ReportFile) -> set[str]:
    names = {device.name for device in report.trace.devices}
    if report.platform:
        product = report.platform.product
        names |= {
            product,
            report.platform.slug,
            *(w for w in re.findall(r"[A-Z]+[0-9]+[A-Za-z0-9]*", product)),
        }
    return {name for name in names if name}


def _is_part(name: str, lines: str) -> bool:
    """Whether `name` stands in `lines` as a whole word, or as several."""
    at = lines.find(name)
    while at >= 0:
        before, after = lines[at - 1 : at], lines[at + len(name) : at + len(name) + 1]
        starts = not (before and _is_word(before) and _is_word(name[0]))
        if starts and not (after and _is_word(after) and _is_word(name[-1])):
            return True
        at = lines.find(name, at + 1)
    return False


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"
