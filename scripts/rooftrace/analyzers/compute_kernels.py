"""The heaviest kernel of a finding's calls: its time, what stands beside it, and what its name tells against it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Work
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.kernelnames import KernelInfo
    from rooftrace.platforms import Platform

# CUTLASS ends its names with the elements that one access takes; a single one is the fallback for odd sizes.
_ALIGNED_TO_ONE = re.compile(r"align1(?!\d)")
# Compute capability, in tenths, that a generation's name in a kernel stands for.
_GENERATIONS = {"maxwell": 50, "pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "ada": 89, "hopper": 90}
_SPELLED = re.compile(r"sm_?(\d{2,3})")
# The first capability, in tenths, whose matrix instructions a GPU of a capability uses: Ada (8.9) and the Blackwell
# of workstations (12.0) multiply with the instructions of Ampere (CUDA documentation, PTX ISA: mma, wgmma, tcgen05).
_FAMILIES = ((120, 80), (100, 100), (90, 90), (80, 80), (75, 75), (70, 70))


def kernel_evidence(workload: RatedRun, groups: Sequence[OpGroup]) -> dict[str, EvidenceValue]:
    """What the heaviest kernel of the first group's calls is, and how much of all groups runs on poor choices."""
    top, infos, activities = groups[0], workload.activities.infos, workload.activities
    dur, names = activities.dur[top.activities], activities.name[top.activities]
    code = top.kernel_codes[0]
    mine = names == code
    spent, info = int(dur[mine].sum()), infos[code]
    own = sorted({known for group in groups for known in group.kernel_codes})
    old = [known for known in own if is_of_an_older_gpu(infos[known], workload.platform)]
    single = [known for known in own if _ALIGNED_TO_ONE.search(infos[known].name)]
    return {
        "top_kernel_ms": ns_to_ms(spent),
        "top_kernel_us": ns_to_us(round(spent / max(int(mine.sum()), 1))),
        "top_kernel_pct": pct(spent, int(dur.sum())),
        "beside_pct": pct(int(dur.sum()) - spent, int(dur.sum())),
        "kernel_arch": info.facts.architecture or "",
        "old_arch_kernel": code in old,
        "old_arch_ms": ns_to_ms(_time_of(workload, groups, old)),
        "align1": code in single,
        "align1_ms": ns_to_ms(_time_of(workload, groups, single)),
    }


def is_of_an_older_gpu(info: KernelInfo, platform: Platform | None) -> bool:
    """Whether a kernel's name spells an architecture with older matrix instructions than those of this GPU."""
    if platform is None or platform.vendor != "nvidia" or platform.detect is None or info.facts.architecture is None:
        return False
    spelled = _capability(info.facts.architecture)
    major, _, minor = platform.detect.compute_capability.partition(".")
    has = 10 * int(major) + int(minor or 0)
    family = next((base for least, base in _FAMILIES if has >= least), has)
    return spelled is not None and spelled < family


def _capability(architecture: str) -> int | None:
    match = _SPELLED.match(architecture)
    return int(match[1]) if match else _GENERATIONS.get(architecture)


def _time_of(workload: RatedRun, groups: Sequence[OpGroup], codes: Sequence[int]) -> int:
    """Kernel time of some names in groups, ns."""
    activities = workload.activities
    if not codes:
        return 0
    members = np.concatenate([group.activities for group in groups])
    wanted = np.isin(activities.name[members], codes) & (activities.work[members] == int(Work.COMPUTE))
    return int(activities.dur[members[wanted]].sum())
