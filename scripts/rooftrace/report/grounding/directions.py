"""Words of change in a comparison: which side takes longer, launches more, comes closer to its GPU's limit.

A claim is a word such as `slower` in a sentence that leaves no doubt which side it is about: the target, unless the
base, or the GPU that only one side ran on, is named as its subject. What it is about is the finding of the slot, or
what the sentence cites. Sentences that say both, speak of what would be, or of single calls are let pass.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from rooftrace.contracts.kinds import COMPARE
from rooftrace.report.compare_parts import cause_words
from rooftrace.report.grounding.wording import Wording
from rooftrace.report.values import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import CompareFinding
    from rooftrace.report.grounding.grounds import AnyFinding, Basis, Slot

_JUDGED = ("insight", "reasoning", "summary")
_OPEN = Wording(
    r"\b(?:would|could|should|may|might|if|unless|whether|until|each|per|a (?:single )?(?:call|launch))\b", ("",)
)
_TAKEN_BACK = re.compile(r"\b(?:not|no|never|neither|nor|isn't|aren't|without|nothing)\b[^,;:]{0,20}$", re.IGNORECASE)
_SLOWER = Wording(
    r"\bslow(?:er|est|ed down|down)\b|\bregress(?:ed|es|ions?)\b|\bworse\b|\bmore time\b|(?<!no )(?<!any )\blonger\b",
    ("slow", "regress", "worse", "more time", "longer"),
)
_FASTER = Wording(
    r"\bfast(?:er|est)\b|\bsped up\b|\bspeed-?ups?\b|\bimprove(?:d|ments?)\b|\bless time\b|\bshorter\b|\bquicker\b",
    ("fast", "sped", "speed", "improve", "less time", "shorter", "quicker"),
)
# What says the same of either side: `regression` is always the target's.
_OF_THE_TARGET = ("regress", "improve", "speed")
_VERB = r"(?:is|was|runs|ran|takes|took|becomes|became|gets|got|has become|has got)"
_MORE_LAUNCHES = Wording(r"\bmore (?:\w+ )?launches\b", ("launches",))
_FEWER_LAUNCHES = Wording(r"\b(?:fewer|less) (?:\w+ )?launches\b", ("launches",))
_MORE_EFFICIENT = Wording(
    r"\bmore efficient\b|\bhigher efficiency\b|\bcloser to (?:its|the) (?:own )?(?:roofline|limit|ceiling|floor)\b",
    ("efficien", "closer"),
)
_LESS_EFFICIENT = Wording(
    r"\bless efficient\b|\blower efficiency\b|\bfurther from (?:its|the) (?:own )?(?:roofline|limit|ceiling|floor)\b",
    ("efficien", "further"),
)
_OTHER_KERNEL = Wording(r"\b(?:another|a different|different) kernels?\b", ("kernel",))
_SAME_KERNEL = Wording(r"\bsame kernels?\b", ("same kernel",))
_OTHER_PRECISION = Wording(
    r"\b(?:another|different|lower|higher|reduced) (?:precision|element type|data type)\b", ("precision", "type")
)
_BEYOND_NOISE = Wording(
    r"\b(?:beyond|outside|above) (?:the |all )?noise\b|\bstatistically significant\b", ("noise", "statistic")
)
# Causes under which kernels, or element types, are known to be the same on both sides.
_SAME_KERNELS = ("slower_kernel", "clock_or_power")
_SAME_PRECISION = (*_SAME_KERNELS, "different_kernel", "lost_overlap")


class _Sides(Struct, frozen=True, kw_only=True):
    """How the two sides are called, as alternatives of a pattern."""

    base: str
    target: str

    @property
    def either(self) -> str:
        """Both."""
        return f"{self.base}|{self.target}"

    def is_base(self, name: str) -> bool:
        """Whether it names the base."""
        return re.fullmatch(self.base, name, re.IGNORECASE) is not None


def contradicted_changes(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Words of change against the evidence of a comparison; nothing for the run of one trace."""
    values = grounds.values
    if slot.name not in _JUDGED or f"{COMPARE}.base_ms" not in values:
        return
    sides = _sides(values)
    for sentence in slot.text.sentences:
        words = slot.text.spelled(sentence)
        if _OPEN.search(words):
            continue
        yield from _whole(words, values, sides, is_summary=slot.finding is None)
        subject = _subject(slot, slot.text.parts_in(sentence, "cite"), values)
        if subject is not None:
            yield from _times(words, subject, values, sides)
        if slot.finding is not None:
            yield from _details(words, slot.finding, sides)


