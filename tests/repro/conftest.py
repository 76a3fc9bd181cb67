"""An interpreter that has PyTorch: the one the suite runs in, or the one that ROOFTRACE_TORCH_PYTHON names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache

import pytest


@lru_cache(maxsize=1)
def torch_python() -> str | None:
    for python in (os.environ.get("ROOFTRACE_TORCH_PYTHON"), sys.executable):
        command = [python, "-c", "import torch"] if python else None
        if command and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return python
    return None


@pytest.fixture
def run_script(tmp_path):
    """Run the text of a script on the CPU; its exit code and the JSON it prints."""
    python = torch_python()
    if python is None:
        pytest.skip("PyTorch is not installed: set ROOFTRACE_TORCH_PYTHON to an interpreter that has it")

    def run(text, *options):
        path = tmp_path / "script.py"
        path.write_text(text, encoding="ascii")
        command = [python, str(path), "--device", "cpu", "--repeat", "1", "--no-compile", "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run
