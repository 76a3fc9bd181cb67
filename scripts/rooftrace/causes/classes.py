"""Which host events are data loading, memory management, compilation and so on, by their names.

A row is one kind of work at most; the first rule that fits decides. Names are those of CUDA, HIP, torch and triton.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace.calltree import PHASES
from rooftrace.causes.calls import find_slow_calls
from rooftrace.causes.first_use import first_calls_that_set_up, first_use
from rooftrace.causes.model import Cause
from rooftrace.causes.spans import merged
from rooftrace.sorted_unique import distinct_codes, sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree, Context
    from rooftrace.causes.calls import SlowCalls
    from rooftrace.causes.model import IdleCauses
    from rooftrace.causes.spans import Spans, Windows
    from rooftrace.trace import Trace

_CALLS = (Kind.RUNTIME, Kind.DRIVER)
_FRAMES = (Kind.PYTHON,)
_RANGES = (Kind.CPU_OP, Kind.ANNOTATION)
_SLASH = r"[/\\]"


class _Rule(Struct, frozen=True):
    cause: Cause
    kinds: tuple[Kind, ...]
    pattern: re.Pattern[str]


_RULES = (
    # torch 2.9 and later record collections where asked to (`record_python_gc_info`); a call shows in stacks.
    _Rule(Cause.GARBAGE_COLLECTION, _FRAMES, re.compile(r"^Python GC$|^<built-in (?:function|method) collect\b")),
    _Rule(
        Cause.MEMORY_MANAGEMENT,
        _CALLS,
        re.compile(
            r"^(?:cuda|hip)(?:Malloc|Free|Host(?:Alloc|Free|Malloc|Register|Unregister)|ExtMalloc|MemGetInfo)"
            r"|^(?:cu|hip)Mem(?:Alloc|Free|Create|Release|Map|Unmap|Address|SetAccess|Host|GetInfo|Pool)"
        ),
    ),
    _Rule(
        Cause.MEMORY_MANAGEMENT,
        _FRAMES,
        re.compile(rf"torch{_SLASH}(?:cuda|hip){_SLASH}memory\.py\(\d+\): empty_cache|_cuda_emptyCache"),
    ),
    _Rule(
        Cause.COMPILATION,
        _CALLS,
        re.compile(
            r"^(?:cu|hip)(?:Module(?:Load|GetFunction)|Library(?:Load|GetKernel)|Link)|^cudaLibraryLoad"
            r"|^(?:nv|hip)rtc|^(?:cuda|hip|cu)(?:Graph(?:Instantiate|ExecUpdate)|Stream(?:Begin|End)Capture)"
        ),
    ),
    _Rule(Cause.COMPILATION, _RANGES, re.compile(r"\(dynamo_timed\)$|^entire_frame_compile$|^compile_fx")),
    _Rule(
        Cause.COMPILATION,
        _FRAMES,
        re.compile(
            rf"torch{_SLASH}_dynamo{_SLASH}(?:convert_frame|symbolic_convert|output_graph)\.py\("
            rf"|torch{_SLASH}_inductor{_SLASH}(?:graph|scheduler|lowering|async_compile)\.py\("
            rf"|torch{_SLASH}_inductor{_SLASH}(?:compile_fx|codecache)\.py\(\d+\): \w*(?:compile|load)"
            rf"|torch{_SLASH}_inductor{_SLASH}.*triton_heuristics\.py\(\d+\): (?:precompile|benchmark|autotune|bench)"
            rf"|torch{_SLASH}utils{_SLASH}cpp_extension\.py\("
            rf"|triton{_SLASH}compiler{_SLASH}(?:compiler\.py\(\d+\): (?:compile|make_ir)\b|code_generator\.py\()"
            rf"|triton{_SLASH}runtime{_SLASH}(?:autotuner\.py\(\d+\): (?:_bench|benchmark)|jit\.py\(\d+\): _do_compile)"
        ),
    ),
    _Rule(
        Cause.PROFILER,
        _FRAMES,
        re.compile(
            rf"torch{_SLASH}(?:profiler{_SLASH}(?:profiler|_memory_profiler|execution_trace)\.py\("
            rf"|autograd{_SLASH}profiler\.py\(\d+\): (?:_start_trace|_prepare_trace|_ensure_results|kineto_results))"
            r"|^<built-in (?:function|method) _?(?:enable|disable|prepare)_profiler"
        ),
    ),
    _Rule(Cause.DATA_LOADING, _FRAMES, re.compile(rf"torch{_SLASH}utils{_SLASH}data{_SLASH}dataloader\.py\(")),
    _Rule(
        Cause.COMMUNICATION_SETUP,
        (*_CALLS, *_RANGES, *_FRAMES),
        re.compile(r"(?:nccl|rccl)Comm(?:Init|Split)"),
    ),
    _Rule(
        Cause.COMMUNICATION_SETUP,
        _FRAMES,
        re.compile(
            rf"torch{_SLASH}distributed{_SLASH}distributed_c10d\.py\(\d+\): "
            r"(?:init_process_group|_?new_(?:process_)?group|split_group|destroy_process_group|_new_process_group_helper)"
        ),
    ),
)
# Ops that hand a collective over; they count where the gap ends at one.
COLLECTIVE_OP = re.compile(r"^(?:c10d|_c10d_functional|nccl|rccl)[:_]|^record_param_comms$")
# Causes by which host events are told, best first where two cover equally much.
SPECIAL = (
    Cause.DATA_LOADING,
    Cause.GARBAGE_COLLECTION,
    Cause.COMPILATION,
    Cause.MEMORY_MANAGEMENT,
    Cause.COMMUNICATION_SETUP,
    Cause.PROFILER,
)
# Overheads that CUPTI records of itself; they carry no thread.
_OVERHEADS = (
    (Cause.COMPILATION, re.compile(r"Module Loading|Lazy Function Loading|Driver Compiler", re.IGNORECASE)),
    (
        Cause.PROFILER,
        re.compile(r"Activity Buffer Request|Buffer Flush|Instrumentation|Resource|UVM Activity", re.IGNORECASE),
    ),
)


# What profilers of 2021 recorded like an op: it lasts a whole step and dispatches nothing itself.
_STEP_LIKE = re.compile(r"^ProfilerStep|^Optimizer\.|^enumerate\(DataLoader\)|DataParallel\.forward$")


class HostWork(Struct, frozen=True, kw_only=True):
    """Host events by what they are; ``overheads`` have no lane and lie on lane 0."""

    special: dict[Cause, Spans]
    overheads: dict[Cause, Spans]
    collectives: Spans  # ops that hand collectives over
    dispatch: Spans  # ops and runtime calls of the threads that launch
    calls: Spans  # runtime calls
    slow: SlowCalls
    first_use: NDArray[np.bool_]  # of each row, whether it is an allocator call of a first use


def classify(trace: Trace, tree: CallTree, context: Context, activities: Activities) -> HostWork:
    """The host events of a trace by what they are."""
    lanes = sorted_unique(tree.lane[activities.launch[activities.launch >= 0]])
    codes = _codes(trace)
    in_data = tree.row[context.phase == PHASES.index("data")]
    rows = {cause: np.flatnonzero(codes == int(cause)) for cause in SPECIAL}
    slow = find_slow_calls(trace, tree, activities)
    first = first_use(trace, tree, rows[Cause.MEMORY_MANAGEMENT][_is_call(trace, rows[Cause.MEMORY_MANAGEMENT])])
    setting_up = np.r_[np.flatnonzero(first), first_calls_that_set_up(trace, slow)]
    rows[Cause.MEMORY_MANAGEMENT] = rows[Cause.MEMORY_MANAGEMENT][~first[rows[Cause.MEMORY_MANAGEMENT]]]
    rows[Cause.COMPILATION] = np.union1d(rows[Cause.COMPILATION], setting_up)
    rows[Cause.DATA_LOADING] = np.union1d(rows[Cause.DATA_LOADING], in_data)
    busy = trace.of_kind(Kind.CPU_OP, *_CALLS)
    overheads = trace.of_kind(Kind.OVERHEAD)
    return HostWork(
        special={cause: _spans(trace, rows[cause]) for cause in SPECIAL},
        overheads={
            cause: _spans(trace, overheads[_named(trace, overheads, pattern)], one_lane=True)
            for cause, pattern in _OVERHEADS
        },
        collectives=_spans(trace, busy[_named(trace, busy, COLLECTIVE_OP)]),
        calls=_spans(trace, trace.of_kind(*_CALLS)),
        slow=slow,
        first_use=first,
        dispatch=_spans(trace, busy[np.isin(trace.lane[busy], lanes) & ~_named(trace, busy, _STEP_LIKE)]),
    )


def special_time(idle: IdleCauses, windows: Windows) -> NDArray[np.int64]:
    """Time of each window in which its thread, or the profiler or driver, did special work, ns."""
    told = [spans.covered(windows) for spans in idle.special]
    told += [spans.covered(windows.on_all_lanes()) for spans in idle.overheads]
    most: NDArray[np.int64] = np.stack(told).max(axis=0)
    return most


def _is_call(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.isin(trace.kind[rows], [int(kind) for kind in _CALLS])


def is_memory_call(trace: Trace, rows: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
    """Whether each row is a call of the allocator."""
    names = {code: _cause_of(trace.names[code], Kind.RUNTIME) for code in sorted_unique(trace.name[rows]).tolist()}
    memory = [code for code, cause in names.items() if cause == int(Cause.MEMORY_MANAGEMENT)]
    return np.isin(trace.name[rows], memory)


def all_lanes(spans: Spans) -> Spans:
    """The spans of all lanes laid on one."""
    return merged(np.zeros_like(spans.lane), spans.start, spans.end, spans.row)


def _codes(trace: Trace) -> NDArray[np.int8]:
    """Cause of each row whose name tells one, else -1; each distinct name is looked at once a kind."""
    found = np.full(trace.kind.size, -1, dtype=np.int8)
    for kind in (*_CALLS, *_FRAMES, *_RANGES):
        rows = trace.of_kind(kind)
        names = distinct_codes(trace.name[rows])
        verdict = np.full(len(trace.names), -1, dtype=np.int8)
        verdict[names] = [_cause_of(trace.names[code], kind) for code in names]
        found[rows] = verdict[trace.name[rows]]
    return found


def _cause_of(name: str, kind: Kind) -> int:
    return next((int(rule.cause) for rule in _RULES if kind in rule.kinds and rule.pattern.search(name)), -1)


def _named(trace: Trace, rows: NDArray[np.int64], pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    names = distinct_codes(trace.name[rows])
    verdict = np.zeros(len(trace.names), dtype=bool)
    verdict[names] = [pattern.search(trace.names[code]) is not None for code in names]
    fits: NDArray[np.bool_] = verdict[trace.name[rows]]
    return fits


def _spans(trace: Trace, rows: NDArray[np.int64], *, one_lane: bool = False) -> Spans:
    lane = np.zeros(rows.size, dtype=np.int64) if one_lane else trace.lane[rows].astype(np.int64)
    return merged(lane, trace.start[rows], trace.end_of(rows), rows)
