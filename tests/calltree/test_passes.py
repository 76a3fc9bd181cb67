"""What each host event belongs to: op, unit, module, frame, phase. Times are µs in the drawings."""

from __future__ import annotations

import pytest

from rooftrace.calltree import PHASES, build_context, build_tree
from tests.support.trace_builder import TraceBuilder


class Contexts:
    """The context of a trace, asked by event name."""

    def __init__(self, builder):
        self.trace = builder.build()
        self.tree = build_tree(self.trace)
        self.context = build_context(self.trace, self.tree)
        self.names = [self.trace.names[code] for code in self.tree.name.tolist()]

    def node(self, name):
        (node,) = [number for number, own in enumerate(self.names) if own == name]
        return node

    def related(self, column, name):
        other = int(getattr(self.context, column)[self.node(name)])
        return self.names[other] if other >= 0 else None

    def module(self, name):
        return self.context.module_paths[int(self.context.module[self.node(name)])]

    def phase(self, name):
        return PHASES[int(self.context.phase[self.node(name)])]

    def recomputed(self, name):
        return bool(self.context.recompute[self.node(name)])


def test_the_op_of_a_launch_is_the_innermost_op_open_on_its_thread():
    #            0    5    10   15   20
    # linear    [--------------]
    # addmm       [-----]
    # calls         [L1]    [L2]       [L3]
    builder = TraceBuilder()
    builder.op("aten::foo_outer", 0, 15)
    builder.op("aten::foo_inner", 2, 6)
    for name, ts in (("L1", 4), ("L2", 10), ("L3", 18)):
        builder.launch(name, ts=ts)
    found = Contexts(builder)

    assert [found.related("op", name) for name in ("L1", "L2", "L3")] == ["aten::foo_inner", "aten::foo_outer", None]


def test_an_op_with_a_cost_of_its_own_owns_all_that_is_launched_below_it():
    #            0    5    10   15   20
    # linear    [-----------------------]      leaves its cost to what it calls
    # addmm       [--------------]             has a cost for the whole call
    # copy_         [----]                     would have one of its own
    # helper                [--]
    # calls          [L1]    [L2]       [L3]
    builder = TraceBuilder()
    builder.op("aten::linear", 0, 23)
    builder.op("aten::addmm", 1, 15)
    builder.op("aten::copy_", 3, 5)
    builder.op("aten::helper", 10, 4)
    for name, ts in (("L1", 4), ("L2", 12), ("L3", 20)):
        builder.launch(name, ts=ts)
    found = Contexts(builder)

    calls = ("L1", "L2", "L3")
    assert [found.related("op", call) for call in calls] == ["aten::copy_", "aten::helper", "aten::linear"]
    assert [found.related("unit", call) for call in calls] == ["aten::addmm", "aten::addmm", "aten::linear"]


def test_annotations_that_old_profilers_wrote_as_ops_own_no_kernels():
    #              0    5    10   15   20
    # step        [--------------------]   all with category Operator
    # optimizer     [--------------]
    # mul             [mul]
    # calls            [L1]  [L2]
    builder = TraceBuilder()
    for name, ts, dur in (
        ("ProfilerStep#3", 0, 40),
        ("Optimizer.step#SGD.step", 1, 14),
        ("aten::foo", 3, 5),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20, 9),
    ):
        builder.event(ph="X", cat="Operator", name=name, pid=1, tid=1, ts=ts, dur=dur, args={})
    for name, ts in (("L1", 4), ("L2", 10), ("L3", 22)):
        builder.event(ph="X", cat="Runtime", name=name, pid=1, tid=1, ts=ts, dur=1, args={})
    found = Contexts(builder)

    assert [found.related("op", name) for name in ("L1", "L2", "L3")] == ["aten::foo", None, None]
    assert [found.phase(name) for name in ("L1", "L2", "L3")] == ["optimizer", "optimizer", "data"]
    assert found.context.has_optimizer


def test_a_module_path_lists_the_modules_around_an_event_outermost_first():
    builder = TraceBuilder()
    builder.python("nn.Module: Decoder_0", 0, 30)
    builder.python("model.py(12): forward", 1, 28)
    builder.python("nn.Module: Block_3", 2, 20)
    builder.python("nn.Module: Linear_7", 3, 10)
    builder.op("aten::mm", 4, 5)
    builder.op("aten::add", 15, 5)
    builder.op("aten::sum", 24, 3)
    builder.op("aten::outside", 40, 3)
    found = Contexts(builder)

    assert found.module("aten::mm") == ("Decoder_0", "Block_3", "Linear_7")
    assert found.module("aten::add") == ("Decoder_0", "Block_3")
    assert found.module("aten::sum") == ("Decoder_0",)
    assert found.module("aten::outside") == ()


