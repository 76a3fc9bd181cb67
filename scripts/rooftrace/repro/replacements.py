"""What PyTorch has in the place of a known composition, written for the tensors of its example.

Each function takes a chain that can be run and returns the option, or None where the example is not built as the
replacement assumes: then `torch.compile` of the chain is what is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rooftrace.repro.calls import literal
from rooftrace.repro.loops import fused_adam, multi_tensor
from rooftrace.repro.program import Option, calls_of, simple_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.contracts.chains import Chain, ChainStep, ChainTensor
    from rooftrace.repro.program import Program


def replacements(program: Program) -> list[Option]:
    """Options beside `torch.compile`."""
    chain = program.chain
    if chain.period:
        found = [multi_tensor(program), fused_adam(program)]
    else:
        build = _BUILDERS.get(chain.pattern)
        found = [build(program)] if build else []
    return [option for option in found if option is not None]


def _attention(program: Program) -> Option | None:
    """`F.scaled_dot_product_attention` for bmm, scale and mask, softmax, bmm."""
    steps = calls_of(program.chain)
    words = [step.word for _, step in steps]
    names = {step.op for _, step in (steps[0], steps[-1])} if steps else set()
    if names != {"aten::bmm"} or not set(words[1:-1]) <= {
        "muls",
        "divs",
        "add",
        "cast",
        "copy",
        "softmax",
        "dropout",
    }:
        return None
    first, last = steps[0][1], steps[-1][1]
    query, key = (_plain(program.chain, argument.tensors[0]) for argument in first.arguments[:2])
    value = _plain(program.chain, last.arguments[1].tensors[0])
    softmax = next((step for _, step in steps if step.word == "softmax"), None)
    if query is None or key is None or value is None or softmax is None:
        return None
    scores = softmax.arguments[0].tensors[0].shape
    if len(scores) not in (3, 4) or softmax.arguments[1].text not in ("-1", str(len(scores) - 1)):
        return None
    masks = [_outside(step) for _, step in steps if step.word == "add"]
    if len(masks) > 1 or None in masks:
        return None
    heads = f"sized({tuple(scores[:2])!r})" if len(scores) == 4 else f"sized({(1, scores[0])!r})"
    mask = f"x{masks[0].number}" if masks and masks[0] is not None else "None"
    if len(scores) == 3 and mask != "None":
        mask = f"{mask}.unsqueeze(0)"
    lines = (
        f"heads = {heads}  # batch and heads",
        "",
        f"def attention({program.parameters}):",
        f"    query = x{query.number}.reshape(*heads, *x{query.number}.shape[-2:])",
        f"    key = x{key.number}.transpose(-1, -2)",
        "    key = key.reshape(*heads, *key.shape[-2:])",
        f"    value = x{value.number}.reshape(*heads, *x{value.number}.shape[-2:])",
        f"    found = F.scaled_dot_product_attention(query, key, value, attn_mask={mask}, scale={_scale(program)})",
        "    return found.flatten(0, 1)",
    )
    return simple_option("F.scaled_dot_product_attention", "attention", lines)


def _scale(program: Program) -> str:
    """The product of all numbers that the scores are multiplied with."""
    parts = ["1.0"]
    for at, step in calls_of(program.chain):
        if step.word in ("muls", "divs"):
            sign = "*" if step.word == "muls" else "/"
            number = program.numbers[at][0] if program.numbers[at] else literal(step, step.arguments[1].text or "")
            parts.append(f"{sign} {number}")
    return " ".join(parts)


def _rms_norm(program: Program) -> Option | None:
    """`F.rms_norm`: the square's input, the epsilon that is added and the last factor."""
    steps = calls_of(program.chain)
    words = [step.word for _, step in steps]
    if words.count("mean") != 1 or "adds" not in words or "adds" in words[words.index("adds") + 1 :]:
        return None
    square = next((step for _, step in steps if step.word in ("pow", "square", "mul")), None)
    tail = [step for _, step in steps[words.index("adds") + 2 :]]
    source = _source(program.chain, square.arguments[0].tensors[0]) if square else None
    mean = steps[words.index("mean")][1]
    if source is None or not _is_last(mean, len(source.shape)) or not tail:
        return None
    weight = None
    if [step.word for step in tail].count("mul") == 2:
        weight = _outside(tail[-1])
        if weight is None or weight.shape != source.shape[-1:]:
            return None
    size = f"sized({tuple(source.shape[-1:])!r})"
    factor = f"x{weight.number}" if weight else "None"
    epsilon = _number(program, words.index("adds"))
    lines = (
        f"def rms_norm({program.parameters}):",
        f"    return F.rms_norm(x{source.number}, {size}, {factor}, {epsilon})",
    )
    return simple_option("F.rms_norm", "rms_norm", lines)


