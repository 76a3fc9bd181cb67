"""The stages of a run whose prose an agent writes: evidence and tasks, prose in, report out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from rooftrace import __version__, platforms
from rooftrace.contracts import kinds, store
from rooftrace.contracts.evidence import AnalyzerEvidence, ManifestFile, RunFile
from rooftrace.errors import CheckFailed, RooftraceError
from rooftrace.report.asked import asked_findings
from rooftrace.report.assemble import open_grounds
from rooftrace.report.compare_run import basis_of
from rooftrace.report.grounding.judge import examine
from rooftrace.validators import check_run
from rooftrace.validators.checks import load_checks
from rooftrace.workflow import state as states
from rooftrace.workflow.compare_files import write_deliverables as write_comparison
from rooftrace.workflow.folder import new_folder, refuse_foreign_folder, written_into
from rooftrace.workflow.locks import locked_folder
from rooftrace.workflow.passed import note_passed
from rooftrace.workflow.reading import read_traces
from rooftrace.workflow.redact import private_paths
from rooftrace.workflow.run import examine_trace, write_evidence, write_report
from rooftrace.workflow.slottext import to_json
from rooftrace.workflow.state import State, Task
from rooftrace.workflow.timing import stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rooftrace.contracts.redaction import Redactor
    from rooftrace.report.grounding.grounds import Grounds
    from rooftrace.report.grounding.judge import Flaw
    from rooftrace.workflow.options import AnalyzeOptions


_SLOT_PATH = re.compile(r"\$\.findings\[(\d+)\]\.?(\w*)")
_FILE_PATH = re.compile(r"^prose/\w+\.json(?:::\$?\.?)?")


def prepare(trace: Path, run: Path, options: AnalyzeOptions, given: Mapping[str, str]) -> State:
    """Analyse a trace and write its run with the report in the pack's words, the tasks and the state.

    `given` are the options as they were given, for whoever resumes. Prose that an earlier `prepare` of the same
    evidence has led to is kept.
    """
    refuse_foreign_folder(run, force=options.force)
    if options.platform is not None:
        platforms.load_platform(options.platform)  # an unknown one is told before a long file is read
    [(columns, facts)], redactor = read_traces([trace], [options])
    examined = examine_trace(columns, facts, options)
    earlier = accepted_prose(run)
    with new_folder(run, force=options.force) as folder:
        with stage("evidence"):
            write_evidence(folder, examined)
        with stage("briefs"):
            tasks = _write_tasks(folder, redactor)
        told = {"": str(trace.resolve()), **dict(sorted(given.items()))}
        if options.redact:
            told = private_paths(told, redactor)
        state = State(
            tool_version=__version__,
            source_sha256=facts.sha256,
            trace_path=told.pop(""),
            options=told,
            tasks=tasks,
        )
        state = keep_prose(folder, state, earlier)
        states.write(folder, state)
        write_report(folder)
        _checked(folder)
    return state


def _write_tasks(run: Path, redactor: Redactor) -> tuple[Task, ...]:
    """Write the briefs, redacted, and list them in the manifest; one task each, the model's last."""
    briefs = {name: redactor.text(text) for name, text in compose_briefs(run).items()}
    files = {_brief_path(name): text.encode() for name, text in briefs.items()}
    (run / states.TASKS).mkdir(exist_ok=True)
    for path, data in files.items():
        store.write_bytes(run / path, data)
    manifest = store.read_artifact(run / store.MANIFEST, ManifestFile)
    entries = [RunFile(path=path, sha256=store.sha256(data), schema_name=None) for path, data in files.items()]
    listed = sorted([*manifest.files, *entries], key=lambda entry: entry.path)
    store.write_bytes(run / store.MANIFEST, store.to_json(manifest.model_copy(update={"files": listed})))
    return tuple(Task(analyzer=name, brief=_brief_path(name), prose=store.prose_path(name)) for name in briefs)


def compose_briefs(run: Path) -> dict[str, str]:
    """The briefs of a run by analyzer, those with the most valuable finding first; the model's last."""
    from rooftrace.workflow.briefs import compose_brief

    grounds = open_grounds(run)
    briefs = {}
    for analyzer, findings in asked_findings(grounds.report).items():
        evidence = store.read_artifact(run / store.evidence_path(analyzer), AnalyzerEvidence)
        patterns = {finding.id: finding.patterns for finding in evidence.findings}
        briefs[analyzer] = compose_brief(analyzer, findings, grounds, patterns)
    model = _model_brief(run, grounds)
    return briefs | ({store.MODEL: model} if model else {})


def _model_brief(run: Path, grounds: Grounds) -> str | None:
    """The brief for naming the model; None where the trace tells nothing about it."""
    from rooftrace.contracts.model_evidence import ModelEvidence, evidence_lines
    from rooftrace.workflow.briefs import compose_model_brief

    path = run / store.evidence_path(store.MODEL)
    if not path.is_file():
        return None
    evidence = store.read_artifact(path, ModelEvidence)
    return compose_model_brief(evidence_lines(evidence), grounds) if evidence.tells_something else None


