"""The rates of matrix products, by precision, over shapes from small to large and from square to skinny."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rooftrace_calibrate.device import Device
from rooftrace_calibrate.figures import Figure, NoFigure, rate
from rooftrace_calibrate.timing import Effort, Sample, sample

Shape = tuple[int, int, int]  # m, n, k of [m,k] @ [k,n]; FLOPs are 2*m*n*k
Call = Callable[[], object]

# Multiples of 256, which every matrix unit's tile divides; by FLOPs, so that what would take too long is not reached.
SHAPES: tuple[Shape, ...] = (
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (256, 4096, 4096),
    (4096, 256, 4096),
    (2048, 2048, 2048),
    (4096, 4096, 1024),
    (4096, 4096, 4096),
    (8192, 8192, 2048),
    (8192, 8192, 8192),
    (16384, 8192, 8192),
    (8192, 16384, 16384),
)
_QUICK = (0, 1, 2, 4, 7, 9)  # of those
_MOST_SLOWER = 8  # a small shape may run at an eighth of a larger one's rate: that far a prediction is not trusted
PRECISIONS = ("float64", "float32", "tfloat32", "float16", "bfloat16", "float8", "int8")
_TERA = 1e12
_TF32_SINCE = 8  # compute capability of the first tensor cores with TF32 (Ampere)

# What torch raises where a device, a build or a version lacks an operation, memory included.
MISSING = (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError, AssertionError)


@dataclass(frozen=True, kw_only=True)
class _Best:
    shape: Shape
    sample: Sample
    flops_per_s: float


def measure(device: Device, precision: str, effort: Effort, *, quick: bool) -> Figure | NoFigure:
    """The median rate of the fastest shape, or why there is none."""
    if precision == "tfloat32" and not _has_tf32(device):
        return NoFigure(reason="needs NVIDIA tensor cores of compute capability 8.0 or newer")
    device.torch.set_float32_matmul_precision("high" if precision == "tfloat32" else "highest")
    best: _Best | None = None
    reason, tried = "no shape could be timed", 0
    for shape in [SHAPES[index] for index in _QUICK] if quick else SHAPES:
        flops = _flops(shape)
        if best is not None and flops / best.flops_per_s > _MOST_SLOWER * effort.longest_s:
            break
        try:
            found = _timed(device, _product(device, precision, shape), effort, always=best is None)
        except MISSING as error:
            reason = f"torch cannot here: {first_line(error)}"
            break
        if found is None:
            break
        tried += 1
        if found.seconds > 0 and (best is None or flops / found.seconds > best.flops_per_s):
            best = _Best(shape=shape, sample=found, flops_per_s=flops / found.seconds)
    if best is None:
        return NoFigure(reason=reason)
    m, n, k = best.shape
    what = f"[{m},{k}] @ [{k},{n}] in {_spelled(precision)} on random data, {the_best_of(tried, 'shapes')}"
    return rate(best.sample, _flops(best.shape) / _TERA, "TFLOP/s", what)


def _timed(device: Device, call: Call, effort: Effort, *, always: bool) -> Sample | None:
    """The sample of a product, ``None`` where one takes too long for it."""
    time_calls = device.timed(call)
    time_calls(1)  # allocates, and chooses a kernel
    return sample(time_calls, effort) if always or time_calls(1) <= effort.longest_s else None


def the_best_of(count: int, what: str) -> str:
    """How a figure was chosen."""
    return f"the fastest of {count} {what}" if count > 1 else f"the only one of the {what} that was timed"


def first_line(error: Exception) -> str:
    """What an error says, without the lines on how it came about."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _flops(shape: Shape) -> int:
    m, n, k = shape
    return 2 * m * n * k


def _spelled(precision: str) -> str:
    return {"tfloat32": "float32 with TF32", "float32": "float32 without TF32"}.get(precision, precision)


def _has_tf32(device: Device) -> bool:
    return device.vendor == "nvidia" and device.capability is not None and device.capability[0] >= _TF32_SINCE


def _product(device: Device, precision: str, shape: Shape) -> Call:
    """One product on operands made now; torch has no public name for those of int8 and float8."""
    if precision == "int8":
        return _int8(device, shape)
    if precision == "float8":
        return _float8(device, shape)
    torch, (m, n, k) = device.torch, shape
    dtype = torch.float32 if precision == "tfloat32" else getattr(torch, precision)
    left = torch.randn(m, k, device=device.place).to(dtype)
    right = torch.randn(k, n, device=device.place).to(dtype)
    return partial(torch.mm, left, right, out=torch.empty(m, n, device=device.place, dtype=dtype))


def _int8(device: Device, shape: Shape) -> Call:
    """Products of int8 into int32; the right operand by columns, as the matrix units read it."""
    torch, (m, n, k) = device.torch, shape
    left = torch.randint(-128, 128, (m, k), device=device.place, dtype=torch.int8)
    right = torch.randint(-128, 128, (n, k), device=device.place, dtype=torch.int8).t()
    return partial(torch._int_mm, left, right)


def _float8(device: Device, shape: Shape) -> Call:
    """Products of float8 with one scale an operand, float32 accumulation, bfloat16 out."""
    torch, (m, n, k) = device.torch, shape
    is_fnuz = device.vendor == "amd" and device.capability == (9, 4)  # the MI300's own float8
    dtype = torch.float8_e4m3fnuz if is_fnuz else torch.float8_e4m3fn
    left = torch.randn(m, k, device=device.place).to(dtype)
    right = torch.randn(n, k, device=device.place).to(dtype).t()
    one = torch.ones((), device=device.place)
    return partial(torch._scaled_mm, left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
