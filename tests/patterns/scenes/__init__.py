"""Small traces, one for each pattern that no shared trace and no case of the corpus shows."""

from __future__ import annotations

from tests.patterns.scenes import generated, kernels, system
from tests.patterns.scenes.stage import SCENES

__all__ = ["SCENES", "generated", "kernels", "system"]
