"""The rate of the vector units: chains of multiply-adds that stay in registers.

Such a chain takes a kernel of our own. On a GPU torch compiles one at run time. On a CPU, and where a GPU's torch
cannot, the float32 product stands in where the vector units execute it; the statistic then says so.
"""

from __future__ import annotations

from dataclasses import replace

from rooftrace_calibrate.device import Device
from rooftrace_calibrate.figures import Figure, NoFigure, rate
from rooftrace_calibrate.products import MISSING, first_line
from rooftrace_calibrate.timing import Effort, sample

PRECISIONS = ("float64", "float32")
_CHAINS = 8  # independent, so that one multiply-add need not wait for the last
_STEPS = 64
_ELEMENTS = 1 << 23
_NAMES = [f"a{number}" for number in range(_CHAINS)]
_SOURCE = (
    "template <typename T> T multiply_adds(T x, T y) {\n"
    + "".join(f"  T {name} = x + T({number});\n" for number, name in enumerate(_NAMES))
    + f"  for (int i = 0; i < {_STEPS}; ++i) {{ "
    + " ".join(f"{name} = {name} * y + x;" for name in _NAMES)
    + " }\n"
    + f"  return {' + '.join(_NAMES)};\n}}\n"
)


def measure(device: Device, precision: str, effort: Effort, product: Figure | NoFigure) -> Figure | NoFigure:
    """The rate of multiply-adds, or of the precision's matrix product where the vector units execute that."""
    if device.vendor == "cpu":
        return _as_vector(product)
    try:
        return _chain(device, precision, effort)
    except MISSING as error:
        if precision == "float32" and device.vendor == "nvidia":
            return _as_vector(product)
        return NoFigure(reason=f"torch cannot compile a kernel here: {first_line(error)}")


def _as_vector(product: Figure | NoFigure) -> Figure | NoFigure:
    if isinstance(product, NoFigure):
        return product
    return replace(product, statistic=f"no chain of multiply-adds, but {product.statistic}; the vector units run it")


def _chain(device: Device, precision: str, effort: Effort) -> Figure | NoFigure:
    torch = device.torch
    kernel = torch.cuda.jiterator._create_jit_fn(_SOURCE)
    dtype = getattr(torch, precision)
    x, y = (torch.rand(_ELEMENTS, device=device.place, dtype=dtype) for _ in range(2))  # below 1: they stay finite
    flops = 2 * _CHAINS * _STEPS * _ELEMENTS
    what = f"{_CHAINS} chains of {_STEPS} multiply-adds on each of {_ELEMENTS} {precision} elements"
    return rate(sample(device.timed(lambda: kernel(x, y)), effort), flops / 1e12, "TFLOP/s", what)
