"""Commands that profile the heaviest kernels with the counters a trace does not have."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooftrace.contracts.report import OpGroup
    from rooftrace.report.files import KernelRow
    from rooftrace.report.view import View

COMMANDS_SHOWN = 3
# An op group with less of the op time is not worth a look at its counters, however poor its efficiency.
_LEAST_SHARE = 0.02
# A word of a name that tells its template's instantiations apart: shorter ones are types and sizes.
_WORD = re.compile(r"[A-Za-z_]\w{15,99}", re.ASCII)
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


class Command(Struct, frozen=True, kw_only=True):
    """A shell command and what it selects."""

    tool: str
    text: str
    kernel: str
    is_exact: bool
    least_pct: float | None = None  # efficiency of the op that the kernel was chosen for, being the poorest


class _Selection(Struct, frozen=True, kw_only=True):
    """A kernel as the profilers' filters take it: a name, or the beginning of one."""

    name: str
    is_prefix: bool
    launches: int
    is_exact: bool
    word: str = ""  # what only this kernel's demangled name holds, where its function has other instantiations


def profile_commands(view: View) -> list[Command]:
    """One command a tool and kernel: the heaviest, then the main kernel of the least efficient op.

    Kernels whose name is not plain are passed over.
    """
    commands: list[Command] = []
    seen: set[str] = set()
    names = [kernel.name for kernel in view.kernels]
    least = _least_efficient(view)
    for kernel in view.kernels:
        is_least = least is not None and kernel.name == least.kernels[0].name
        if len(seen) >= COMMANDS_SHOWN and not is_least:
            continue
        # Profilers demangle names; the readable name is one of a mangled name already.
        readable = kernel.short if kernel.name.startswith("_Z") else kernel.name
        name = base_name(readable) if kernel.kind in ("kernel", "") else None
        if name is None:
            continue
        selection = _selection(kernel, name, names)
        key = selection.word or selection.name
        if key in seen:
            continue
        seen.add(key)
        found = _commands(kernel, selection, view.vendor)
        commands += [replace(one, least_pct=least.efficiency_pct) for one in found] if is_least and least else found
    return commands


def _least_efficient(view: View) -> OpGroup | None:
    """The op group of lowest efficiency among those with enough time to matter."""
    whole = sum(op.kernel_ns for op in view.report.ops)
    heavy = [op for op in view.report.ops if op.kernels and op.kernel_ns >= _LEAST_SHARE * whole]
    rated = [(op.efficiency_pct, op.id, op) for op in heavy if op.efficiency_pct is not None]
    return min(rated, default=(0.0, "", None))[2]


def _selection(kernel: KernelRow, name: str, names: list[str]) -> _Selection:
    """How a profiler's filter finds the kernel, alone where its name allows it."""
    if len(name) > _NAME_LIMIT:
        chosen = own_prefix(name, names)
        is_alone = kernel.name == name and sum(other.startswith(chosen) for other in names) == 1
        return _Selection(name=chosen, is_prefix=True, launches=kernel.count, is_exact=is_alone)
    has_siblings = sum(base_name(other) == name for other in names) > 1
    word = _own_word(kernel.name, names) if has_siblings and kernel.name != name else ""
    is_alone = kernel.name == name or bool(word)
    return _Selection(name=name, is_prefix=False, launches=kernel.count, word=word, is_exact=is_alone)


def _own_word(name: str, names: Iterable[str]) -> str:
    """The longest word of a name that no other name has; empty where there is none."""
    others = [other for other in names if other != name]
    words = sorted(set(_WORD.findall(name)), key=lambda word: (-len(word), word))
    return next((word for word in words if not any(word in other for other in others)), "")


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


def _commands(kernel: KernelRow, selection: _Selection, vendor: str) -> list[Command]:
    return [
        Command(
            tool=tool,
            text=text,
            kernel=kernel.short,
            is_exact=selection.is_exact and (tool == "Nsight Compute" or not selection.word),
        )
        for tool, text in _texts(selection, vendor)
    ]


def _texts(selection: _Selection, vendor: str) -> list[tuple[str, str]]:
    ending = ".*" if selection.is_prefix else "$"
    skipped = min(_SKIPPED, selection.launches // 2)
    read = max(1, min(_READ, selection.launches - skipped))
    label = shlex.quote((selection.word or selection.name)[:_FILE_NAME_LIMIT])
    base, pattern = ("demangled", selection.word) if selection.word else ("function", f"^{selection.name}{ending}")
    ncu = (
        f"ncu --set full --launch-skip {skipped} --launch-count {read} --kernel-name-base {base} "
        f"--kernel-name {shlex.quote(f'regex:{pattern}')} --export {label} {PROGRAM}"
    )
    kernel = f"{selection.name}.*" if selection.is_prefix else selection.name
    rocprof = f"rocprof-compute profile --name {label} --kernel {shlex.quote(kernel)} -- {PROGRAM}"
    texts = {"nvidia": [("Nsight Compute", ncu)], "amd": [("rocprof-compute", rocprof)]}
    return texts.get(vendor, [*texts["nvidia"], *texts["amd"]])
