"""`--models`: a user's Python file registers models, which are checked, used, noted and then gone."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from rooftrace.contracts import store
from rooftrace.opmodels import CATEGORIES, MODELS, Op, Unmodelled, cost_of, find_model
from rooftrace.opmodels.parts import f32
from rooftrace.opmodels.user import user_models
from tests.user_files.conftest import MODEL, error

HEAD = "from rooftrace.opmodels import Cost, Example, Op, Tensor, Unmodelled, op_model\n"
ONE = "Tensor(shape=(2,), dtype='float32')"
EXAMPLE = f"Example(args=({ONE},), flops=2, bytes_read=8, bytes_written=8, why='2 of 4 B')"
COST = "Cost(flops=2, bytes_read=8, bytes_written=8)"
AT = 2 if sys.version_info >= (3, 11) else 3  # Python 3.10 tells a decorator's call by the line of the `def`
MEND_FILE = "Mend the file, or leave --models out"
MEND_MODEL = "Mend the model; where the shapes do not tell a cost, return `Unmodelled(reason=...)`"
MEND_EXAMPLE = "Mend the model or its example; a multiply-add is 2 FLOPs, bytes are counted at each tensor's dtype"


def model(body: str, names: str = "'my::op'", options: str = f"examples=({EXAMPLE},)") -> str:
    """A file of one model: its decorator stands in line 2, its function's body in line 4."""
    return f"{HEAD}@op_model({names}, category='generic', {options})\ndef cost(op: Op):\n    {body}\n"


def test_a_model_of_the_user_rates_an_op_and_says_so(call, here, model_file):
    outcome = call("ops", "t.json", "--models", "my_models.py", "--json")

    assert (outcome.code, outcome.err) == (0, "")
    [row] = json.loads(outcome.out)
    # 2 x 64 MiB = 134,217,728 B at 3,180 GB/s (achievable) are 42.207 us of 100 us
    expected = ("my::scale", "elementwise", "16777216", "134217728", "memory", "42207", "42.21")
    columns = ("name", "category", "flops", "bytes", "bound", "floor_ns", "efficiency_pct")
    assert tuple(row[column] for column in columns) == expected
    assert json.loads(row["notes"]) == ["model from my_models.py"]


def test_without_the_file_the_op_has_no_model(call, here, model_file):
    [row] = json.loads(call("ops", "t.json", "--json").out)

    assert (row["efficiency_pct"], row["unmodelled"]) == ("", "no cost model")


