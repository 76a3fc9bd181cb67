"""What is known of causes and of sanity notes, how `explain` tells it, and the guide to a gate in CI."""

from __future__ import annotations

import json
import re
import shlex
from typing import get_args

import pytest

from rooftrace.cli import main
from rooftrace.cli.parser import parse
from rooftrace.contracts.compare import RowCause, SanityCode
from rooftrace.pack import KNOWLEDGE
from rooftrace.report.compare_gate import signed_pct
from rooftrace.report.compare_words import causes_file
from rooftrace.units import format_ns

GUIDE = (KNOWLEDGE / "ci.md").read_text(encoding="utf-8")
NOTES = json.loads((KNOWLEDGE / "sanity_notes.json").read_bytes())
# Of a finding about idle time there are fewer quantities; `pace_pct` is there for the cause that cites it.
OF_WORK = {"base_launches_count", "target_launches_count", "base_kernel", "target_kernel"}
CITED = {"different_kernel": OF_WORK, "precision": OF_WORK, "more_launches": OF_WORK, "fewer_launches": OF_WORK}


def test_every_cause_but_unchanged_has_words():
    assert set(causes_file().causes) == set(get_args(RowCause)) - {"unchanged"}


@pytest.mark.parametrize("cause", causes_file().causes)
def test_words_of_a_cause_cite_only_what_its_findings_have_and_hold_no_number(cause):
    words = causes_file().causes[cause]
    texts = [text for text in words.model_dump().values() if text]
    cited = {name for text in texts for name in re.findall(r"\{\{(\w+)\}\}", text)}

    assert cited <= CITED.get(cause, set()) | ({"pace_pct"} if cause == "clock_or_power" else set())
    plain = [re.sub(r"`[^`]*`|\{\{\w+\}\}|TF32", "", text) for text in texts]
    assert [text for text in plain if re.search(r"\d", text)] == []


def test_every_code_of_a_sanity_note_has_an_entry():
    assert set(NOTES) == set(get_args(SanityCode))
    assert {tuple(entry) for entry in NOTES.values()} == {("what", "why", "do")}


def test_explain_tells_a_cause_and_a_sanity_note(capsys):
    assert main(["explain", "compare/more_launches"]) == 0
    assert capsys.readouterr().out.startswith(
        "compare/more_launches\n  what: The same work takes <base_launches_count> launches in the base"
    )
    assert main(["explain", "different_gpu"]) == 0
    assert capsys.readouterr().out.startswith("sanity/different_gpu\n  what: The two traces were recorded on ")


def test_a_name_that_one_trace_has_as_well_is_that_of_the_one_trace(capsys):
    main(["explain", "no_ops"])
    assert capsys.readouterr().out.startswith("no_ops\n")
    main(["explain", "data_loading"])
    assert capsys.readouterr().out.startswith("idle/data_loading\n")
    main(["explain", "sanity/no_ops"])
    assert capsys.readouterr().out.startswith("sanity/no_ops\n")


# The guide


def test_the_command_of_the_workflow_parses():
    lines = re.search(r"run: >-\n(( {10}.*\n)+)", GUIDE)
    assert lines is not None
    words = shlex.split(lines.group(1).replace("\n", " "))

    assert words[:2] == ["python3", "rooftrace/scripts/rooftrace.py"]
    options = parse(words[2:])
    assert (options.fail_above, options.metric, options.min_steps) == (3.0, ["span", "category:gemm"], 3)
    assert (options.github, options.junit) == (True, "cmp.xml")


def test_the_line_of_a_violation_is_as_the_gate_writes_it():
    line = re.search(r"error: span (\S+ %) \((.*?) to (.*?)\)", GUIDE)
    assert line is not None
    # 150 to 160 us: 10 / 150 = 6.67 %
    assert line.groups() == (signed_pct(6.67), format_ns(150_000), format_ns(160_000))


def test_codes_and_causes_that_the_guide_names_exist():
    assert set(re.findall(r"`sanity/(\w+)`", GUIDE)) <= set(NOTES)
    assert "clock_or_power" in causes_file().causes
