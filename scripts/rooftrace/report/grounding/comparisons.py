"""Comparisons that the evidence contradicts: of shares, of what bounds it, of two cited quantities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.report.grounding.wording import Wording
from rooftrace.report.values import format_value, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.report.grounding.grounds import Basis, Slot

# Where words begin to be true, in per cent of the span. Rules of thumb, on the writer's side.
_MOST_PCT = 50.0
_DOMINANT_PCT = 30.0
_LARGEST_PCT = 10.0  # for the first of the ranked list
_SMALL_PCT = 20.0
_NEAR_PCT = 60.0  # of the roofline
_BUSY_PCT, _IDLE_PCT = 10.0, 50.0  # of the span idle

_SHARES = ("time_share_pct", "idle_pct", "exposed_comm_pct", "exposed_copy_pct")
_WHOLE = (
    r"(?:the |this |all |its |total |overall )*(?:(?:gpu|wall|kernel|device|end-to-end|training|inference)[ -])?"
    r"(?:span|run|step|time|run-?time|execution|iteration|workload|compute)"
)
_MOST = Wording(
    rf"\b(?:most|the majority|majority|the bulk|bulk|more than half|over half|the lion's share) of {_WHOLE}\b",
    ("most of", "majority of", "bulk of", "half of", "share of"),
)
_DOMINANT = Wording(r"\bdominat(?:e|es|ed|ing)\b|\bdominant\b", ("domina",))
_LARGEST = Wording(
    r"\b(?:main|biggest|largest|primary|principal|number[- ]one|top|chief|major) (?:bottleneck|cost|consumer"
    r"|contributor|limiter|problem|offender)\b|\bthe bottleneck\b",
    ("bottleneck", "cost", "consumer", "contributor", "limiter", "problem", "offender"),
)
_SMALL = Wording(
    r"\b(?:negligible|insignificant|marginal|irrelevant|tiny (?:share|part)|small share)\b",
    ("neglig", "insignif", "marginal", "irrelevant", "tiny", "small share"),
)
# About the finding's own members, not about the run.
_INSIDE = Wording(
    r"\b(?:dominated by|within|among|of these|of this finding|in this finding|of its|in this group)\b", ("",)
)
_NEGATED = Wording(
    r"\b(?:not|no|never|isn't|aren't|neither|rather than|instead of|far from|below|without|would be|becomes?|until|if"
    r"|once|unlike)\b[^,;:]{0,25}$",
    ("",),
)
_BOUNDS = (
    (
        "memory",
        Wording(
            r"\b(?:memory|bandwidth)[- ](?:bandwidth[- ])?(?:bound|limited)|\bbound by (?:memory|bandwidth)",
            ("bound", "limited"),
        ),
    ),
    (
        "compute",
        Wording(r"\bcompute[- ](?:bound|limited)|\bbound by compute\b|\bmath[- ]bound\b", ("bound", "limited")),
    ),
    ("latency", Wording(r"\blatency[- ](?:bound|limited)|\bbound by latency\b", ("latency",))),
)
_NEAR = Wording(
    r"\b(?:close to|near|nearly at|almost at|saturat\w+) (?:the |its )?(?:roofline|ceiling|peak|floor|limit|bandwidth)",
    ("close to", "near", "almost", "saturat"),
)
_GPU_BOUND = Wording(
    r"\bGPU[- ]bound\b|\bGPU is (?:fully |always )?(?:busy|saturated|kept busy)\b", ("gpu-bound", "gpu bound", "gpu is")
)
_HOST_BOUND = Wording(r"\b(?:host|CPU|launch)[- ]bound\b", ("host", "cpu", "launch"))
# Words that make it a claim about the run or a kernel group; all else names a cause of idle time.
_RUN = (
    r"(?:runs?|workloads?|steps?|training|inference|models?|programs?|span|serving|decod\w+|prefill|GPU|kernels?|ops?"
    r"|operators?|products?|GEMMs?|matmuls?|convolutions?|attention|groups?)"
)
_CLAIMED_BEFORE = re.compile(
    rf"\b{_RUN}\b[^,;:]{{0,40}}\b(?:is|are|was|were|stays?|remains?|becomes?|looks?|runs?)\b[^,;:]{{0,20}}$",
    re.IGNORECASE,
)
_CLAIMED_AFTER = re.compile(rf"^ (?:GPU |whole )?{_RUN}\b", re.IGNORECASE)
_OF_IT = re.compile(r"\b(?:it|this|they|these) (?:is|are|was|were|stays?|remains?)\b[^,;:]{0,20}$", re.IGNORECASE)
_OF_GAPS = re.compile(r"\b(?:gaps?|idle|waits?|waiting|pauses?|bubbles?)\b[^,;:]*$", re.IGNORECASE)
_LATE_LAUNCHES = ("launch", "host")  # causes of idle time that begin so name what `launch-bound` says
_MARK = "[\ue000-\uf8ff]"
_PAIR = re.compile(rf"({_MARK})([^.;\ue000-\uf8ff]{{1,60}})({_MARK})")
_MORE = re.compile(
    r"\b(?:exceeds?|(?:more|higher|greater|longer|larger) than|above|over)\s+(?:the |its |a )*(?:\w+ )?(?:of )?$",
    re.I,
)
_LESS = re.compile(r"\b(?:(?:less|lower|shorter|smaller) than|below|under)\s+(?:the |its |a )*(?:\w+ )?(?:of )?$", re.I)
_PART = re.compile(r"^\s+(?:out )?of\s+(?:the |its |a )?$", re.I)


def contradicted_comparisons(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Words of comparison against the evidence of the finding, or of the run."""
    for sentence in slot.text.sentences:
        words = slot.text.spelled(sentence)
        yield from _shares(slot, grounds, words)
        yield from _bounds(slot, words)
        yield from _host(slot, grounds, words)
        yield from _pairs(slot, grounds, sentence)


