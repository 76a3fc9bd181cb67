"""The device that is measured: what it is, and how work on it is timed."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooftrace.errors import UsageError
from rooftrace_calibrate.timing import TimeCalls

_CPU_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device of torch; ``None`` is what nobody tells, and what a CPU does not have."""

    torch: Any
    place: str  # as torch spells it: `cuda:0`, `cpu`
    name: str
    vendor: str
    units: int
    memory_bytes: int | None
    capability: tuple[int, int] | None
    cache_bytes: int | None
    software: str

    @property
    def is_gpu(self) -> bool:
        """Whether its work runs beside the host's and has to be waited for."""
        return self.place != "cpu"

    def timed(self, call: Callable[[], object]) -> TimeCalls:
        """Times so many calls: by events on the device, by the clock on a CPU."""
        if not self.is_gpu:
            return lambda calls: _by_clock(call, calls)
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))

        def by_events(calls: int) -> float:
            start.record()
            for _ in range(calls):
                call()
            end.record()
            self.torch.cuda.synchronize()
            return float(start.elapsed_time(end)) / 1e3  # the event's unit is the millisecond

        return by_events


def _by_clock(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def open_device(torch: Any, wanted: str | None) -> Device:
    """The device asked for, else the first GPU, else the CPU."""
    has_gpu = bool(torch.cuda.is_available())
    place = wanted or ("cuda" if has_gpu else "cpu")
    if place == "cpu":
        return _cpu(torch)
    kind, _, number = place.partition(":")
    count = torch.cuda.device_count() if has_gpu else 0
    if kind != "cuda" or not (number or "0").isdecimal() or int(number or 0) >= count:
        devices = ["cpu", *(f"cuda:{index}" for index in range(count))]
        raise UsageError(f"torch has no device `{place}` here", hint=f"Known: {', '.join(devices)}")
    return _gpu(torch, int(number or 0))


def _gpu(torch: Any, index: int) -> Device:
    torch.cuda.set_device(index)
    facts = torch.cuda.get_device_properties(index)
    is_amd = bool(torch.version.hip)
    cache = getattr(facts, "L2_cache_size", None)
    runtime = f"ROCm {torch.version.hip}" if is_amd else f"CUDA {torch.version.cuda}"
    return Device(
        torch=torch,
        place=f"cuda:{index}",
        name=facts.name,
        vendor="amd" if is_amd else "nvidia",
        units=facts.multi_processor_count,
        memory_bytes=facts.total_memory,
        capability=(facts.major, facts.minor),
        cache_bytes=cache if cache and not is_amd else None,  # on AMD the last cache is not this one
        software=f"torch {torch.__version__}, {runtime}",
    )


def _cpu(torch: Any) -> Device:
    return Device(
        torch=torch,
        place="cpu",
        name=_cpu_name(),
        vendor="cpu",
        units=torch.get_num_threads(),
        memory_bytes=_host_memory(),
        capability=None,
        cache_bytes=None,
        software=f"torch {torch.__version__}, {torch.get_num_threads()} threads",
    )


def _cpu_name() -> str:
    try:
        model = _CPU_MODEL.search(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:  # not Linux
        model = None
    return (model[1].strip() if model else platform.processor()) or platform.machine() or "CPU"


def _host_memory() -> int | None:
    """Bytes of memory of the machine, ``None`` on a system that does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
