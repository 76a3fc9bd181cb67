"""`--platform-file`: a GPU of the user's, hand-written or calibrated, checked like those of the pack."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from rooftrace.errors import UsageError
from rooftrace.pack import SCHEMAS
from rooftrace.platforms import (
    DeviceFacts,
    bandwidth_ceiling,
    compute_ceiling,
    last_level_cache_bytes,
    latency_floor_ns,
    load_platform,
    load_platforms,
    mismatch,
)
from rooftrace.platforms.double_entry import problems
from rooftrace.platforms.user import load_platform_file
from tests.user_files.conftest import calibrated_content, error, platform_content, write_json, write_trace

HINT = "Take the form of `rooftrace platforms h100-sxm`; every datasheet figure stands twice in it"
HINT_CALIBRATED = "Run `calibrate` again; its file is generated and not to be edited"


def change(content: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The content with one field set, by its path: `ceilings.0.datasheet.value_tflops`; ``None`` takes it out."""
    *above, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    part: Any = content
    for key in above:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return content


def test_a_file_of_the_user_rates_a_run_and_the_report_says_so(call, here):
    write_trace(here / "t.json", "My GPU")
    write_json(here / "mine.json", platform_content(names=["My GPU"]))

    outcome = call("analyze", "t.json", "-o", "run", "--platform-file", "mine.json")

    assert outcome.code == 0
    report = json.loads((here / "run" / "report.json").read_bytes())
    found = {key: report["platform"][key] for key in ("slug", "detected_by")}
    assert found == {"slug": "my-gpu", "detected_by": "file"}
    assert not {"platform_mismatch", "unknown_gpu"} & {note["code"] for note in report["health"]["notes"]}
    assert call("check", "run").code == 0


def test_a_file_rates_the_ops_of_a_trace(call, here):
    write_trace(here / "t.json")
    (here / "mine.py").write_text(
        "from rooftrace.opmodels import Cost, Example, Tensor, op_model\n"
        "ONE = Tensor(shape=(1,), dtype='float32')\n"
        "@op_model('my::scale', category='memory', examples=(Example(args=(ONE,), bytes_read=4, why='4 B'),))\n"
        "def scale(op):\n    return Cost(flops=0, bytes_read=4 * op.tensor(0).numel, bytes_written=0)\n",
        encoding="utf-8",
    )
    write_json(here / "new.json", calibrated_content())

    outcome = call("ops", "t.json", "--platform-file", "new.json", "--models", "mine.py", "--json")

    # 64 MiB = 67,108,864 B at 500 GB/s are 134.218 us, more than the 100 us that the kernel took: above 105 %
    [row] = json.loads(outcome.out)
    assert (row["flag"], row["unmodelled"]) == ("inconsistent", "inconsistent: faster than its ceiling allows")


def test_a_device_of_another_name_is_told(call, here):
    write_trace(here / "t.json")
    write_json(here / "mine.json", platform_content(names=["My GPU"]))

    call("analyze", "t.json", "-o", "run", "--platform-file", "mine.json")

    report = json.loads((here / "run" / "report.json").read_bytes())
    notes = {note["code"]: note["text"] for note in report["health"]["notes"]}
    assert notes["platform_mismatch"] == (
        "the trace was recorded on `NVIDIA H100 80GB HBM3`, which is h100-sxm, not my-gpu."
    )


def test_the_names_of_a_file_come_before_those_of_the_pack(here):
    mine = load_platform_file(write_json(here / "mine.json", platform_content()))

    assert mismatch(mine, DeviceFacts(name="nvidia H100 80GB HBM3")) is None
    assert mismatch(mine, DeviceFacts(name="NVIDIA H200")) == (
        "the trace was recorded on `NVIDIA H200`, which is h200, not my-gpu"
    )


def test_platforms_shows_a_file_and_both_its_forms(call, here):
    write_json(here / "mine.json", platform_content())
    write_json(here / "new.json", calibrated_content())

    assert json.loads(call("platforms", "mine.json").out)["slug"] == "my-gpu"
    assert json.loads(call("platforms", "new.json").out)["origin"] == "calibrated"


