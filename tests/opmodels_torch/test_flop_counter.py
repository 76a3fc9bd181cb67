"""FLOPs against ``torch.utils.flop_counter``, after the named differences.

Its counter is a second derivation of the same conventions: a multiply-add is 2, a backward op is an op of its own. It
differs in three ways: it does not count the bias of a convolution (one addition a result here), it counts causal
attention as if nothing were masked, and it counts the weight gradient of a grouped convolution once a group. Shapes
are random and seeded. Runs where PyTorch is installed; CPU and meta tensors do.
"""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from rooftrace.opmodels import Cost, Op, Tensor, cost_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: its FLOP counter is what this compares with")
# What torch warns about on import or on meta tensors is no matter of this project.
pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS = range(12)


def counted(call) -> int:
    """FLOPs that torch counts while the call runs."""
    counter = importlib.import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        call()
    return counter.get_total_flops()


def modelled(name: str, *args) -> int:
    """FLOPs of this project's model, of tensors as torch has them."""
    cost = cost_of(Op(name=name, args=tuple(_argument(arg) for arg in args)))
    assert isinstance(cost, Cost), cost
    return cost.flops


def _argument(value):
    if isinstance(value, torch.Tensor):
        return Tensor(shape=tuple(value.shape), dtype=str(value.dtype).removeprefix("torch."))
    return None if value is None else str(value)


def tensor(*shape, grad=False):
    """A tensor without storage."""
    return torch.empty(shape, device="meta", requires_grad=grad)


@pytest.mark.parametrize("seed", SEEDS)
def test_matrix_products_agree(seed):
    draw = random.Random(seed)  # noqa: S311 - shapes, no secrets
    b, m, k, n = (draw.randint(1, 300) for _ in range(4))

    a, w, bias = tensor(m, k), tensor(k, n), tensor(n)
    assert modelled("aten::mm", a, w) == counted(lambda: torch.mm(a, w))
    assert modelled("aten::addmm", bias, a, w, 1, 1) == counted(lambda: torch.addmm(bias, a, w))
    x, y, z = tensor(b, m, k), tensor(b, k, n), tensor(b, m, n)
    assert modelled("aten::bmm", x, y) == counted(lambda: torch.bmm(x, y))
    assert modelled("aten::baddbmm", z, x, y, 1, 1) == counted(lambda: torch.baddbmm(z, x, y))


