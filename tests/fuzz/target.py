"""The whole way of a file through the program; what may come of it is a report or an error of ours, in time."""

from __future__ import annotations

import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from rooftrace.errors import InternalError, RooftraceError
from rooftrace.trace import load
from rooftrace.workflow import AnalyzeOptions, run

PACKAGE = Path(run.__file__).parent.parent
# Seconds of the processor that anything may take, and those for each event and each byte: a hundred times the usual.
TOO_SLOW = "too slow"
BASE_S, PER_EVENT_S, PER_BYTE_S = 5.0, 2e-3, 2e-5


@dataclass(frozen=True)
class Finding:
    """What went wrong: where, to tell one from another, and the whole of it."""

    key: str
    text: str


def try_content(content: bytes, *, report: bool = True) -> Finding | None:
    """What goes wrong with a file of this content, if anything does."""
    started, events = time.process_time(), 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        path = Path(folder) / "trace.json"
        path.write_bytes(content)
        try:
            events = _analyse(path, Path(folder) / "run", report=report)
        except InternalError as error:
            return _finding(error)
        except RooftraceError as error:
            if not str(error).startswith("error: ") or "\n" in error.what:
                return _finding(error)
        except Exception as error:  # noqa: BLE001 - whatever comes is the finding
            return _finding(error)
    took = time.process_time() - started
    if took > BASE_S + PER_EVENT_S * events + PER_BYTE_S * len(content):
        return Finding(TOO_SLOW, f"{took:.1f} s for {events} events in {len(content)} bytes")
    return None


def _analyse(path: Path, folder: Path, *, report: bool) -> int:
    """All stages; the number of events."""
    trace, facts = load(path)
    examined = run.examine_trace(trace, facts, AnalyzeOptions())
    folder.mkdir()
    run.write_evidence(folder, examined)
    if report:
        run.write_report(folder)
    return trace.event_count


def _finding(error: BaseException) -> Finding:
    """Named for its type and the innermost function of the package."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    last = own[-1] if own else frames[-1]
    place = f"{Path(last.filename).name}:{last.name}"
    return Finding(f"{type(error).__name__} in {place}", "".join(traceback.format_exception(error)))
