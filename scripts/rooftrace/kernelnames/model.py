"""What is known about a kernel or a copy from its name alone."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["kernel", "communication", "copy", "fill"]


class KernelFacts(Struct, frozen=True, kw_only=True):
    """What the name spells. `None` and `False` mean that the name does not say so, never the opposite."""

    # (m, n) or (m, n, k) of one thread block; attention: rows of Q, of K and, where spelled, head size.
    tile: tuple[int, ...] | None = None
    split_k: int | None = None  # factor; None also where K is split by a factor the name leaves out
    splits_k: bool = False
    stages: int | None = None  # depth of the software pipeline through shared memory
    # "NT": A as stored, B transposed, column-major as BLAS counts; convolutions may have "NHWC" or "NCHW".
    layout: str | None = None
    precision: str | None = None  # torch dtype of the inputs; "tfloat32" where fp32 inputs are rounded to it
    accumulate: str | None = None  # torch dtype of the accumulator
    vector_width: int | None = None  # elements per access of a vectorised elementwise kernel
    architecture: str | None = None  # as spelled: "sm90", "ampere", "gfx942"
    persistent: bool = False
    stream_k: bool = False
    collective: str | None = None  # "all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv", …


NO_FACTS = KernelFacts()


class KernelInfo(Struct, frozen=True, kw_only=True):
    """One distinct kernel name, described."""

    name: str  # as recorded; the key everywhere
    short: str  # for readers: printable, at most 80 characters; not unique
    category: str  # one of `contracts.base.Category`: what the kernel does, not what generated it
    library: str | None
    kind: Kind
    fused: bool  # the name says that several operations were fused into this kernel
    facts: KernelFacts


class CopyFacts(Struct, frozen=True, kw_only=True):
    """Where a copy or a memset goes; `None` where the name does not say."""

    direction: Literal["HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "memset"] | None
    source: str | None  # "pageable", "pinned", "device", "host", "array", "managed"
    destination: str | None