def test_a_report_notes_which_costs_come_from_the_users_models(call, here, model_file):
    assert call("analyze", "t.json", "-o", "run", "--models", "my_models.py").code == 0

    with (here / "run" / store.OPS).open(encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert json.loads(row["notes"]) == ["model from my_models.py"]
    assert call("check", "run").code == 0


def test_the_models_hold_for_one_run_only(model_file):
    before = dict(MODELS)

    with user_models([model_file]):
        assert cost_of(Op(name="my::scale", args=(f32(3),))).flops == 3

    assert cost_of(Op(name="my::scale", args=(f32(3),))) == Unmodelled(reason="no cost model")
    assert dict(MODELS) == before


def test_a_file_given_twice_is_loaded_once_and_two_files_add_up(call, here, model_file):
    (here / "more.py").write_text(model(f"return {COST}"), encoding="utf-8")

    with user_models([model_file, here / "more.py", here / "." / "my_models.py"]):
        assert find_model("my::op").module == "more.py"
        assert find_model("my::scale").module == "my_models.py"


def test_what_the_file_prints_does_not_mix_with_the_data(call, here, model_file):
    model_file.write_text(MODEL.replace("    x = op", "    print('here')\n    x = op"), encoding="utf-8")

    outcome = call("ops", "t.json", "--models", "my_models.py", "--json")

    assert json.loads(outcome.out)[0]["name"] == "my::scale"
    assert set(outcome.err.splitlines()) == {"here"}


def test_a_dataclass_of_the_file_can_be_defined(here, model_file):
    source = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    source += "@dataclass\nclass Size:\n    rows: int\n\n"
    model_file.write_text(source + MODEL, encoding="utf-8")

    with user_models([model_file]):
        assert "my::scale" in MODELS


# Taking the place of a built-in model


def test_a_built_in_model_is_replaced_where_the_file_says_so(here):
    (here / "mm.py").write_text(
        model("return " + COST, "'aten::mm'", f"replaces=True, examples=({EXAMPLE},)"), encoding="utf-8"
    )

    with user_models([here / "mm.py"]):
        assert cost_of(Op(name="aten::mm", args=(f32(4, 5), f32(5, 6)))).flops == 2

    assert cost_of(Op(name="aten::mm", args=(f32(4, 5), f32(5, 6)))).flops == 240  # 2*4*5*6


def test_a_pattern_that_replaces_is_met_before_those_of_the_pack(here):
    options = f"patterns=('^triton_poi_',), replaces=True, examples=({EXAMPLE},)"
    (here / "mine.py").write_text(model("return " + COST, "*()", options), encoding="utf-8")

    with user_models([here / "mine.py"]):
        assert find_model("triton_poi_fused_add_0").module == "mine.py"
        assert find_model("triton_red_fused_sum_0").module == "rooftrace.opmodels.triton"


def test_a_pattern_that_does_not_say_so_leaves_those_of_the_pack_their_ops(here):
    options = f"patterns=('^triton_poi_',), examples=({EXAMPLE},)"
    (here / "mine.py").write_text(model("return " + COST, "*()", options), encoding="utf-8")

    with user_models([here / "mine.py"]):
        assert find_model("triton_poi_fused_add_0").module == "rooftrace.opmodels.triton"
        assert find_model("triton_poi_own").module == "mine.py"


# Errors: whole texts


ERRORS = {
    "syntax": ("def cost(op)\n", "bad.py:1: SyntaxError: expected ':'", MEND_FILE),
    "an exception": (f"{HEAD}\nscale = undefined\n", "bad.py:3: NameError: name 'undefined' is not defined", MEND_FILE),
    "a missing module": (
        "import no_such_module\n",
        "bad.py:1: ModuleNotFoundError: No module named 'no_such_module'",
        MEND_FILE,
    ),
    "an end of the program": ("import sys\nsys.exit(3)\n", "bad.py:2: SystemExit: 3", MEND_FILE),
    "no model": (
        HEAD,
        "bad.py registers no model",
        "Decorate a function with `@op_model(...)` of `rooftrace.opmodels`",
    ),
    "a built-in name": (
        model(f"return {COST}", "'aten::mm'"),
        f"bad.py:{AT}: `aten::mm` has a model in rooftrace.opmodels.gemm already; bad.py registers another",
        "Give `replaces=True` if this one is to be used instead",
    ),
    "nothing to replace": (
        model(f"return {COST}", options="replaces=True"),
        f"bad.py:{AT}: `my::op` has no model to replace",
        "Leave `replaces=True` out, or mend the name",
    ),
    "a category": (
        model(f"return {COST}").replace("'generic'", "'vision'"),
        f"bad.py:{AT}: unknown category `vision`",
        f"Known: {', '.join(CATEGORIES)}",
    ),
    "no example": (
        model(f"return {COST}", options=""),
        "bad.py:2: the model of `my::op` has no worked example",
        "Add `examples=(Example(...),)` to it",
    ),
    "another error in the model": (
        model("return op.tensor(0).size"),
        "bad.py:4: the model of `my::op` failed: AttributeError: 'Tensor' object has no attribute 'size'",
        MEND_MODEL,
    ),
    "no cost": (
        model("return 2"),
        "bad.py:2: the model of `my::op` returned int instead of `Cost` or `Unmodelled`",
        MEND_MODEL,
    ),
    "half a FLOP": (
        model("return Cost(flops=1.5, bytes_read=8, bytes_written=8)"),
        "bad.py:2: the model of `my::op` returned flops=1.5, which is no whole number from 0 up",
        MEND_MODEL,
    ),
    "a unit": (
        model("return Cost(flops=2, bytes_read=8, bytes_written=8, unit='tensor')"),
        "bad.py:2: the model of `my::op` returned unit='tensor', which is none of matrix, vector",
        MEND_MODEL,
    ),
    "a precision": (
        model("return Cost(flops=2, bytes_read=8, bytes_written=8, precision='bf16')"),
        "bad.py:2: the model of `my::op` returned precision='bf16', "
        "which is no dtype's name as PyTorch spells it (`bfloat16`)",
        MEND_MODEL,
    ),
    "a note": (
        model("return Cost(flops=2, bytes_read=8, bytes_written=8, notes='rough')"),
        "bad.py:2: the model of `my::op` returned notes='rough', which is no tuple of texts",
        MEND_MODEL,
    ),
}


@pytest.mark.parametrize(("source", "what", "hint"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_in_the_file_is_told_with_its_line(call, here, model_file, source, what, hint):
    (here / "bad.py").write_text(source, encoding="utf-8")
    before = dict(MODELS)

    outcome = call("analyze", "t.json", "-o", "run", "--models", "bad.py")

    assert (outcome.err, outcome.out, outcome.code) == (error(what, hint), "", 2)
    assert not (here / "run").exists()
    assert dict(MODELS) == before


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            "return Cost(flops=2, bytes_read=8, bytes_written=8)",
            "2 FLOPs, 8 bytes read, 8 written",
        ),
        ("return Unmodelled(reason='needs lengths')", "no cost: needs lengths"),
        ("return op.tensor(1)", "no cost: arguments not as the op defines them"),
        ("return {}['x']", "KeyError: 'x'"),
    ],
    ids=["another number", "no cost", "no such argument", "an error that a wrong shape gives"],
)
def test_an_example_that_does_not_hold_is_told_with_both_results(call, here, model_file, body, found):
    (here / "bad.py").write_text(
        model(body, options=f"examples=({EXAMPLE.replace('flops=2', 'flops=4')},)"), encoding="utf-8"
    )

    outcome = call("ops", "t.json", "--models", "bad.py")

    assert (outcome.err, outcome.out, outcome.code) == (
        "error: bad.py:2: a worked example of `my::op` does not hold\n"
        "  expected: 4 FLOPs, 8 bytes read, 8 written (2 of 4 B)\n"
        f"  found:    {found}\n\nhint: {MEND_EXAMPLE}\n",
        "",
        2,
    )


