"""Files as a user writes them, beside a trace of an op that the pack does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rooftrace.pack import KNOWLEDGE
from tests.cli.conftest import call, here  # noqa: F401 - the command line, in an empty working folder
from tests.support.trace_builder import TraceBuilder

MODEL = '''\
from rooftrace.opmodels import Cost, Example, Op, Tensor, Unmodelled, op_model

MIB = Tensor(shape=(1024, 256), dtype="float32")


@op_model(
    "my::scale",
    category="elementwise",
    examples=(
        Example(
            args=(MIB,), flops=262144, bytes_read=1048576, bytes_written=1048576, why="a product on each of 2^18 * 4 B"
        ),
    ),
)
def scale(op: Op) -> Cost | Unmodelled:
    """``x * s`` into a new tensor."""
    x = op.tensor(0)
    size = 4 * x.numel
    return Cost(flops=x.numel, bytes_read=size, bytes_written=size, precision="float32")
'''


def error(what: str, hint: str) -> str:
    return f"error: {what}\n\nhint: {hint}\n"


def write_trace(path: Path, device: str = "") -> None:
    """One call of `my::scale` on 64 MiB of float32 and its kernel of 100 us, on an H100 unless named."""
    trace = TraceBuilder()
    trace.device(device or None)
    trace.op("my::scale", 0, 20, dims=[[4096, 4096]], types=["float"])
    trace.kernel("scale_kernel", 30, 100, correlation=trace.launch(ts=5))
    trace.write(path, "plain")


@pytest.fixture
def model_file(here: Path) -> Path:  # noqa: F811 - the fixture above
    """The working folder's `my_models.py`, with a trace `t.json` beside it."""
    write_trace(here / "t.json")
    path = here / "my_models.py"
    path.write_text(MODEL, encoding="utf-8")
    return path


def platform_content(slug: str = "h100-sxm", **changes: object) -> dict[str, object]:
    """A file of the pack under another slug, to be changed."""
    content = json.loads((KNOWLEDGE / "platforms" / f"{slug}.json").read_bytes())
    return content | {"slug": "my-gpu"} | changes


def calibrated_content(**changes: object) -> dict[str, object]:
    """What `calibrate` writes of a device that the pack does not know."""

    def rate(tflops: float) -> dict[str, object]:
        return {"value_tflops": tflops, "statistic": "fastest of 9 shapes; median of 9 batches", "spread_pct": 0.5}

    content: dict[str, object] = {
        "schema_version": "1.0",
        "origin": "calibrated",
        "slug": "new-gpu-calibrated",
        "names": ["New GPU"],
        "vendor": "nvidia",
        "product": "New GPU",
        "compute_units": 40,
        "measured_on": "2026-11-30",
        "software": "torch 2.9.0, CUDA 12.8",
        "memory": {
            "capacity_bytes": 17_179_869_184,
            "bandwidth": {"value_gbytes_per_s": 500.0, "statistic": "copy of 1024 MiB", "spread_pct": 0.1},
        },
        "ceilings": [
            {"precision": "bfloat16", "unit": "matrix", "achievable": rate(100.0)},
            {"precision": "float32", "unit": "vector", "achievable": rate(20.0)},
        ],
    }
    return content | changes


def write_json(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
