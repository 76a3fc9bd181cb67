"""AdamW as ``torch.optim`` runs it with foreach kernels: one pass over all parameters an operator."""

from __future__ import annotations

from evals.workshop import kernels
from evals.workshop.program import Input, Tensor, ThreadBuilder

PROFILED = "Optimizer.step#AdamW.step"


def adamw_step(b: ThreadBuilder, parameters: list[Tensor]) -> None:
    """``optimizer.step()``: the step counters on the host, then nine foreach operators on the device."""
    steps: list[Tensor] = [Tensor((), "float") for _ in parameters]
    elements = sum(parameter.count for parameter in parameters)
    corrections: list[Input] = [None]
    with (
        b.frame("torch/optim/optimizer.py(473): wrapper"),
        b.annotation(PROFILED),
        b.frame("torch/optim/adamw.py(196): step"),
        b.frame("torch/optim/adam.py(647): _multi_tensor_adam"),
    ):
        with b.op("aten::_foreach_add_", steps, 1):
            for step in steps:
                b.leaf("aten::add_", step, 1, 1)
        passes: list[tuple[str, list[Input]]] = [
            ("_foreach_mul_", [parameters, 0.999]),
            ("_foreach_lerp_", [parameters, parameters, 0.1]),
            ("_foreach_mul_", [parameters, 0.999]),
            ("_foreach_addcmul_", [parameters, parameters, parameters, 0.001]),
            ("_foreach_sqrt", [parameters]),
            ("_foreach_div_", [parameters, *corrections]),
            ("_foreach_add_", [parameters, 1e-8]),
            ("_foreach_addcdiv_", [parameters, parameters, parameters, *corrections]),
        ]
        for op, inputs in passes:
            with b.op(f"aten::{op}", *inputs):
                for kernel in kernels.foreach(op, elements):
                    b.launch(kernel)


def zero_grad(b: ThreadBuilder) -> None:
    """``optimizer.zero_grad()``: sets gradients to None, launches nothing."""
    with (
        b.frame("torch/_compile.py(51): inner"),
        b.frame("torch/optim/optimizer.py(960): zero_grad"),
        b.annotation("Optimizer.zero_grad#AdamW.zero_grad"),
    ):
        b.work(20_000)
