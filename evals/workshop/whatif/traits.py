"""What a drawn run is made of: its GPU, its size, and which mechanisms occur in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeVar

from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X, Gpu
from evals.workshop.program import Draws

Reading = Literal["never", "pinned", "pageable"]
T = TypeVar("T")
LEAST_KERNELS, MOST_KERNELS = 200, 3_000


@dataclass(frozen=True, kw_only=True)
class Traits:
    """One drawn run. Sizes are kernels, graph nodes, bytes; times nanoseconds; 0 means: not in this run.

    ``kernels``: launched forward, a step. ``host_share``: of the stretches of a step that are host-bound.
    ``reads``: how ``.item()`` copies its scalar at the end of a step; ``read_share``: after how many of the
    forward stretches it does, too. ``exposed``: a collective is waited for at once, not at the end of backward.
    ``full``: a step queues more launches than a stream holds.
    """

    gpu: Gpu
    seed: str
    steps: int
    kernels: int
    host_share: float
    trains: bool
    frames: bool
    sync_events: bool
    stall_ns: int
    reads: Reading
    read_share: float
    copy_bytes: int
    collective_bytes: int
    exposed: bool
    side_stream: bool
    graph_nodes: int
    full: bool
    frees: bool

    @property
    def words(self) -> str:
        """The run in a few words."""
        flags = [field.name for field in fields(self) if getattr(self, field.name) is True]
        sizes = [name for name in ("stall_ns", "copy_bytes", "collective_bytes", "graph_nodes") if getattr(self, name)]
        reads = [] if self.reads == "never" else [f"item ({self.reads})"]
        host, sized = f"host {self.host_share:.0%}", [name.rsplit("_", 1)[0] for name in sizes]
        return ", ".join([self.gpu.slug, host, *reads, *flags, *sized])


def draw_traits(seed: int) -> Traits:
    """The traits of a run, each drawn by its own key."""
    d = Draws(f"what-if {seed}", "traits")
    gpu = pick(d, "gpu", (H100_SXM, H100_SXM, H100_SXM, A100_SXM_80, A100_SXM_80, MI300X))
    full = chance(d, "full", 0.06)
    trains = not full and chance(d, "trains", 0.5)
    steps = 1 if full else pick(d, "steps", (1, 2, 2, 3, 3))
    total = LEAST_KERNELS * (MOST_KERNELS / LEAST_KERNELS) ** (d.level("kernels") ** 2)
    has_collectives = not full and chance(d, "collectives", 0.35)
    return Traits(
        gpu=gpu,
        seed=d.seed,
        steps=steps,
        kernels=1_300 if full else round(total / steps * (0.4 if trains else 1.0)),
        host_share=0.2 if full else pick(d, "host share", (0.0, 0.3, 0.6, 1.0)),
        trains=trains,
        frames=chance(d, "frames", 0.6),
        sync_events=chance(d, "sync events", 0.5) and gpu.vendor == "nvidia",
        stall_ns=_between(d, "stall ns", 1_000_000, 8_000_000) if steps > 1 and chance(d, "stall", 0.5) else 0,
        reads=pick(d, "reads", ("never", "pinned", "pageable", "pageable")),
        read_share=pick(d, "read share", (0.0, 0.2, 0.6)),
        copy_bytes=_between(d, "copy bytes", 1 << 17, 1 << 24) if not full and chance(d, "copies", 0.4) else 0,
        collective_bytes=_between(d, "collective bytes", 1 << 18, 1 << 24) if has_collectives else 0,
        exposed=has_collectives and (not trains or chance(d, "exposed", 0.3)),
        side_stream=not full and chance(d, "side stream", 0.3),
        graph_nodes=_between(d, "nodes", 5, 60) if not trains and not full and chance(d, "graph", 0.4) else 0,
        full=full,
        frees=chance(d, "frees", 0.15),
    )


def chance(d: Draws, label: str, share: float) -> bool:
    """True in this share of the draws."""
    return d.level(label) < share


def pick(d: Draws, label: str, options: Sequence[T]) -> T:
    """One of the options, all alike."""
    return options[int(d.level(label) * len(options))]


def _between(d: Draws, label: str, low: int, high: int) -> int:
    """A number between two, even in its logarithm."""
    drawn: float = low * (high / low) ** d.level(label)
    return round(drawn)
