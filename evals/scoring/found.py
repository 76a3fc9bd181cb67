"""What a report says, as far as it is compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass, field

RANKED_PCT = 0.5
"""A finding of less than this share of the span (mid score) is listed, not ranked."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """One finding; scores are per cent of the span.

    ``activities``: correlation ids of the GPU activities that it is about, none for idle time. ``text``: everything it
    tells in words. ``is_joint``: it is about the waiting in several ops at once.
    """

    identity: str
    analyzer: str
    subject: str
    cause: str
    low: float
    mid: float
    high: float
    is_bound: bool
    activities: frozenset[int]
    aspect: str = ""
    is_joint: bool = False
    text: str = field(repr=False, default="")

    @property
    def is_ranked(self) -> bool:
        """Whether it stands in the ranked list."""
        return self.mid >= RANKED_PCT


def ranked(findings: list[Found]) -> list[Found]:
    """The ranked list, best first, as the report orders it."""
    return sorted((one for one in findings if one.is_ranked), key=lambda one: (-one.mid, one.identity))
