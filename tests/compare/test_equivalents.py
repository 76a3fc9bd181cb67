from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from rooftrace.calltree import module_class
from rooftrace.compare.names import same_kernel, same_op
from rooftrace.contracts.compare import EquivalentsFile
from rooftrace.pack import KNOWLEDGE

FILE = KNOWLEDGE / "equivalents.json"


def test_the_table_matches_its_contract():
    table = EquivalentsFile.model_validate_json(FILE.read_bytes())
    for entry in (*table.ops, *table.kernels):
        for pattern in entry.patterns:
            re.compile(pattern)


def test_a_name_stands_in_one_entry_only():
    twice = {
        "schema_version": "1.0",
        "kernels": [],
        "ops": [{"name": n, "why": "x", "members": ["a"]} for n in "bc"],
    }
    with pytest.raises(ValidationError, match="in two entries: a"):
        EquivalentsFile.model_validate(twice)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("aten::linear", "aten::addmm"),
        ("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_attention_math"),
        ("aten::_flash_attention_forward", "aten::_efficient_attention_forward"),
        ("aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "MmBackward0"),
        ("aten::add", "aten::add_"),
        ("aten::relu", "relu"),
    ],
)
def test_these_ops_are_the_same(one, other):
    assert same_op(one) == same_op(other)


def test_other_ops_are_not():
    assert len({same_op(name) for name in ("aten::add", "aten::mul", "aten::linear", "aten::bmm")}) == 4


@pytest.mark.parametrize(
    ("short", "category", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication", "all-reduce"),
        ("ncclDevKernel_AllGather_RING_LL", "communication", "all-gather"),
        ("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<…>", "attention", "attention backward"),
        ("bwd_kernel_dk_dv", "attention", "attention backward"),
        ("flash_fwd_kernel<…>", "attention", "attention"),
        ("elementwise_kernel<128, 4, direct_copy_kernel_cuda>", "elementwise", "move"),
        ("splitKreduce_kernel", "gemm", "split-K reduction"),
        ("nvjet_tst_192x192", "gemm", "gemm"),
    ],
)
def test_a_kernel_has_a_kind_that_no_vendor_owns(short, category, kind):
    assert same_kernel(short, category) == kind


def test_the_class_of_a_module_is_its_name_without_the_number():
    assert module_class("BertLayer_11") == "BertLayer"
    assert module_class("conv2d_bn") == "conv2d_bn"
