"""A second reading of a trace's JSON, standard library only: which kernels were launched inside which frame."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from decimal import Decimal

GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
LAUNCHES = {"cuda_runtime", "cuda_driver"}


class Raw:
    """Events of a trace in nanoseconds, kernels by the launch's thread and time."""

    def __init__(self, path):
        with gzip.open(path, "rb") as file:
            events = json.load(file, parse_float=Decimal)["traceEvents"]
        self.complete = [event for event in events if event.get("ph") == "X"]
        calls = [event for event in self.complete if event.get("cat") in LAUNCHES]
        launch_of = {event["args"].get("correlation"): event for event in calls}
        self.kernels = []  # (thread, launch time, kernel)
        self.unlinked = []
        for event in self.complete:
            if event.get("cat") not in GPU:
                continue
            launch = launch_of.get(event["args"].get("correlation"))
            if launch is None:
                self.unlinked.append(event)
            else:
                self.kernels.append((launch["tid"], ns(launch["ts"]), event))
        self.kernels.sort(key=lambda item: (str(item[0]), item[1]))
        self._keys = [(str(tid), ts) for tid, ts, _ in self.kernels]

    def frames(self, part):
        """Python frames whose name holds ``part``."""
        return [e for e in self.complete if e.get("cat") == "python_function" and part in e["name"]]

    def inside(self, frame):
        """Kernels launched inside a frame, in order."""
        tid, start = str(frame["tid"]), ns(frame["ts"])
        low = bisect_right(self._keys, (tid, start - 1))
        high = bisect_right(self._keys, (tid, start + ns(frame["dur"])))
        return [kernel for _, _, kernel in self.kernels[low:high]]


def ns(microseconds):
    """Nanoseconds."""
    return int(Decimal(microseconds) * 1000)


def total(kernels):
    """Summed durations, ns."""
    return sum(ns(kernel["dur"]) for kernel in kernels)
