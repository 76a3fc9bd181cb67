"""The commands that show one stage, or what the pack knows."""

from __future__ import annotations

from rooftrace.cli.arguments import (
    EXAMPLE,
    JSON,
    LIMIT,
    MODELS,
    PLATFORM,
    PLATFORM_FILE,
    REDACT,
    SOURCE,
    STEPS,
    TRACE_ONLY,
    Argument,
    Command,
    count,
    factor,
)

STAGE_COMMANDS: tuple[Command, ...] = (
    Command(
        name="tree",
        summary="Print the call tree of a trace with the GPU time under each op.",
        reads="a trace",
        writes="nothing",
        example=f"tree {EXAMPLE} --limit 12",
        arguments=(
            TRACE_ONLY,
            Argument(flags=("--depth",), help="levels to print (default 6)", metavar="N", type=count, default=6),
            Argument(flags=("--python",), help="include Python frames and modules", action="store_true"),
            STEPS,
            Argument(flags=("--limit",), help="rows to print (default 60)", metavar="N", type=count, default=60),
            JSON,
            REDACT,
        ),
    ),
    Command(
        name="ops",
        summary="Print the op groups with their times, costs and ratings.",
        reads="a trace or a run",
        writes="nothing",
        example=f"ops {EXAMPLE} --limit 5",
        arguments=(SOURCE, PLATFORM, PLATFORM_FILE, MODELS, STEPS, LIMIT, JSON, REDACT),
    ),
    Command(
        name="ledger",
        summary="Print where every nanosecond of each device went.",
        reads="a trace or a run",
        writes="nothing",
        example=f"ledger {EXAMPLE}",
        arguments=(SOURCE, MODELS, STEPS, JSON, REDACT),
    ),
    Command(
        name="idle",
        summary="Print why each device was idle: causes, blocking calls and the longest gaps.",
        reads="a trace",
        writes="nothing",
        example=f"idle {EXAMPLE}",
        arguments=(
            TRACE_ONLY,
            MODELS,
            STEPS,
            LIMIT,
            JSON,
            REDACT,
        ),
    ),
    Command(
        name="fusion",
        summary="Print what several kernels in a row could do as one, with the time it would save.",
        reads="a trace",
        writes="nothing",
        example=f"fusion {EXAMPLE} --limit 5",
        arguments=(
            TRACE_ONLY,
            PLATFORM,
            PLATFORM_FILE,
            MODELS,
            STEPS,
            LIMIT,
            JSON,
            REDACT,
        ),
    ),
    Command(
        name="replay",
        summary="Replay a trace, as recorded or with something changed, to see what the change is worth.",
        reads="a trace",
        writes="nothing",
        example=f"replay {EXAMPLE} --scale gemm=0.5 --without sync",
        arguments=(
            TRACE_ONLY,
            Argument(
                flags=("--scale",),
                help="kernels of a category at this factor of their time (repeatable)",
                metavar="CATEGORY=FACTOR",
                action="append",
            ),
            Argument(
                flags=("--scale-kernel",),
                help="kernels whose name matches, at this factor (repeatable)",
                metavar="REGEX=FACTOR",
                action="append",
            ),
            Argument(
                flags=("--without",),
                help="sync, sync:OP, communication, copies or host: takes no time any more (repeatable)",
                metavar="WHAT",
                action="append",
            ),
            Argument(
                flags=("--host-scale",), help="host time at this factor, such as 0.5", metavar="FACTOR", type=factor
            ),
            Argument(flags=("--no-launch-gaps",), help="launch as fast as the GPU can take it", action="store_true"),
            MODELS,
            STEPS,
            JSON,
            REDACT,
        ),
    ),
    Command(
        name="platforms",
        summary="List the GPUs known, or one with its ceilings and sources.",
        reads="the knowledge base",
        writes="nothing",
        example="platforms h100-sxm",
        arguments=(
            Argument(
                flags=("slug",), help="one GPU in full, or a file of yours", metavar="SLUG_OR_FILE", optional=True
            ),
            JSON,
        ),
    ),
    Command(
        name="explain",
        summary="Explain a code: a check, a note of Trace Health or Sanity, a pattern, or a cause of `compare`.",
        reads="the knowledge base",
        writes="nothing",
        example="explain carry_in",
        arguments=(
            Argument(flags=("code",), help="the code; without one, all are listed", metavar="CODE", optional=True),
            JSON,
        ),
    ),
)
