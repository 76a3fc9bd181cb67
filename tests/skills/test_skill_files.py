"""Skills as files: front matter, budgets, commands, links, and a router that knows them all. No wording is tested."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from rooftrace.cli import main
from rooftrace.cli.parser import COMMANDS, parse
from rooftrace.pack import ROOT
from tests.repository.files import repository_files
from tests.repository.skills import front_matter, skill_files

ROUTER = Path("SKILL.md")
PROMPTS = sorted(path.relative_to(ROOT) for path in (ROOT / "skills/analyzers").glob("*.md"))
SUB_SKILLS = [path for path in skill_files() if path != ROUTER]
FENCED = re.compile(r"^ *```bash\n(.*?)^ *```", re.M | re.S)
INLINE = re.compile(r"`(python3 PACK/scripts/rooftrace\.py [^`]*)`")
IN_PACK = re.compile(r"PACK/([\w./-]*\w)")
BODY_WORDS = 500
PROMPT_BYTES = 1_600
OF_THE_LAUNCHER = ("setup", "calibrate")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def body(path):
    return read(path).split("\n---\n", 1)[1]


def commands(path):
    """Every command line of this pack in a fenced block, and every one in backticks."""
    text = read(path)
    fenced = [line.strip() for block in FENCED.findall(text) for line in block.splitlines() if line.strip()]
    return [*fenced, *INLINE.findall(text)]


by_skill = pytest.mark.parametrize("path", skill_files(), ids=str)
by_sub_skill = pytest.mark.parametrize("path", SUB_SKILLS, ids=str)
by_prompt = pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)


@by_skill
def test_the_front_matter_is_the_first_line_and_the_name_the_folder(path):
    assert read(path).startswith("---\n")
    assert front_matter(read(path))["name"] == (path.parent.name if path != ROUTER else "rooftrace")


@by_skill
def test_a_description_says_what_and_when_and_no_steps(path):
    description = front_matter(read(path))["description"]

    assert " Use when " in description
    assert "PACK" not in description
    assert ".py" not in description


@by_sub_skill
def test_a_sub_skill_is_internal_and_short(path):
    assert "internal: true" in front_matter(read(path))["metadata"]
    assert len(body(path).split()) <= BODY_WORDS


def test_versions_of_all_skills_are_equal():
    versions = {re.search(r'version: "(.*?)"', read(path))[1] for path in skill_files()}

    assert len(versions) == 1


def test_the_router_names_every_sub_skill_and_no_other():
    routed = set(re.findall(r"PACK/(skills/[\w-]+/SKILL\.md)", read(ROUTER)))

    assert routed == {path.as_posix() for path in SUB_SKILLS}


def test_the_router_fits_its_budget():
    assert len(read(ROUTER).splitlines()) <= 150


@by_skill
def test_every_command_parses_with_the_real_parser(path):
    launcher = ["python3", "PACK/scripts/rooftrace.py"]
    lines = commands(path)
    assert lines

    for line in lines:
        words = shlex.split(line)
        assert words[:2] == launcher, line
        if words[2] not in OF_THE_LAUNCHER:
            parse(words[2:])


@by_skill
def test_a_command_is_one_plain_call(path):
    """No shell syntax: harnesses ask before they run what they cannot read."""
    assert [line for line in commands(path) if re.search(r"[|&;<>$`]|\bcd\b", line)] == []


@pytest.mark.parametrize("path", [*skill_files(), *PROMPTS, Path("templates/briefs/brief.md.j2")], ids=str)
def test_every_path_in_the_pack_exists(path):
    assert [named for named in IN_PACK.findall(read(path)) if not (ROOT / named).exists()] == []


def test_every_option_that_a_skill_tells_of_exists():
    flags = {flag for command in COMMANDS for argument in command.arguments for flag in argument.flags}
    told = {flag for path in skill_files() for flag in re.findall(r"`(--[a-z][a-z-]*)", read(path))}

    assert told - flags == set()


# Prompts


@by_prompt
def test_a_prompt_is_small_and_has_one_title(path):
    text = read(path)

    assert len(text.encode()) <= PROMPT_BYTES
    assert text.splitlines()[0] == f"# {path.stem}"
    assert text.count("\n#") == 0


@by_prompt
def test_a_prompt_holds_no_number_that_a_writer_could_repeat(path):
    words = re.sub(r"`[^`]*`|[A-Za-z]+(?:8|16|32)", "", read(path))

    assert re.findall(r"\d+", words) == []


@by_prompt
def test_a_prompt_names_fields_that_evidence_has(path):
    """A field that no analyzer writes is never met by a writer."""
    evidence = read(Path("tests/patterns/fields.py")) + "".join(
        read(path) for path in repository_files() if path.parts[:3] == ("scripts", "rooftrace", "analyzers")
    )
    fields = re.findall(r"`([a-z]+(?:_[a-z]+)+)`", read(path))

    assert [name for name in fields if name not in evidence and not is_api(name)] == []


def is_api(name):
    """Whether it is a setting or a layer's argument, not a field."""
    return name in {"channels_last", "padding_idx", "flex_attention"}


