"""Text of a trace made harmless for whoever reads it next: one line, or a block that holds data and nothing else.

Names of ops, kernels, modules, files and annotations are whatever a program chose. They may look like Markdown, like
a command or like an instruction; here they lose what would let them act as one, and nothing that tells them apart.
"""

from __future__ import annotations

import re

# Shown but not seen, or seen in another order: joiners, marks of direction, fillers, tags, variation selectors, and
# the private use area, which has no meaning of its own.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
# Sequences that colour or move a terminal's text, whole; what is left of the controls goes with white space.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BACKTICKS = re.compile(r"`+")
_LINE_LIMIT = 400


def one_line(text: str, limit: int) -> str:
    """`text` without line ends, controls, invisible characters and an overlong tail."""
    is_plain = text.isascii() and text.isprintable() and "  " not in text
    flat = (text if is_plain else _SPACE.sub(" ", _visible(text))).strip()
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def fence(text: str, *, limit: int = 4_000, label: str = "data") -> str:
    """A fenced block of at most `limit` characters of `text` that no backtick in it can close.

    Every line is one line of the text, cut where it is overlong; the last one says how much is left out.
    """
    lines = [one_line(line, _LINE_LIMIT) for line in _visible(text).splitlines()]
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > limit:
            kept.append(f"… {len(lines) - len(kept)} more lines are left out")
            break
        kept.append(line)
    body = "\n".join(kept)
    marks = "`" * max(3, max((len(run) for run in _BACKTICKS.findall(body)), default=0) + 1)
    return f"{marks}{re.sub('[^a-z]', '', label.lower()) or 'data'}\n{body}\n{marks}"


def _visible(text: str) -> str:
    """Controls and invisible characters between two letters leave no gap behind."""
    return _INVISIBLE.sub("", _TERMINAL.sub("", text))
