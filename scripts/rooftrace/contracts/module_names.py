"""Names of modules as profilers write them: ``Linear_37`` is the 38th instance of class ``Linear``."""

from __future__ import annotations

import re
from functools import lru_cache

_INSTANCE = re.compile(r"(?<=.)_[0-9]+$")


@lru_cache(maxsize=8192)
def module_class(name: str, mark: str = "") -> str:
    """The class of a module, ``Linear`` of ``Linear_37``; `mark` stands where its number was."""
    return _INSTANCE.sub(mark, name)
