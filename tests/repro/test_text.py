"""What a script is made of: only checked names and parsed numbers; what cannot be rebuilt is told."""

from __future__ import annotations

import ast

import pytest

from rooftrace.errors import UsageError
from tests.repro import programs
from tests.repro.chains import BF16, F32, call_chain, fusion_chain, script_of

HOSTILE = [
    'x"""\nimport os; os.system("touch /tmp/never")\n"""',
    "'); import os #",
    "{{ 7 * 7 }}{% raw %}",
    "line\u2028break \x1b[31m \u202e",
    "\\",
    "a" * 5000,
]


def body_of(text):
    """The lines of the script's first case."""
    lines = text.splitlines()
    start = lines.index("def case_1():")
    return [line.strip() for line in lines[start + 1 : lines.index("CASES = [case_1]")] if line.strip()]


def test_a_chain_is_written_as_plain_calls_of_its_tensors():
    text = script_of(fusion_chain(programs.softmax(), "softmax")).text

    assert body_of(text) == [
        'amax_0 = call("amax", T, [-1], True)',
        'sub_1 = call("sub", T, T, 1)',
        'exp_2 = call("exp", T)',
        'sum_3 = call("sum", T, [-1], True, None)',
        'div_4 = call("div", T, T)',
        "inputs = [",
        'In((8, 32), "float32", (32, 1)),  # x0',
        "]",
        "def traced(x0):",
        "t0 = amax_0(x0)",
        "t1 = sub_1(x0, t0)",
        "t2 = exp_2(t1)",
        "t3 = sum_3(t2)",
        "t4 = div_4(t2, t3)",
        "return t4",
        "def softmax(x0):",
        "return torch.softmax(x0, -1)",
        'return {"inputs": inputs, "traced": traced, "options": [option("torch.softmax", softmax)]}',
    ]


def test_the_square_that_is_averaged_is_not_what_the_norm_multiplies():
    lines = body_of(script_of(fusion_chain(programs.rms_norm(), "rms_norm")).text)

    assert [line for line in lines if line.startswith(("t1 =", "t5 ="))] == [
        "t1 = pow_1(t0)",
        "t5 = mul_5(t0, t4)",
    ]


def test_both_parts_of_a_rotary_embedding_read_their_own_input():
    lines = body_of(script_of(fusion_chain(programs.rope(), "rope")).text)

    read = [line for line in lines if line.startswith(("t0 =", "t1 =", "t2 =", "t7 =", "t8 =", "t9 ="))]
    assert read == [
        "t0 = mul_0(x0, x1)",
        "t1 = slice_1(x0)",
        "t2 = slice_2(x0)",
        "t7 = mul_7(x3, x4)",
        "t8 = slice_8(x3)",
        "t9 = slice_9(x3)",
    ]


def test_indices_point_into_what_they_index():
    text = script_of(call_chain("aten::index_select", ([10, 16], F32), "0", ([4], "long int"))).text

    assert body_of(text)[2:4] == [
        'In((10, 16), "float32", (16, 1)),  # x0',
        'In((4,), "int64", (1,), high=10),  # x1',
    ]


def test_a_number_that_is_not_recorded_is_a_named_constant():
    text = script_of(fusion_chain(programs.attention(), "attention_core")).text

    # The scores are divided by the root of the head's size: sqrt(16) = 4.
    assert "NUMBER_1 = 4.0" in text.splitlines()
    assert 'div_2 = call("div", T, NUMBER_1)' in body_of(text)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_title_kernel_or_gpu_stays_text(name):
    chain = call_chain("aten::mm", ([4, 6], F32), ([6, 8], F32))
    step = chain.steps[0].model_copy(update={"kernels": [name]})
    harmless = script_of(chain, title="t", gpu="g").text

    text = script_of(chain.model_copy(update={"steps": [step]}), title=name, gpu=name).text

    assert text.isascii()
    assert ast.dump(_without_facts(text)) == ast.dump(_without_facts(harmless))


def _without_facts(text):
    """The syntax tree but for the one literal that holds text of the trace."""
    tree = ast.parse(text)
    facts = next(n for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "FACTS")
    ast.literal_eval(facts.value)
    tree.body.remove(facts)
    return tree


REFUSED = {
    "another library's op": (
        ("fbgemm::permute_2D_sparse_data", ([4, 6], F32)),
        "op `fbgemm::permute_2D_sparse_data` cannot be rebuilt from its record: it is not one of PyTorch's own",
    ),
    "a name that is code": (
        ("aten::mm)\nimport os", ([4, 6], F32)),
        "op `aten::mm)\nimport os` cannot be rebuilt from its record: it is not one of PyTorch's own",
    ),
    "an attribute of Python": (
        ("aten::__class__", ([4, 6], F32)),
        None,
    ),
    "a read of one value": (
        ("aten::_local_scalar_dense", ([], F32)),
        "op `aten::_local_scalar_dense` cannot be rebuilt from its record: it only reads or moves a tensor",
    ),
    "a scalar that is code": (
        ("aten::mul", ([4, 6], F32), "__import__('os')"),
        "op `aten::mul` cannot be rebuilt from its record: `__import__('os')` is no number or word",
    ),
    "no element type": (
        ("aten::neg", ([4, 6], "Opaque")),
        "op `aten::neg` cannot be rebuilt from its record: element type not recorded",
    ),
    "a shape that is damage": (
        ("aten::neg", ([1 << 30, 1 << 30], BF16)),
        "a tensor's recorded shape cannot be right",
    ),
}


@pytest.mark.parametrize("case", [name for name, (_, text) in REFUSED.items() if text])
def test_what_cannot_be_rebuilt_is_refused_with_the_reason(case):
    call, reason = REFUSED[case]

    with pytest.raises(UsageError) as raised:
        script_of(call_chain(*call))

    assert str(raised.value) == (
        f"error: `gemm.F1` cannot be run alone\n  {reason}\n\n"
        "hint: Profile with `record_shapes=True`, outside graphs; ops of other libraries need their own benchmark"
    )


def test_a_name_that_only_looks_like_an_op_does_nothing(run_script):
    code, result = run_script(script_of(call_chain("aten::__class__", ([4, 6], F32))).text)

    assert (code, result["cases"][0]["error"]) == (1, "this PyTorch has no aten::__class__")


def test_of_several_op_groups_those_that_can_be_rebuilt_are():
    script = script_of(
        call_chain("vllm::silu_and_mul", ([4, 6], F32)),
        call_chain("aten::mm", ([4, 6], F32), ([6, 8], F32), op_id="op2"),
    )

    assert ([case.op_id for case in script.cases], script.refused) == (
        ["op2"],
        ("op `vllm::silu_and_mul` cannot be rebuilt from its record: it is not one of PyTorch's own",),
    )
