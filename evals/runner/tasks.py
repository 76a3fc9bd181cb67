"""What an agent is asked: a prompt, the files it is given, and what its answer has to name."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from evals.corpus.cases import cases
from evals.workshop.kineto import write_trace
from evals.workshop.plants.kinds import KINDS
from evals.workshop.plants.truth import Case, Run

ROOT = Path(__file__).resolve().parents[2]
TRACE = "trace.json.gz"
PROMPT = (
    "run the analysis orchestrator on {trace}. Put the run in ./run. In the end tell me what to fix first and what it "
    "would gain."
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """``files``: name in the work folder -> source in the repository; ``case``: a planted case whose trace is written.

    ``places``: one text of each group has to stand in the answer. ``analyses``: whether a run folder is expected.
    """

    name: str
    prompt: str
    files: tuple[tuple[str, str], ...] = ()
    case: str = ""
    places: tuple[tuple[str, ...], ...] = ()
    analyses: bool = True

    def provide(self, folder: Path) -> None:
        """Puts the files in the work folder."""
        for name, source in self.files:
            shutil.copyfile(ROOT / source, folder / name)
        if self.case:
            write_trace(folder / TRACE, Run(_case(self.case)).trace())


def task(name: str) -> Task:
    """A scenario of ``evals.json`` by its id, or a case of the corpus by its name."""
    for row in json.loads((ROOT / "evals" / "evals.json").read_text(encoding="utf-8"))["evals"]:
        if row["id"] == name:
            files = tuple((Path(source).name, source) for source in row["files"])
            return Task(name=name, prompt=row["prompt"], files=files, analyses=name != "not-a-trace")
    case = _case(name)
    places = tuple(KINDS[kind].places for kind in case.planted)
    return Task(name=name, prompt=PROMPT.format(trace=TRACE), case=name, places=places)


def _case(name: str) -> Case:
    found = next((case for case in cases() if case.name == name), None)
    if found is None:
        message = f"unknown case: `{name}`; scenarios are in evals.json, cases are like `alone decoder slow_gemm`"
        raise KeyError(message)
    return found
