"""Bytes of a cost against what a call really takes in and gives out, seen by a dispatch mode on small CPU tensors.

Compulsory traffic is each distinct input once and each output once, so it equals the bytes of the tensors that go in
and come out. Ops that touch only part of an input (gathers) are not among these; their rows stand in the cost table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from rooftrace.opmodels import Cost, Op, Tensor, cost_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: its calls are what this compares with")
pytestmark = pytest.mark.filterwarnings("ignore")


def argument(value):
    """A call's argument as a profiler records it."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return Tensor(shape=tuple(value.shape), dtype=dtype, strides=tuple(value.stride()))
    if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
        return tuple(argument(item) for item in value)
    return None if value is None else str(list(value) if isinstance(value, list | tuple) else value)


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [found for item in value for found in tensors_in(item)] if isinstance(value, list | tuple) else []


def size(tensors):
    """Bytes of distinct tensors, each once."""
    return sum({(t.data_ptr(), t.shape): t.numel() * t.element_size() for t in tensors if t.numel()}.values())


def seen(name, call):
    """(cost, bytes in, bytes out) of the one call of the named op."""
    found = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if function._schema.name == name:
                taken = [*args, *(kwargs or {}).values()]
                op = Op(name=name, args=tuple(argument(value) for value in taken))
                found.append((cost_of(op), size(tensors_in(taken)), size(tensors_in(result))))
            return result

    with Watch():
        call()
    assert len(found) == 1, f"{name} was called {len(found)} times"
    return found[0]


def floats(*shape):
    return torch.rand(*shape)


CALLS = {
    "aten::mm": lambda: torch.mm(floats(4, 5), floats(5, 6)),
    "aten::addmm": lambda: torch.addmm(floats(6), floats(4, 5), floats(5, 6)),
    "aten::bmm": lambda: torch.bmm(floats(2, 4, 5), floats(2, 5, 6)),
    "aten::add": lambda: floats(4, 5) + floats(5),  # the broadcast operand counts at its own size
    "aten::mul": lambda: floats(4, 5).half() * floats(4, 5),  # a cast inside: float16 and float32 in, float32 out
    "aten::gelu": lambda: torch.nn.functional.gelu(floats(4, 5)),
    "aten::where": lambda: torch.where(floats(4, 5) > 0.5, floats(4, 5), floats(4, 5)),
    "aten::eq": lambda: floats(4, 5) == floats(4, 5),  # one byte an element out
    "aten::cat": lambda: torch.cat([floats(4, 5), floats(3, 5)]),
    "aten::sum": lambda: floats(4, 5).sum(dim=[1]),
    "aten::mean": lambda: floats(4, 5, 6).mean(dim=[0, 2], keepdim=True),
    "aten::_softmax": lambda: torch.softmax(floats(4, 5), dim=-1),
    "aten::_log_softmax": lambda: torch.log_softmax(floats(4, 5), dim=-1),
    "aten::native_layer_norm": lambda: torch.layer_norm(floats(4, 6), [6], floats(6), floats(6)),
    "aten::max_pool2d_with_indices": lambda: torch.nn.functional.max_pool2d(floats(1, 2, 8, 8), 2, return_indices=True),
    "aten::convolution": lambda: torch.conv2d(floats(2, 4, 8, 8), floats(6, 4, 3, 3), floats(6), padding=1),
    "aten::cumsum": lambda: floats(4, 5).cumsum(dim=0),
    "aten::sigmoid_backward": lambda: torch.ops.aten.sigmoid_backward(floats(4, 5), floats(4, 5)),
    "aten::threshold_backward": lambda: torch.ops.aten.threshold_backward(floats(4, 5), floats(4, 5), 0),
    "aten::_softmax_backward_data": lambda: torch.ops.aten._softmax_backward_data(
        floats(4, 5), floats(4, 5), -1, torch.float32
    ),
    "aten::addcmul": lambda: torch.addcmul(floats(4, 5), floats(4, 5), floats(4, 5)),
    "aten::argmax": lambda: floats(4, 5).argmax(dim=1),
    "aten::tril": lambda: floats(4, 5).tril(),
    "aten::constant_pad_nd": lambda: torch.nn.functional.pad(floats(4, 5), (1, 2)),
    "aten::upsample_nearest2d": lambda: torch.nn.functional.interpolate(floats(1, 2, 4, 4), scale_factor=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_moves_the_bytes_that_go_in_and_come_out(name):
    cost, taken, given = seen(name, CALLS[name])

    assert isinstance(cost, Cost), cost
    assert (cost.bytes_read, cost.bytes_written) == (taken, given)
