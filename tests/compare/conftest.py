"""A comparison that was prepared for a writer: two small runs with a regression, an improvement and a small change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rooftrace.report.compare_run import open_pair
from rooftrace.report.grounding.pair import PairGrounds
from rooftrace.workflow.compare import CompareOptions, compare_traces
from tests.compare.sides import ADD, GEMM, MUL, Call, trace_of

SHAPED = {"dims": [[64, 512], [512, 512]], "types": ["c10::BFloat16"] * 2}


def calls(gemm: float, add: float, muls: int) -> list[Call]:
    """Products, additions (µs), and multiplications in one or several kernels of 20 µs together."""
    return [
        Call(op="aten::mm", kernels=[(GEMM, gemm)], modules=["Net_0", "Linear_0"], **SHAPED),
        Call(op="aten::add", kernels=[(ADD, add)], modules=["Net_0", "Tail_0"], **SHAPED),
        Call(op="aten::mul", kernels=[(MUL, 20 / muls)] * muls, modules=["Net_0", "Tail_0"], **SHAPED),
    ]


def write_pair(folder: Path) -> tuple[Path, Path]:
    """Four steps a side. Base: 100 + 50 + 20 µs; target: 130 + 40 + 20 µs, the multiplication in two kernels."""
    base, target = folder / "before.json.gz", folder / "after.json.gz"
    trace_of(calls(100, 50, 1), steps=4).write(base)
    trace_of(calls(130, 40, 2), steps=4).write(target)
    return base, target


@pytest.fixture(scope="session")
def made_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prepared comparison; not to be changed."""
    folder = tmp_path_factory.mktemp("pair")
    compare_traces(*write_pair(folder), folder / "run", CompareOptions(given={}))
    return folder / "run"


@pytest.fixture
def pair_run(made_pair: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(made_pair, tmp_path / "run"))


@pytest.fixture
def grounds(made_pair: Path) -> PairGrounds:
    """What prose about it is held against."""
    return open_pair(made_pair)
