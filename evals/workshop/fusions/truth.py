"""What a planted instance is, and what fusing it saves, from the recorder's own data flow.

Bytes that a fused kernel moves: what members read and no member made, and what members made that a call outside reads,
that is marked as needed, that nothing reads and nothing overwrites, or that is the last state of a tensor from outside
that they update. An epilogue leaves its product's time alone; it pays for further operands, for what it writes beyond
the product, and for the product where that is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evals.workshop.fusions.machines import LATENCY_NS, Gpu, fused_ns
from evals.workshop.fusions.tensors import Storage

TENSORS_A_LAUNCH = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
"""By the number of tensor lists, what one multi-tensor launch takes (PyTorch: MultiTensorApply.cuh)."""
Version = tuple[Storage, int]


@dataclass(eq=False, kw_only=True)
class Executed:
    """One GPU activity; ``reads`` with the bytes of each look, ``saved`` is made for a backward pass alone."""

    device: int
    stream: int
    start_ns: int
    end_ns: int
    reads: tuple[tuple[Version, int], ...] = ()
    writes: tuple[Version, ...] = ()
    saved: tuple[Version, ...] = ()
    flops: float = 0.0
    unit: tuple[str, str] = ("vector", "f32")


@dataclass(eq=False, kw_only=True)
class Plant:
    """Activities that one kernel could be; of an epilogue ``anchor`` is the product that takes them in.

    ``tensors`` and ``lists`` are set for loops: how many tensors a multi-tensor call would go over, in how many lists.
    Without ``modelled`` the trace does not tell what fusing saves; ``undone`` says that nothing takes their place.
    """

    pattern: str
    modelled: bool = True
    undone: bool = False
    members: list[Executed] = field(default_factory=list)
    anchor: Executed | None = None
    tensors: int = 0
    lists: int = 2


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A planted instance as it is compared: activities by their number in order of (device, stream, start)."""

    pattern: str
    activities: tuple[int, ...]
    saving_ns: int | None


def instances(
    gpu: Gpu, executed: Sequence[Executed], plants: Sequence[Plant], *, needed: set[Version], trains: bool
) -> tuple[Instance, ...]:
    """The truth about a trace, in order of the first activity."""
    ordered = sorted(executed, key=lambda row: (row.device, row.stream, row.start_ns))
    number = {id(row): at for at, row in enumerate(ordered)}
    readers: dict[Version, list[Executed]] = defaultdict(list)
    for row in executed:
        for version, _ in row.reads:
            readers[version].append(row)
    found = [
        Instance(
            pattern=plant.pattern,
            activities=tuple(sorted(number[id(row)] for row in plant.members)),
            saving_ns=_saving(gpu, plant, readers, needed, trains=trains) if plant.modelled else None,
        )
        for plant in plants
    ]
    return tuple(sorted(_best(found), key=lambda instance: instance.activities))


def _best(found: Sequence[Instance]) -> list[Instance]:
    """Of instances that share activities those that together save most: every set of them is looked at."""
    if not found:
        return []
    first, rest = found[0], found[1:]
    clashing = [other for other in rest if set(other.activities) & set(first.activities)]
    if not clashing:
        return [first, *_best(rest)]
    with_it = [first, *_best([other for other in rest if other not in clashing])]
    without = _best(rest)
    return max((with_it, without), key=lambda chosen: sum(one.saving_ns or 0 for one in chosen))


def _saving(
    gpu: Gpu, plant: Plant, readers: Mapping[Version, list[Executed]], needed: set[Version], *, trains: bool
) -> int:
    members = plant.members
    time = sum(row.end_ns - row.start_ns for row in members)
    if plant.undone:
        return time
    flops: dict[tuple[str, str], float] = defaultdict(float)
    for row in members:
        flops[row.unit] += row.flops
    made = {version for row in members for version in (*row.writes, *row.saved)}
    product = set(plant.anchor.writes) if plant.anchor else set()
    nbytes = _external(members, made | product)
    written = _written(members, readers, needed, trains=trains)
    if plant.anchor:
        nbytes += max(0, written - sum(storage.nbytes for storage, _ in product))
        nbytes += sum(version[0].nbytes for version in product if version in needed)
        return time - fused_ns(gpu, nbytes, flops, 0)
    launches = -(-plant.tensors // TENSORS_A_LAUNCH[plant.lists]) if plant.tensors else 1
    return time - fused_ns(gpu, nbytes + written, flops, launches * LATENCY_NS)


def _external(members: Sequence[Executed], made: set[Version]) -> int:
    """Bytes that members read and none of them made; a tensor is read once, however many look at it."""
    looks: dict[Version, int] = defaultdict(int)
    for row in members:
        for version, nbytes in row.reads:
            if version not in made:
                looks[version] += nbytes
    return sum(min(version[0].nbytes, nbytes) for version, nbytes in looks.items())


def _written(
    members: Sequence[Executed], readers: Mapping[Version, list[Executed]], needed: set[Version], *, trains: bool
) -> int:
    """Bytes that have to reach memory."""
    inside = {id(row) for row in members}
    made = {version for row in members for version in row.writes}
    last: dict[int, int] = {}
    for row in members:
        for storage, version in row.writes:
            last[id(storage)] = max(version, last.get(id(storage), 0))
    updated = {id(version[0]) for row in members for version, _ in row.reads if version not in made}
    total = sum(storage.nbytes for row in members for storage, _ in row.saved if trains)
    for row in members:
        for storage, version in row.writes:
            reading = readers.get((storage, version), [])
            outside = any(id(reader) not in inside for reader in reading)
            final = version == last[id(storage)] and (not reading or id(storage) in updated)
            if outside or final or (storage, version) in needed:
                total += storage.nbytes
    return total