def _said(wording: Wording, words: str) -> str | None:
    """What a pattern finds, unless the sentence takes it back."""
    for match in wording.matches(words):
        if not _NEGATED.search(words[: match.start()]):
            return match.group()
    return None


def share_of(slot: Slot, grounds: Basis) -> float:
    """What the slot's subject takes of the span, per cent; the largest of what the evidence says."""
    if slot.finding:
        sources: list[EvidenceValue | None] = [slot.evidence.get(name) for name in _SHARES]
        sources += [slot.finding.gpu_time_score, slot.finding.score.high]
    else:
        summary: Mapping[str, EvidenceValue] = grounds.summaries.get(slot.analyzer, {})
        sources = [summary.get(name) for name in _SHARES]
    numbers = [float(value) for value in sources if isinstance(value, int | float)]
    return max(numbers, default=100.0)


def _shares(slot: Slot, grounds: Basis, words: str) -> Iterator[str]:
    share = share_of(slot, grounds)
    shown = format_value("share_pct", share)
    is_first = slot.finding is not None and slot.finding.rank == 1
    limits = (
        (_MOST, _MOST_PCT),
        (_DOMINANT, _LARGEST_PCT if is_first else _DOMINANT_PCT),
        (_LARGEST, _LARGEST_PCT if is_first else _DOMINANT_PCT),
    )
    for pattern, limit in limits:
        said = _said(pattern, words)
        if said and share < limit and not _INSIDE.search(words):
            yield f"“{said}” of what takes {shown} of the span; cite the share and let it speak"
    said = _said(_SMALL, words)
    if said and share >= _SMALL_PCT and slot.name in ("insight", "summary"):
        yield f"“{said}” of what takes {shown} of the span; cite the share and let it speak"