def _brief_path(analyzer: str) -> str:
    return f"{states.TASKS}/{analyzer}.md"


def accepted_prose(run: Path) -> dict[str, tuple[Task, bytes]]:
    """Prose that a run holds already, with its task, by analyzer."""
    try:
        tasks = states.read(run).tasks
        accepted = [task for task in tasks if task.status == "accepted"]
        return {task.analyzer: (task, store.read_bytes(run / task.prose)) for task in accepted}
    except RooftraceError:  # no run, or one that is to be replaced because it is damaged
        return {}


def keep_prose(run: Path, state: State, earlier: Mapping[str, tuple[Task, bytes]]) -> State:
    """Put prose back that is sound about the evidence as it is now."""
    known = [task for task in state.tasks if task.analyzer in earlier]
    grounds = basis_of(run) if known else None
    for task in known:
        before, data = earlier[task.analyzer]
        if grounds is not None and not examine(task.prose, data, grounds).flaws:
            store.write_bytes(run / task.prose, data)
            state = state.with_task(replace(task, status="accepted", dispatches=1, submissions=1, writer=before.writer))
    return state


def submit(run: Path, analyzer: str, text: str, writer: str | None = None) -> tuple[Task, list[str]]:
    """Check prose and store it where it is sound. Returns the task after it, and the problems in lines."""
    path = states.read(run).task(analyzer).prose
    grounds = basis_of(run)  # a damaged run is no fault of the writer's
    try:
        data = to_json(analyzer, text)
    except CheckFailed as error:
        return _refused(run, analyzer, [f"{error.what}. {error.hint or ''}".strip()])
    handed = examine(path, data, grounds)
    if handed.flaws or handed.prose is None:
        return _refused(run, analyzer, _told(handed.flaws, _written_ids(data)))
    evidence = store.sha256(store.read_bytes(run / store.evidence_path(analyzer)))
    kept = store.to_json(handed.prose.model_copy(update={"evidence_sha256": evidence}))
    with written_into(run), locked_folder(run), states.locked(run, "report"):
        was_reported = states.read(run).report_sha256 is not None
        store.write_bytes(run / path, kept)
        task = states.update(run, lambda state: _of(states.accept(state, analyzer, writer), analyzer))
        # So that the run is whole at any time; one whose report was written stays so.
        (_report_of_state if was_reported else _report_and_check)(run)
    return task, []


def _refused(run: Path, analyzer: str, problems: list[str]) -> tuple[Task, list[str]]:
    return states.update(run, lambda state: _of(states.refuse(state, analyzer, problems), analyzer)), problems


def _written_ids(data: bytes) -> list[str]:
    """Ids of the entries in the order they were handed in, also where they do not match the schema."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        return []
    entries = content.get("findings") if isinstance(content, dict) else None
    listed = entries if isinstance(entries, list) else []
    return [str(entry.get("id")) if isinstance(entry, dict) else "" for entry in listed]


def _told(flaws: list[Flaw], names: list[str]) -> list[str]:
    """Flaws in lines, by rule: what the rule asks for once, then each place by the finding's id and slot."""
    checks = load_checks()
    lines: list[str] = []
    for code in sorted({flaw.code for flaw in flaws}):
        lines.append(f"{code}: {(checks[code].__doc__ or '').strip().splitlines()[0]}")
        lines += [f"  {_place(str(flaw), names)}" for flaw in flaws if flaw.code == code]
    return lines


def _place(text: str, names: list[str]) -> str:
    """`gemm.F1 insight` instead of the path into a file that the writer never saw."""

    def spelled(match: re.Match[str]) -> str:
        at = int(match[1])
        return f"{names[at]} {match[2]}" if at < len(names) and names[at] else match[0]

    text = _SLOT_PATH.sub(spelled, text)
    return _FILE_PATH.sub("", text)


def _of(state: State, analyzer: str) -> tuple[State, Task]:
    return state, state.task(analyzer)


def report(run: Path) -> list[str]:
    """Write the report with whatever prose is valid and check the run; returns the problems in lines."""
    states.refuse_links(run)
    with locked_folder(run), written_into(run):
        if not (run / store.STATE).is_file():
            return _report_and_check(run)
        with states.locked(run, "report"):
            return _report_of_state(run)


def _report_of_state(run: Path) -> list[str]:
    """As `_report_and_check`, and the state tells which report that was."""
    problems = _report_and_check(run)
    digest = store.sha256(store.read_bytes(run / kinds.page_of(run)))
    states.update(run, lambda state: (states.reported(state, digest, is_checked=not problems), None))
    return problems


def _write_deliverables(run: Path) -> None:
    """The report of a run, or that of a comparison."""
    if kinds.is_comparison(run):
        write_comparison(run)
    else:
        write_report(run)


def _report_and_check(run: Path) -> list[str]:
    _write_deliverables(run)
    return _checked(run)


def _checked(run: Path) -> list[str]:
    """Problems of what was just written, in lines. All is loaded here, so `check` need not look again."""
    with stage("check"):
        result = check_run(run)
    if not result.problems:
        note_passed(run, result.checks)
    return [str(problem) for problem in result.problems]
