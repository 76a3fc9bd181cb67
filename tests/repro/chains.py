"""Chains of calls written by hand, as a run holds them, and the findings they belong to."""

from __future__ import annotations

from rooftrace.contracts.base import Score
from rooftrace.contracts.chains import Chain
from rooftrace.contracts.report import Finding
from rooftrace.fusion import find_candidates
from rooftrace.fusion.examples import chain_of_call, chain_of_candidate
from rooftrace.kernelnames import describe
from rooftrace.opmodels import op_from_record
from rooftrace.repro import Subject, write_script
from tests.fusion.programs import Model, inputs_of

BF16, F32, F64, I64 = "c10::BFloat16", "float", "double", "long int"


def dense(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


class Program(Model):
    """Calls with all that a profiler records of their inputs: `(shape, type)` or a scalar's text, in order."""

    def do(self, name, *arguments, dur=40.0, launches=True):
        recorded = [_recorded(argument) for argument in arguments]
        dims, types, strides, concrete = (list(column) for column in zip(*recorded, strict=True))
        self.op(name, self.host, 8, dims=dims, types=types, strides=strides, concrete=concrete)
        if launches:
            correlation = self.launch(ts=self.host + 2, dur=3)
            kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::some_kernel_cuda>"
            self.kernel(kernel, ts=self.gpu, dur=dur, correlation=correlation)
            self.gpu += dur
        self.host += 10


def _recorded(argument):
    """(dims, type, strides, concrete) of one argument."""
    if argument is None:
        return [], "", [], ""
    if argument == "number":  # a Python number beside a tensor: its value is not recorded
        return [], F64, [], ""
    if isinstance(argument, str):
        return [], "ScalarList" if argument.startswith("[") else "Scalar", [], argument
    if isinstance(argument, list):
        return [shape for shape, _ in argument], "TensorList", [dense(shape) for shape, _ in argument], ""
    shape, type_name, *strides = argument
    return shape, type_name, strides[0] if strides else dense(shape), ""


def fusion_chain(model, pattern):
    """The chain of the one candidate of a composition."""
    run = inputs_of(model)
    result = find_candidates(run)
    found = [c for c in (*result.candidates, *result.unrated) if c.composition and c.composition.identity == pattern]
    assert len(found) == 1, [c.composition and c.composition.identity for c in result.candidates]
    return chain_of_candidate(run, result.calls, found[0], "fusion.F1")


def call_chain(name, *arguments, finding="gemm.F1", op_id="op1", kernel="void some_kernel<float>(float*)"):
    """A chain of one call of 40 us."""
    recorded = [_recorded(argument) for argument in arguments]
    op = op_from_record(name, *(list(column) for column in zip(*recorded, strict=True)))
    return chain_of_call(op, [describe(kernel)], 40_000, (finding, op_id, 3))


def subject(*chains: Chain, patterns=(), title="A title", gpu="H100 SXM5 80 GB", **evidence):
    """A finding with these chains."""
    tier = "fusion" if chains[0].pattern else "compute"
    finding = Finding(
        id=chains[0].finding,
        tier=tier,
        category="gemm",
        rank=1,
        title=title,
        score=Score(low=1, mid=1, high=1),
        score_basis="gap_share",
        gpu_time_score=1,
        kind="modelled",
        members=[],
        patterns=list(patterns),
        evidence=evidence,
        insight="",
        action="",
        reasoning="",
        resolution="",
        verify="",
    )
    return Subject(finding=finding, chains=chains, gpu=gpu, trace="trace.json")


def script_of(*chains: Chain, **more):
    """The script of a finding with these chains."""
    return write_script(subject(*chains, **more))
