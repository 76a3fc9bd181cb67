"""``python -m benchmarks.pattern_report``: how often each knowledge pattern fires, and where.

It runs the analyzers over every trace of the shared folder, over the corpora of planted problems and fusions (some of
the problems by default, ``--corpus all`` takes minutes) and over the scenes that tests hold for patterns which nothing
else shows. *First* is of findings that the pattern writes. The last lines list patterns that fire nowhere. Nothing here
asserts a number.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]

from evals.corpus.cases import cases, short  # noqa: E402 - found only now
from evals.workshop.fusions.corpus import cases as fusions  # noqa: E402
from evals.workshop.fusions.corpus import planted  # noqa: E402
from evals.workshop.plants.truth import Run  # noqa: E402
from rooftrace.errors import RooftraceError  # noqa: E402
from rooftrace.pack import KNOWLEDGE  # noqa: E402
from rooftrace.patterns import load_patterns  # noqa: E402
from rooftrace.trace import load  # noqa: E402
from rooftrace.workflow import AnalyzeOptions  # noqa: E402
from rooftrace.workflow.findings import find_and_score  # noqa: E402
from rooftrace.workflow.prepare import prepare_workload  # noqa: E402
from tests.patterns.scenes import SCENES  # noqa: E402

_SHOWN = 3
_SOURCES = ("traces", "corpus", "scenes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pattern: findings in which it holds and which it writes, and the traces of each source in which it does."""

    analyzer: str
    pattern: str
    findings: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    traces: dict[str, list[str]] = field(default_factory=lambda: {source: [] for source in _SOURCES})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pattern_report", description=main.__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="default: every trace of the shared folder")
    parser.add_argument("--corpus", choices=("short", "all", "none"), default="short", help="planted problems")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = measure(options.traces or sorted(TRACES.rglob("*.json.gz")), options.corpus)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'analyzer':14}{'pattern':32}{'findings':>9}{'first':>7}{'traces':>8}{'corpus':>8}{'scenes':>8}  where")
    for row in rows:
        print(_line(row))
    silent = [f"{row.analyzer}/{row.pattern}" for row in rows if not row.findings]
    print(f"\n{len(rows)} patterns, {len(silent)} fire nowhere: {', '.join(silent) or 'none'}")
    print(f"only in a scene: {', '.join(_only_in_scenes(rows)) or 'none'}")


def measure(traces: list[Path], corpus: str) -> list[Row]:
    """One row a pattern, in order of analyzer and id."""
    folders = sorted(path.name for path in (KNOWLEDGE / "patterns").iterdir() if path.is_dir())
    rows = {(name, one.id): Row(analyzer=name, pattern=one.id) for name in folders for one in load_patterns(name)}
    for source, name, found in _analysed(traces, corpus):
        for analyzer, identity, patterns in found:
            for place, pattern in enumerate(patterns):
                row = rows[analyzer, pattern]
                row.findings.append(f"{name} {identity}")
                row.first.extend([f"{name} {identity}"] if place == 0 else [])
                if name not in row.traces[source]:
                    row.traces[source].append(name)
    return [rows[key] for key in sorted(rows)]


Found = list[tuple[str, str, list[str]]]


def _analysed(traces: list[Path], corpus: str) -> Iterator[tuple[str, str, Found]]:
    """Source, name and findings of each trace, one after the other."""
    for path in traces:
        below = path.relative_to(TRACES) if path.is_relative_to(TRACES) else Path(path.name)
        yield "traces", str(below).removesuffix(".json.gz"), _findings(path)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "trace.json"
        for case in {"short": short, "all": cases, "none": tuple}[corpus]():
            written.write_text(Run(case).trace(), encoding="utf-8")
            yield "corpus", case.name, _findings(written)
        for fusion in () if corpus == "none" else fusions():
            written.write_bytes(planted(fusion).trace)
            yield "corpus", f"{fusion.family}: {fusion.name}", _findings(written)
        for (analyzer, pattern), scene in SCENES.items():
            scene().write(written, "plain")
            yield "scenes", f"{analyzer}/{pattern}", _findings(written)


def _findings(path: Path) -> Found:
    try:
        columns, _ = load(path)
        results = find_and_score(prepare_workload(columns, AnalyzeOptions()).workload)
    except RooftraceError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return []
    return [(name, one.id, list(one.patterns)) for name, found in results.findings.items() for one in found]


def _only_in_scenes(rows: list[Row]) -> list[str]:
    return [
        f"{row.analyzer}/{row.pattern}"
        for row in rows
        if row.traces["scenes"] and not row.traces["traces"] and not row.traces["corpus"]
    ]


def _line(row: Row) -> str:
    counts = "".join(f"{len(row.traces[source]):>8}" for source in _SOURCES)
    where = [name for source in _SOURCES for name in row.traces[source]]
    more = f" and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
    return (
        f"{row.analyzer:14}{row.pattern:32}{len(row.findings):>9}{len(row.first):>7}{counts}  "
        f"{', '.join(where[:_SHOWN])}{more}"
    )


if __name__ == "__main__":
    main()
