"""The file that is written, of a GPU that the test makes up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rooftrace.platforms import bandwidth_ceiling, compute_ceiling, last_level_cache_bytes, latency_floor_ns
from rooftrace.platforms.user import load_platform_file
from rooftrace_calibrate import units
from rooftrace_calibrate.device import Device
from rooftrace_calibrate.document import Calibration, document, slug_of
from rooftrace_calibrate.figures import Figure, NoFigure
from rooftrace_calibrate.products import SHAPES, first_line
from rooftrace_calibrate.timing import QUICK
from rooftrace_calibrate.transfers import shortest

GPU = Device(
    torch=None,
    place="cuda:0",
    name="New GPU 16GB",
    vendor="nvidia",
    units=40,
    memory_bytes=17_179_869_184,  # 16 GiB
    capability=(8, 9),
    cache_bytes=33_554_432,
    software="torch 2.9.0, CUDA 12.8",
)


def figure(value: float, unit: str) -> Figure:
    return Figure(value=value, unit=unit, statistic="median of 9 batches of 3 calls", spread_pct=0.25)


def calibration(**changes: object) -> Calibration:
    results: dict[str, Figure | NoFigure] = {
        "memory": figure(501.23456, "GB/s"),
        "float64 matrix": NoFigure(reason="its batches spread"),
        "bfloat16 matrix": figure(123.456, "TFLOP/s"),
        "float32 vector": figure(19.5, "TFLOP/s"),
        "host to device": figure(24.87654, "GB/s"),
        "shortest kernel": figure(1311.6, "ns"),
    }
    given = {"device": GPU, "slug": "mine", "datasheet_of": None, "date": "2026-11-30", "results": results}
    return Calibration(**(given | changes))  # type: ignore[arg-type]


def test_the_document_holds_every_figure_and_why_the_others_are_missing():
    content = document(calibration())

    how = {"statistic": "median of 9 batches of 3 calls", "spread_pct": 0.25}
    assert content == {
        "schema_version": "1.0",
        "origin": "calibrated",
        "slug": "mine",
        "names": ["New GPU 16GB"],
        "vendor": "nvidia",
        "product": "New GPU 16GB",
        "compute_units": 40,
        "detect": {
            "compute_capability": "8.9",
            "num_units": 40,
            "memory_gib": {"min": 15.84, "max": 16.16},  # 16 GiB less and more 1 %
        },
        "measured_on": "2026-11-30",
        "software": "torch 2.9.0, CUDA 12.8",
        "memory": {"capacity_bytes": 17_179_869_184, "bandwidth": {"value_gbytes_per_s": 501.2, **how}},
        "last_level_cache": {"name": "L2", "bytes": 33_554_432, "source": "device properties, torch 2.9.0, CUDA 12.8"},
        "links": {"host_to_device": {"value_gbytes_per_s": 24.88, **how}},
        "latency": {"value_ns": 1312, **how},
        "ceilings": [
            {"precision": "bfloat16", "unit": "matrix", "achievable": {"value_tflops": 123.5, **how}},
            {"precision": "float32", "unit": "vector", "achievable": {"value_tflops": 19.5, **how}},
        ],
        "left_out": [{"what": "float64 matrix", "reason": "its batches spread"}],
    }


def test_the_analysis_takes_the_document(tmp_path: Path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document(calibration())), encoding="utf-8")

    platform = load_platform_file(path)

    product = compute_ceiling(platform, "bfloat16", "matrix")
    assert product is not None
    assert product.flops_per_s == 123.5e12
    assert bandwidth_ceiling(platform).bytes_per_s == 501.2e9
    assert (latency_floor_ns(platform), last_level_cache_bytes(platform)) == (1312, 33_554_432)


def test_of_a_cpu_there_are_no_properties_that_a_trace_would_report():
    cpu = Device(
        torch=None,
        place="cpu",
        name="CPU",
        vendor="cpu",
        units=2,
        memory_bytes=None,
        capability=None,
        cache_bytes=None,
        software="torch 2.9.0, 2 threads",
    )
    content = document(calibration(device=cpu))

    assert {"detect", "last_level_cache"} & set(content) == set()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA GeForce RTX 4070", "nvidia-geforce-rtx-4070-calibrated"),
        ("AMD Radeon(TM) PRO W7900", "amd-radeon-tm-pro-w7900-calibrated"),
        ("éµ", "device-calibrated"),
    ],
)
def test_a_slug_comes_from_the_name(name: str, slug: str):
    assert slug_of(name) == slug


def test_shapes_are_multiples_of_256_in_the_order_of_their_flops():
    assert {size % 256 for shape in SHAPES for size in shape} == {0}
    flops = [2 * m * n * k for m, n, k in SHAPES]
    assert flops == sorted(flops)
    assert any(m != n for m, n, _ in SHAPES)


def test_the_shortest_kernel_is_the_median_of_what_the_profiler_records():
    # quartiles of 1000 1100 1200 1300 1400: 1100 and 1300; 200 / 1200 = 16.67 %
    found = shortest([1400.0, 1000.0, 1200.0, 1100.0, 1300.0])

    assert found == Figure(
        value=1200.0,
        unit="ns",
        statistic="median of 5 kernels that add to one element, as torch.profiler records them",
        spread_pct=16.67,
    )
    assert shortest([0.0] * 5) == NoFigure(reason="the clock gave no time for it")


def test_where_no_kernel_can_be_compiled_the_product_stands_in_where_the_vector_units_run_it():
    product = figure(19.5, "TFLOP/s")
    amd = Device(**{**vars(GPU), "vendor": "amd"})

    # a torch of `None` has no compiler
    found = units.measure(GPU, "float32", QUICK, product)
    assert found == Figure(
        value=19.5,
        unit="TFLOP/s",
        statistic="no chain of multiply-adds, but median of 9 batches of 3 calls; the vector units run it",
        spread_pct=0.25,
    )
    why = "torch cannot compile a kernel here: 'NoneType' object has no attribute 'cuda'"
    assert units.measure(GPU, "float64", QUICK, product) == NoFigure(reason=why)
    assert units.measure(amd, "float32", QUICK, product) == NoFigure(reason=why)


def test_of_an_error_of_torch_the_first_line_is_told():
    assert first_line(RuntimeError("\nout of memory\nCompile with ...")) == "out of memory"
    assert first_line(NotImplementedError()) == "NotImplementedError"
