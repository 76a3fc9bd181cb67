"""The columns of a trace: one row per complete event, strings and input signatures interned.

Times are integer nanoseconds since the trace's first valid event. -1 stands for "not recorded" in every id column;
0 is never an id of a correlation.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints = "NDArray[np.int64]"


class Kind(IntEnum):
    """What an event is, in one vocabulary for all versions and vendors."""

    CPU_OP = 0
    PYTHON = 1
    ANNOTATION = 2
    RUNTIME = 3
    DRIVER = 4
    KERNEL = 5
    MEMCPY = 6
    MEMSET = 7
    GPU_ANNOTATION = 8
    OVERHEAD = 9
    SYNC = 10
    OTHER = 11


# Category spellings of all writers since 2021, lower-cased; unknown ones are OTHER.
KIND_OF_CATEGORY: dict[str, Kind] = {
    "cpu_op": Kind.CPU_OP,
    "operator": Kind.CPU_OP,
    "python_function": Kind.PYTHON,
    "user_annotation": Kind.ANNOTATION,
    "cuda_runtime": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.DRIVER,
    "xpu_driver": Kind.DRIVER,
    "privateuse1_driver": Kind.DRIVER,
    "kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.GPU_ANNOTATION,
    "overhead": Kind.OVERHEAD,
    "cuda_sync": Kind.SYNC,
}
GPU_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
HOST_KINDS = (Kind.CPU_OP, Kind.PYTHON, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER)


class Inputs(Struct, frozen=True):
    """The recorded inputs of an op, decoded: Kineto's four parallel lists, None where absent."""

    dims: Any
    types: Any
    strides: Any
    concrete: Any


class Collective(Struct, frozen=True, kw_only=True):
    """A collective as its op and its kernel describe it; -1 and "" where absent.

    `group` is the process group's name, with its description in brackets where there is one.
    """

    name: str
    dtype: str
    in_elements: int
    out_elements: int
    group_size: int
    group: str
    ranks: str


class Flows(Struct, kw_only=True):
    """Flow events: launch to kernel (``ac2g`` and its older names) and forward to backward."""

    id: NDArray[np.int64]
    ts: NDArray[np.int64]
    lane: NDArray[np.int32]
    is_start: NDArray[np.bool_]
    is_fwdbwd: NDArray[np.bool_]


class Tally(Struct, kw_only=True):
    """What was wrong with a file: a count and the byte offset of the first case, by reason."""

    counts: dict[str, int] = field(default_factory=dict)
    first_offset: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1, offset: int | None = None) -> None:
        """Count `count` cases of `reason`."""
        if count <= 0:
            return
        self.counts[reason] = self.counts.get(reason, 0) + count
        if offset is not None:
            self.first_offset.setdefault(reason, offset)

    def absorb(self, other: Tally) -> None:
        """Count what another reader counted further on in the file."""
        for reason, count in other.counts.items():
            self.add(reason, count, other.first_offset.get(reason))


class Trace(Struct, kw_only=True):
    """A trace in columns, in file order; ids and sizes in as few bytes as a column needs: widen before computing.

    `wait_stream` and `wait_record` tell of a `SYNC` event for which stream it waits, and for the event that the call
    of which correlation recorded. `collective` and `grid` number `collectives` and `grids`. `graph_node` is 0 for a
    kernel that no graph launched, where the writer says so.

    `clocks_apart_ns` is how far the events of the host lie from those of the GPU where the two have clocks of their
    own, else 0: then no distance between host and GPU means anything. `host_moved_ns` is what was added to the times
    of the host so that they lie beside the GPU's.
    """

    kind: NDArray[np.uint8]
    name: NDArray[np.int32]
    lane: NDArray[np.int32]
    start: NDArray[np.int64]
    dur: NDArray[np.int64]
    correlation: NDArray[np.int64]
    external_id: NDArray[np.int64]
    device: NDArray[np.int32]
    stream: NDArray[np.int64]
    sequence: NDArray[np.int64]
    forward_thread: NDArray[np.int64]
    inputs: NDArray[np.int32]
    nbytes: NDArray[np.int64]
    wait_stream: NDArray[np.int64]
    wait_record: NDArray[np.int64]
    graph_node: NDArray[np.int64]
    collective: NDArray[np.int32]
    grid: NDArray[np.int32]
    flows: Flows
    names: list[str]
    lanes: list[tuple[int | str, int | str]]
    signatures: list[Inputs]
    collectives: list[Collective]
    grids: list[tuple[int, int, int]]
    header: dict[str, Any]
    repaired: Tally
    dropped: Tally
    event_count: int
    base_ns: int
    layout: str
    clocks_apart_ns: int = 0
    host_moved_ns: int = 0
    # What others have made of a signature, by its number: many ask for the same one.
    parsed: dict[int, Any] = field(default_factory=dict)

    @property
    def end(self) -> NDArray[np.int64]:
        """End of each event, ns."""
        return self.start + self.dur

    def end_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """End of some events, ns."""
        return self.start[rows] + self.dur[rows]

    def of_kind(self, *kinds: Kind) -> NDArray[np.int64]:
        """Row numbers of the given kinds, in file order."""
        mask = self.kind == int(kinds[0])
        for kind in kinds[1:]:
            mask |= self.kind == int(kind)
        return np.flatnonzero(mask)
