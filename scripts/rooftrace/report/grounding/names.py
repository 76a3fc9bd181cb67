"""The names of a trace: ops, kernels, modules, frames, steps, files, devices, and its shapes."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts.module_names import module_class
from rooftrace.contracts.redaction import PLACEHOLDER
from rooftrace.report.view import shapes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooftrace.contracts.report import PlatformInfo, ReportFile, TraceInfo
    from rooftrace.report.files import KernelRow

# Names are looked for in their first characters; a name longer than this spells its whole configuration.
NAME_LIMIT = 4_000
_SHOWN = 80  # a longer name is not proposed
_MOST_COMPARED = 1_000  # names, of which likeness is told letter by letter
_DIMS = re.compile(r"[0-9]+(?:x[0-9]+)+")
_LIST = re.compile(r"[\[(]\s*([0-9]+(?:\s*,\s*[0-9]+)+)\s*[\])]")
_FORWARD = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\.forward")
_REPEATED = re.compile(r" \(x[0-9]+\)$")


class Names(Struct, frozen=True, kw_only=True):
    """What the trace names, one name a line, and its recorded shapes."""

    lines: str
    tiled: str  # names of kernels whose name spells a tile
    shapes: frozenset[str]
    products: tuple[str, ...]  # names of GPUs, as the run spells them
    ids: frozenset[str]  # finding and op ids

    def holds(self, text: str) -> bool:
        """Whether the trace has this name, or a name of which it is a whole part; or both around a placeholder."""
        name = text.strip().removesuffix("()").rstrip("…").strip()
        if len(name) < 2 or not re.search(r"[A-Za-z]", name):
            return False
        if self._calls_a_module(name):
            return True
        parts = [part for part in PLACEHOLDER.split(name) if len(part) > 1]
        return bool(parts) and all(_is_part(part, self.lines) for part in parts)

    def _calls_a_module(self, name: str) -> bool:
        """Whether it is the forward call of a module's class: `Linear.forward`, where `Linear_0` is in the trace."""
        found = _FORWARD.fullmatch(name)
        return found is not None and re.search(rf"(?<!\w){found.group(1)}_[0-9]+(?!\w)", self.lines) is not None

    def holds_shape(self, text: str) -> bool:
        """Whether the trace recorded this shape or a part of one, or a kernel's name spells it (a tile)."""
        shape = _REPEATED.sub("", text.strip())  # as a citation writes equal shapes
        found = _LIST.fullmatch(shape)
        dims = re.sub(r"\s*,\s*", "x", found.group(1)) if found else shape
        if not _DIMS.fullmatch(dims):
            return False
        if any(f"x{dims}x" in f"x{shape}x" for shape in self.shapes):
            return True
        return re.search(rf"(?<![0-9x]){dims}(?![0-9x])", self.lines) is not None

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
        lines.update(dict.fromkeys((kernel.name[:NAME_LIMIT], kernel.short, *kernel.owners)))
        if kernel.spells_tile:
            tiled += [kernel.name[:NAME_LIMIT], kernel.short]
    for name in (*_report_names(report), *more):
        lines[name] = None
    return Names(
        lines="\n".join(line.replace("\n", " ") for line in lines if line),
        tiled="\n".join(tiled),
        shapes=frozenset(_shapes(report)),
        products=tuple(sorted(product_names(report.trace, report.platform), key=lambda name: (-len(name), name))),
        ids=frozenset({op.id for op in report.ops} | {f.id for f in [*report.findings, *report.unranked]}),
    )


def _report_names(report: ReportFile) -> Iterator[str]:
    for op in report.ops:
        yield op.name
        yield from (kernel.name[:NAME_LIMIT] for kernel in op.kernels)
        for path in op.modules:
            yield path
            yield ".".join(map(module_class, path.split(".")))  # `GPT.Block.Linear` of `GPT_0.Block_3.Linear_11`
        if op.source:
            yield op.source
    yield from (op.name for op in report.cpu_ops)
    yield from (step.name for step in report.trace.steps)
    yield report.trace.file
    for finding in [*report.findings, *report.unranked]:
        yield from (value for value in finding.evidence.values() if isinstance(value, str))
    yield from product_names(report.trace, report.platform)


def _shapes(report: ReportFile) -> Iterator[str]:
    for op in report.ops:
        yield from shapes_text(op.shapes).split(", ")


def product_names(trace: TraceInfo, platform: PlatformInfo | None) -> set[str]:
    """Names of the GPUs, as the trace and the pack spell them."""
    names = {device.name for device in trace.devices}
    if platform:
        product = platform.product
        names |= {
            product,
            platform.slug,
            *(w for w in re.findall(r"[A-Z]+[0-9]+[A-Za-z0-9]*", product)),
        }
    return {name for name in names if name}


def _is_part(name: str, lines: str) -> bool:
    """Whether `name` stands in `lines` as a whole: a word, several, or segments between underscores."""
    at = lines.find(name)
    while at >= 0:
        before, after = lines[at - 1 : at], lines[at + len(name) : at + len(name) + 1]
        starts = not (before.isalnum() and name[0].isalnum())
        if starts and not (after.isalnum() and name[-1].isalnum()):
            return True
        at = lines.find(name, at + 1)
    return False
