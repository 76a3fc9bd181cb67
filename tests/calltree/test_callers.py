"""The outermost op that serves one launch alone. Times are µs."""

from __future__ import annotations

import numpy as np

from rooftrace.calltree import Callers, build_tree
from tests.support.trace_builder import TraceBuilder


def test_an_op_goes_with_its_launch_up_to_the_first_one_that_makes_another():
    # [outer ---------------------]
    #   [linear ----]  [relu ---]
    #     [addmm]        [launch]
    #      launch
    builder = TraceBuilder()
    builder.op("outer", 0, 100)
    builder.op("linear", 5, 40)
    builder.op("addmm", 10, 20)
    builder.launch(ts=12, dur=5)
    builder.op("relu", 50, 40)
    builder.launch(ts=60, dur=5)
    trace = builder.build()
    tree = build_tree(trace)
    names = [trace.names[code] for code in tree.name.tolist()]
    launching = np.array([at for at, name in enumerate(names) if name == "cudaLaunchKernel"])

    found = Callers(tree, launching).outermost(np.r_[launching, -1])

    assert [names[at] if at >= 0 else None for at in found.tolist()] == ["linear", "relu", None]
