"""What each collective of a run moves: kind, group, element type, bytes.

The kernel's own record says it best; else the record of the `record_param_comms` op around its launch; else shapes of
the innermost communication op around it. What none of them tells stays unknown.

A message's size is that of the NCCL tests: the whole buffer, so what a rank hands in or gets out, whichever is larger.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.opmodels import ITEMSIZE, category_of, normalise_dtype, op_from_record
from rooftrace.sorted_unique import distinct_rows, sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.opmodels import Tensor
    from rooftrace.trace import Inputs

UNKNOWN = "unknown"
# Parts of names, letters only; the first that a name holds decides, so longer words stand before those inside them.
_WORDS = (
    ("alltoall", "all_to_all"),
    ("reducescatter", "reduce_scatter"),
    ("allgather", "all_gather"),
    ("allreduce", "all_reduce"),
    ("crossdevicereduce", "all_reduce"),
    ("dispatch", "all_to_all"),
    ("combine", "all_to_all"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("sendrecv", "send_recv"),
    ("isend", "send_recv"),
    ("irecv", "send_recv"),
    ("send", "send_recv"),
    ("recv", "send_recv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
)
# What a ring sends over a rank's link for each byte of the message, for n ranks (NCCL tests, PERFORMANCE.md).
_SENDS_TWICE = frozenset({"all_reduce"})
_SENDS_ONCE = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
# Lengths of the arguments of `record_param_comms` that end with the size of the group.
_WITH_GROUP_SIZE = (8, 10)
_MOST_RANKS = 60


class Message(Struct, frozen=True, kw_only=True):
    """What several calls have in common; "" and -1 where it is not known."""

    kind: str = UNKNOWN
    dtype: str = ""
    nbytes: int = -1
    group: str = ""
    group_size: int = -1
    ranks: str = ""

    @property
    def bus_factor(self) -> float | None:
        """Bus bandwidth over algorithm bandwidth; None where the size of the group decides and is not known."""
        n = self.group_size
        if self.kind not in _SENDS_TWICE | _SENDS_ONCE:
            return 1.0
        if n < 1:
            return None
        return (2 if self.kind in _SENDS_TWICE else 1) * (n - 1) / n


def kind_of(name: str) -> str:
    """The collective that a name tells: ``all_reduce`` for ``c10d::allreduce_`` and ``cross_device_reduce_1stage``."""
    letters = "".join(filter(str.isalpha, name.lower().replace("2", "to")))
    return next((kind for word, kind in _WORDS if word in letters), UNKNOWN)


def find_messages(workload: Workload, members: NDArray[np.int64]) -> tuple[list[Message], NDArray[np.int64]]:
    """The distinct messages of some collectives, and which of them each one is."""
    trace, tree, activities = workload.trace, workload.tree, workload.activities
    launch = activities.launch[members]
    recorded = trace.collective[activities.row[members]].astype(np.int64)
    around = nearest(tree.parent, launch, trace.collective[tree.row] >= 0)
    recorded = np.where(recorded >= 0, recorded, of_nodes(trace.collective[tree.row], around))
    op = nearest(tree.parent, launch, _is_call(workload))
    params = nearest(tree.parent, launch, tree.name == _code(trace.names, "record_param_comms"))
    inputs = trace.inputs[tree.row]
    kernel = activities.name[members].astype(np.int64)
    columns = (kernel, recorded, of_nodes(tree.name, op), of_nodes(inputs, op), of_nodes(inputs, params))
    first, at = distinct_rows(*columns)
    keys = zip(*(column[first].tolist() for column in columns), strict=True)
    described = [_describe(workload, *key) for key in keys]
    messages = sorted(set(described), key=lambda item: (item.kind, item.group, item.nbytes, repr(item)))
    number = {message: position for position, message in enumerate(messages)}
    lookup = np.array([number[message] for message in described], dtype=np.int64)
    of_member: NDArray[np.int64] = lookup[at]
    return messages, of_member


def nearest(parent: NDArray[np.int32], nodes: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each node itself or its innermost ancestor that is wanted, else -1."""
    found: NDArray[np.int64] = nodes.copy()
    while True:
        at = np.flatnonzero(found >= 0)
        at = at[~wanted[found[at]]]
        if not at.size:
            return found
        found[at] = parent[found[at]]


