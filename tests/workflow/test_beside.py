"""Work in a copy of the process: its result and its errors are those of the work done here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from rooftrace.beside import beside, in_two
from tests.golden_runs.cases import gpu_training
from tests.support.trace_builder import TraceBuilder

ROOT = Path(__file__).resolve().parents[2]
HEAD = f"""
import os, signal, sys, threading
sys.path.insert(0, {str(ROOT / "scripts")!r})
from rooftrace import beside as module
from rooftrace.beside import beside, can_copy, in_two
module.processors = lambda: 2
home = os.getpid()
"""

copies = pytest.mark.skipif(sys.platform != "linux", reason="a process is copied on Linux alone")


def printed(program: str) -> str:
    """What a program of one thread prints; a test runner has others, beside which no copy is made."""
    code = HEAD + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


@copies
def test_work_is_done_by_another_process_while_this_one_goes_on() -> None:
    shown = printed("""
        with beside(lambda: (os.getpid(), sum(range(10)))) as later:
            mine = os.getpid()
            number, total = later.result()
        print(mine == home, number == home, total)
    """)

    assert shown == "True False 45\n"


@copies
def test_what_a_copy_changes_is_seen_by_nobody() -> None:
    shown = printed("""
        seen = []
        with beside(lambda: seen.append(1)) as later:
            print(later.result(), seen)
    """)

    assert shown == "None []\n"


@copies
def test_an_error_is_that_of_the_work_done_here() -> None:
    shown = printed("""
        try:
            with beside(lambda: 1 // 0) as later:
                later.result()
        except ZeroDivisionError as error:
            print(error)
    """)

    assert shown == "integer division or modulo by zero\n"


# how a copy fails
FAILURES = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "interrupted": "os.kill(os.getpid(), signal.SIGINT)",
    "ends": "sys.exit()",
    "sends what cannot be sent": "made.append(lambda: None)",
}


@copies
@pytest.mark.parametrize("how", FAILURES.values(), ids=FAILURES)
def test_what_a_copy_fails_at_is_done_here(how: str) -> None:
    shown = printed(f"""
        def work():
            made = ["done"]
            if os.getpid() != home:
                {how}
            return made
        with beside(work) as later:
            print(later.result())
    """)

    assert shown == "['done']\n"


@copies
def test_no_copy_is_left_when_an_error_ends_the_block() -> None:
    shown = printed("""
        import time
        try:
            with beside(lambda: time.sleep(60)):
                raise KeyError
        except KeyError:
            pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print("none")
    """)

    assert shown == "none\n"


@copies
def test_where_ended_processes_leave_no_trace_the_result_is_there() -> None:
    shown = printed("""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for work in (lambda: "made", lambda: os._exit(1) if os.getpid() != home else "made here"):
            with beside(work) as later:
                print(later.result())
    """)

    assert shown == "made\nmade here\n"


@copies
def test_a_process_that_no_copy_can_be_made_of_does_the_work_itself() -> None:
    shown = printed("""
        def refuse():
            raise BlockingIOError
        os.fork = refuse
        with beside(os.getpid) as later:
            print(later.result() == home, len(os.listdir("/proc/self/fd")))
        with beside(os.getpid) as later:
            print(later.result() == home, len(os.listdir("/proc/self/fd")))
    """)

    # Standard input, output, errors, and the folder that is listed: the pipe is closed.
    assert shown == "True 4\nTrue 4\n"


@copies
def test_one_processor_or_a_second_thread_makes_no_copy() -> None:
    shown = printed("""
        print(can_copy())
        module.processors = lambda: 1
        print(can_copy())
        module.processors = lambda: 2
        stop = threading.Event()
        threading.Thread(target=stop.wait).start()
        print(can_copy())
        stop.set()
    """)

    assert shown == "True\nFalse\nFalse\n"


def test_what_is_not_worth_a_process_is_done_here_and_only_if_it_is_asked_for() -> None:
    done = []
    with beside(lambda: done.append(os.getpid()), is_worth_it=False) as later:
        assert done == []
        later.result()
    with beside(lambda: done.append(0), is_worth_it=False):
        pass

    assert done == [os.getpid()]


@copies
def test_every_other_item_is_taken_elsewhere_and_the_order_stays() -> None:
    shown = printed("""
        made = in_two(lambda items: [(10 * item, os.getpid() == home) for item in items], range(5), is_worth_it=True)
        print(made)
    """)

    assert shown == "[(0, True), (10, False), (20, True), (30, False), (40, True)]\n"


def test_items_that_are_not_worth_a_process_stay_together() -> None:
    calls = []

    def work(items):
        calls.append(list(items))
        return [str(item) for item in items]

    assert in_two(work, [1, 2, 3], is_worth_it=False) == ["1", "2", "3"]
    assert calls == [[1, 2, 3]]


def long_trace() -> TraceBuilder:
    """3,000 kernels in two turns, with pauses: fusions, gaps and products to look at."""
    builder = TraceBuilder()
    builder.device()
    for at in range(1500):
        ts = 40.0 * at
        builder.op("aten::mm", ts, 8, dims=[[64, 64], [64, 64 + at % 5]], types=["float", "float"], external_id=2 * at)
        first = builder.launch(ts=ts + 1, external_id=2 * at)
        builder.kernel(f"gemm_{at % 5}", ts + 3, 6, correlation=first)
        builder.op("aten::gelu", ts + 10, 8, dims=[[64, 64 + at % 5]], types=["float"], external_id=2 * at + 1)
        second = builder.launch(ts=ts + 11, external_id=2 * at + 1)
        builder.kernel("gelu_kernel", ts + 13, 4, correlation=second)
    return builder


def analysed(trace: Path, run: Path, processors: set[int]) -> tuple[dict[str, bytes], dict[str, dict]]:
    """Files of a run made with some processors, and its timings by stage."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/rooftrace.py", "analyze", trace, "-o", run, "-q", "--json", "--timings"],
        check=True,
        capture_output=True,
        timeout=120,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    rows = json.loads(done.stderr.splitlines()[0])["timings"]
    files = {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    return files, {row["stage"]: row for row in rows}


@copies
def test_a_run_is_the_same_bytes_with_one_processor_and_with_two(tmp_path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("this machine lets the process use one processor only")
    trace = long_trace().write(tmp_path / "a.json", "plain")

    alone, stages_alone = analysed(trace, tmp_path / "alone", set(usable[:1]))
    both, stages_both = analysed(trace, tmp_path / "both", set(usable[:2]))

    assert stages_alone["fusion"]["wall_ms"] > 0
    assert stages_both["fusion"]["wall_ms"] == 0
    assert stages_both["fusion"]["cpu_ms"] > 0
    assert alone == both


@copies
def test_an_interrupt_of_a_whole_group_leaves_no_process_and_no_folder(tmp_path) -> None:
    trace = gpu_training().write(tmp_path / "a.json", "plain")
    code = HEAD + textwrap.dedent(f"""
        import time
        from rooftrace.workflow import run
        run._LONG = 0
        def wait(*_):
            if os.getpid() == home:
                print("there", flush=True)
            time.sleep(60)
        run._look_at_kernels = run.attribute_idle = wait
        sys.argv[1:] = ["analyze", {str(trace)!r}, "-o", {str(tmp_path / "runs" / "a")!r}]
        from rooftrace.cli import main
        sys.exit(main())
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"

    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (
        130,
        "error: interrupted; what was there is kept: run the command again to go on\n",
    )
    assert is_empty(process.pid)
    assert not (tmp_path / "runs").exists() or list((tmp_path / "runs").iterdir()) == []


def is_empty(group: int) -> bool:
    """Whether a process group has no member any more, after a moment for the system to take them away."""
    for _ in range(50):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
