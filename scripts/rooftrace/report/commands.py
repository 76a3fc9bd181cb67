"""Commands that profile the heaviest kernels with the counters a trace does not have."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooftrace.report.view import View

COMMANDS_SHOWN = 3
# The program to profile is not in the trace.
PROGRAM = "python YOUR_SCRIPT.py"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
# `void ns::kernel<float, 4>(args)`: return type and namespaces, then the function's own name.
_TEMPLATED = re.compile(
    r"(?:[A-Za-z_]\w*\s+)?(?:(?:[A-Za-z_]\w*|\(anonymous namespace\))::)*([A-Za-z_]\w{0,99})(?:[<(].*)?"
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A shell command and what it selects."""

    tool: str
    text: str
    kernel: str
    is_exact: bool


def profile_commands(view: View) -> list[Command]:
    """One command a tool and kernel, heaviest first; kernels whose name is not plain are passed over."""
    commands: list[Command] = []
    seen: set[str] = set()
    for kernel in view.kernels:
        name = base_name(kernel.name)
        if kernel.kind not in ("kernel", "") or name is None or name in seen:
            continue
        seen.add(name)
        is_exact = _IDENTIFIER.fullmatch(kernel.name) is not None
        commands += [
            Command(tool=tool, text=text, kernel=kernel.short, is_exact=is_exact)
            for tool, text in _texts(name, view.vendor)
        ]
        if len(seen) == COMMANDS_SHOWN:
            break
    return commands


def base_name(kernel: str) -> str | None:
    """The function's own name in a kernel's name; None where it is not a plain identifier."""
    match = _TEMPLATED.fullmatch(kernel.strip()) if len(kernel) < 20_000 else None
    name = match.group(1) if match else None
    return name if name and _IDENTIFIER.fullmatch(name) else None


def _texts(name: str, vendor: str) -> list[tuple[str, str]]:
    pattern = shlex.quote(f"regex:^{name}$")
    ncu = (
        "ncu --set full --launch-skip 10 --launch-count 3 --kernel-name-base function "
        f"--kernel-name {pattern} --export {shlex.quote(name)} {PROGRAM}"
    )
    rocprof = f"rocprof-compute profile --name {shlex.quote(name)} --kernel {shlex.quote(name)} -- {PROGRAM}"
    texts = {"nvidia": [("Nsight Compute", ncu)], "amd": [("rocprof-compute", rocprof)]}
    return texts.get(vendor, [*texts["nvidia"], *texts["amd"]])
