"""Has the C library keep memory that is freed, for the next array of the size.

By default it gives every large block back, and the system hands out the next one page by page, cleared: of a trace of
5 GB that took a sixth of the time.
"""

from __future__ import annotations

import sys

# Parameters of glibc's `mallopt`, from `malloc.h`.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_ALL = 1 << 30  # bytes: blocks below are kept
_MOST_ONCE = 1 << 25  # what a glibc before 2.35 takes at most
_STEP = 16 << 20  # bytes by which the heap grows


def keep_freed_memory() -> None:
    """Do so in this process, where the C library can: it is to be a process that works and ends."""
    if sys.platform != "linux":
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    mallopt(_TRIM_THRESHOLD, _ALL)
    mallopt(_TOP_PAD, _STEP)
    if not mallopt(_MMAP_THRESHOLD, _ALL):
        mallopt(_MMAP_THRESHOLD, _MOST_ONCE)
