"""Activations that combine two halves (silu_and_mul and kin) and activations of serving libraries.

These ops write into their first argument: ``(out, input)``. A gated op reads 2·n and writes n elements.
"""

from __future__ import annotations

from .op import Op
from .parts import bf16, by_roles, dtype_of, f32, itemsize, require, size
from .pointwise import pointwise
from .registry import Cost, Example, op_model

# Operations per output element: the activation (see `elementwise`) and the product.
_GATES = {
    "silu_and_mul": 5,
    "mul_and_silu": 5,
    "gelu_and_mul": 6,
    "gelu_tanh_and_mul": 10,
    "fatrelu_and_mul": 2,
    "swigluoai_and_mul": 9,
    "swiglustep_and_mul": 7,
}
_LIBRARIES = ("_C", "sgl_kernel", "aiter", "flashinfer", "vllm", "torch_ipex")


def _register_gate(gate: str, flops: int) -> None:
    example = Example(
        args=(bf16(4, 5), bf16(4, 10)),
        flops=20 * flops,
        bytes_read=80,
        bytes_written=40,
        why=f"{flops} operations on each of 20 results; reads 40*2; writes 20*2",
    )

    @op_model(*(f"{library}::{gate}" for library in _LIBRARIES), category="elementwise", examples=(example,))
    def gated(op: Op) -> Cost:
        """``act(x[:n]) * x[n:]`` into the first argument."""
        out, x = op.tensor(0), op.tensor(1)
        require(x.numel == 2 * out.numel)
        return by_roles(op, "oi", main=0, flops_per_element=flops)


for _gate, _flops in _GATES.items():
    _register_gate(_gate, _flops)


@op_model(
    "_C::silu_and_mul_quant",
    category="elementwise",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(4, 10), f32(1)),
            flops=120,
            bytes_read=84,
            bytes_written=40,
            why="6 operations (5 and the scale) on 20; reads 80 and a scale of 4; writes 20 of 2 here",
        ),
    ),
)
def gated_quant(op: Op) -> Cost:
    """Gated activation and quantisation with a given scale: (out, input, scale)."""
    return by_roles(op, "oii", main=0, flops_per_element=6)


def _register_plain(activation: str, flops: int) -> None:
    example = Example(
        args=(bf16(4, 5), bf16(4, 5)),
        flops=20 * flops,
        bytes_read=40,
        bytes_written=40,
        why=f"{flops} operations on each of 20; reads and writes 20*2",
    )

    @op_model(f"_C::{activation}", category="elementwise", examples=(example,))
    def plain(op: Op) -> Cost:
        """``act(x)`` into the first argument."""
        return by_roles(op, "oi", main=0, flops_per_element=flops)


for _activation, _flops in {"gelu_new": 9, "gelu_fast": 9, "gelu_quick": 5}.items():
    _register_plain(_activation, _flops)


@op_model(
    "LigerSiLUMulFunction",
    "LigerGELUMulFunction",
    "SwiGLUFunction",
    category="elementwise",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(4, 5)),
            flops=100,
            bytes_read=80,
            bytes_written=40,
            why="silu 4 and a product on 20; reads 2*20*2; writes 20*2",
        ),
    ),
)
def gate_of_two(op: Op) -> Cost:
    """``act(a) * b`` of two tensors; counted as silu, 4 and a product."""
    return pointwise(op, inputs=2, flops=5, result="first")


@op_model(
    "GeLUFunction",
    "BiasGeLUFunction",
    category="elementwise",
    claims_subtree=False,
    examples=(
        Example(
            args=(bf16(4, 5), bf16(5)),
            flops=200,
            bytes_read=50,
            bytes_written=40,
            why="bias and tanh-gelu, 10 on 20; reads 20*2 + 5*2; writes 20*2",
        ),
    ),
)
def bias_gelu(op: Op) -> Cost:
    """``gelu(x + bias)`` in the tanh form: 1 + 9 operations."""
    return pointwise(op, inputs=2, flops=10, result="first")


@op_model(
    "aten::glu",
    category="elementwise",
    examples=(
        Example(
            args=(f32(4, 10), "-1"),
            flops=100,
            bytes_read=160,
            bytes_written=80,
            why="sigmoid 4 and a product on 20 results; reads 40*4; writes 20*4",
        ),
    ),
)
def glu(op: Op) -> Cost:
    """``a * sigmoid(b)`` of the halves of one tensor."""
    x = op.tensor(0)
    half = x.numel // 2
    return Cost(flops=5 * half, bytes_read=size(x), bytes_written=half * itemsize(dtype_of(x)), precision=x.dtype)


@op_model(
    "aten::glu_backward",
    category="elementwise",
    examples=(
        Example(
            args=(f32(4, 5), f32(4, 10), "-1"),
            flops=180,
            bytes_read=240,
            bytes_written=160,
            why="sigmoid 4, and 5 for both halves' gradients, on 20; reads (20 + 40)*4; writes 40*4",
        ),
    ),
)
def glu_backward(op: Op) -> Cost:
    """Gradient of ``glu``: (grad, input)."""
    grad, x = op.tensor(0), op.tensor(1)
    return Cost(
        flops=9 * grad.numel,
        bytes_read=size(grad, x),
        bytes_written=x.numel * itemsize(dtype_of(x)),
        precision=dtype_of(x),
    )
