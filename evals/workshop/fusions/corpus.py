"""The planted traces by name: how each is recorded and what its truth is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from evals.workshop.fusions.machines import H100, Gpu
from evals.workshop.fusions.recorder import Recorder
from evals.workshop.fusions.truth import Instance

Build = Callable[[Recorder], None]
THEMES = ("norms", "attention", "activations", "products", "rotary", "training", "moves", "forms", "fused", "decoys")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One trace; ``family`` is what it is about, in the report's first column."""

    family: str
    name: str
    gpu: Gpu
    build: Build
    stacks: bool
    shapes: bool
    named: bool


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A trace's bytes and what is planted in it; no ``platform`` where the trace does not name its GPU."""

    trace: bytes
    instances: tuple[Instance, ...]
    platform: str | None
    activities: int


_CASES: list[Case] = []


def case(
    family: str, gpu: Gpu = H100, *, stacks: bool = True, shapes: bool = True, named: bool = True
) -> Callable[[Build], Build]:
    """Register a trace under its function's name."""

    def register(build: Build) -> Build:
        name = build.__name__
        _CASES.append(Case(family=family, name=name, gpu=gpu, build=build, stacks=stacks, shapes=shapes, named=named))
        return build

    return register


@cache
def cases() -> tuple[Case, ...]:
    """All traces, by family and name."""
    for theme in THEMES:
        importlib.import_module(f"evals.workshop.fusions.{theme}")
    return tuple(sorted(_CASES, key=lambda one: (one.family, one.name)))


def planted(one: Case) -> Planted:
    """Record a trace."""
    recorder = Recorder(one.gpu, stacks=one.stacks, shapes=one.shapes, named=one.named)
    one.build(recorder)
    return Planted(
        trace=recorder.document(),
        instances=recorder.truth(),
        platform=one.gpu.slug if one.named else None,
        activities=len(recorder.executed),
    )
