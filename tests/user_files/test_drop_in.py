"""A file dropped into its folder of the pack is registered, listed and checked; nothing else is edited."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.files import ROOT
from tests.user_files.conftest import MODEL, platform_content, write_json


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A copy of the pack, as a contributor has it."""
    for part in ("scripts/rooftrace", "knowledge"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(pack: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Python with the copy's package and no other."""
    variables = {**os.environ, "PYTHONPATH": str(pack / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *command], cwd=pack, env=variables, capture_output=True, text=True)


def check(pack: Path, tests: str, dropped: str) -> list[str]:
    """What the repository's own tests say of the dropped file, run on the copy."""
    shutil.copytree(ROOT / "tests" / Path(tests).parent, pack / "tests" / Path(tests).parent, dirs_exist_ok=True)
    (pack / "tests" / "__init__.py").write_text("", encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(pack)]
    return run(pack, "-m", "pytest", *options, f"tests/{tests}", "-k", dropped).stdout.splitlines()


def test_a_dropped_op_model_costs_its_op_and_its_example_is_a_test(pack):
    (pack / "scripts/rooftrace/opmodels/mine.py").write_text(MODEL, encoding="utf-8")

    program = "from rooftrace.opmodels import find_model; m = find_model('my::scale'); print(m.module, m.category)"
    assert run(pack, "-c", program).stdout == "rooftrace.opmodels.mine elementwise\n"
    assert check(pack, "opmodels/test_examples.py", "my::scale")[-1].startswith("1 passed")


def test_a_dropped_op_model_with_a_wrong_example_fails_its_test(pack):
    wrong = MODEL.replace("flops=262144", "flops=524288")
    (pack / "scripts/rooftrace/opmodels/mine.py").write_text(wrong, encoding="utf-8")

    said = check(pack, "opmodels/test_examples.py", "my::scale")

    assert said[-1].startswith("1 failed")
    assert any("AssertionError: a product on each of 2^18 * 4 B" in line for line in said)


def test_a_dropped_platform_is_known_listed_and_found(pack):
    write_json(pack / "knowledge/platforms/my-gpu.json", platform_content(names=["My GPU"], product="Mine 80 GB"))

    listed = json.loads(run(pack, "-m", "rooftrace", "platforms", "--json").stdout)
    assert [platform["product"] for platform in listed if platform["slug"] == "my-gpu"] == ["Mine 80 GB"]
    program = (
        "from rooftrace.platforms import DeviceFacts, detect; from rooftrace.platforms.table import main; main(); "
        "print(detect(DeviceFacts(name='my gpu')).platform.slug)"
    )
    assert run(pack, "-c", program).stdout == "my-gpu\n"
    rows = (pack / "knowledge/platforms/README.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row.startswith("| `my-gpu` | Mine 80 GB | 132 |")]
    said = check(pack, "platforms/test_double_entry.py", "my-gpu")
    assert " passed" in said[-1]
    assert "failed" not in said[-1]


def test_a_dropped_platform_with_a_sparse_figure_is_refused_by_the_rule_of_all(pack):
    content = platform_content()
    content["ceilings"][2]["datasheet"]["value_tflops"] = 1978.9  # float16, dense: 989.4
    write_json(pack / "knowledge/platforms/my-gpu.json", content)

    said = check(pack, "platforms/test_double_entry.py", "my-gpu and says_twice")

    assert said[-1].startswith("1 failed")
    place = "$.ceilings[2].datasheet: 1978.9 TFLOP/s published, 989.4 computed (132 units x 4096 a clock x 1.83 GHz)"
    assert any(place in line for line in said)


LIBRARY = {
    "schema_version": "1.0",
    "slug": "acme",
    "name": "Acme kernels",
    "priority": 1,
    "patterns": ["^acme_"],
    "source": "acme/kernels",
    "category": "gemm",
}
TELL = "from rooftrace.kernelnames import describe; i = describe('acme_product'); print(i.library, i.category)"


def test_a_dropped_rule_of_a_library_tells_its_kernels_and_is_checked(pack):
    assert run(pack, "-c", TELL).stdout.split()[0] == "None"
    write_json(pack / "knowledge/libraries/acme.json", LIBRARY)

    assert run(pack, "-c", TELL).stdout == "Acme kernels gemm\n"
    assert check(pack, "kernelnames/test_rules.py", "contract and acme")[-1].startswith("1 passed")


def test_a_dropped_rule_that_breaks_the_contract_fails_its_test(pack):
    write_json(pack / "knowledge/libraries/acme.json", LIBRARY | {"category": "matmul"})

    assert check(pack, "kernelnames/test_rules.py", "contract and acme")[-1].startswith("1 failed")


def test_a_dropped_rule_that_cannot_be_read_is_told_by_its_file(pack):
    write_json(pack / "knowledge/libraries/acme.json", LIBRARY | {"patterns": "^acme_"})

    said = run(pack, "-c", TELL).stderr

    assert "error: `libraries/acme.json` is not a file of kernel-name rules" in said
    assert "hint: `contracts.kernel_rules` describes the fields and what a pattern may hold" in said
