"""What a run keeps of the calls behind its findings."""

from __future__ import annotations

import pytest

from rooftrace.contracts import store
from rooftrace.contracts.chains import ChainsFile
from rooftrace.workflow.chains import chains
from rooftrace.workflow.findings import run_analyzers
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from tests.repro import programs
from tests.repro.chains import Program, fusion_chain

HEAD = {"tool_version": "0.1.0", "source_sha256": "0" * 64}


def file_of(model):
    workload = prepare_workload(model.build(), AnalyzeOptions()).workload
    drafts = [draft for found in run_analyzers(workload)[1].values() for draft in found]
    return chains(workload, drafts, HEAD), drafts


def sources(chain):
    """For each call where its tensors come from: `3.0` is the first result of call 3, `x1` a tensor from outside."""
    return [
        [f"x{t.number}" if t.step is None else f"{t.step}.{t.number}" for a in step.arguments for t in a.tensors]
        for step in chain.steps
    ]


def test_every_fusion_and_compute_finding_has_its_calls():
    file, drafts = file_of(programs.rms_norm())

    wanted = {draft.finding.id for draft in drafts if draft.finding.tier != "system"}
    assert {chain.finding for chain in file.chains} == wanted
    assert "fusion.F1" in wanted


def test_the_file_is_read_as_it_was_written():
    file, _ = file_of(programs.rms_norm())

    assert ChainsFile.model_validate_json(store.to_json(file), strict=True) == file


def test_a_chain_holds_its_calls_with_the_kernel_time_of_each():
    chain = fusion_chain(programs.rms_norm(), "rms_norm")

    # Eight calls, each with one kernel of 40 us.
    assert [(step.op, step.kernel_ns, step.role) for step in chain.steps] == [
        (name, 40_000, "replaced")
        for name in ("aten::copy_", "aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul", "aten::copy_",
                     "aten::mul")
    ]  # fmt: skip


WIRED = {
    # cast, square, mean, add, root; the cast's result times it; cast; factor
    "rms_norm": (programs.rms_norm, [["x0", "x1"], ["0.0"], ["1.0"], ["2.0"], ["3.0"], ["0.0", "4.0"], ["x3", "5.0"],
                                     ["x4", "6.0"]]),
    # mean, difference, its square, mean, add, root; the difference over it; factor; summand
    "layer_norm": (programs.layer_norm, [["x0"], ["x0", "0.0"], ["1.0"], ["2.0"], ["3.0"], ["4.0"], ["1.0", "5.0"],
                                         ["x2", "6.0"], ["7.0", "x3"]]),
    # half the input waits for the last product; the cube is added to the input itself
    "gelu": (programs.gelu, [["x0"], ["x0"], ["1.0"], ["2.0", "x0"], ["3.0"], ["4.0"], ["5.0"], ["0.0", "6.0"]]),
    "softmax": (programs.softmax, [["x0"], ["x0", "0.0"], ["1.0"], ["2.0"], ["2.0", "3.0"]]),
}  # fmt: skip


@pytest.mark.parametrize("pattern", WIRED)
def test_operands_are_the_results_that_the_composition_means(pattern):
    program, expected = WIRED[pattern]

    assert sources(fusion_chain(program(), pattern)) == expected


def test_a_view_that_nothing_reads_is_left_out():
    chain = fusion_chain(programs.swiglu(), "swiglu")

    assert [step.op for step in chain.steps] == ["aten::silu", "aten::_unsafe_view", "aten::mul"]


def test_a_call_that_stays_between_is_no_part_of_the_chain():
    chain = fusion_chain(programs.swiglu(), "swiglu")

    assert "aten::mm" not in [step.op for step in chain.steps]


def test_repetitions_of_a_loop_share_nothing():
    chain = fusion_chain(programs.adam(), "adam_loop")

    # Three parameters, eight calls each: no call of one repetition reads what another makes.
    read = [(at // 8, t.step // 8) for at, step in enumerate(chain.steps) for a in step.arguments for t in a.tensors
            if t.step is not None]  # fmt: skip
    assert (chain.period, len(chain.steps), {mine - made for mine, made in read}) == (8, 24, {0})


def test_calls_without_shapes_are_told_and_not_guessed():
    model = Program()
    with model.module("LlamaRMSNorm_0"):
        for name in ("aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul"):
            model.op(name, model.host, 8)
            correlation = model.launch(ts=model.host + 2, dur=3)
            model.kernel("void some_kernel<float>()", ts=model.gpu, dur=40, correlation=correlation)
            model.host, model.gpu = model.host + 10, model.gpu + 40

    file, _ = file_of(model)

    assert {chain.reason for chain in file.chains} == {"inputs not recorded: profile with `record_shapes=True`"}


def test_the_element_type_of_a_list_is_the_one_its_kernel_spells():
    model = Program()
    model.op("aten::cat", model.host, 8, dims=[[[4, 6], [4, 6]], []], types=["TensorList", "Scalar"],
             concrete=["", "1"])  # fmt: skip
    correlation = model.launch(ts=model.host + 2, dur=3)
    kernel = "void at::native::CatArrayBatchedCopy<c10::BFloat16, unsigned int, 2, 64, 64>()"
    model.kernel(kernel, ts=model.gpu, dur=40, correlation=correlation)

    file, _ = file_of(model)

    tensors = [t for chain in file.chains for step in chain.steps for a in step.arguments for t in a.tensors]
    assert {tensor.dtype for tensor in tensors} == {"bfloat16"}
