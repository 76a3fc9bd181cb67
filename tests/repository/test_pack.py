"""The repository is the skill: what an installer and a harness need of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rooftrace
from tests.launcher.test_first_run import tree_hash
from tests.repository.files import ROOT, markdown_files, repository_files
from tests.repository.skills import front_matter, skill_files

SPECIFIED_FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
NEEDS_COMMANDS = pytest.mark.skipif(
    not (ROOT / "scripts" / "rooftrace" / "cli" / "__init__.py").exists(),
    reason="there is no command line yet",
)
COMMAND = re.compile(r"rooftrace\.py ([a-z][a-z-]*)")
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


# Files


def test_nothing_in_the_pack_is_lost_by_an_installer_or_leaks_into_a_session() -> None:
    unwanted = {"AGENTS.md", "CLAUDE.md", "metadata.json"}

    assert [str(path) for path in repository_files() if path.name in unwanted] == []
    assert [str(path) for path in repository_files() if (ROOT / path).is_symlink()] == []


def test_the_pack_is_small_enough_for_archive_installs() -> None:
    left_out = [
        line.split()[0].removeprefix("/")
        for line in (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
        if line.endswith(" export-ignore")
    ]
    files = [path for path in repository_files() if not any(path.is_relative_to(folder) for folder in left_out)]

    assert len(files) < 1000
    assert sum((ROOT / path).stat().st_size for path in files) < 25 * 2**20


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    personal = re.compile(rb"(?<![\w.])/(?:work|root)/\w|" + re.escape(os.fsencode(ROOT)) + rb"\b")
    named = [str(path) for path in repository_files() if personal.search((ROOT / path).read_bytes())]

    assert named == []


def test_every_relative_link_of_the_prose_leads_to_a_file() -> None:
    broken = [
        f"{path}: {target}"
        for path in markdown_files()
        for target in re.findall(r"\]\(([^)#\s]+)", read(path))
        if "://" not in target and not (ROOT / path).parent.joinpath(target).exists()
    ]

    assert broken == []


# Skills


@pytest.mark.parametrize("path", skill_files(), ids=str)
def test_front_matter_has_the_specified_fields_only(path: Path) -> None:
    fields = front_matter(read(path))

    assert set(fields) <= SPECIFIED_FIELDS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert fields["name"] == (path.parent.name or "rooftrace")
    assert 1 <= len(fields["description"]) <= 1024
    assert not set("<>") & set(fields["description"])


def test_the_root_skill_is_a_router_that_answers_to_analysis_orchestrator() -> None:
    text = read(Path("SKILL.md"))

    assert "analysis orchestrator" in front_matter(text)["description"]
    assert len(text.splitlines()) <= 150


def test_every_path_under_pack_that_a_skill_names_exists() -> None:
    missing = [
        f"{path}: {named}"
        for path in [*skill_files(), *sorted(p.relative_to(ROOT) for p in ROOT.glob("skills/analyzers/*.md"))]
        for named in re.findall(r"PACK/([\w./-]*\w)", read(path))
        if not (ROOT / named).exists()
    ]

    assert missing == []


# Versions


def test_one_version_everywhere() -> None:
    project = re.search(r'^version = "(.+)"$', read(Path("pyproject.toml")), re.M)
    plugin = json.loads(read(Path(".claude-plugin/plugin.json")))

    assert project is not None
    assert project[1] == rooftrace.__version__
    assert plugin["version"] == rooftrace.__version__
    assert f'version: "{rooftrace.__version__}"' in front_matter(read(Path("SKILL.md")))["metadata"]


def test_the_changelog_has_an_entry_for_the_version() -> None:
    assert re.search(rf"^## \[?{re.escape(rooftrace.__version__)}\b", read(Path("CHANGELOG.md")), re.M)


def test_one_name_everywhere() -> None:
    plugin = json.loads(read(Path(".claude-plugin/plugin.json")))
    market = json.loads(read(Path(".claude-plugin/marketplace.json")))

    assert plugin["name"] == market["plugins"][0]["name"] == "rooftrace"
    assert plugin["skills"] == ["./"]
    assert market["plugins"][0]["source"] == "./"


# Commands


def documented_commands() -> list[str]:
    """Every ``rooftrace.py <command>`` in a fenced block of the README, a skill or the contributor notes."""
    paths = [path for path in markdown_files() if path.name in ("README.md", "CONTRIBUTING.md", "SKILL.md")]
    blocks = [block for path in paths for block in FENCED.findall(read(path))]
    return sorted({name for block in blocks for name in COMMAND.findall(block)})


@NEEDS_COMMANDS
@pytest.mark.parametrize("command", documented_commands())
def test_every_documented_command_exists(command: str) -> None:
    launch = [sys.executable, "scripts/rooftrace.py", command, "--help"]
    done = subprocess.run(launch, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert command in done.stdout


@NEEDS_COMMANDS
def test_help_loads_none_of_the_slow_packages() -> None:
    launch = [sys.executable, "-X", "importtime", "scripts/rooftrace.py", "--help"]
    done = subprocess.run(launch, cwd=ROOT, capture_output=True, text=True, check=False)

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert loaded & {"numpy", "pydantic", "jsonschema", "jinja2", "msgspec"} == set()  # 0.1 s and more together


@NEEDS_COMMANDS
def test_an_analysis_leaves_the_pack_as_it_was(tmp_path: Path) -> None:
    traces = sorted((ROOT / "examples").glob("*.json.gz"))
    pack = tmp_path / "a pack"
    for name in ("scripts", "knowledge", "schemas", "templates", "examples"):
        shutil.copytree(ROOT / name, pack / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", pack)
    before = tree_hash(pack)
    for path in [pack, *pack.rglob("*")]:
        path.chmod(0o555)

    trace = pack / "examples" / traces[0].name
    launch = [
        sys.executable,
        "-I",
        str(pack / "scripts" / "rooftrace.py"),
        "analyze",
        str(trace),
        "-o",
        "run",
    ]
    done = subprocess.run(launch, cwd=tmp_path, capture_output=True, text=True, check=False)

    for path in [pack, *pack.rglob("*")]:
        path.chmod(0o755)
    assert (done.returncode, (tmp_path / "run" / "analysis.md").is_file()) == (0, True), done.stderr
    assert tree_hash(pack) == before