def test_every_file_of_the_pack_keeps_the_rule():
    assert {platform.slug: problems(platform) for platform in load_platforms() if problems(platform)} == {}


# What is wrong is told by its place


WRONG: dict[str, tuple[str, object, str]] = {
    "a sparse figure": (
        "ceilings.2.datasheet.value_tflops",
        1978.9,
        "ceilings[2].datasheet: 1978.9 TFLOP/s published, 989.4 computed "
        "(132 units x 4096 a clock x 1.83 GHz): more than 2 % apart",
    ),
    "a foreign bandwidth": (
        "memory.bandwidth.datasheet.value_gbytes_per_s",
        4800.0,
        "memory.bandwidth.datasheet: 4800 GB/s published, 3352 computed "
        "(5120 bit x 5.238 Gbit/s / 8): more than 2 % apart",
    ),
    "a link both ways": (
        "links.nvlink.gbytes_per_s",
        900.0,
        "links.nvlink: 900 GB/s published, 450 computed (18 links x 25 GB/s): more than 2 % apart",
    ),
    "a needless rounding step": (
        "ceilings.2.datasheet.rounded_to_tflops",
        1.0,
        "ceilings[2].datasheet: 989.4 TFLOP/s published, 989.4 computed (132 units x 4096 a clock x 1.83 GHz): "
        "within 2 %, so no rounding step is to be stated",
    ),
    "units of another part": (
        "ceilings.2.datasheet.product.units",
        131,
        "ceilings[2].datasheet.product.units: 131, but the device has 132 compute_units",
    ),
    "a measurement above the datasheet": (
        "ceilings.3.achievable.value_tflops",
        989.4,
        "ceilings[3].achievable.value_tflops: 989.4 is not below the datasheet's 989.4",
    ),
    "a measured bandwidth above the datasheet": (
        "memory.bandwidth.achievable.value_gbytes_per_s",
        3400.0,
        "memory.bandwidth.achievable.value_gbytes_per_s: 3400 is not below the datasheet's 3350",
    ),
    "a precision twice": ("ceilings.2.precision", "bfloat16", "ceilings: bfloat16 matrix stands 2 times"),
    "units that no trace reports": (
        "detect.num_units",
        114,
        "detect.num_units: 114, but compute_units says 132",
    ),
    "a memory of another product": (
        "detect.memory_gib",
        {"min": 38.0, "max": 40.1},
        "detect.memory_gib: 38 to 40.1 is not a range from 89% to 101% of the 80 GiB of memory.capacity_bytes",
    ),
    "a slug of the pack": ("slug", "h200", "slug: `h200` is a platform of the pack; take another"),
    "a rate of zero": (
        "ceilings.2.datasheet.value_tflops",
        0,
        "ceilings[2].datasheet.value_tflops: Input should be greater than 0",
    ),
    "a text for a number": ("clock_ghz", "1.83", "clock_ghz: Input should be a valid number"),
    "a field too many": (
        "ceilings.2.datasheet.sparse_tflops",
        1978.9,
        "ceilings[2].datasheet.sparse_tflops: Extra inputs are not permitted",
    ),
    "a figure entered once": (
        "ceilings.2.datasheet.product",
        None,
        "ceilings[2].datasheet.product: Field required",
    ),
}


