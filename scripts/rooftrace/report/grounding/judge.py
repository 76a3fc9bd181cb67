"""Reads the prose of a run and decides, finding by finding, whether its words or the pack's own are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooftrace.contracts import store
from rooftrace.errors import CheckFailed, InputError
from rooftrace.report.grounding.grounds import Slot
from rooftrace.report.slots import SlotText

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.contracts.prose import FindingProse, ModelProse, Prose
    from rooftrace.report.grounding.grounds import Basis


class Flaw(Struct, frozen=True, kw_only=True):
    """One violation: the code of its rule, the place in the prose file, what is wrong and how to mend it."""

    code: str
    where: str  # `prose/gemm.json::$.findings[0].insight`
    what: str
    subject: str | None = None  # finding id, `summary`, or None for the whole file

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class Handed(Struct, frozen=True, kw_only=True):
    """The prose handed in for one analyzer, and its flaws. `prose` is None where it could not be read."""

    analyzer: str
    prose: Prose | None
    flaws: list[Flaw]

    def flaws_of(self, subject: str) -> list[Flaw]:
        """Flaws that keep a finding's words (or the summary) out of the report."""
        return [flaw for flaw in self.flaws if flaw.subject in (None, subject)]


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one analyzer's prose."""

    analyzer: str
    used: int  # findings whose words are the writer's
    fell_back: tuple[str, ...]  # finding ids (or `summary`) that keep the pack's own words
    codes: tuple[str, ...]  # why, as codes of checks; empty where nothing was handed in

    @property
    def is_used(self) -> bool:
        """Whether any of it is in the report."""
        return bool(self.used) or not self.fell_back


class Chosen(Struct, frozen=True, kw_only=True):
    """The words that enter the report, and what became of each analyzer's prose (nothing where none was asked)."""

    findings: dict[str, FindingProse] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    model: ModelProse | None = None
    outcomes: tuple[Outcome, ...] = ()


def examine(path: str, data: bytes, grounds: Basis) -> Handed:
    """The prose in a file's content, with every flaw that any rule finds."""
    from rooftrace.contracts.prose import parse_prose

    analyzer = path.removeprefix(f"{store.PROSE}/").removesuffix(".json")
    try:
        prose = parse_prose(path, data)
    except CheckFailed as error:
        return Handed(analyzer=analyzer, prose=None, flaws=[_unreadable(line) for line in error.details])
    flaws = [*_misplaced(path, analyzer, prose, grounds), *_findings_flaws(path, analyzer, prose, grounds)]
    flaws += _slot_flaws(path, analyzer, prose, grounds)
    return Handed(analyzer=analyzer, prose=prose, flaws=flaws)


def _unreadable(line: str) -> Flaw:
    return Flaw(code="PROSE001", where="", what=line)


def _misplaced(path: str, analyzer: str, prose: Prose, grounds: Basis) -> Iterator[Flaw]:
    """Prose of another analyzer, or about evidence that is no longer the run's."""
    if prose.analyzer != analyzer:
        yield Flaw(code="PROSE003", where=f"{path}::$.analyzer", what=f"`{prose.analyzer}` in the file of `{analyzer}`")
    evidence = grounds.run / store.evidence_path(analyzer)
    if analyzer != store.MODEL and analyzer not in grounds.summaries:
        active = ", ".join(sorted(grounds.summaries)) or "none"
        yield Flaw(code="PROSE003", where=path, what=f"the run has no analyzer `{analyzer}`; it has: {active}")
    elif prose.evidence_sha256 is not None:
        try:
            actual = store.sha256(store.read_bytes(evidence))
        except InputError:
            actual = ""
        if actual != prose.evidence_sha256:
            what = "it is about evidence that has changed since; write it anew"
            yield Flaw(code="PROSE003", where=f"{path}::$.evidence_sha256", what=what)


