"""Memory that is freed is used again without asking the system for it."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# Pages that the system has to hand out for a block of 64 MiB like one that was freed.
PROGRAM = f"""
import resource, sys
sys.path.insert(0, {str(SCRIPTS)!r})
from rooftrace.heap import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
block = bytearray(b"x") * (1 << 26)
del block
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
block = bytearray(b"x") * (1 << 26)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such choice")
def test_a_block_like_one_that_was_freed_costs_no_pages() -> None:
    # 64 MiB are 16,384 pages of 4 KiB, or 32 of 2 MiB.
    assert pages("leave") >= 32
    assert pages("keep") < 32
