"""What a GPU kernel's name tells: category, library, and the facts it spells.

The raw name stays the key everywhere; a trace has a few hundred distinct ones and each is described once.
Rules are data in ``knowledge/libraries`` and ``knowledge/kernel_categories``: a new library is one JSON file.
"""

from __future__ import annotations

from rooftrace.kernelnames.copies import describe_copy
from rooftrace.kernelnames.describe import describe, describe_with, inductor_ops
from rooftrace.kernelnames.model import CopyFacts, KernelFacts, KernelInfo
from rooftrace.kernelnames.rules import Rules, load_rules

__all__ = [
    "CopyFacts",
    "KernelFacts",
    "KernelInfo",
    "Rules",
    "describe",
    "describe_copy",
    "describe_with",
    "inductor_ops",
    "load_rules",
]
