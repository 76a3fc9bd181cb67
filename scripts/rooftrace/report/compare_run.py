"""From the evidence of a comparison to its deliverables, and to what prose about it is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.contracts import kinds, store
from rooftrace.contracts.compare import CompareEvidence
from rooftrace.report.assemble import open_grounds
from rooftrace.report.compare_page import render_compare
from rooftrace.report.compare_told import with_words
from rooftrace.report.grounding.pair import PairGrounds

if TYPE_CHECKING:
    from pathlib import Path

    from rooftrace.report.grounding.grounds import Basis
    from rooftrace.report.grounding.judge import Chosen


def basis_of(run: Path) -> Basis:
    """What prose in a folder is held against, be it the run of one trace or a comparison."""
    return open_pair(run) if kinds.is_comparison(run) else open_grounds(run)


def open_pair(run: Path) -> PairGrounds:
    """A comparison, as the rules on prose ask for it."""
    return PairGrounds(run=run, result=store.read_artifact(run / store.COMPARE_EVIDENCE, CompareEvidence))


def deliverables(run: Path) -> dict[str, bytes]:
    """Content of ``compare.json`` and ``compare.md``, as the evidence and sound prose give them."""
    grounds = open_pair(run)
    chosen = _chosen(run, grounds)
    told = with_words(grounds.result, chosen, grounds.values)
    page = render_compare(grounds.result, told, chosen)
    return {store.COMPARE: store.to_json(told), kinds.COMPARISON_PAGE: page.encode()}


def _chosen(run: Path, grounds: PairGrounds) -> Chosen | None:
    paths = store.prose_files(run)
    is_asked = (run / store.STATE).is_file()
    if not paths and not is_asked:
        return None
    from rooftrace.report.grounding.judge import choose, examine

    handed = [examine(path, store.read_bytes(run / path), grounds) for path in paths]
    return choose(handed, grounds, is_asked=is_asked)


def write(run: Path) -> list[str]:
    """Write the deliverables; returns their relative paths, sorted."""
    from rooftrace.report.notice import open_words, with_notice

    files = deliverables(run)
    page = files[kinds.COMPARISON_PAGE].decode()
    files[kinds.COMPARISON_PAGE] = with_notice(page, open_words(run)).encode()
    store.write_files(run, files)
    return sorted(files)
