"""A Python with torch, where there is one; no torch is installed for the tests."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

VARIABLE = "ROOFTRACE_TORCH_PYTHON"


@pytest.fixture(scope="session")
def torch_python() -> str:
    """An interpreter that imports torch: the one that the variable names, else this one."""
    python = os.environ.get(VARIABLE, sys.executable)
    done = subprocess.run([python, "-W", "ignore", "-c", "import torch"], capture_output=True)
    if done.returncode:
        pytest.skip(f"no torch here: {VARIABLE} can name a Python that has it")
    return python