def test_two_calls_of_one_module_have_one_path():
    builder = TraceBuilder()
    for number, ts in enumerate((0, 20)):
        builder.python("nn.Module: Linear_7", ts, 10)
        builder.op(f"op{number}", ts + 1, 5)
    found = Contexts(builder)

    assert found.module("op0") == found.module("op1") == ("Linear_7",)
    assert len(found.context.module_paths) == 2  # the empty path and this one


def test_modules_nested_deeper_than_any_model_count_for_the_hundredth():
    builder = TraceBuilder()
    for depth in range(150):
        builder.python(f"nn.Module: M{depth}_0", depth, 1_000 - 2 * depth)
    builder.op("aten::mm", 200, 5)
    found = Contexts(builder)

    assert found.module("aten::mm") == tuple(f"M{depth}_0" for depth in range(100))
    assert len(found.context.module_paths) == 101  # one a depth, and the empty one


def forward_and_backward(sequences):
    """Forward ops of modules A_0, B_0, … with the given sequence numbers, and a backward node of number 5 after."""
    builder = TraceBuilder()
    for number, sequence in enumerate(sequences):
        ts = 10 * number
        builder.python(f"nn.Module: {'ABC'[number]}_0", ts, 9)
        builder.op(f"forward{number}", ts + 1, 5, sequence=sequence)
    builder.op("autograd::engine::evaluate_function: MmBackward0", 50, 20, tid=2, sequence=5, forward_thread=1)
    builder.op("MmBackward0", 51, 15, tid=2, sequence=5, forward_thread=1)
    builder.op("aten::mm", 52, 9, tid=2)
    return Contexts(builder)


@pytest.mark.parametrize(
    ("sequences", "module"),
    [
        pytest.param((4, 5, 6), ("B_0",), id="its own number"),
        pytest.param((5, 5, 6), ("B_0",), id="of two with one number, the last to start"),
        pytest.param((None, 3, 6), (), id="no such number"),
    ],
)
def test_a_backward_op_has_the_module_of_the_forward_op_with_its_sequence_number(sequences, module):
    found = forward_and_backward(sequences)

    assert found.module("aten::mm") == module
    assert found.module("MmBackward0") == module
    assert found.phase("aten::mm") == "backward"
    assert found.context.has_backward


def test_a_backward_op_does_not_inherit_from_a_forward_op_that_comes_later():
    builder = TraceBuilder()
    builder.op("MmBackward0", 0, 9, tid=2, sequence=5)
    builder.python("nn.Module: A_0", 20, 9)
    builder.op("aten::mm", 21, 5, sequence=5)

    assert Contexts(builder).module("MmBackward0") == ()


def test_numbers_are_handed_out_anew_in_every_step():
    builder = TraceBuilder()
    for step, module in enumerate("AB"):
        builder.python(f"nn.Module: {module}_0", 100 * step, 9)
        builder.op(f"forward{step}", 100 * step + 1, 5, sequence=5)
        builder.op(f"Foo{step}Backward", 100 * step + 50, 5, tid=2, sequence=5)
    found = Contexts(builder)

    assert found.module("Foo0Backward") == ("A_0",)
    assert found.module("Foo1Backward") == ("B_0",)


def test_a_backward_op_inside_a_module_of_its_own_keeps_it():
    builder = TraceBuilder()
    builder.python("nn.Module: A_0", 0, 9)
    builder.op("forward", 1, 5, sequence=5)
    builder.python("nn.Module: Hooked_0", 50, 9, tid=2)
    builder.op("MmBackward0", 51, 5, tid=2, sequence=5)

    assert Contexts(builder).module("MmBackward0") == ("Hooked_0",)


@pytest.mark.parametrize(
    ("kind", "name", "phase"),
    [
        ("op", "autograd::engine::evaluate_function: AddmmBackward0", "backward"),
        ("op", "AddmmBackward0", "backward"),
        ("op", "MyFunctionBackward", "backward"),
        ("op", "torch::autograd::AccumulateGrad", "backward"),
        ("op", "aten::convolution_backward", "forward"),  # an op like any other; its node tells
        ("annotation", "Optimizer.step#AdamW.step", "optimizer"),
        ("annotation", "Optimizer.zero_grad#AdamW.zero_grad", "optimizer"),
        ("python", "torch/optim/adamw.py(210): step", "optimizer"),
        ("python", "train.py(210): step", "forward"),
        ("annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data"),
        ("annotation", "ProfilerStep#3", "forward"),
    ],
)
def test_the_phase_of_a_launch_is_told_by_what_is_open_around_it(kind, name, phase):
    builder = TraceBuilder()
    getattr(builder, kind)(name, 0, 20)
    builder.op("aten::mm", 2, 9)
    builder.launch(ts=5)
    found = Contexts(builder)

    assert found.phase("cudaLaunchKernel") == phase
    assert found.context.has_backward == (phase == "backward")
    assert found.context.has_optimizer == (phase == "optimizer")


