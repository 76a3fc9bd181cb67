"""What a trace cannot show may be named only together with the tool that could show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.report.grounding.wording import Wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.report.grounding.grounds import Basis, Slot
    from rooftrace.report.slots import SlotText

# What it is, and how it is worded.
_UNSEEN = (
    (
        "occupancy",
        Wording(
            r"\boccupancy\b|\bresident (?:warps|waves|blocks)\b|\bwaves per (?:SM|CU)\b",
            ("occupan", "resident", "per "),
        ),
    ),
    ("bank conflicts", Wording(r"\bbank[- ]conflicts?\b", ("bank",))),
    (
        "cache hits",
        Wording(
            r"\bcache[- ](?:hit|miss)\w*|\b(?:hit|miss) rates?\b|\bcache thrash\w*|\bTLB\b|\bcache (?:reuse|locality)\b"
            r"|\b(?:hits?|miss(?:es)?|thrash\w*) (?:in |the )*(?:L[12]|cache)"
            r"|\bL[12] (?:cache )?(?:hits?|miss(?:es)?)\b",
            ("cache", "hit", "miss", "tlb"),
        ),
    ),
    (
        "register use",
        Wording(
            r"\bregister (?:spill\w*|pressure|use|usage|count|file)|\bspill(?:s|ed|ing)?\b|\blocal memory\b",
            ("register", "spill", "local memory"),
        ),
    ),
    (
        "shared memory use",
        Wording(r"\bshared[- ]memory (?:use|usage|pressure|limits?|bound|capacity)|\bLDS\b", ("shared", "lds")),
    ),
    (
        "stalls and divergence",
        Wording(
            r"\b(?:warp|wavefront|wave|pipeline|memory|scoreboard|barrier) stalls?\b"
            r"|(?<!host )(?<!loop )(?<!CPU )(?<!thread )(?<!Python )(?<!GPU )\bstall(?:s|ed|ing)? (?:on|reasons?)\b"
            r"|\b(?:warp|branch|thread) divergence\b|\bdivergent (?:warps?|branch\w*)",
            ("stall", "diverge"),
        ),
    ),
    (
        "access patterns",
        Wording(r"\b(?:un|non-?)?coalesc(?:ed|ing) (?:\w+ )?(?:access|load|store|read|write)\w*", ("coalesc",)),
    ),
    (
        "use of the units",
        Wording(
            r"\b(?:tensor[- ]core|matrix[- ](?:core|unit)|SM|CU|MFMA|pipe(?:line)?|ALU) "
            r"(?:utili[sz]ation|activity|busy)\b"
            r"|\bwave quanti[sz]ation\b|\bissue (?:rate|slots?)\b|\binstruction mix\b",
            ("utili", "activity", "busy", "wave", "issue", "instruction"),
        ),
    ),
    (
        "where a kernel keeps its data",
        Wording(
            r"\b(?:in|into|inside|from|through|within) (?:the |its )?(?:registers?\b|SRAM|shared memory|LDS)"
            r"|\bon[- ]chip\b|\b(?:stay|keep|kept|held|fit|live|remain|resident)\w*\b[^.;,]{0,40}"
            r"\b(?:in|into|inside) (?:the |its )?(?:L[12]\b|data cache|cache\b(?! of))",
            ("register", "sram", "shared memory", "lds", "chip", "l1", "l2", "cache"),
        ),
    ),
    (
        "clocks and power",
        Wording(
            r"\bthrottl\w+|\bclock (?:speeds?|frequenc\w+|rates?|drops?)\b|\bpower (?:cap|limit|draw)\w*",
            ("throttl", "clock", "power"),
        ),
    ),
)
_SIZE = r"(?:too )?(?:small|large|big|wide|narrow|tiny|oversized|huge)(?:er|est)?"
_TILE = Wording(
    rf"\b(?:macro-?)?(?:tile|block)[- ](?:size|shape|dimension)s?\b|\btiling\b|\b{_SIZE} (?:\w+ )?tiles?\b"
    rf"|\btiles? (?:is|are|of the kernel is) {_SIZE}\b",
    ("tile", "tiling", "block"),
)
_TOOL = Wording(
    r"\b(?:Nsight (?:Compute|Systems)|ncu|nsys|rocprof\w*(?:-\w+)?|ROCm Compute Profiler|omniperf|omnitrace"
    r"|compute-sanitizer|nvidia-smi|rocm-smi|amd-smi|DCGM|TORCH_LOGS|hardware counters|TRITON_PRINT_AUTOTUNING)\b",
    ("nsight", "ncu", "nsys", "roc", "omni", "sanitizer", "-smi", "dcgm", "torch_logs", "counters", "triton_print"),
)
# The tool could show it: a possibility or a task, not a report of what it showed.
_OPEN = Wording(
    r"\b(?:whether|if|could|can|would|cannot|not (?:visible|shown|in a trace)|to (?:see|tell|check|know|find out"
    r"|confirm|measure|rule out)|check|profile|measure|look at|see|read|ask)\b",
    ("",),
)
_ASSERTED = Wording(
    r"\b(?:because of|due to|caused by|owing to|limited by|suffers? from|thanks to|results? from|showed|shown|revealed"
    r"|measured|found)\b",
    ("",),
)
_ASKED = Wording(r"\b(?:whether|if)\b", ("whether", "if"))


def unseen_claims(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Claims about the inside of a kernel or the state of the chip."""
    for sentence in slot.text.sentences:
        words = slot.text.spelled(sentence)
        found = [what for what, wording in _UNSEEN if wording.search(words)]
        tile = _TILE.search(words) and not _spells_a_tile(slot.text, sentence, grounds)
        if not (found or tile) or _names_a_tool(words):
            continue
        quoted = slot.text.quoted(sentence)
        for what in found:
            yield f"{what}: no trace shows it (“{quoted}”); say which tool could show it"
        if tile:
            yield (
                f"tile sizes: only a kernel's name can spell them (“{quoted}”); "
                "name such a kernel, or the tool that could show them"
            )


def _names_a_tool(words: str) -> bool:
    """Whether the sentence says what a named tool could show, rather than what is the case."""
    if not (_TOOL.search(words) and _OPEN.search(words)):
        return False
    return not _ASSERTED.search(words) or bool(_ASKED.search(words))


def _spells_a_tile(text: SlotText, sentence: str, grounds: Basis) -> bool:
    """Whether the sentence names a kernel, or cites one, whose name holds its tile."""
    named = text.parts_in(sentence, "code")
    named += [str(grounds.values.get(name, "")) for name in text.parts_in(sentence, "cite")]
    lines = grounds.names.tiled
    return any(len(name) > 3 and name in lines for name in named)