def _layer_norm(program: Program) -> Option | None:
    """`F.layer_norm` for mean, difference, its square's mean, division, factor and summand."""
    steps = calls_of(program.chain)
    words = [step.word for _, step in steps]
    core = [word for word in words if word not in ("cast", "copy")]
    if core[:5] not in (["mean", "sub", "pow", "mean", "adds"], ["mean", "sub", "mul", "mean", "adds"]):
        return None
    if core[5:7] not in (["rsqrt", "mul"], ["sqrt", "div"]) or core[7:] not in ([], ["mul"], ["mul", "add"]):
        return None
    mean = steps[words.index("mean")][1]
    source = _source(program.chain, mean.arguments[0].tensors[0])
    if source is None or not _is_last(mean, len(source.shape)):
        return None
    named = dict(zip(core[7:], [step for _, step in steps if step.word not in ("cast", "copy")][7:], strict=True))
    factors = {word: _outside(step) for word, step in named.items()}
    if any(tensor is None or tensor.shape != source.shape[-1:] for tensor in factors.values()):
        return None
    weight, bias = (f"x{t.number}" if (t := factors.get(word)) else "None" for word in ("mul", "add"))
    size = f"sized({tuple(source.shape[-1:])!r})"
    lines = (
        f"def layer_norm({program.parameters}):",
        f"    return F.layer_norm(x{source.number}, {size}, {weight}, {bias}, {_number(program, words.index('adds'))})",
    )
    return simple_option("F.layer_norm", "layer_norm", lines)


def _softmax(program: Program) -> Option | None:
    """`torch.softmax` over the axis that is summed."""
    steps = calls_of(program.chain)
    total = next((step for _, step in steps if step.word == "sum"), None)
    source = _source(program.chain, steps[0][1].arguments[0].tensors[0])
    axes = literal(total, total.arguments[1].text or "") if total and len(total.arguments) > 1 else ""
    if source is None or steps[0][1].word != "amax" or not axes.startswith("[") or "," in axes or axes == "[]":
        return None
    lines = (
        f"def softmax({program.parameters}):",
        f"    return torch.softmax(x{source.number}, {axes[1:-1]})",
    )
    return simple_option("torch.softmax", "softmax", lines)


def _gelu(program: Program) -> Option | None:
    """`F.gelu`, exact or by tanh."""
    steps = calls_of(program.chain)
    words = [step.word for _, step in steps]
    source = _source(program.chain, steps[0][1].arguments[0].tensors[0])
    kind = "tanh" if "tanh" in words else ("none" if "erf" in words else None)
    if source is None or kind is None or (words[:2] == ["muls", "muls"] and kind == "tanh"):
        return None
    lines = (f"def gelu({program.parameters}):", f'    return F.gelu(x{source.number}, approximate="{kind}")')
    return simple_option("F.gelu", "gelu", lines)


def _silu(program: Program) -> Option | None:
    """`F.silu`."""
    source = _source(program.chain, calls_of(program.chain)[0][1].arguments[0].tensors[0])
    if source is None:
        return None
    lines = (f"def silu({program.parameters}):", f"    return F.silu(x{source.number})")
    return simple_option("F.silu", "silu", lines)