def test_an_example_can_say_that_there_is_no_cost(here):
    example = f"Example(args=({ONE},), unmodelled='needs lengths', why='ragged')"
    body = "return Unmodelled(reason='needs lengths')"
    (here / "mine.py").write_text(model(body, options=f"examples=({example},)"), encoding="utf-8")

    with user_models([here / "mine.py"]):
        assert cost_of(Op(name="my::op", args=(f32(2),))) == Unmodelled(reason="needs lengths")


def test_an_error_that_only_the_trace_meets_is_told_too(call, here, model_file):
    # The example has 2^18 elements, the trace's op 2^24.
    source = MODEL.replace("    size = 4", "    x.numel < 1 << 20 or x.missing\n    size = 4")
    model_file.write_text(source, encoding="utf-8")

    outcome = call("ops", "t.json", "--models", "my_models.py")

    line = source.splitlines().index("    x.numel < 1 << 20 or x.missing") + 1
    failed = "AttributeError: 'Tensor' object has no attribute 'missing'"
    what = f"my_models.py:{line}: the model of `my::scale` failed: {failed}"
    assert (outcome.err, outcome.out, outcome.code) == (error(what, MEND_MODEL), "", 2)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gone.py", "cannot read `gone.py`: No such file or directory"),
        ("t.json", "`t.json` is not a Python file"),
        ("folder.py", "`folder.py` is not a Python file"),
    ],
)
def test_what_is_no_python_file_is_not_run(call, here, model_file, name, what):
    (here / "folder.py").mkdir()

    outcome = call("ops", "t.json", "--models", name)

    assert (outcome.err, outcome.code) == (error(what, "Give a Python file (.py) that registers op models"), 3)


def test_a_finished_run_takes_no_models(call, here, model_file):
    call("analyze", "t.json", "-o", "run")

    outcome = call("ops", "run", "--models", "my_models.py")

    what = "--models needs a trace; `run` is a run, analysed already"
    assert (outcome.err, outcome.code) == (error(what, "Leave --models out, or give the trace file"), 2)
