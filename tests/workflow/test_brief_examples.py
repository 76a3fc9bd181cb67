"""The filled examples of the briefs: each is sound about the run that it was written about, a planted one."""

from __future__ import annotations

import re

import pytest

from evals.workshop.plants.truth import Case, Run
from rooftrace.pack import TEMPLATES
from rooftrace.report.assemble import open_grounds
from rooftrace.report.grounding.judge import examine
from rooftrace.workflow.agents import prepare
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.slottext import to_json

# The example of a comparison needs two traces.
EXAMPLES = sorted(set((TEMPLATES / "briefs").glob("example_*.txt")) - {TEMPLATES / "briefs/example_compare.txt"})
# Distributed training with a slow product, gradients reduced after the backward pass, and a value read in every step.
PLANTED = ("exposed_all_reduce", "item_per_step", "slow_gemm")
MISSING = "has no entry"  # an example shows a finding; the run has more


# An analyzer that finds nothing in the planted run: its example is held against findings with the same fields.
STANDS_FOR = {"memory": "normalization", "convolution": "gemm"}


def analyzer_of(path):
    kind = path.stem.removeprefix("example_")
    return STANDS_FOR.get(kind, kind)


@pytest.fixture(scope="module")
def grounds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    case = Case(
        name="example",
        base="distributed",
        machine="h100-sxm",
        seed="examples",
        planted=PLANTED,
        sizes={"steps": 3},
    )
    (folder / "trace.json").write_text(Run(case).trace(), encoding="utf-8")
    prepare(folder / "trace.json", folder / "run", AnalyzeOptions(), {})
    return open_grounds(folder / "run")


def flaws(path, text, grounds):
    name = analyzer_of(path)
    text = text.replace("convolution.F", "gemm.F")
    found = examine(f"prose/{name}.json", to_json(name, text), grounds).flaws
    return [str(flaw) for flaw in found if MISSING not in flaw.what]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_passes_the_checks_about_its_run(path, grounds):
    assert flaws(path, path.read_text(encoding="utf-8"), grounds) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_with_an_id_that_its_run_has_not_is_refused(path, grounds):
    text = re.sub(r"\{\{(\w+(?:\.F1)?)\.\w+\}\}", r"{{\1.nothing_ms}}", path.read_text(encoding="utf-8"), count=1)

    assert any("nothing_ms" in flaw for flaw in flaws(path, text, grounds))
