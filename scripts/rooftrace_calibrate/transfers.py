"""The bandwidth of the device's memory and of its link to the host, and the shortest kernel."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rooftrace_calibrate.device import Device
from rooftrace_calibrate.figures import Figure, NoFigure, rate
from rooftrace_calibrate.products import MISSING, first_line
from rooftrace_calibrate.timing import Effort, sample

_MIB = 1 << 20
_GPU_BYTES = (256 * _MIB, 1024 * _MIB)  # several times any last-level cache
_CPU_BYTES = (64 * _MIB, 128 * _MIB)
_LINK_BYTES = 256 * _MIB
_KERNELS = 200


def copy_bandwidth(device: Device, effort: Effort, *, quick: bool) -> Figure | NoFigure:
    """Reads and writes together of the faster copy within the memory."""
    sizes = _GPU_BYTES if device.is_gpu else _CPU_BYTES
    best: Figure | NoFigure = NoFigure(reason="no copy could be timed")
    for size in sizes[:1] if quick else sizes:
        try:
            source = device.torch.ones(size, device=device.place, dtype=device.torch.uint8)
            call = partial(device.torch.empty_like(source).copy_, source)
            what = f"copy of {size // _MIB} MiB within the memory, read and written"
            found = rate(sample(device.timed(call), effort), 2 * size / 1e9, "GB/s", what)
        except MISSING as error:
            return best if isinstance(best, Figure) else NoFigure(reason=f"torch cannot here: {first_line(error)}")
        if isinstance(found, Figure) and (isinstance(best, NoFigure) or found.value > best.value):
            best = found
    return best


def link_bandwidth(device: Device, effort: Effort, *, to_device: bool) -> Figure | NoFigure:
    """A copy between pinned host memory and the device, one way."""
    if not device.is_gpu:
        return NoFigure(reason="a CPU has no link to itself")
    torch = device.torch
    try:
        host = torch.ones(_LINK_BYTES, dtype=torch.uint8).pin_memory()
        there = torch.ones(_LINK_BYTES, dtype=torch.uint8, device=device.place)
        target, source = (there, host) if to_device else (host, there)
        call: Callable[[], object] = partial(target.copy_, source, non_blocking=True)
        what = f"copy of {_LINK_BYTES // _MIB} MiB {'from' if to_device else 'to'} pinned host memory"
        return rate(sample(device.timed(call), effort), _LINK_BYTES / 1e9, "GB/s", what)
    except MISSING as error:
        return NoFigure(reason=f"torch cannot here: {first_line(error)}")


def shortest_kernel(device: Device) -> Figure | NoFigure:
    """Duration that torch.profiler records for a kernel with next to no work, in ns: as a trace would show it."""
    if not device.is_gpu:
        return NoFigure(reason="a CPU launches no kernels")
    try:
        durations = _kernel_durations(device)
    except (*MISSING, OSError) as error:
        return NoFigure(reason=f"torch.profiler cannot here: {first_line(error)}")
    if len(durations) < _KERNELS // 2:
        return NoFigure(reason="torch.profiler recorded no kernels here")
    return shortest(durations)


def shortest(durations_ns: list[float]) -> Figure | NoFigure:
    """The median of kernel durations; their clock may step by as much as the spread."""
    low, middle, high = statistics.quantiles(durations_ns, n=4, method="inclusive")
    if middle <= 0:
        return NoFigure(reason="the clock gave no time for it")
    what = f"median of {len(durations_ns)} kernels that add to one element, as torch.profiler records them"
    return Figure(value=middle, unit="ns", statistic=what, spread_pct=round(100.0 * (high - low) / middle, 2))


def _kernel_durations(device: Device) -> list[float]:
    torch = device.torch
    one = torch.ones(1, device=device.place)
    for _ in range(_KERNELS):
        one.add_(1)
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(_KERNELS):
            one.add_(1)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    return [1e3 * event["dur"] for event in events if event.get("cat") == "kernel" and "dur" in event]