@pytest.mark.parametrize(("path", "value", "problem"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_in_a_file_is_told_with_its_place(call, here, path, value, problem):
    write_trace(here / "t.json")
    write_json(here / "mine.json", change(platform_content(), path, value))

    outcome = call("analyze", "t.json", "-o", "run", "--platform-file", "mine.json")

    what = f"`mine.json` is not a sound platform file: 1 problem\n  mine.json::$.{problem}"
    assert (outcome.err, outcome.out, outcome.code) == (error(what, HINT), "", 2)
    assert not (here / "run").exists()


def test_several_problems_are_told_together(here):
    content = change(platform_content(), "detect.num_units", 114)
    change(content, "links.nvlink.gbytes_per_s", 900.0)

    with pytest.raises(UsageError) as caught:
        load_platform_file(write_json(here / "mine.json", content))

    assert (caught.value.what, len(caught.value.details)) == (
        f"`{here / 'mine.json'}` is not a sound platform file: 2 problems",
        2,
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "$: Invalid JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "$: Input should be an object"),
    ],
)
def test_what_is_no_json_object_is_told(call, here, text, problem):
    (here / "mine.json").write_text(text, encoding="utf-8")

    outcome = call("platforms", "mine.json")

    what = f"`mine.json` is not a sound platform file: 1 problem\n  mine.json::{problem}"
    assert (outcome.err, outcome.code) == (error(what, HINT), 2)


def test_a_file_that_is_not_there_or_no_file(call, here):
    (here / "folder.json").mkdir()
    gone, folder = call("platforms", "gone.json"), call("platforms", "folder.json")

    hint = "Give the path of a platform file"
    assert (gone.err, gone.code) == (error("cannot read `gone.json`: No such file or directory", hint), 3)
    assert (folder.err, folder.code) == (error("`folder.json` is not a file", f"{hint} (JSON)"), 3)


@pytest.mark.parametrize("command", ["analyze", "ops"])
def test_a_platform_is_given_in_one_way(call, here, command):
    write_trace(here / "t.json")
    write_json(here / "mine.json", platform_content())

    outcome = call(command, "t.json", "--platform", "h200", "--platform-file", "mine.json")

    what = "--platform and --platform-file cannot be given together"
    assert (outcome.err, outcome.out, outcome.code) == (error(what, "Give one of them"), "", 2)


def test_a_finished_run_takes_no_platform_file(call, here):
    write_trace(here / "t.json")
    call("analyze", "t.json", "-o", "run")

    outcome = call("ops", "run", "--platform-file", "mine.json")

    what = "--platform-file needs a trace; `run` is a run, analysed already"
    assert (outcome.err, outcome.code) == (error(what, "Leave --platform-file out, or give the trace file"), 2)


# What `calibrate` wrote


def test_a_calibrated_file_keeps_its_schema_and_the_platforms_do_not_take_its_form():
    calibrated, platform = (
        jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_bytes()))
        for name in ("calibrated_platform", "platform")
    )

    assert list(calibrated.iter_errors(calibrated_content())) == []
    assert list(platform.iter_errors(platform_content())) == []
    refused = [e.message for e in platform.iter_errors(platform_content(origin="calibrated"))]
    assert refused == ["Additional properties are not allowed ('origin' was unexpected)"]


def test_of_a_device_that_the_pack_does_not_know_the_measurements_are_the_limits(here):
    new = load_platform_file(write_json(here / "new.json", calibrated_content()))

    product, memory = compute_ceiling(new, "bfloat16", "matrix"), bandwidth_ceiling(new)
    assert product is not None
    assert (product.flops_per_s, product.datasheet, product.kind) == (100e12, 100e12, "achievable")
    assert product.source == "fastest of 9 shapes; median of 9 batches"
    assert (memory.bytes_per_s, memory.datasheet, memory.kind) == (500e9, 500e9, "achievable")
    borrowed = compute_ceiling(new, "float32", "matrix")
    assert borrowed is not None
    assert borrowed.flops_per_s == 20e12
    assert borrowed.source.endswith("(no float32 matrix rate is published, so its vector rate counts)")
    assert compute_ceiling(new, "float16", "matrix") is None
    assert (latency_floor_ns(new), last_level_cache_bytes(new)) == (2000, None)