def of_nodes(values: NDArray[Any], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values of some nodes; -1 where there is no node."""
    found = np.full(nodes.size, -1, dtype=np.int64)
    known = nodes >= 0
    found[known] = values[nodes[known]]
    return found


def _is_call(workload: Workload) -> NDArray[np.bool_]:
    """Nodes that are communication ops with recorded inputs; `record_param_comms` leaves out the element type."""
    trace, tree = workload.trace, workload.tree
    kinds = (tree.kind == int(Kind.CPU_OP)) | (tree.kind == int(Kind.ANNOTATION))
    shaped = kinds & (trace.inputs[tree.row] >= 0)
    named = np.zeros(len(trace.names), dtype=bool)
    codes = sorted_unique(tree.name[shaped])
    names = [trace.names[code] for code in codes.tolist()]
    named[codes] = [name != "record_param_comms" and category_of(name) == "communication" for name in names]
    calls: NDArray[np.bool_] = shaped & named[tree.name]
    return calls


def _code(names: list[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _describe(workload: Workload, kernel: int, recorded: int, op: int, inputs: int, told: int) -> Message:
    """The message of a kernel's name, a record, a call (name and inputs) and the inputs of `record_param_comms`."""
    trace, facts = workload.trace, workload.activities.infos[kernel].facts
    name = trace.names[op] if op >= 0 else ""
    message = Message(kind=_first_known(name, facts.collective or "", trace.names[kernel]))
    size = _group_size(trace.signatures[told]) if told >= 0 else -1
    message = replace(message, group_size=size if size > 0 else _of_two(trace.header), dtype=facts.precision or "")
    if recorded >= 0:
        record = trace.collectives[recorded]
        message = replace(
            message,
            kind=_first_known(record.name, message.kind),
            group=record.group,
            group_size=record.group_size if record.group_size > 0 else message.group_size,
            ranks=_shortened(record.ranks),
        )
        dtype, elements = normalise_dtype(record.dtype), max(record.in_elements, record.out_elements)
        if dtype and elements > 0:
            return replace(message, dtype=dtype, nbytes=elements * ITEMSIZE[dtype])
    return _sized(message, name, trace.signatures[inputs]) if inputs >= 0 else message


def _first_known(*names: str) -> str:
    return next((kind for name in names if (kind := kind_of(name)) != UNKNOWN), UNKNOWN)


def _group_size(inputs: Inputs) -> int:
    """The last argument of `record_param_comms`, in the versions that have it."""
    concrete = inputs.concrete
    if not isinstance(concrete, list) or len(concrete) not in _WITH_GROUP_SIZE:
        return -1
    last = concrete[-1]
    return int(last) if isinstance(last, str) and last.isascii() and last.isdigit() and len(last) < 8 else -1


def _of_two(header: dict[str, object]) -> int:
    """The size of any group in a run of two processes: a group of one communicates with nobody."""
    found = header.get("distributedInfo")
    return 2 if isinstance(found, dict) and found.get("world_size") == 2 else -1


def _shortened(ranks: str) -> str:
    return ranks if len(ranks) <= _MOST_RANKS else f"{ranks[:_MOST_RANKS]}…"


def _sized(message: Message, name: str, inputs: Inputs) -> Message:
    """With element type and bytes from the arguments of a call.

    ProcessGroupNCCL names its own records (`nccl:all_reduce`) after all the tensors that a rank sends. Other calls are
    handed the tensor to send first, or the one for the result and then the one to send.
    """
    recorded = (inputs.dims, inputs.types, inputs.strides, inputs.concrete)
    op = op_from_record(name, *(part if isinstance(part, list) else None for part in recorded))
    tensors = [tensor for tensor in op.tensors() if math.prod(tensor.shape) > 0]
    if not tensors:
        return message
    message = replace(message, dtype=tensors[0].dtype or message.dtype)
    if name.startswith("nccl:"):
        nbytes = _bytes_of(tensors, message)
        if nbytes > 0 and message.kind == "all_gather":  # each rank sends its part of the whole
            nbytes = nbytes * message.group_size if message.group_size > 0 else -1
    else:
        pair = tensors[: 2 if _has_result(name) else 1]
        nbytes = max(_bytes_of([tensor], message) for tensor in pair)
    return replace(message, nbytes=nbytes)


def _has_result(name: str) -> bool:
    """Whether a call is handed the tensor for its result before the one to send."""
    return "_base" in name or "_tensor" in name


def _bytes_of(tensors: list[Tensor], message: Message) -> int:
    """Bytes of some tensors, of the kernel's element type where they record none; -1 where neither tells."""
    total = 0
    for tensor in tensors:
        dtype = tensor.dtype or message.dtype
        if dtype not in ITEMSIZE:
            return -1
        total += math.prod(tensor.shape) * ITEMSIZE[dtype]
    return total or -1