def _swiglu(program: Program) -> Option | None:
    """`F.silu` of one tensor times the other; what makes it one kernel is `torch.compile`."""
    steps = calls_of(program.chain)
    if [step.word for _, step in steps] != ["silu", "mul"]:
        return None
    gate = _source(program.chain, steps[0][1].arguments[0].tensors[0])
    other = [a.tensors[0] for a in steps[1][1].arguments[:2] if a.tensors and a.tensors[0].step != steps[0][0]]
    if gate is None or len(other) != 1:
        return None
    views = [f"    {program.line(at)}" for at, step in enumerate(program.chain.steps) if step.role == "view"]
    lines = (
        f"def swiglu({program.parameters}):",
        *views,
        f"    return F.silu(x{gate.number}) * {program.value(other[0])}",
    )
    name = "F.silu(gate) * up under torch.compile"
    return Option(name=name, lines=lines, text=f'option("{name}", torch.compile(swiglu, dynamic=False))')


def _epilogue(program: Program) -> Option | None:
    """`torch.addmm` for a matrix product and a sum."""
    steps = calls_of(program.chain)
    if [step.op for _, step in steps] != ["aten::mm", "aten::add"]:
        return None
    (_, product), (_, total) = steps
    other = _outside(total)
    alpha = total.arguments[2].text if len(total.arguments) > 2 else "1"
    a, b = (argument.tensors[0] for argument in product.arguments[:2])
    if other is None or alpha != "1" or a.step is not None or b.step is not None:
        return None
    rows = len(other.shape) > 1
    summand = f"x{other.number}.reshape(-1, x{other.number}.shape[-1])" if rows else f"x{other.number}"
    result = f".reshape(x{other.number}.shape)" if rows else ""
    lines = (
        f"def addmm({program.parameters}):",
        f"    return torch.addmm({summand}, x{a.number}, x{b.number}){result}",
    )
    return simple_option("torch.addmm", "addmm", lines)


def _outside(step: ChainStep) -> ChainTensor | None:
    """The one operand of a call that comes from outside."""
    found = [t for argument in step.arguments for t in argument.tensors if t.step is None]
    return found[0] if len(found) == 1 else None


def _source(chain: Chain, tensor: ChainTensor) -> ChainTensor | None:
    """The tensor from outside that this is, or a cast of; None for another."""
    while tensor.step is not None:
        step = chain.steps[tensor.step]
        if step.word not in ("cast", "copy") or not step.arguments:
            return _updated(chain, tensor)
        at = 1 if step.op == "aten::copy_" else 0
        tensor = step.arguments[at].tensors[0]
    return tensor


def _updated(chain: Chain, tensor: ChainTensor) -> ChainTensor | None:
    """The tensor from outside that calls in place have changed so far."""
    while tensor.step is not None:
        step = chain.steps[tensor.step]
        if not step.op.endswith("_") or not step.arguments[0].tensors:
            return None
        tensor = step.arguments[0].tensors[0]
    return tensor


def _plain(chain: Chain, tensor: ChainTensor) -> ChainTensor | None:
    """The tensor from outside with the same rows and columns that this views or copies: leading axes may be joined."""
    shape = tensor.shape
    while tensor.step is not None:
        step = chain.steps[tensor.step]
        if (step.role != "view" and step.word != "copy") or not step.arguments or not step.arguments[0].tensors:
            return None
        tensor = step.arguments[1 if step.op == "aten::copy_" else 0].tensors[0]
        if tensor.shape[-2:] != shape[-2:]:
            return None
    return tensor


def _is_last(step: ChainStep, rank: int) -> bool:
    """Whether a reduction goes over the last axis."""
    text = step.arguments[1].text if len(step.arguments) > 1 else None
    return text in ("[-1]", f"[{rank - 1}]")


def _number(program: Program, number: int) -> str:
    """The number that a call adds, as a literal or a constant's name."""
    at, step = calls_of(program.chain)[number]
    return program.numbers[at][0] if program.numbers[at] else literal(step, step.arguments[1].text or "")


_BUILDERS: Final[dict[str, Callable[[Program], Option | None]]] = {
    "attention_core": _attention,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "softmax": _softmax,
    "gelu": _gelu,
    "silu": _silu,
    "swiglu": _swiglu,
    "gemm_epilogue": _epilogue,
}