def convolution_case(seed):
    """x, w and the scalars of `aten::convolution`, any rank, groups, and direction."""
    draw = random.Random(1000 + seed)  # noqa: S311 - shapes, no secrets
    axes = draw.choice((1, 2, 3))
    groups = draw.choice((1, 1, 2, 4))
    transposed = draw.random() < 0.4
    cin, cout = groups * draw.randint(1, 5), groups * draw.randint(1, 5)
    kernel = [draw.randint(1, 3) for _ in range(axes)]
    x = (draw.randint(1, 3), cin, *(draw.randint(7, 12) for _ in range(axes)))
    w = (cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel)
    stride = [draw.randint(1, 3) for _ in range(axes)]
    padding = [draw.randint(0, size // 2) for size in kernel]
    dilation = [draw.randint(1, 2) for _ in range(axes)]
    return x, w, (stride, padding, dilation, transposed, [0] * axes, groups)


@pytest.mark.parametrize("seed", range(24))
def test_convolutions_agree_but_for_the_bias(seed):
    shape, kernel, scalars = convolution_case(seed)
    x, w = tensor(*shape), tensor(*kernel)
    bias = tensor(kernel[1] * scalars[5] if scalars[3] else kernel[0])
    out = torch.ops.aten.convolution(x, w, bias, *scalars)

    assert modelled("aten::convolution", x, w, None, *scalars) == counted(
        lambda: torch.ops.aten.convolution(x, w, None, *scalars)
    )
    with_bias = modelled("aten::convolution", x, w, bias, *scalars)
    assert with_bias - out.numel() == counted(lambda: torch.ops.aten.convolution(x, w, bias, *scalars))


@pytest.mark.parametrize("seed", range(24))
def test_gradients_of_convolutions_agree_mask_by_mask_but_for_the_groups_of_the_weights(seed):
    """torch multiplies the weight gradient by the number of groups: it takes every filter to see every channel."""
    shape, kernel, scalars = convolution_case(seed)
    x, w = tensor(*shape), tensor(*kernel)
    grad = torch.empty_like(torch.ops.aten.convolution(x, w, None, *scalars))
    sizes, groups = [grad.shape[1]], scalars[5]

    def both(*mask):
        args = (grad, x, w, sizes, *scalars, list(mask))
        name = "aten::convolution_backward"
        return modelled(name, *args), counted(lambda: torch.ops.aten.convolution_backward(*args))

    to_input, torchs_to_input = both(True, False, False)
    to_weight, torchs_to_weight = both(False, True, False)
    assert to_input == torchs_to_input
    assert groups * to_weight == torchs_to_weight
    assert both(False, False, True) == (0, 0)
    assert both(True, True, False) == (to_input + to_weight, to_input + groups * to_weight)


def attention_case(seed):
    draw = random.Random(2000 + seed)  # noqa: S311 - shapes, no secrets
    batch, heads, d = draw.randint(1, 3), draw.randint(1, 6), 8 * draw.randint(1, 8)
    return (batch, heads, draw.randint(2, 40), d), (batch, heads, draw.randint(2, 40), d)


def registered(name, *args):
    """FLOPs by torch's formula for an op, which needs no device that has a kernel for it."""
    registry = importlib.import_module("torch.utils.flop_counter").flop_registry
    return registry[getattr(torch.ops.aten, name)](*args, out_val=None)


@pytest.mark.parametrize("seed", SEEDS)
def test_attention_agrees_where_nothing_is_masked(seed):
    query, key = attention_case(seed)
    q, k = tensor(*query), tensor(*key)

    flash = "_scaled_dot_product_flash_attention"
    assert modelled(f"aten::{flash}", q, k, k, 0.0, False, False) == registered(flash, q, k, k)
    efficient = "_scaled_dot_product_efficient_attention"
    assert modelled(f"aten::{efficient}", q, k, k, None, False, 0.0, False) == registered(
        efficient, q, k, k, None, False
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_of_attention_agree_where_nothing_is_masked(seed):
    query, key = attention_case(seed)
    q, k = tensor(*query), tensor(*key)
    lse = tensor(*query[:3])

    flash = "_scaled_dot_product_flash_attention_backward"
    ours = modelled(f"aten::{flash}", q, q, k, k, q, lse, None, None, query[2], key[2], 0.0, False, None, None)
    assert ours == registered(flash, q, q, k, k)
    efficient = "_scaled_dot_product_efficient_attention_backward"
    ours = modelled(f"aten::{efficient}", q, q, k, k, None, q, lse, None, None, 0.0, [True] * 4, False)
    assert ours == registered(efficient, q, q, k, k)


@pytest.mark.parametrize("seed", SEEDS)
def test_causal_attention_is_the_share_of_the_pairs_that_the_mask_leaves(seed):
    """Square: n(n + 1)/2 of n² pairs; torch counts all of them."""
    (batch, heads, n, d), _ = attention_case(seed)
    q = tensor(batch, heads, n, d)
    flash = "_scaled_dot_product_flash_attention"

    ours = modelled(f"aten::{flash}", q, q, q, 0.0, True, False)
    assert 2 * n * ours == (n + 1) * registered(flash, q, q, q, 0.0, True)


@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_products_agree(seed):
    draw = random.Random(3000 + seed)  # noqa: S311 - shapes, no secrets
    m, k, n = 16 * draw.randint(1, 20), 16 * draw.randint(1, 20), 16 * draw.randint(1, 20)
    a = torch.empty((m, k), device="meta", dtype=torch.float8_e4m3fn)
    b = torch.empty((k, n), device="meta", dtype=torch.float8_e4m3fn)
    scale = tensor(1)

    ours = modelled("aten::_scaled_mm", a, b, scale, scale, None, None, 15, True)
    assert ours == registered("_scaled_mm", a, b, scale, scale)
