"""The whole job without a model: a trace in, a run folder with all evidence and the report out."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rooftrace import __version__, platforms, roofline
from rooftrace.analyzers.model import identify
from rooftrace.contracts import store
from rooftrace.contracts.evidence import AnalyzerEvidence, ManifestFile, RunFile
from rooftrace.contracts.ledger import LedgerFile
from rooftrace.contracts.model_evidence import ModelEvidence
from rooftrace.contracts.replay import ReplayFile
from rooftrace.contracts.tables import GAPS, KERNELS, OPS, write_csv
from rooftrace.workflow import facts as trace_facts
from rooftrace.workflow import findings, health, rows
from rooftrace.workflow.chains import chains
from rooftrace.workflow.folder import new_folder, refuse_foreign_folder
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.prepare import attribute_idle, rate_kernels
from rooftrace.workflow.reading import read_trace
from rooftrace.workflow.timing import elsewhere, stage

if TYPE_CHECKING:
    from pathlib import Path

    from rooftrace.analyzers import RatedRun
    from rooftrace.contracts.report import CpuOp
    from rooftrace.trace import FileFacts, Trace
    from rooftrace.workflow.findings import OfKernels, Replayed, Results
    from rooftrace.workflow.prepare import Prepared

_DEFAULT = AnalyzeOptions()
# GPU activities from which on looking at kernels takes longer than a copy of the process costs, about 20 ms.
_LONG = 2_000


def analyze(trace: Path, run: Path, options: AnalyzeOptions = _DEFAULT) -> Path:
    """Analyse a trace and write its run folder; returns the path of `analysis.md`.

    The folder appears whole or not at all. One that is there already is replaced only if it is a run.
    """
    refuse_foreign_folder(run, force=options.force)
    if options.platform is not None:
        platforms.load_platform(options.platform)  # an unknown one is told before a long file is read
    columns, facts = read_trace(trace, options)
    examined = examine_trace(columns, facts, options)
    with new_folder(run, force=options.force) as folder:
        with stage("evidence"):
            write_evidence(folder, examined)
        write_report(folder)
    return run / store.ANALYSIS


class Examined(Struct, frozen=True, kw_only=True):
    """A trace and all that is found out about it; ``files`` are those of its run that are finished, by path."""

    prepared: Prepared
    facts: FileFacts
    results: Results
    files: dict[str, bytes]
    host_ops: list[CpuOp]

    @property
    def head(self) -> dict[str, Any]:
        """What every artifact begins with."""
        return _head(self.facts)


def examine_trace(columns: Trace, facts: FileFacts, options: AnalyzeOptions) -> Examined:
    """Find out everything; what is said of kernels alone and what is said of idle time are found abreast."""
    rated, head = rate_kernels(columns, options), _head(facts)
    is_long = rated.run.activities.row.size >= _LONG
    with elsewhere(partial(_look_at_kernels, rated.run, head), is_worth_it=is_long) as looking:
        prepared = attribute_idle(rated)
        workload = prepared.workload
        with stage("evidence"):
            files = {
                store.LEDGER: store.to_json(LedgerFile(devices=workload.ledgers, **head)),
                store.OPS: write_csv(OPS, rows.op_rows(workload)).encode(),
                store.KERNELS: write_csv(KERNELS, rows.kernel_rows(workload)).encode(),
                store.GAPS: write_csv(GAPS, rows.gap_rows(workload)).encode(),
                store.evidence_path(store.MODEL): store.to_json(ModelEvidence(**identify(workload), **head)),
            }
            system = findings.analyze_system(workload)
            _load_report()
            seen = looking.result()
            files[store.CHAINS] = seen.chains
            results = findings.score_findings(workload, seen.said, system, seen.replayed)
    return Examined(prepared=prepared, facts=facts, results=results, files=files, host_ops=seen.host_ops)


def _load_report() -> None:
    """Have the modules of the report loaded: there is nothing else to do until the kernels are looked at."""
    for name in ("assemble", "plots", "render", "view"):
        import_module(f"rooftrace.report.{name}")


def _head(facts: FileFacts) -> dict[str, Any]:
    return {"tool_version": __version__, "source_sha256": facts.sha256}


class _Seen(Struct, frozen=True, kw_only=True):
    """What can be said without the causes of idle time; ``chains`` is the file of that name."""

    said: OfKernels
    chains: bytes
    replayed: Replayed | None
    host_ops: list[CpuOp]


def _look_at_kernels(run: RatedRun, head: dict[str, Any]) -> _Seen:
    said = findings.analyze_kernels(run)
    with stage("chains"):
        calls = store.to_json(chains(run, said.drafts, head))
    return _Seen(
        said=findings.without_examples(said),
        chains=calls,
        replayed=findings.replayed(run),
        host_ops=trace_facts.top_host_ops(run),
    )


def write_evidence(run: Path, examined: Examined) -> None:
    """Write manifest, tables, ledger and the evidence of every analyzer whose condition holds."""
    results, head = examined.results, examined.head
    workload = examined.prepared.workload
    evidence = [
        AnalyzerEvidence(analyzer=name, summary=summary, findings=results.findings[name], **head)  # type: ignore[arg-type]
        for name, summary in results.summaries.items()
    ]
    files = dict(examined.files)
    if results.replay is not None:
        files[store.REPLAY] = store.to_json(ReplayFile(**results.replay, **head))
    files |= {store.evidence_path(item.analyzer): store.to_json(item) for item in evidence}
    manifest = ManifestFile(
        trace=trace_facts.trace_info(workload, examined.facts),
        health=health.assess(examined.prepared, examined.facts, results),
        platform=trace_facts.platform_info(workload, examined.prepared.choice),
        coverage=roofline.coverage(workload.activities, workload.groups, workload.ratings),
        cpu_ops=examined.host_ops,
        analyzers=[item.analyzer for item in evidence],
        files=_listed(files),
        **head,
    )
    for path, data in files.items():
        store.write_bytes(run / path, data)
    store.write_bytes(run / store.MANIFEST, store.to_json(manifest))


def write_report(run: Path) -> None:
    """Assemble the report from the run's files and list what was written in the manifest."""
    from rooftrace.report.assemble import write

    with stage("report"):
        written = write(run)
    manifest = store.read_artifact(run / store.MANIFEST, ManifestFile)
    kept = {entry.path: entry for entry in manifest.files if (run / entry.path).is_file()}
    kept |= {entry.path: entry for entry in _listed({path: store.read_bytes(run / path) for path in written})}
    files = [kept[path] for path in sorted(kept)]
    store.write_bytes(run / store.MANIFEST, store.to_json(manifest.model_copy(update={"files": files})))


def _listed(files: dict[str, bytes]) -> list[RunFile]:
    return [
        RunFile(path=path, sha256=store.sha256(data), schema_name=store.schema_name_of(path))
        for path, data in sorted(files.items())
    ]
