"""The commands that make, continue and check the folder of a run."""

from __future__ import annotations

from rooftrace.cli.arguments import (
    EXAMPLE,
    FOLDER,
    FORCE,
    MAX_BYTES,
    MODELS,
    OUTPUT,
    PLATFORM,
    PLATFORM_FILE,
    QUIET,
    REDACT,
    STEPS,
    TIMINGS,
    TRACE,
    Argument,
    Command,
    count,
    percent,
)

RUN_COMMANDS: tuple[Command, ...] = (
    Command(
        name="analyze",
        summary="Analyse a trace and write the whole report.",
        reads="a trace of torch.profiler (JSON; plain, gzip, zstd, zip or tar)",
        writes="RUN/analysis.md, RUN/report.json and the evidence; prints the path of analysis.md",
        example=f"analyze {EXAMPLE} -o RUN",
        arguments=(
            TRACE,
            OUTPUT,
            PLATFORM,
            PLATFORM_FILE,
            MODELS,
            STEPS,
            Argument(flags=("--json",), help="print report.json instead of the path", action="store_true"),
            REDACT,
            FORCE,
            MAX_BYTES,
            TIMINGS,
            QUIET,
        ),
    ),
    Command(
        name="prepare",
        summary="Analyse a trace and write tasks for agents that improve the report's words.",
        reads="a trace of torch.profiler (JSON; plain, gzip, zstd, zip or tar)",
        writes="RUN with evidence, report, tasks and state; prints the path of RUN",
        example=f"prepare {EXAMPLE} -o RUN",
        arguments=(
            TRACE,
            OUTPUT,
            PLATFORM,
            PLATFORM_FILE,
            MODELS,
            STEPS,
            Argument(flags=("--json",), help="print folder, tasks and next command as JSON", action="store_true"),
            REDACT,
            FORCE,
            MAX_BYTES,
            TIMINGS,
            QUIET,
        ),
    ),
    Command(
        name="next",
        summary="Tell what to do now in a prepared run, and hand out tasks.",
        reads="the state of a run",
        writes="which tasks are handed out into RUN/state.json; prints briefs to follow or the command to run",
        example="next RUN",
        arguments=(
            FOLDER,
            Argument(
                flags=("--resume",),
                help="whoever had tasks is gone: those not back come first",
                action="store_true",
            ),
            Argument(flags=("--json",), help="print the step as JSON", action="store_true"),
        ),
    ),
    Command(
        name="submit",
        summary="Check prose for a task and store it if it is sound.",
        reads="prose on stdin, or a file: text as in the brief, or JSON",
        writes="RUN/prose/ANALYZER.json and RUN/state.json; one line a problem, exit code 1 if there is any",
        example="submit RUN gemm",
        arguments=(
            FOLDER,
            Argument(flags=("analyzer",), help="whose prose it is, as in the brief", metavar="ANALYZER"),
            Argument(flags=("file",), help="file with the prose instead of stdin", metavar="FILE", optional=True),
            Argument(flags=("--writer",), help="who wrote it, for the state", metavar="NAME"),
            Argument(flags=("--json",), help="print the outcome as JSON", action="store_true"),
        ),
    ),
    Command(
        name="report",
        summary="Write the report of a run with whatever prose is sound, and check the run.",
        reads="the folder of a run",
        writes="RUN/analysis.md, RUN/report.json, findings and plots; prints the path of analysis.md",
        example="report RUN",
        arguments=(
            FOLDER,
            Argument(flags=("--json",), help="print path and problems as JSON", action="store_true"),
            TIMINGS,
        ),
    ),
    Command(
        name="compare",
        summary="Compare two traces: where the time went, why, and what to do about it; with --fail-above, a CI gate.",
        reads="two traces, such as before and after a change, or two GPUs, ranks, versions",
        writes="RUN/compare.json, RUN/compare.md and the evidence; prints the path of compare.md",
        notes=(
            "With --fail-above: exit code 1 and one line a violated limit. A limit is violated if the growth of a\n"
            "metric exceeds it beyond noise: by its 95 % lower bound, from resampled steps (fixed seed). With fewer\n"
            "steps than --min-steps noise cannot be told, and the growth itself counts."
        ),
        example=f"compare {EXAMPLE} {EXAMPLE} -o RUN --fail-above 3% --metric span --metric category:gemm",
        arguments=(
            Argument(flags=("base",), help="the trace to compare with", metavar="BASE"),
            Argument(flags=("target",), help="the trace to judge", metavar="TARGET"),
            Argument(
                flags=("-o", "--output"), help="folder (default ./rooftrace-runs/<base>_vs_<target>)", metavar="RUN"
            ),
            Argument(flags=("--base-platform",), help="GPU to rate the base against (see `platforms`)", metavar="SLUG"),
            Argument(flags=("--target-platform",), help="GPU to rate the target against", metavar="SLUG"),
            STEPS,
            Argument(
                flags=("--prepare",),
                help="write a task for an agent that improves the page's words, too: go on with `next`",
                action="store_true",
            ),
            Argument(
                flags=("--fail-above",), help="largest growth of a metric, such as 3%%", metavar="PCT", type=percent
            ),
            Argument(
                flags=("--metric",),
                help=(
                    "span (default), kernel:REGEX (summed durations), category:SLUG, or idle (growth over the base's "
                    "step); repeatable"
                ),
                metavar="METRIC",
                action="append",
            ),
            Argument(
                flags=("--min-steps",),
                help="steady steps a side needed to tell noise (default 3)",
                metavar="N",
                type=count,
            ),
            Argument(flags=("--junit",), help="write the limits as JUnit XML", metavar="FILE.xml"),
            Argument(flags=("--github",), help="print the limits as GitHub annotations", action="store_true"),
            Argument(flags=("--json",), help="print compare.json instead of the path", action="store_true"),
            REDACT,
            FORCE,
            MAX_BYTES,
            TIMINGS,
            QUIET,
        ),
    ),
    Command(
        name="check",
        summary="Check the files of a run against their schemas and each other.",
        reads="the folder of a run",
        writes="nothing; one line a problem, exit code 1 if there is any",
        example="check RUN",
        arguments=(
            FOLDER,
            Argument(flags=("file",), help="check only this file of it", metavar="FILE", optional=True),
            Argument(flags=("--json",), help="print the problems as JSON", action="store_true"),
        ),
    ),
    Command(
        name="repro",
        summary="Write a PyTorch script that runs a finding's ops alone, beside what would replace them.",
        reads="the folder of a run",
        writes="the script, which runs with torch alone, to the file given or to stdout",
        example="repro RUN gemm.F1",
        arguments=(
            FOLDER,
            Argument(flags=("finding",), help="id of a fusion or compute finding", metavar="FINDING"),
            Argument(flags=("-o", "--output"), help="where to write it; printed without", metavar="FILE.py"),
            Argument(flags=("--json",), help="print what the script holds as JSON", action="store_true"),
        ),
    ),
    Command(
        name="cut",
        summary="Write a smaller trace, or one to give away: some steps, a window of time, no Python frames, no names.",
        reads="a trace of torch.profiler (JSON; plain, gzip, zstd, zip or tar)",
        writes="the chosen part as a new trace, compressed if its name ends in .gz; prints its path",
        example=f"cut {EXAMPLE} --steps 1 -o RUN",
        arguments=(
            TRACE,
            Argument(flags=("-o", "--output"), help="the smaller trace; it must not exist yet", metavar="OUT"),
            STEPS,
            Argument(
                flags=("--window",),
                help="time after the first event to keep, in ms or with a unit: `12:40.5`, `100us:2s`, `5:`",
                metavar="FROM:TO",
            ),
            Argument(flags=("--no-python",), help="leave Python frames out", action="store_true"),
            REDACT,
            Argument(flags=("--json",), help="print path and counts as JSON", action="store_true"),
            MAX_BYTES,
            QUIET,
        ),
    ),
)