def test_of_a_device_that_the_pack_knows_they_stand_beside_the_datasheet_figures(here):
    content = calibrated_content(slug="my-h100", names=["NVIDIA H100 80GB HBM3"], datasheet_of="h100-sxm")
    change(content, "memory.bandwidth.value_gbytes_per_s", 3000.0)
    content["ceilings"] = [
        {"precision": p, "unit": u, "achievable": {"value_tflops": v, "statistic": "s", "spread_pct": 1.5}}
        for p, u, v in (("bfloat16", "matrix", 700.0), ("float32", "matrix", 51.0), ("float32", "vector", 60.0))
    ]
    content["latency"] = {"value_ns": 1400, "statistic": "s", "spread_pct": 2.0}

    mine, known = load_platform_file(write_json(here / "mine.json", content)), load_platform("h100-sxm")

    assert (mine.slug, mine.product, latency_floor_ns(mine)) == ("my-h100", "H100 SXM5 80 GB", 1400)
    memory = bandwidth_ceiling(mine)
    assert (memory.bytes_per_s, memory.datasheet, memory.kind) == (3e12, 3.35e12, "achievable")
    expected = {
        ("bfloat16", "matrix"): (700e12, 989.4e12),
        ("float32", "matrix"): (51e12, 66.9e12),  # a product without a matrix rate: beside the vector rate
        ("float32", "vector"): (60e12, 66.9e12),
        ("float8", "matrix"): (1402.6e12, 1978.9e12),  # not measured: as the pack has it
    }
    for (precision, unit), rates in expected.items():
        ceiling = compute_ceiling(mine, precision, unit)
        assert ceiling is not None
        assert (ceiling.flops_per_s, ceiling.datasheet) == rates
    measured = compute_ceiling(mine, "bfloat16", "matrix")
    assert measured is not None
    assert measured.source == "measured on this device by `calibrate` with torch 2.9.0, CUDA 12.8: s; spread 1.5 %"
    assert compute_ceiling(known, "bfloat16", "matrix") != measured  # the pack's own is untouched


WRONG_CALIBRATED: dict[str, tuple[dict[str, object], str]] = {
    "a rate above the datasheet": (
        {"ceilings.0.achievable.value_tflops": 1038.9},  # 1.05 x 989.4 = 1038.87
        "ceilings[0].achievable: 1038.9 TFLOP/s is above the datasheet's 989.4",
    ),
    "a bandwidth above the datasheet": (
        {"memory.bandwidth.value_gbytes_per_s": 3350.1},
        "memory.bandwidth: 3350.1 GB/s is above the datasheet's 3350",
    ),
    "a precision that the device lacks": (
        {"ceilings.0.precision": "float4"},
        "ceilings[0]: h100-sxm has no datasheet figure for float4 matrix",
    ),
    "a platform that the pack lacks": ({"datasheet_of": "h1000"}, "datasheet_of: the pack has no platform `h1000`"),
    "a slug of the pack": ({"slug": "h100-sxm"}, "slug: `h100-sxm` is a platform of the pack; take another"),
    "a spread": (
        {"ceilings.0.achievable.spread_pct": 20.1},
        "ceilings[0].achievable.spread_pct: Input should be less than or equal to 20",
    ),
    "a figure without its statistic": (
        {"memory.bandwidth.statistic": None},
        "memory.bandwidth.statistic: Field required",
    ),
    "another origin": ({"origin": "guessed"}, "origin: Input should be 'calibrated'"),
}


@pytest.mark.parametrize(("changes", "problem"), WRONG_CALIBRATED.values(), ids=WRONG_CALIBRATED.keys())
def test_what_is_wrong_in_a_calibrated_file_is_told_with_its_place(call, here, changes, problem):
    content = calibrated_content(datasheet_of="h100-sxm")
    for path, value in changes.items():
        change(content, path, value)
    write_json(here / "mine.json", content)

    outcome = call("platforms", "mine.json")

    what = f"`mine.json` is not a sound platform file: 1 problem\n  mine.json::$.{problem}"
    assert (outcome.err, outcome.out, outcome.code) == (error(what, HINT_CALIBRATED), "", 2)


def test_the_largest_rate_that_a_clock_explains_is_taken(here):
    content = change(calibrated_content(datasheet_of="h100-sxm"), "ceilings.0.achievable.value_tflops", 1038.8)

    mine = load_platform_file(write_json(here / "mine.json", content))

    ceiling = compute_ceiling(mine, "bfloat16", "matrix")
    assert ceiling is not None
    assert ceiling.flops_per_s == 1038.8e12
