"""The scripts run: what is traced, and what replaces it, on the CPU with real PyTorch."""

from __future__ import annotations

import pytest

from tests.repro import programs
from tests.repro.chains import BF16, F32, I64, call_chain, fusion_chain, script_of


def rows_of(result, case=0):
    """Name and verdict of every row but the traced one's."""
    return {row["name"]: (row["agrees"], row["note"]) for row in result["cases"][case]["rows"]}


REPLACED = [
    (programs.rms_norm, "rms_norm", "F.rms_norm"),
    (programs.layer_norm, "layer_norm", "F.layer_norm"),
    (programs.attention, "attention_core", "F.scaled_dot_product_attention"),
    (programs.gelu, "gelu", "F.gelu"),
    (programs.softmax, "softmax", "torch.softmax"),
    (programs.adam, "adam_loop", "torch._foreach_* ops"),
]


@pytest.mark.parametrize(("program", "pattern", "name"), REPLACED, ids=[row[1] for row in REPLACED])
def test_a_replacement_agrees_with_the_chain_as_traced(run_script, program, pattern, name):
    script = script_of(fusion_chain(program(), pattern))

    code, result = run_script(script.text)

    assert (code, rows_of(result)["the chain as traced"], rows_of(result)[name]) == (
        0,
        (None, ""),
        (True, ""),
    )


@pytest.mark.parametrize(
    ("program", "pattern"),
    [(programs.rope, "rope"), (programs.swiglu, "swiglu"), (programs.gelu_epilogue, "gemm_epilogue")],
    ids=["rope", "swiglu", "gelu epilogue"],
)
def test_a_chain_without_a_replacement_in_pytorch_runs_as_traced(run_script, program, pattern):
    script = script_of(fusion_chain(program(), pattern))
    text = script.text.replace("torch.compile(swiglu, dynamic=False)", "swiglu")  # a compiler takes a minute

    code, result = run_script(text)

    assert (code, [row["note"] for row in result["cases"][0]["rows"]]) == (
        0,
        [""] * len(result["cases"][0]["rows"]),
    )
    assert script.cases[0].compared_with[-1] == "torch.compile of the chain"


def test_a_fused_optimizer_is_timed_beside_the_loop_and_not_compared(run_script):
    script = script_of(fusion_chain(programs.adam(), "adam_loop"))

    _, result = run_script(script.text)

    assert rows_of(result)["torch.optim.AdamW(fused=True), a step"] == (None, "")


def test_a_replacement_that_gives_other_values_is_told(run_script):
    script = script_of(fusion_chain(programs.gelu(), "gelu"))

    code, result = run_script(
        script.text.replace('approximate="tanh"', 'approximate="none"')
        .replace("F.gelu(", "F.relu(")
        .replace(', approximate="none")', ")")
    )

    assert (code, rows_of(result)["F.gelu"][0]) == (1, False)


CALLS = [
    ("mm", ("aten::mm", ([24, 16], F32), ([16, 8], F32, [1, 16]))),
    ("addmm", ("aten::addmm", ([8], F32), ([24, 16], F32), ([16, 8], F32), "1", "1")),
    ("bmm", ("aten::bmm", ([2, 24, 16], BF16), ([2, 16, 8], BF16))),
    (
        "convolution",
        ("aten::convolution", ([2, 8, 9, 9], F32), ([4, 8, 3, 3], F32), ([4], F32), "[2, 2]", "[1, 1]", "[1, 1]",
         "False", "[0, 0]", "1"),
    ),
    ("softmax", ("aten::_softmax", ([2, 24, 24], F32), "-1", "False")),
    ("embedding", ("aten::embedding", ([10, 16], F32), ([4, 6], I64), "-1", "False", "False")),
    ("gather", ("aten::gather", ([4, 6], F32), "1", ([4, 3], I64), "False")),
    ("nll loss", ("aten::nll_loss_forward", ([4, 6], F32), ([4], I64), None, "1", "-100")),
    ("cat", ("aten::cat", [([4, 6], F32), ([4, 2], F32)], "-1")),
    ("cast", ("aten::_to_copy", ([4, 6], F32), "15", None, None, None, "False", None)),
    ("batch norm", ("aten::native_batch_norm", ([4, 6, 8], F32), ([6], F32), ([6], F32), ([6], F32), ([6], F32),
                    "False", "0.1", "1e-05")),
    ("text that is not recorded", ("aten::gelu", ([4, 6], F32), None)),
]  # fmt: skip


@pytest.fixture(scope="module")
def all_calls():
    """One script with a case for every call."""
    return script_of(*(call_chain(*arguments, op_id=f"op{at}") for at, (_, arguments) in enumerate(CALLS)))


def test_single_calls_run_with_their_recorded_scalars(run_script, all_calls):
    code, result = run_script(all_calls.text)

    ran = {name: case["rows"][0]["note"] for (name, _), case in zip(CALLS, result["cases"], strict=True)}
    assert (code, ran) == (0, {name: "" for name, _ in CALLS})


def test_a_misaligned_product_is_tried_with_padded_sizes(run_script):
    chain = call_chain("aten::mm", ([20, 17], F32), ([17, 9], F32, [1, 17]))

    code, result = run_script(script_of(chain, patterns=["misaligned", "default"]).text)

    assert (code, rows_of(result)["sizes padded to multiples of 8"]) == (0, (True, ""))


def test_a_float32_product_is_tried_in_what_the_units_are_made_for(run_script):
    chain = call_chain("aten::mm", ([24, 16], F32), ([16, 8], F32))

    _, result = run_script(script_of(chain, patterns=["fp32_on_bf16_units", "fp32_without_tf32"]).text)

    assert rows_of(result) == {
        "the call as traced": (None, ""),
        "in bfloat16": (True, ""),
        "with TF32": (True, ""),
    }


def test_a_convolution_with_layout_changes_is_tried_in_channels_last(run_script):
    chain = call_chain(*CALLS[3][1], finding="convolution.F1")

    _, result = run_script(script_of(chain, patterns=["layout_changes"]).text)

    assert rows_of(result)["in channels_last"] == (True, "")


def test_sizes_that_do_not_fit_are_scaled_down_and_said_to_be(run_script):
    chain = fusion_chain(programs.rms_norm(), "rms_norm")

    # Without scaling the inputs take 2*8*64*(4+2+2) + 128 = 8,320 bytes and the results more: 10 kB do not hold both.
    code, result = run_script(script_of(chain).text, "--memory", "0.00001")

    case = result["cases"][0]
    assert (code, case["scale"] > 1, case["rows"][1]["agrees"]) == (0, True, True)


def test_what_cannot_be_made_to_fit_is_told(run_script):
    chain = call_chain("aten::neg", ([1, 1], F32))

    code, result = run_script(script_of(chain).text, "--memory", "1e-12")

    assert (code, result["cases"][0]["error"]) == (
        1,
        "needs 0.0 GB, and no size in it can be made smaller; raise --memory",
    )