# Evals


def test_trigger_cases_are_balanced_and_begin_with_the_sentence():
    cases = json.loads(read(Path("evals/evals.json")))["trigger"]

    assert cases[0]["query"] == "run the analysis orchestrator on trace.json"
    assert sum(case["should_trigger"] for case in cases) >= 8
    assert sum(not case["should_trigger"] for case in cases) >= 8
    assert len({case["id"] for case in cases}) == len({case["query"] for case in cases}) == len(cases)


def test_every_behaviour_case_has_assertions_and_files_that_exist():
    content = json.loads(read(Path("evals/evals.json")))

    assert content["skill_name"] == front_matter(read(ROUTER))["name"]
    assert [case["id"] for case in content["evals"] if not case["assertions"]] == []
    assert [name for case in content["evals"] for name in case["files"] if not (ROOT / name).is_file()] == []


# Capturing


def test_every_note_that_the_capture_guide_answers_exists():
    notes = json.loads(read(Path("knowledge/health_notes.json")))
    table = read(Path("knowledge/capture.md")).split("| Note | Record again with |")[1]
    told = [name for cell in re.findall(r"^\| (`[^|]*`) \|", table, re.M) for name in re.findall(r"`(\w+)`", cell)]

    assert len(told) > 10
    assert [name for name in told if name not in notes] == []


# What `explain` tells of a name that a skill or a report uses


@pytest.fixture
def explained(capsys):
    def call(*arguments):
        code = main(["explain", *arguments])
        return code, capsys.readouterr().out

    return call


def codes(out):
    return [line for line in out.splitlines() if line and not line.startswith(" ")]


def test_a_name_of_several_patterns_is_told_of_each(explained):
    code, out = explained("latency_bound")

    assert (code, codes(out)) == (0, ["convolution/latency_bound", "gemm/latency_bound"])
    assert out.count("\n  do: ") == 2


def test_a_cause_of_idle_time_is_told_by_its_patterns_before_what_comparisons_say(explained):
    code, out = explained("host_code")

    assert (code, codes(out)[0], codes(out)[-1]) == (0, "idle/host_code_annotation", "compare/host_code")


def test_a_full_code_is_told_alone(explained):
    assert codes(explained("compare/host_code")[1]) == ["compare/host_code"]
    assert codes(explained("gemm/latency_bound")[1]) == ["gemm/latency_bound"]


def test_several_are_a_list_in_json_and_one_is_an_object(explained):
    several, one = (json.loads(explained(name, "--json")[1]) for name in ("latency_bound", "launch_bound_eager"))

    assert [entry["code"] for entry in several] == ["convolution/latency_bound", "gemm/latency_bound"]
    assert one["code"] == "idle/launch_bound_eager"