def _findings_flaws(path: str, analyzer: str, prose: Prose, grounds: Basis) -> Iterator[Flaw]:
    """Findings that the evidence does not have, that come twice, or that were asked for and are missing."""
    if prose.analyzer == store.MODEL:
        return
    known = [finding.id for finding in grounds.findings_of(analyzer)]
    written = [item.id for item in _findings(prose)]
    for at, name in enumerate(written):
        if name not in known:
            listed = ", ".join(known) or "none"
            where = f"{path}::$.findings[{at}].id"
            yield Flaw(code="PROSE002", where=where, subject=name, what=f"`{name}` is no finding; there are: {listed}")
        elif name in written[:at]:
            yield Flaw(
                code="PROSE002", where=f"{path}::$.findings[{at}].id", subject=name, what=f"`{name}` comes twice"
            )
    for name in grounds.asked_of(analyzer):
        if name not in written:
            yield Flaw(code="PROSE002", where=f"{path}::$.findings", subject=name, what=f"`{name}` has no entry")


def _slot_flaws(path: str, analyzer: str, prose: Prose, grounds: Basis) -> Iterator[Flaw]:
    from rooftrace.report.grounding.rules import RULES

    for subject, slot in slots_of(path, analyzer, prose, grounds):
        for code, rule in RULES.items():
            for what in rule(slot, grounds):
                yield Flaw(code=code, where=slot.where, what=what, subject=subject)


def slots_of(path: str, analyzer: str, prose: Prose, grounds: Basis) -> Iterator[tuple[str, Slot]]:
    """Every text of a prose file with what it is about: a finding's id, or `summary`."""
    from rooftrace.contracts.prose import SLOTS, SUMMARY, ModelProse

    texts = ("name", "family", "reasoning", SUMMARY) if isinstance(prose, ModelProse) else (SUMMARY,)
    for name in texts:
        text = SlotText(raw=getattr(prose, name))
        yield SUMMARY, Slot(where=f"{path}::$.{name}", name=name, analyzer=analyzer, text=text)
    for at, item in enumerate(_findings(prose)):
        for name in SLOTS:
            raw = getattr(item, name)
            if raw is not None:
                yield (
                    item.id,
                    Slot(
                        where=f"{path}::$.findings[{at}].{name}",
                        name=name,
                        analyzer=analyzer,
                        text=SlotText(raw=raw),
                        finding=grounds.findings.get(item.id),
                    ),
                )


def _findings(prose: Prose) -> list[FindingProse]:
    found: list[FindingProse] = getattr(prose, "findings", [])
    return found


def choose(handed: list[Handed], grounds: Basis, *, is_asked: bool) -> Chosen:
    """The words to use. `is_asked`: the run was prepared for prose, so that what is missing is told."""
    by_name = {item.analyzer: item for item in handed}
    if not by_name and not is_asked:
        return Chosen()
    findings: dict[str, FindingProse] = {}
    summaries: dict[str, str] = {}
    outcomes: list[Outcome] = []
    for analyzer in sorted(grounds.summaries):
        item = by_name.get(analyzer, Handed(analyzer=analyzer, prose=None, flaws=[]))
        used = _usable(item)
        findings |= used
        if item.prose is not None and not item.flaws_of("summary"):
            summaries[analyzer] = item.prose.summary
        asked = grounds.asked_of(analyzer)
        refused = {flaw.subject for flaw in item.flaws}
        known = [finding.id for finding in grounds.findings_of(analyzer)]
        kept = [name for name in known if name not in used and (name in asked or name in refused)]
        kept += [] if analyzer in summaries else ["summary"]
        outcomes.append(Outcome(analyzer=analyzer, used=len(used), fell_back=tuple(kept), codes=_codes(item.flaws)))
    model = by_name.get(store.MODEL)
    if model:
        good = model.prose is not None and not model.flaws
        outcomes.append(
            Outcome(
                analyzer=store.MODEL,
                used=int(good),
                fell_back=() if good else (store.MODEL,),
                codes=_codes(model.flaws),
            )
        )
    return Chosen(findings=findings, summaries=summaries, model=_model(model), outcomes=tuple(outcomes))


def _usable(item: Handed) -> dict[str, FindingProse]:
    if item.prose is None:
        return {}
    return {entry.id: entry for entry in _findings(item.prose) if not item.flaws_of(entry.id)}


def _codes(flaws: list[Flaw]) -> tuple[str, ...]:
    return tuple(sorted({flaw.code for flaw in flaws}))


def _model(item: Handed | None) -> ModelProse | None:
    from rooftrace.contracts.prose import ModelProse

    return item.prose if item and isinstance(item.prose, ModelProse) and not item.flaws else None