def _sides(values: Mapping[str, EvidenceValue]) -> _Sides:
    """`base` and `target`, and what only one side's GPU is called."""
    words = [
        set(re.findall(r"[A-Z]+[0-9]+[A-Za-z0-9]*", str(values.get(f"{COMPARE}.{side}_gpu_name", ""))))
        for side in ("base", "target")
    ]
    names = [
        "|".join(["base" if at == 0 else "target", *sorted(re.escape(word) for word in words[at] - words[1 - at])])
        for at in (0, 1)
    ]
    return _Sides(base=names[0], target=names[1])


def _subject(slot: Slot, cited: list[str], values: Mapping[str, EvidenceValue]) -> str | None:
    """Prefix of the ids of what a sentence is about, where that is one thing: what it cites, else the finding."""
    cited_of = {_owner(name) for name in cited if name in values} - {COMPARE}
    if slot.finding is not None and not cited_of - {slot.finding.id}:
        return slot.finding.id
    return cited_of.pop() if len(cited_of) == 1 else None


def _owner(name: str) -> str:
    """`compare.F1` of `compare.F1.m2.base_ms`, `compare.T1.gemm` of `compare.T1.gemm.base_ms`, else `compare`."""
    parts = name.split(".")
    if len(parts) > 3 and parts[1] in ("T1", "T2"):
        return ".".join(parts[:3])
    return ".".join(parts[:2]) if len(parts) > 2 else COMPARE


def _times(words: str, subject: str, values: Mapping[str, EvidenceValue], sides: _Sides) -> Iterator[str]:
    """Faster and slower, of one thing."""
    ours, theirs = values.get(f"{subject}.base_ms"), values.get(f"{subject}.target_ms")
    if not isinstance(ours, int | float) or not isinstance(theirs, int | float) or ours == theirs:
        return
    said = _contradicted(words, (_SLOWER, _FASTER), theirs - ours, sides)
    if said:
        shown = [format_value("time_ms", value) for value in (ours, theirs)]
        yield (
            f"“{said}”, but `{subject}` takes {shown[0]} in the base and {shown[1]} in the target: "
            "turn it round, or name the side it is true of"
        )


def _whole(words: str, values: Mapping[str, EvidenceValue], sides: _Sides, *, is_summary: bool) -> Iterator[str]:
    """What is said of the two runs as such; in a finding's words they stand for what the finding is about."""
    whole = rf"\b(?:{sides.either}|(?:whole )?run|step|it)\b(?: (?:run|trace|side))? {_VERB} (?:\w+ ){{0,2}}?"
    for wording in (_SLOWER, _FASTER):
        found = re.search(rf"{whole}(?:{wording.pattern})", words, re.IGNORECASE)
        if found is None:
            continue
        if values.get(f"{COMPARE}.verdict") == "not comparable":
            yield f"“{found.group()}”, but these are two different workloads: neither is faster or slower"
            return
        ours, theirs = (float(values[f"{COMPARE}.{side}_ms"]) for side in ("base", "target"))
        is_named = re.match(rf"(?:{sides.either})\b", found.group(), re.IGNORECASE) is not None
        is_wrong = _contradicted(words[: found.end()], (_SLOWER, _FASTER), theirs - ours, sides) is not None
        if is_summary and is_named and is_wrong:
            shown = [format_value("time_ms", value) for value in (ours, theirs)]
            yield f"“{found.group()}”, but the base takes {shown[0]} and the target {shown[1]}"


