"""What may be changed between the two runs of a pair: rewrites of a thread's instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evals.workshop.instructions import Activity, Enter, Exit, Instruction, Launch, Thread, Work
from evals.workshop.program import Draws

Threads = tuple[Thread, ...]
Rewrite = Callable[[tuple[Instruction, ...]], Sequence[Instruction]]


def rewritten(threads: Threads, rewrite: Rewrite) -> Threads:
    """Every thread with its instructions rewritten."""
    return tuple(replace(thread, instructions=tuple(rewrite(thread.instructions))) for thread in threads)


def with_kernels(threads: Threads, name: str, factor: float, renamed: Callable[[str], str] | None = None) -> Threads:
    """Kernels whose name contains ``name`` at this factor of their time and, where asked, under another name."""

    def changed(row: Activity) -> Activity:
        if row.kind != "kernel" or name not in row.name:
            return row
        return replace(
            row,
            duration_ns=round(row.duration_ns * factor),
            name=row.name if renamed is None else renamed(row.name),
        )

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        return [
            replace(row, activities=tuple(changed(activity) for activity in row.activities))
            if isinstance(row, Launch)
            else row
            for row in instructions
        ]

    return rewritten(threads, rewrite)


def after_spans(
    threads: Threads, name: str, addition: Callable[[int], Sequence[Instruction]], *, inside: bool = False
) -> Threads:
    """Instructions behind every span called ``name`` (at its end with ``inside``), given how many came before."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        result: list[Instruction] = []
        opened: list[str] = []
        count = 0
        for row in instructions:
            if isinstance(row, Enter):
                opened.append(row.name)
            closes = isinstance(row, Exit) and opened.pop() == name
            if closes and inside:
                result += addition(count)
            result.append(row)
            if closes and not inside:
                result += addition(count)
            count += closes
        return result

    return rewritten(threads, rewrite)


def without_spans(threads: Threads, name: str) -> Threads:
    """No span called ``name``, nor anything in it."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        result: list[Instruction] = []
        depth = 0
        for row in instructions:
            if isinstance(row, Enter) and (depth or row.name == name):
                depth += 1
            if not depth:
                result.append(row)
            if isinstance(row, Exit) and depth:
                depth -= 1
        return result

    return rewritten(threads, rewrite)


def replaced_spans(threads: Threads, name: str, replacement: Callable[[int], Sequence[Instruction]]) -> Threads:
    """Other instructions for every span called ``name``, given how many came before."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        result: list[Instruction] = []
        depth = count = 0
        for row in instructions:
            if isinstance(row, Enter) and not depth and row.name == name:
                result += replacement(count)
                count += 1
            if isinstance(row, Enter) and (depth or row.name == name):
                depth += 1
            if not depth:
                result.append(row)
            if isinstance(row, Exit) and depth:
                depth -= 1
        return result

    return rewritten(threads, rewrite)


def fused_span(threads: Threads, name: str, op: str, kernel: str, factor: float) -> Threads:
    """All that is launched in spans whose name is ``name`` as one op with one kernel, at this factor of the time."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        result: list[Instruction] = []
        depth = 0
        held: list[Launch] = []
        for row in instructions:
            if isinstance(row, Exit) and depth == 1 and held:
                spent = sum(activity.duration_ns for launch in held for activity in launch.activities)
                one = replace(held[0].activities[0], name=kernel, duration_ns=round(spent * factor))
                result += [Enter(kind="cpu_op", name=op), replace(held[0], activities=(one,)), Exit()]
                held = []
            if not depth or (isinstance(row, Exit) and depth == 1):
                result.append(row)
            elif isinstance(row, Launch):
                held.append(row)
            if isinstance(row, Enter) and (depth or row.name == name):
                depth += 1
            elif isinstance(row, Exit) and depth:
                depth -= 1
        return result

    return rewritten(threads, rewrite)


def renamed_spans(threads: Threads, rename: Callable[[str], str]) -> Threads:
    """Spans under other names."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        return [replace(row, name=rename(row.name)) if isinstance(row, Enter) else row for row in instructions]

    return rewritten(threads, rewrite)


def with_arguments(threads: Threads, op: str, key: str, change: Callable[[object], object]) -> Threads:
    """One recorded argument of every op called ``op`` changed."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        return [
            replace(row, args={**row.args, key: change(row.args[key])})  # type: ignore[dict-item]
            if isinstance(row, Enter) and row.name == op and key in row.args
            else row
            for row in instructions
        ]

    return rewritten(threads, rewrite)


def with_host(threads: Threads, factor: float) -> Threads:
    """Host work between calls at this factor of its time."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        return [Work(ns=round(row.ns * factor)) if isinstance(row, Work) else row for row in instructions]

    return rewritten(threads, rewrite)


def on_stream(threads: Threads, source: int, target: int) -> Threads:
    """Launches to one stream go to another."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        return [
            replace(row, stream=target) if isinstance(row, Launch) and row.stream == source else row
            for row in instructions
        ]

    return rewritten(threads, rewrite)


def without_frames(threads: Threads) -> Threads:
    """No Python frames: what is in them stays."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        result: list[Instruction] = []
        opened: list[bool] = []
        for row in instructions:
            if isinstance(row, Enter):
                opened.append(row.kind == "python_function")
            is_frame = opened.pop() if isinstance(row, Exit) else isinstance(row, Enter) and opened[-1]
            if not is_frame:
                result.append(row)
        return result

    return rewritten(threads, rewrite)


def as_graph(threads: Threads, name: str) -> Threads:
    """What is launched inside a span called ``name`` is launched at its end at once, as a graph."""

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        result: list[Instruction] = []
        opened: list[str] = []
        held: list[Launch] = []
        for row in instructions:
            if isinstance(row, Enter):
                opened.append(row.name)
            if isinstance(row, Exit) and opened.pop() == name and held:
                work = tuple(activity for launch in held for activity in launch.activities)
                result.append(replace(held[0], call="graph_launch", activities=work))
                held = []
            if isinstance(row, Launch) and name in opened:
                held.append(row)
            else:
                result.append(row)
        return result

    return rewritten(threads, rewrite)


def with_jitter(threads: Threads, share: float, seed: str) -> Threads:
    """Every kernel longer or shorter by up to this share, each by its own draw."""
    draws = Draws(seed)

    def changed(row: Activity) -> Activity:
        return replace(row, duration_ns=round(row.duration_ns * (1 + share * (2 * draws.level("jitter") - 1))))

    def rewrite(instructions: tuple[Instruction, ...]) -> list[Instruction]:
        return [
            replace(row, activities=tuple(changed(activity) for activity in row.activities))
            if isinstance(row, Launch)
            else row
            for row in instructions
        ]

    return rewritten(threads, rewrite)
