"""Every case by name: each kind alone, buried among three others, in pairs; clean runs; decoys.

The list depends on nothing but this file and the bases. A third of the cases is held out (by a hash of the name): rules
of the product are tuned on the others only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from evals.workshop.plants.kinds import KINDS
from evals.workshop.plants.networks import POSSIBLE
from evals.workshop.plants.truth import Case

MACHINES = ("h100-sxm", "h100-sxm", "mi300x", "h100-sxm", "a100-sxm-80")
SIZES: dict[str, dict[str, int]] = {
    "experts": {"batch": 32},
    "recommender": {"batch": 32},
    "convolutional": {"batch": 6},
}
MILD = frozenset(
    {
        "slow_gemm",
        "misaligned",
        "unfused_norm",
        "unfused_rotary",
        "unfused_activation",
        "unfused_optimizer",
        "redundant_casts",
        "tiny_gemms",
        "layout_copies",
        "item_per_step",
        "item_in_loop",
        "pageable_copies",
        "loader_stall",
        "small_buckets",
        "exposed_all_reduce",
    }
)
"""Kinds that leave room for others: none makes up most of a run."""
APART = (
    frozenset({"exposed_all_reduce", "straggler"}),
    frozenset({"item_per_step", "item_in_loop"}),
)
"""Kinds that are at the same place, so that one finding is about both."""
DECOY_STEPS = 3
SHORT_CLEAN, SHORT_DECOYS = 4, 2


def cases() -> tuple[Case, ...]:
    """All of them, in a fixed order."""
    return (*_alone(), *_buried(), *_pairs(), *_clean(), *_decoys())


def short() -> tuple[Case, ...]:
    """Each kind alone once and in one run among three others at least, and some of the rest: what CI runs."""
    chosen: list[Case] = []
    seen: set[str] = set()
    for case in _alone():
        if case.planted[0] not in seen:
            seen.add(case.planted[0])
            chosen.append(case)
    return (*chosen, *_covering(list(_buried())), *list(_clean())[:SHORT_CLEAN], *list(_decoys())[:SHORT_DECOYS])


def _covering(buried: list[Case]) -> list[Case]:
    """Few runs that hold every kind, each time the one with most kinds that are not there yet."""
    chosen: list[Case] = []
    missing = set(KINDS)
    while missing:
        best = max(buried, key=lambda case: len(missing.intersection(case.planted)))
        chosen.append(best)
        missing -= set(best.planted)
    return chosen


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def _case(group: str, base: str, planted: Sequence[str], label: str, sizes: dict[str, int] | None = None) -> Case:
    name = f"{group} {base} {label}"
    machine = MACHINES[_number(f"{name} machine") % len(MACHINES)]
    if "layout_copies" in planted:  # channels-last kernels between transpositions are cuDNN's way
        machine = "h100-sxm"
    return Case(
        name=name,
        base=base,
        machine=machine,
        seed=name,
        planted=tuple(sorted(planted)),
        split="held-out" if _number(name) % 3 == 0 else "train",
        sizes={**SIZES.get(base, {}), **(sizes or {})},
    )


def _alone() -> Iterator[Case]:
    for base, kinds in POSSIBLE.items():
        for kind in kinds:
            yield _case("alone", base, (kind,), kind)


def _buried() -> Iterator[Case]:
    """Each kind twice, among three mild ones."""
    for kind in KINDS:
        bases = sorted((base for base in POSSIBLE if kind in POSSIBLE[base]), key=lambda base: _number(base + kind))
        for turn in range(2):
            base = bases[turn % len(bases)]
            others = [other for other in POSSIBLE[base] if other in MILD and _is_apart(kind, other)]
            others.sort(key=lambda other, turn=turn: _number(f"{kind} {other} {turn}"))  # type: ignore[misc]
            yield _case("buried", base, (kind, *_compatible(others)[:3]), f"{kind} {turn + 1}")


def _is_apart(kind: str, other: str) -> bool:
    return kind != other and not any(kind in both and other in both for both in APART)


def _compatible(kinds: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    for kind in kinds:
        if all(_is_apart(kind, other) for other in chosen):
            chosen.append(kind)
    return chosen


def _pairs() -> Iterator[Case]:
    for base, kinds in POSSIBLE.items():
        mild = [kind for kind in kinds if kind in MILD]
        mild.sort(key=lambda kind, base=base: _number(f"{kind} {base} pair"))  # type: ignore[misc]
        for first, second in list(zip(mild[::2], mild[1::2], strict=False))[:4]:
            if _is_apart(first, second):
                yield _case("pair", base, (first, second), f"{first} and {second}")


def _clean() -> Iterator[Case]:
    for turn in range(2):
        for base in POSSIBLE:
            yield _case("clean", base, (), f"{turn + 1}")


def _decoys() -> Iterator[Case]:
    """What would cost much elsewhere, hidden behind a GPU that has work for long: runs of one long step or more."""
    rows = (
        ("convolutional", ("tokenisation",), {"batch": 24}),
        ("convolutional", ("recompilation",), {"batch": 24}),
        ("convolutional", ("launch_bound",), {"batch": 24}),
        ("decoder", ("tokenisation",), {"batch": 32}),
        ("decoder", ("launch_bound",), {"batch": 48}),
        ("training", ("recompilation",), {"batch": 24}),
        ("distributed", ("gc_pause",), {"batch": 24}),
        ("diffusion", ("tokenisation",), {"batch": 32}),
    )
    for base, planted, sizes in rows:
        yield _case("decoy", base, planted, planted[0], {**sizes, "steps": DECOY_STEPS})
