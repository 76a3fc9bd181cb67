"""What ``--redact`` leaves of what a command prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rooftrace.contracts.redaction import Redactor

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from rooftrace.trace import Trace

T = TypeVar("T")


def hider(options: argparse.Namespace, trace: Trace | None) -> Callable[[T], T]:
    """What replaces texts that tell whose the trace is, in rows and JSON; without ``--redact`` it changes nothing.

    Of a run, which keeps no header, what tells itself is replaced.
    """
    if not options.redact:
        return lambda value: value
    redactor = Redactor()
    if trace is not None:
        redactor.learn_header(trace.header)
        redactor.learn_texts(trace.names)
    return lambda value: redactor.value(value)  # type: ignore[return-value]  # a list of texts stays one