def test_an_optimizer_that_steps_inside_the_backward_pass_is_the_optimizer():
    builder = TraceBuilder()
    builder.op("torch::autograd::AccumulateGrad", 0, 30)
    builder.annotation("Optimizer.step#SGD.step", 5, 20)
    builder.launch(ts=8)

    assert Contexts(builder).phase("cudaLaunchKernel") == "optimizer"


@pytest.mark.parametrize(
    ("frame", "is_users"),
    [
        ("train.py(58): log_loss", True),
        ("/home/me/project/model.py(17): forward", True),
        ("/venv/lib/python3.11/site-packages/vllm/worker.py(3): execute", True),
        ("/opt/lib/python3.11/dist-packages/transformers/models/llama.py(3): forward", True),
        ("torch/nn/functional.py(2): linear", False),
        ("torch\\nn\\functional.py(2): linear", False),
        ("/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py(2): forward", False),
        ("/usr/lib/python3.11/contextlib.py(81): inner", False),
        ("threading.py(9): run", False),
        ("contextlib.py(81): inner", False),
        ("<frozen runpy>(88): _run_code", False),
        ("<string>(1): <module>", False),
        ("<built-in method linear of type object at 0x7f>", False),
        ("nn.Module: Linear_0", False),
        ("a frame without a line", False),
    ],
)
def test_the_source_frame_is_the_innermost_one_outside_the_framework(frame, is_users):
    #          0    5    10   15   20
    # outer   [--------------------]
    # frame     [-----------]
    # torch       [------]
    builder = TraceBuilder()
    builder.python("outer.py(1): main", 0, 20)
    builder.python(frame, 2, 12)
    builder.python("torch/_tensor.py(4): wrapper", 4, 8)
    builder.launch(ts=6)

    assert Contexts(builder).related("frame", "cudaLaunchKernel") == (frame if is_users else "outer.py(1): main")


@pytest.mark.parametrize(
    ("frame", "recomputed"),
    [
        ("torch/utils/checkpoint.py(1100): recompute_fn", True),
        ("torch/utils/checkpoint.py(1100): unpack_hook", True),
        ("torch/utils/checkpoint.py(300): checkpoint", False),
        ("train/utils/check.py(3): recompute", False),
    ],
)
def test_work_below_the_checkpoints_second_forward_is_recomputation(frame, recomputed):
    builder = TraceBuilder()
    builder.op("MmBackward0", 0, 30)
    builder.python(frame, 2, 20)
    builder.op("aten::mm", 4, 9)
    builder.launch(ts=6)
    found = Contexts(builder)

    assert found.recomputed("cudaLaunchKernel") is recomputed
    assert not found.recomputed("MmBackward0")


def test_a_trace_without_host_events_has_an_empty_context():
    builder = TraceBuilder()
    builder.kernel("k", ts=0, dur=5)
    found = Contexts(builder)

    assert found.context.op.size == 0
    assert found.context.module_paths == ((),)
    assert not found.context.has_backward


def two_forward_threads(clear):
    """Two threads that both used number 5, each in a module of its own; backward says it belongs to thread 7.

    With `clear`, number 4 was used by the first thread alone, and its backward call says thread 7 as well.
    """
    builder = TraceBuilder()
    for tid, module in ((1, "A_0"), (2, "B_0")):
        builder.python(f"nn.Module: {module}", 0, 30, tid=tid)
        builder.op(f"forward{tid}", 10 + tid, 5, tid=tid, sequence=5)
    builder.op("early", 2, 5, tid=1, sequence=4)
    builder.op("autograd::engine::evaluate_function: MmBackward0", 50, 20, tid=3, sequence=5, forward_thread=7)
    builder.op("aten::mm", 52, 9, tid=3)
    if clear:
        builder.op("autograd::engine::evaluate_function: AddBackward0", 80, 20, tid=3, sequence=4, forward_thread=7)
    return Contexts(builder)


@pytest.mark.parametrize(("clear", "module"), [(True, ("A_0",)), (False, ())], ids=["told by another number", "untold"])
def test_of_two_threads_with_one_number_the_forward_thread_id_decides_or_nothing(clear, module):
    assert two_forward_threads(clear).module("aten::mm") == module
