"""The rule files: their shape, and that a file dropped into the folder is all a library needs."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from pydantic import ValidationError

from rooftrace.contracts.base import Category
from rooftrace.contracts.kernel_rules import CategoryFile, LibraryFile
from rooftrace.errors import InputError
from rooftrace.kernelnames import describe_with, load_rules
from rooftrace.kernelnames.rules import plain_part
from rooftrace.pack import KNOWLEDGE

LIBRARIES = sorted((KNOWLEDGE / "libraries").glob("*.json"))
CATEGORIES = sorted((KNOWLEDGE / "kernel_categories").glob("*.json"))


def write_library(folder, **changes):
    record = {
        "schema_version": "1.0",
        "slug": "acme",
        "name": "Acme kernels",
        "priority": 1,
        "patterns": ["^acme_", r"_acme\d+_"],
        "source": "acme/kernels",
    }
    (folder / "libraries").mkdir(exist_ok=True)
    (folder / "libraries" / "acme.json").write_text(json.dumps(record | changes))


@pytest.mark.parametrize("path", LIBRARIES, ids=[path.stem for path in LIBRARIES])
def test_a_library_file_keeps_the_contract(path):
    assert LibraryFile.model_validate_json(path.read_bytes()).slug == path.stem


@pytest.mark.parametrize("path", CATEGORIES, ids=[path.stem for path in CATEGORIES])
def test_a_category_file_keeps_the_contract(path):
    assert CategoryFile.model_validate_json(path.read_bytes()).slug == path.stem


def test_there_is_a_file_for_every_category_of_the_closed_list():
    assert sorted(path.stem for path in CATEGORIES) == sorted(get_args(Category))


def test_no_two_libraries_share_a_name_and_no_two_categories_an_op_or_a_priority():
    names = [json.loads(path.read_bytes())["name"] for path in LIBRARIES]
    records = [json.loads(path.read_bytes()) for path in CATEGORIES]
    ops = [op for record in records for op in record.get("fused_ops", [])]

    assert len(names) == len(set(names))
    assert [op for op in ops if ops.count(op) > 1] == []
    assert len({record["priority"] for record in records}) == len(records)


def test_a_library_file_dropped_into_the_folder_is_used(tmp_path):
    write_library(tmp_path, category="gemm", fused_patterns=["_fused"])

    rules = load_rules(tmp_path)

    info = describe_with(rules, "acme_product_fused")
    assert (info.library, info.category, info.fused) == ("Acme kernels", "gemm", True)
    assert describe_with(rules, "my_acme12_product").library == "Acme kernels"
    assert describe_with(rules, "my_acme_product").library is None


def test_the_lower_priority_is_tried_first_and_an_exclusion_passes_the_name_on(tmp_path):
    write_library(tmp_path, exclude=["_copy"])
    second = json.loads((tmp_path / "libraries" / "acme.json").read_text())
    second |= {"slug": "aaaa", "name": "Second", "priority": 2, "exclude": []}
    (tmp_path / "libraries" / "aaaa.json").write_text(json.dumps(second))

    rules = load_rules(tmp_path)

    assert describe_with(rules, "acme_product").library == "Acme kernels"
    assert describe_with(rules, "acme_copy").library == "Second"


def test_a_file_of_another_shape_is_refused_by_name(tmp_path):
    write_library(tmp_path, pattern="typo")

    with pytest.raises(InputError) as caught:
        load_rules(tmp_path)

    assert str(caught.value) == (
        "error: `libraries/acme.json` is not a file of kernel-name rules\n"
        "  Object contains unknown field `pattern`\n"
        "\n"
        "hint: `contracts.kernel_rules` describes the fields and what a pattern may hold"
    )


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("Cijk_", "capitals"),
        ("gemm(", "not a regular expression"),
        (r"\d+_\d+", "three plain characters"),
        ("gemm|gemv", "alternatives outside a group"),
        ("gemm_(ab)+x", "repeats a group"),
        (".*gemm.*x.*y", "without bound"),
    ],
)
def test_the_contract_refuses_patterns_that_are_wrong_or_slow(pattern, problem):
    record = json.loads(LIBRARIES[0].read_bytes()) | {"patterns": [pattern]}

    with pytest.raises(ValidationError, match=problem):
        LibraryFile.model_validate(record)


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        ("^batched_transpose_[0-9]+x", "batched_transpose_"),
        (r"^op\d?dtensor", "dtensor"),
        ("^(volta|ampere)_[a-z0-9_]*gemm", "gemm"),
        ("abcd?ef", "abc"),
        ("gemm_kernel$", "gemm_kernel"),
        ("gemm|gemv", ""),
    ],
)
def test_the_plain_part_is_in_every_match(pattern, plain):
    assert plain_part(pattern) == plain
