"""What merging small collectives saves: the usual time of a size, and how the cost of knowing it grows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rooftrace.analyzers import batching, collectives
from tests.analyzers.counted import counted, looks_of
from tests.analyzers.workloads import workload_of
from tests.support.trace_builder import TraceBuilder

GENERIC = "ncclDevKernel_Generic"


def run_of(*given):
    """All-reduces of floats one after the other: (elements, µs) and a group; a None is a kernel that uses the last."""
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    for number, item in enumerate(given):
        ts = 100 + 1000 * number
        if item is None:
            builder.kernel("uses it", ts=ts, dur=5, stream=20)
            continue
        elements, dur, group = (*item, "0")[:3]
        record = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements}
        record |= {"dtype": "Float", "Group size": 8, "Process Group Name": group}
        builder.kernel(GENERIC, ts=ts, dur=dur, stream=20, **record)
    workload = workload_of(builder)
    found = collectives.find_collectives(workload)
    return found, batching.find_batches(workload, found)


@pytest.mark.parametrize(
    ("run", "saving_ns"),
    [
        # Best bandwidth of all: 400,000 bytes in 40 µs, 10 bytes/ns. 20 each: 60 - (20 + 12,000 / 10 = 1.2) = 38.8
        pytest.param([(1000, 20), (1000, 90), (1000, 20), None, (100_000, 40)], 38_800, id="the median of three"),
        # The middle of four is the third: 40 waits for nobody, 90 does. 20 + 30 + 40 + 40 - (40 + 1.6) = 88.4
        pytest.param([(1000, 90), (1000, 20), (1000, 40), (1000, 30), None, (100_000, 40)], 88_400, id="of four"),
        # Two tell no usual time: 20 each. 40 - (20 + 0.8) = 19.2
        pytest.param([(1000, 20), (1000, 90), None, (100_000, 40)], 19_200, id="the fastest of two"),
        # 4,000 bytes took 80, 8,000 took 60, 400,000 took 40: none needs more. 80 - (40 + 1.2) = 38.8
        pytest.param([(1000, 80), (2000, 60), None, (100_000, 40)], 38_800, id="the fastest of all larger ones"),
        # 10 and 60, of which a larger one needed no more than 40. 50 - (10 + 1.2) = 38.8
        pytest.param([(1000, 10), (2000, 60), None, (100_000, 40)], 38_800, id="not the fastest of smaller ones"),
        # The second took no time. 20 + 20 - (20 + 16,000 bytes at 4,000 in 20 µs = 80): nothing
        pytest.param([(1000, 20), (2000, 0), (1000, 20)], 0, id="the largest takes no time"),
        # The same beside a bandwidth of 10 bytes/ns: 20 + 0 + 20 - (20 + 1.6) = 18.4
        pytest.param([(1000, 20), (2000, 0), (1000, 20), None, (100_000, 40)], 18_400, id="one takes no time"),
        pytest.param([(1000, 0), (2000, 0)], 0, id="none takes time"),
    ],
)
def test_a_collective_takes_without_waiting_what_its_equals_and_larger_ones_show(run, saving_ns):
    found, batches = run_of(*run)

    assert batching.savings_ns(found, batches)[0] == saving_ns


def test_batches_of_a_group_share_its_usual_times_and_another_group_has_its_own():
    one = [(1000, 20), (1000, 20), (1000, 20), None, (2000, 30), (2000, 30), None, (100_000, 40), None]
    other = [(1000, 5, "1"), (1000, 5, "1")]
    found, batches = run_of(*one, *other)

    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4], [6, 7]]
    # 60 - (20 + 12,000 / 10 = 1.2) = 38.8; 60 - (20 + 16,000 / 10 = 1.6) = 38.4; 10 - (5 + 8,000 at 4,000 in 5 = 10)
    assert batching.savings_ns(found, batches) == [38_800, 38_400, 0]


def test_the_cost_grows_with_the_collectives_and_not_with_their_sizes_times_batches():
    def looks(pairs):
        run = [(number, 20) for number in range(1, 2 * pairs + 1)]
        found, batches = run_of(*(item for at in range(0, len(run), 2) for item in (*run[at : at + 2], None)))
        assert len(batches) == pairs
        found = replace(found, dur=counted(found.dur))
        return looks_of(lambda: batching.savings_ns(found, batches))

    few, many = looks(20), looks(80)

    assert 0 < many < 5 * few  # four times the collectives
