"""Op name, shapes, dtypes and scalar arguments to a cost: FLOPs and bytes.

Conventions, the same in every module of this folder:

- A multiply-add is 2 FLOPs. Bias and scales add bytes to a GEMM, no FLOPs; the bias of a convolution adds one FLOP
  an output.
- Bytes are compulsory traffic: each input once, each output once, each at its own dtype. A broadcast or expanded
  operand counts at the size it has in memory. An op in place reads and writes.
- Elementwise FLOPs are operations per element times elements; arithmetic, a comparison and an elementary function
  (exp, log, sqrt, tanh, erf, sin …) are one operation each. Copies have none.
- A backward op is an op of its own.
- What shapes, dtypes and recorded scalars do not give is ``Unmodelled`` with a reason; a bound or an estimate says so
  in ``Cost.notes``.

A module of this folder registers its models when it is imported; all are imported here, in name order, so a new file
needs no second edit. No input or output, no environment, no GPU names.
"""

from __future__ import annotations

import importlib
import pkgutil

from .dtypes import ITEMSIZE, dtype_in_kernel_name, normalise_dtype
from .op import Arg, NoCostError, Op, Tensor, op_from_record
from .registry import (
    CATEGORIES,
    MODELS,
    Cost,
    Example,
    Model,
    Unmodelled,
    categorise,
    category_of,
    claims_subtree,
    cost_of,
    find_model,
    models,
    op_model,
)

__all__ = [
    "CATEGORIES",
    "ITEMSIZE",
    "MODELS",
    "Arg",
    "Cost",
    "Example",
    "Model",
    "NoCostError",
    "Op",
    "Tensor",
    "Unmodelled",
    "categorise",
    "category_of",
    "claims_subtree",
    "cost_of",
    "dtype_in_kernel_name",
    "find_model",
    "models",
    "normalise_dtype",
    "op_from_record",
    "op_model",
]  # fmt: skip

for _module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
