"""Commands that profile the heaviest kernels with the counters a trace does not have."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooftrace.report.files import KernelRow
    from rooftrace.report.view import View

COMMANDS_SHOWN = 3
# The program to profile is not in the trace.
PROGRAM = "python YOUR_SCRIPT.py"
# Launches passed over, so that caches and clocks have settled, and launches read.
_SKIPPED, _READ = 10, 3
# A name longer than this (Tensile spells its whole configuration) is selected by a prefix.
_NAME_LIMIT = 100
_PREFIX_LIMIT = 300
_PREFIX_STEP = 8
_FILE_NAME_LIMIT = 60
# `void ns::kernel<float, 4>(args)`: return type and namespaces, then the function's own name.
_TEMPLATED = re.compile(
    r"(?:[A-Za-z_]\w*\s+)?(?:(?:[A-Za-z_]\w*|\(anonymous namespace\))::)*([A-Za-z_]\w*)(?:[<(].*)?", re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A shell command and what it selects."""

    tool: str
    text: str
    kernel: str
    is_exact: bool


@dataclass(frozen=True, kw_only=True)
class _Selection:
    """A kernel as the profilers' filters take it: a name, or the beginning of one."""

    name: str
    is_prefix: bool
    launches: int


def profile_commands(view: View) -> list[Command]:
    """One command a tool and kernel, heaviest first; kernels whose name is not plain are passed over."""
    commands: list[Command] = []
    seen: set[str] = set()
    names = [kernel.name for kernel in view.kernels]
    for kernel in view.kernels:
        # Profilers demangle names; the readable name is one of a mangled name already.
        readable = kernel.short if kernel.name.startswith("_Z") else kernel.name
        name = base_name(readable) if kernel.kind in ("kernel", "") else None
        if name is None or name in seen:
            continue
        seen.add(name)
        commands += _commands(kernel, name, names, view.vendor)
        if len(seen) == COMMANDS_SHOWN:
            break
    return commands


def base_name(kernel: str) -> str | None:
    """The function's own name in a kernel's name; None where it is not a plain identifier."""
    match = _TEMPLATED.fullmatch(kernel.strip()) if len(kernel) < 20_000 else None
    return match.group(1) if match else None


def own_prefix(name: str, names: Iterable[str]) -> str:
    """The shortest beginning of a long name that no other name has, as far as a command line can hold it."""
    others = [other for other in names if other != name]
    for length in range(_NAME_LIMIT, min(len(name), _PREFIX_LIMIT), _PREFIX_STEP):
        if not any(other.startswith(name[:length]) for other in others):
            return name[:length]
    return name[:_PREFIX_LIMIT]


def _commands(kernel: KernelRow, name: str, names: list[str], vendor: str) -> list[Command]:
    is_prefix = len(name) > _NAME_LIMIT
    chosen = own_prefix(name, names) if is_prefix else name
    selected = [other for other in names if other.startswith(chosen)] if is_prefix else [kernel.name]
    selection = _Selection(name=chosen, is_prefix=is_prefix, launches=kernel.count)
    is_exact = kernel.name == name and len(selected) == 1
    return [
        Command(tool=tool, text=text, kernel=kernel.short, is_exact=is_exact)
        for tool, text in _texts(selection, vendor)
    ]


def _texts(selection: _Selection, vendor: str) -> list[tuple[str, str]]:
    ending = ".*" if selection.is_prefix else "$"
    skipped = min(_SKIPPED, selection.launches // 2)
    read = max(1, min(_READ, selection.launches - skipped))
    label = shlex.quote(selection.name[:_FILE_NAME_LIMIT])
    ncu = (
        f"ncu --set full --launch-skip {skipped} --launch-count {read} --kernel-name-base function "
        f"--kernel-name {shlex.quote(f'regex:^{selection.name}{ending}')} --export {label} {PROGRAM}"
    )
    kernel = f"{selection.name}.*" if selection.is_prefix else selection.name
    rocprof = f"rocprof-compute profile --name {label} --kernel {shlex.quote(kernel)} -- {PROGRAM}"
    texts = {"nvidia": [("Nsight Compute", ncu)], "amd": [("rocprof-compute", rocprof)]}
    return texts.get(vendor, [*texts["nvidia"], *texts["amd"]])
