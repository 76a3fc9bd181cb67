"""Numbers that no script wrote.

Free of it, a closed list: ids of the run, ranks (`P1`), data types, cache levels and dimensions of an API's name,
products as the trace spells them, shapes that the trace recorded or a kernel's name spells, and settings in backticks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.report.grounding.apis import DTYPE
from rooftrace.report.grounding.wording import Wording
from rooftrace.report.values import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.report.grounding.grounds import Basis, Slot
    from rooftrace.report.grounding.names import Names

# Alignments are powers of two, the same everywhere.
_POWER = r"(?:4|8|16|32|64|128)"
_ALIGNED = rf"(?:multiples?|divisible|aligned)(?: of| by| to) {_POWER}(?:(?:,| or|, or| and) {_POWER})*|{_POWER}-byte"
_CLOSED = re.compile(
    rf"(?<![\w.])(?:P[1-9][0-9]?|{DTYPE.pattern}|(?:2|4|8|16|32|64)-bit|L[12]|HBM[23]e?|[123]D|{_ALIGNED}|Conv[123]d"
    r"|BatchNorm[123]d|FlashAttention-?[234]|FA[234]|ZeRO-?[123]|FSDP[12]|TensorFloat-?32|sm_?[0-9]{2,3}a?|gfx[0-9]{3,4}[a-z]?)(?![\w])",
    re.IGNORECASE,
)
_DIMS = re.compile(r"(?<![\w.])(?:[0-9]+(?:x[0-9]+)+|[\[(]\s*[0-9]+(?:\s*,\s*[0-9]+)+\s*[\])])(?!\w|\.\d)")
_ID = re.compile(r"(?<![\w.])(?:[a-z_]+\.F[0-9]+|op[0-9]+|r[0-9]+)(?![\w])")
# What is written like a name (`a_b`, `ns::x`, `Qwen2MLP`) is judged as one, by the rule on names.
_NAME = re.compile(r"(?=\w*?(?:[A-Za-z0-9]_|[a-z][0-9]*[A-Z])|.*::)[A-Za-z_]\w*(?:(?:::|\.)[A-Za-z_]\w*)*")
_TOKEN = re.compile(r"[^\s,;:!?()\[\]{}\"']+")
_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
)
_WORDS += "|ninety|hundred|thousand|million|several hundred|a dozen|dozens"
_SPELLED = Wording(
    rf"\b(?:(?:{_WORDS})(?:[ -](?:{_WORDS}))?[ -](?:percent|per ?cent|times|fold"
    r"|milliseconds?|microseconds?|nanoseconds?|seconds?|minutes?|teraflops?|gigabytes?|megabytes?)"
    r"|(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand)-?fold"
    r"|(?:a |one[- ]|two[- ]|three[- ])?(?:half|thirds?|quarters?|tenths?|fifths?) of (?:the|its|all|this|that)"
    r"|orders? of magnitude|(?:twice|double|triple|quadruple)[sd]? (?:as fast|the speed|the throughput|the performance)"
    r"|(?:doubl|tripl|quadrupl|halv)(?:es?|ed|ing) (?:the )?(?:speed|throughput|performance|runtime|run time|step time"
    r"|time|latency))",
    (
        *("percent", "per cent", "times", "fold", "second", "minute", "flop", "byte", "half", "third", "quarter"),
        *("tenth", "fifth", "magnitude", "twice", "doubl", "tripl", "quadr", "halv"),
    ),
)


def bare_numbers(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Numbers in digits of any script, or spelled out as a quantity."""
    if slot.name in ("name", "family"):
        return
    plain = allowed_taken_out(slot.text.plain, grounds.names)
    for token in _TOKEN.findall(plain):
        shown = token.strip(".-*`/\u2026")
        if any(sign.isnumeric() for sign in shown) and not _NAME.fullmatch(shown):
            yield f"`{shown}` is a number that no script wrote; {_instead(shown, slot, grounds)}"
    for match in _SPELLED.matches(plain):
        yield f"`{match.group()}` is a quantity in words; cite an id, or say it without a quantity"


def allowed_taken_out(plain: str, names: Names) -> str:
    """The words without what may hold digits."""
    for product in names.products:
        plain = re.sub(rf"(?<!\w){re.escape(product)}(?!\w)", " ", plain, flags=re.IGNORECASE)
    plain = _CLOSED.sub(" ", plain)
    plain = _ID.sub(lambda match: " " if match.group() in names.ids else match.group(), plain)
    return _DIMS.sub(lambda match: " " if names.holds_shape(match.group()) else match.group(), plain)


def _instead(shown: str, slot: Slot, grounds: Basis) -> str:
    """The id of the slot's analyzer or of the ledger whose text begins with the same number, if there is one."""
    digits = re.search(r"[0-9][0-9.,]*", shown)
    number = digits.group().rstrip(".,") if digits else ""
    if len(number) > 1:
        for name, value in grounds.values.items():
            if not name.startswith((f"{slot.analyzer}.", "ledger.")):
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                text = format_value(name, value)
                if text.split(" ")[0].replace(",", "") == number.replace(",", ""):
                    return f"if {text} is meant, write {{{{{name}}}}}"
    return "cite the evidence id, or say it without a number"