def _bounds(slot: Slot, words: str) -> Iterator[str]:
    bound = slot.evidence.get("bound")
    if bound not in ("memory", "compute", "latency"):
        return
    for name, pattern in _BOUNDS:
        said = _said(pattern, words)
        if said and name != bound:
            yield f"“{said}”, but the evidence's bound is {bound}; cite the finding's `bound`"
    efficiency = slot.evidence.get("efficiency_pct")
    said = _said(_NEAR, words)
    if said and isinstance(efficiency, int | float) and efficiency < _NEAR_PCT:
        yield f"“{said}”, but it runs at {format_value('efficiency_pct', efficiency)} of the roofline"


def _host(slot: Slot, grounds: Basis, words: str) -> Iterator[str]:
    """Who waits for whom. To name a cause that an idle finding has is no claim about the run."""
    idle = grounds.values.get("ledger.idle_pct")
    if not isinstance(idle, int | float):
        return
    bound_by = grounds.values.get("replay.bound_by")
    slow = any(finding.evidence.get("host_bound") is True for finding in grounds.findings.values())
    shown = format_value("idle_pct", idle)
    said = _said(_GPU_BOUND, words)
    if said and (slow or bound_by == "host"):
        yield f"“{said}”, but the GPU is idle for {shown} of the span: the evidence finds the host too slow"
    elif said and idle >= _IDLE_PCT:
        yield f"“{said}”, but the GPU is idle for {shown} of the span: nothing runs on it"
    said = _said_of_the_run(slot, grounds, words)
    if said and bound_by == "compute":
        yield f"“{said}”, but the replay finds the run bound by compute"
    elif said and idle < _BUSY_PCT and not slow and bound_by != "host":
        yield f"“{said}”, but the GPU is idle for only {shown} of the span"


def _said_of_the_run(slot: Slot, grounds: Basis, words: str) -> str | None:
    """`host-bound` and the like; where idle time has such a cause, only as a claim about the run or its kernels."""
    has_cause = any(
        str(finding.evidence.get("cause", "")).startswith(_LATE_LAUNCHES) for finding in grounds.findings.values()
    )
    for match in _HOST_BOUND.matches(words):
        before = words[: match.start()]
        is_judged = not has_cause or _is_claim(before, words[match.end() :], is_of_idle=slot.analyzer == "idle")
        if is_judged and not _NEGATED.search(before):
            return match.group()
    return None


def _is_claim(before: str, after: str, *, is_of_idle: bool) -> bool:
    """Whether the run or a kernel group is said to be so; `it` is idle time where the slot is about that."""
    if _CLAIMED_BEFORE.search(before) and not _OF_GAPS.search(before):
        return True
    return bool(_CLAIMED_AFTER.search(after)) or (not is_of_idle and bool(_OF_IT.search(before)))


def _pairs(slot: Slot, grounds: Basis, sentence: str) -> Iterator[str]:
    """Two citations of one kind with a comparison between them."""
    for match in _PAIR.finditer(sentence):
        first, second = slot.text.part(match.group(1)), slot.text.part(match.group(3))
        if first.kind != "cite" or second.kind != "cite":
            continue
        numbers = _comparable(grounds.values, first.text, second.text)
        if numbers is None or re.search(r"\b(?:not|no|than before)\b", match.group(2)):
            continue
        a, b = numbers
        wrong = (_MORE.search(match.group(2)) and a <= b) or (_LESS.search(match.group(2)) and a >= b)
        if wrong or (_PART.search(match.group(2)) and a > b):
            shown = [format_value(name, grounds.values[name]) for name in (first.text, second.text)]
            yield f"“{shown[0]}{match.group(2)}{shown[1]}” is not so; turn the comparison round or cite others"


def _comparable(values: Mapping[str, EvidenceValue], first: str, second: str) -> tuple[float, float] | None:
    """Both quantities in a common unit; None where they have none."""
    numbers: list[float] = []
    kinds: set[str] = set()
    for name in (first, second):
        value, unit = values.get(name), unit_of(name)
        if unit is None or isinstance(value, bool | str | None):
            return None
        kinds.add(unit.measures)
        numbers.append(float(value) * unit.factor)
    return (numbers[0], numbers[1]) if len(kinds) == 1 else None
