"""Runs the package once per trace and session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.truth.runs import Run, read_run
from tests.truth.traces import missing_reason, traces_root


@pytest.fixture(scope="session")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """A function from a trace's name below the trace folder to its run, made on the first call."""
    # NB: imported here, so that the program and the peer's tables can be checked against each other alone.
    from rooftrace.workflow import analyze

    runs: dict[str, Run] = {}

    def run_of(relative: str) -> Run:
        if reason := missing_reason(relative):
            pytest.skip(reason)
        if relative not in runs:
            folder = tmp_path_factory.mktemp("run")
            analyze(traces_root() / relative, folder)
            runs[relative] = read_run(folder)
        return runs[relative]

    return run_of
