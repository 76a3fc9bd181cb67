"""``repro``: a finding as a PyTorch script of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.output import put, put_json, put_json_text, say
from rooftrace.cli.source import run_folder
from rooftrace.contracts import store
from rooftrace.errors import InputError, UsageError
from rooftrace.repro import read_subject, write_script
from rooftrace.repro.script import MARK

if TYPE_CHECKING:
    import argparse

    from rooftrace.repro import Script


def run(options: argparse.Namespace) -> int:
    """Write the script to a file and print its path, or print the script."""
    folder = run_folder(options.folder)
    if folder is None:
        what = "is a file, not a folder" if Path(options.folder).exists() else "does not exist"
        raise InputError(f"`{options.folder}` {what}", hint="Give the folder that `prepare` or `analyze` wrote")
    script = write_script(read_subject(folder, options.finding))
    path = None if options.output is None else Path(options.output)
    if path is not None:
        _write(path, script.text)
    if options.json:
        put_json(_facts(options.finding, path, script))
    else:
        put(str(path)) if path is not None else put_json_text(script.text)
    _tell(script)
    return 0


def _write(path: Path, text: str) -> None:
    """Write the script; what is there is replaced only if it is one."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"`{path}` exists and is not a file", hint="Give another path with -o")
        if path.exists() and path.stat().st_size and not path.read_bytes().startswith(MARK.encode()):
            raise UsageError(
                f"`{path}` exists and is no script of `rooftrace repro`; nothing was written",
                hint="Give another path with -o",
            )
        store.write_bytes(path, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {error.strerror}", hint="Give another path with -o") from None


def _facts(finding: str, path: Path | None, script: Script) -> dict[str, object]:
    return {
        "finding": finding,
        "path": None if path is None else str(path),
        "script": script.text if path is None else None,
        "cases": [
            {
                "op_id": case.op_id,
                "calls": list(case.calls),
                "compared_with": list(case.compared_with),
                "traced_us": case.traced_us,
            }
            for case in script.cases
        ],
        "refused": list(script.refused),
    }


def _tell(script: Script) -> None:
    for case in script.cases:
        count = len(case.calls)
        calls = f"{count} calls from {case.calls[0]}" if count > 1 else case.calls[0]
        others = ", ".join(case.compared_with)
        say(f"rebuilt {calls}" + (f", compared with {others}" if others else ""))
    for reason in script.refused:
        say(f"left out: {reason}")
