"""Every error a user can meet, one exit code a class.

::

    RooftraceError
    ├── CheckFailed          1   a check or a comparison failed
    ├── UsageError           2   the command line asks for something impossible
    ├── InputError           3   the input is missing, unreadable, a directory or a special file
    ├── NotATrace            4   the input holds no trace that can be analysed
    ├── EnvironmentMissing  69   the dependencies cannot be provided
    └── InternalError       70   a bug of this program

Raised where the remedy is known, caught once, in ``cli.main``.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class RooftraceError(Exception):
    """An error with a remedy; ``str()`` gives the text a user sees."""

    exit_code = 70

    def __init__(self, what: str, *, details: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.details = tuple(details)
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error: {self.what}", *(f"  {detail}" for detail in self.details)]
        if self.hint:
            lines += ["", f"hint: {self.hint}"]
        return "\n".join(lines)


class CheckFailed(RooftraceError):  # noqa: N818 - named for what happened
    """A check or a comparison found a problem."""

    exit_code = 1


class UsageError(RooftraceError):
    """The command line asks for something impossible."""

    exit_code = 2


class InputError(RooftraceError):
    """The input is missing, unreadable, a directory or a special file."""

    exit_code = 3


class NotATrace(RooftraceError):  # noqa: N818 - as above
    """The input holds no trace that this tool can analyse."""

    exit_code = 4


class EnvironmentMissing(RooftraceError):  # noqa: N818 - as above
    """The dependencies cannot be provided on this machine."""

    exit_code = 69


class InternalError(RooftraceError):
    """A bug of this program."""

    exit_code = 70


def unknown_name(kind: str, name: str, known: Iterable[str], *, listed_by: str | None = None) -> UsageError:
    """Error for a name outside a closed list: the nearest first, then all valid ones or the command for them."""
    names = sorted(known)
    longer = [known_name for known_name in names if name and known_name.startswith(name.lower())]
    nearest = longer[:1] or get_close_matches(name.lower(), names, n=1)
    start = f"Did you mean `{nearest[0]}`? " if nearest else ""
    all_of_them = f"Known: {', '.join(names)}" if names else "None is known here"
    rest = f"Run `{listed_by}` for all" if listed_by else all_of_them
    return UsageError(f"unknown {kind}: `{name}`", hint=f"{start}{rest}")
