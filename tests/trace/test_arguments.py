"""What an event says of itself in its arguments: waits, collectives, graphs and grids."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rooftrace.trace import Collective, Kind, load
from tests.support.trace_builder import TraceBuilder, collective
from tests.trace.reading import Folder, assert_same, document, kernel, read_both, values_of

ROOT = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")


def sync(args: str) -> str:
    """The text of a wait with these arguments."""
    return f'{{"ph":"X","cat":"cuda_sync","name":"s","pid":0,"tid":7,"ts":5,"dur":1,"args":{args}}}'


def test_a_wait_names_its_stream_and_what_it_waits_for() -> None:
    builder = TraceBuilder()
    builder.kernel("k", ts=1, dur=2, stream=20)
    builder.sync(ts=4, stream=24, correlation=9, wait_stream=20, wait_record=8)
    builder.sync("Event Sync", ts=6, stream=-1, correlation=11, wait_stream=20, wait_record=10)
    builder.sync("Context Sync", ts=8, stream=-1, correlation=12)

    trace = builder.build()

    assert trace.kind.tolist() == [Kind.KERNEL, Kind.SYNC, Kind.SYNC, Kind.SYNC]
    assert trace.stream.tolist() == [20, 24, -1, -1]
    assert trace.correlation.tolist() == [-1, 9, 11, 12]
    assert trace.device.tolist() == [0, 0, 0, 0]
    assert trace.wait_stream.tolist() == [-1, 20, 20, -1]
    assert trace.wait_record.tolist() == [-1, 8, 10, -1]


@pytest.mark.parametrize("none", ["-1", '"-1"', "4294967295", '"4294967295"', "18446744073709551615", "null", "[7]"])
def test_every_spelling_of_no_stream_is_minus_one(folder: Folder, none: str) -> None:
    args = f'{{"stream":{none},"wait_on_stream":{none},"wait_on_cuda_event_record_corr_id":{none},"correlation":6}}'

    trace = folder.trace(document(kernel(), sync(args)))

    assert (trace.stream.tolist(), trace.wait_stream.tolist(), trace.wait_record.tolist()) == (
        [7, -1],
        [-1] * 2,
        [-1] * 2,
    )
    assert trace.correlation.tolist() == [-1, 6]


def test_only_a_wait_waits(folder: Folder) -> None:
    args = '{"stream":7,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":8}'

    trace = folder.trace(document(kernel("k", 1, 1, args), sync(args)))

    assert trace.wait_stream.tolist() == [-1, 20]
    assert trace.wait_record.tolist() == [-1, 8]


def test_a_collective_is_told_by_its_op_and_its_kernel() -> None:
    builder = TraceBuilder()
    reduce = collective("allreduce", 1024, dtype="BFloat16", ranks=(0, 1, 2, 3))
    gather = collective("allgather", 64, 256, group="7", description=None, ranks=(0, 1, 2, 3))
    builder.op("record_param_comms", ts=1, dur=2, **reduce)
    builder.op("aten::mm", ts=4, dur=2)
    builder.kernel("ncclDevKernel_AllReduce", ts=6, dur=9, **reduce)
    builder.kernel("ncclDevKernel_AllGather", ts=16, dur=9, **gather)
    builder.kernel("gemm", ts=30, dur=9)

    trace = builder.build()

    assert trace.collective.tolist() == [0, -1, 0, 1, -1]
    assert trace.collectives == [
        Collective(
            name="allreduce",
            dtype="BFloat16",
            in_elements=1024,
            out_elements=1024,
            group_size=4,
            group="0 (default_pg)",
            ranks="[0, 1, 2, 3]",
        ),
        Collective(
            name="allgather",
            dtype="Float",
            in_elements=64,
            out_elements=256,
            group_size=4,
            group="7",
            ranks="[0, 1, 2, 3]",
        ),
    ]


NAMED = '"Collective name":"allreduce"'
# arguments, the collective: name, dtype, in, out, group size, group, ranks
COLLECTIVES = {
    "name alone": (f"{{{NAMED}}}", ("allreduce", "", -1, -1, -1, "", "")),
    "numbers as text": (f'{{{NAMED},"In msg nelems":"8","Group size":"0x2"}}', ("allreduce", "", 8, -1, 2, "", "")),
    "ranks as a list": (f'{{{NAMED},"Process Group Ranks":[0, 1]}}', ("allreduce", "", -1, -1, -1, "", "[0, 1]")),
    "group as a number": (f'{{{NAMED},"Process Group Name":3}}', ("allreduce", "", -1, -1, -1, "3", "")),
    "description alone": (
        f'{{{NAMED},"Process Group Description":"tp"}}',
        ("allreduce", "", -1, -1, -1, "tp", ""),
    ),
    "nothing as it should be": (
        f'{{{NAMED},"dtype":[1],"In msg nelems":{{}},"Out msg nelems":null,"Group size":1e30}}',
        ("allreduce", "[1]", -1, -1, -1, "", ""),
    ),
    "name a number": ('{"Collective name":5}', ("5", "", -1, -1, -1, "", "")),
}


@pytest.mark.parametrize("case", COLLECTIVES)
def test_a_collective_may_be_described_by_anything(folder: Folder, case: str) -> None:
    args, (name, dtype, in_elements, out_elements, size, group, ranks) = COLLECTIVES[case]

    trace = folder.trace(document(kernel(args=args)))

    assert trace.collectives == [
        Collective(
            name=name,
            dtype=dtype,
            in_elements=in_elements,
            out_elements=out_elements,
            group_size=size,
            group=group,
            ranks=ranks,
        )
    ]
    assert trace.collective.tolist() == [0]


NO_COLLECTIVE = {
    "without a name": '{"dtype":"Float","Group size":2}',
    "name null": '{"Collective name":null,"Group size":2}',
    "name empty": '{"Collective name":"","Group size":2}',
    "key within a text": '{"note":"\\"Collective name\\":1"}',
    "key as a value": '{"note":"Collective name"}',
}


@pytest.mark.parametrize("case", NO_COLLECTIVE)
def test_without_a_name_there_is_no_collective(folder: Folder, case: str) -> None:
    trace = folder.trace(document(kernel(args=NO_COLLECTIVE[case])))

    assert (trace.collective.tolist(), trace.collectives) == ([-1], [])


GRIDS = {
    "three": ("[2,3,1]", [0], [(2, 3, 1)]),
    "spaces": ("[ 2, 3, 1 ]", [0], [(2, 3, 1)]),
    "two": ("[2,3]", [-1], []),
    "text": ('"grid(100,)"', [-1], []),
    "null": ("null", [-1], []),
    "not whole": ("[2.5,3,1]", [-1], []),
}


@pytest.mark.parametrize("case", GRIDS)
def test_a_grid_is_three_whole_numbers_or_none(folder: Folder, case: str) -> None:
    text, column, grids = GRIDS[case]

    trace = folder.trace(document(kernel(args=f'{{"grid":{text}}}')))

    assert (trace.grid.tolist(), trace.grids) == (column, grids)


def test_kernels_of_one_grid_share_it() -> None:
    builder = TraceBuilder()
    for ts, grid in enumerate(([8, 1, 1], [9, 1, 1], [8, 1, 1], None)):
        builder.kernel("k", ts=ts, dur=1, grid=grid)

    trace = builder.build()

    assert trace.grid.tolist() == [0, 1, 0, -1]
    assert trace.grids == [(8, 1, 1), (9, 1, 1)]


def test_a_kernel_of_a_graph_names_its_node() -> None:
    builder = TraceBuilder()
    builder.kernel("in a graph", ts=1, dur=1, **{"graph id": 2, "graph node id": 17})
    builder.kernel("launched", ts=3, dur=1, **{"graph id": 0, "graph node id": 0})
    builder.kernel("older writer", ts=5, dur=1)

    assert builder.build().graph_node.tolist() == [17, 0, -1]


def test_a_column_that_no_event_fills_is_minus_one_throughout() -> None:
    builder = TraceBuilder()
    builder.op("aten::mm", ts=1, dur=2)
    builder.op("aten::mm", ts=4, dur=2)

    trace = builder.build()

    for column in ("correlation", "stream", "device", "nbytes", "wait_stream", "graph_node", "collective", "grid"):
        assert getattr(trace, column).tolist() == [-1, -1]


def test_arguments_of_one_event_do_not_disturb_those_of_others(folder: Folder) -> None:
    broken = kernel("broken", 2, 1, '{"stream":[7],"correlation":5}')

    trace = folder.trace(document(kernel("a", 1), broken, kernel("b", 3, 1, '{"stream":9,"correlation":6}')))

    assert trace.stream.tolist() == [7, -1, 9]
    assert trace.correlation.tolist() == [-1, 5, 6]


def test_both_readers_give_the_same_arguments(folder: Folder) -> None:
    events = [kernel(args=args) for args, _ in COLLECTIVES.values()]
    events += [kernel(args=args) for args in NO_COLLECTIVE.values()]
    events += [kernel(args=f'{{"grid":{text},"graph node id":{text}}}') for text, _, _ in GRIDS.values()]
    events += [sync(f'{{"stream":{text},"wait_on_stream":{text}}}') for text in ("4294967295", '"-1"', "7", "null")]

    assert_same(*read_both(folder.write(document(*events))))


@pytest.mark.real_traces
def test_waits_and_collectives_of_real_traces_are_found() -> None:
    waits, collectives = ROOT / "nvidia/event_sync_multi_stream.json.gz", ROOT / "nvidia/a100_nccl_metadata.json.gz"
    if not (waits.exists() and collectives.exists()):
        pytest.skip(f"no traces under {ROOT} (set ROOFTRACE_TRACES)")

    trace, _ = load(waits)
    sync_rows = trace.of_kind(Kind.SYNC)
    # as the file has them, event by event
    assert trace.wait_stream[sync_rows].tolist() == [-1, 20, 20, 28, -1]
    assert trace.wait_record[sync_rows].tolist() == [-1, 32, 1385, 62, -1]

    trace, _ = load(collectives)
    found = [value for value in values_of(trace, "collective", "collectives") if value is not None]
    assert len(found) == 27 + 21  # ops, kernels
    kernels = trace.collective[trace.of_kind(Kind.KERNEL)]
    assert sorted({trace.collectives[code].name for code in kernels[kernels >= 0]}) == ["allreduce", "broadcast"]