def _contradicted(words: str, more_less: tuple[Wording, Wording], growth: float, sides: _Sides) -> str | None:
    """The word that says the opposite of `growth` (target less base); None where nothing is clearly wrong."""
    claims = [
        (polarity * turn, match.group())
        for polarity, wording in zip((1, -1), more_less, strict=True)
        for match in wording.matches(words)
        if not _TAKEN_BACK.search(words[: match.start()])
        for turn in (_side(words, match, sides),)
    ]
    signs = {sign for sign, _ in claims}
    if len(signs) != 1 or 0 in signs:
        return None
    return claims[0][1] if growth * signs.pop() <= 0 else None


def _side(words: str, match: re.Match[str], sides: _Sides) -> int:
    """1 where a word of change is about the target, -1 about the base, 0 where that is not clear."""
    if match.group().lower().startswith(_OF_THE_TARGET):
        return 1
    after = words[match.end() :]
    than = re.match(rf"[^,;:]{{0,60}}?\bthan\b[^,;:]{{0,40}}?\b({sides.either})\b", after, re.IGNORECASE)
    if than:
        return 1 if sides.is_base(than[1]) else -1
    within = re.match(rf"\s+(?:in|on|for|with|at) (?:the |an? )?({sides.either})\b", after, re.IGNORECASE)
    if within:
        return -1 if sides.is_base(within[1]) else 1
    return _side_before(words[: match.start()], sides)


def _side_before(before: str, sides: _Sides) -> int:
    """The side that the words before a claim make its subject; the target where they name none."""
    against = rf"\b(?:against|than|versus|vs|over|to|from|with) (?:in |on )?(?:the |an? )?(?:{sides.either})\b(?:'s)?"
    kept = re.sub(rf"\bwith (?:the )?(?:{sides.either})\b[^,]*,", " ", before, flags=re.IGNORECASE)
    kept = re.sub(against, " ", kept, flags=re.IGNORECASE)
    named = list(re.finditer(rf"\b({sides.either})\b", kept, re.IGNORECASE))
    if not named:
        return 1
    last = named[-1]
    if not sides.is_base(last[1]):
        return 1
    between = kept[last.end() :]
    is_place = (
        re.fullmatch(r"\s*(?:in|on|at|for|under) (?:the |an? )?", kept[: last.start()], re.IGNORECASE) is not None
    )
    if re.search(r"\b(?:to|into|by|became|becomes|where|while|but|replaced|gave|gives)\b", between, re.IGNORECASE):
        return 0
    return -1 if is_place or "," not in between else 0


def _details(words: str, finding: AnyFinding, sides: _Sides) -> Iterator[str]:
    """Launches, efficiency, kernels, precision and noise of one finding."""
    evidence = finding.evidence
    for name, more_less, what in (
        ("launches_count", (_MORE_LAUNCHES, _FEWER_LAUNCHES), "launches"),
        ("efficiency_pct", (_MORE_EFFICIENT, _LESS_EFFICIENT), "the efficiency"),
    ):
        ours, theirs = evidence.get(f"base_{name}"), evidence.get(f"target_{name}")
        if isinstance(ours, int | float) and isinstance(theirs, int | float):
            said = _contradicted(words, more_less, theirs - ours, sides)
            if said:
                shown = [format_value(name, value) for value in (ours, theirs)]
                yield f"“{said}”, but {what} went from {shown[0]} in the base to {shown[1]} in the target"
    yield from _cause(words, finding)


def _cause(words: str, finding: AnyFinding) -> Iterator[str]:
    """Another cause than the evidence's."""
    compared = cast("CompareFinding", finding)
    cause = compared.cause
    for wording, is_wrong in (
        (_OTHER_KERNEL, cause in _SAME_KERNELS),
        (_SAME_KERNEL, cause == "different_kernel"),
        (_OTHER_PRECISION, cause in _SAME_PRECISION),
    ):
        match = wording.search(words) if is_wrong else None
        if match and not _TAKEN_BACK.search(words[: match.start()]):
            told = cause_words(cause, compared.delta_ns)
            yield f"“{match.group()}”, but the cause is {told}; cite the finding's `cause`"
    match = _BEYOND_NOISE.search(words)
    if match and compared.beyond_noise is not True and not _TAKEN_BACK.search(words[: match.start()]):
        yield f"“{match.group()}”, but there are too few steps to tell noise"
