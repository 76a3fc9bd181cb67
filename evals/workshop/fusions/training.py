"""Optimizers, gradient norms and losses in pieces."""

from __future__ import annotations

from collections.abc import Callable

from evals.workshop.fusions import ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import Tensor, tensor

SHAPES = ((1024, 1024), (1024,), (4096, 1024), (4096,), (1024, 4096), (1024,))


def adam(r: Recorder, weight: Tensor, *, decay: bool) -> None:
    """One parameter's update as PyTorch's loop over parameters does it."""
    grad, first, second = (tensor(weight.shape, "f32") for _ in range(3))
    if decay:
        ops.scalar(r, "mul_", weight)
    with r.op("aten::lerp_", first, grad, "0.1"):
        work = Work(reads=(first, grad), writes=(first,), flops=3 * weight.numel)
        r.launch(
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::lerp_scalar_kernel"
            "(at::TensorIteratorBase&, c10::Scalar const&)::{lambda()#2}, std::array<char*, 3ul> >",
            work,
        )
    ops.scalar(r, "mul_", second)
    ops.ternary(r, "addcmul_", second, grad, grad, "0.001")
    root = ops.unary(r, "sqrt", second)
    ops.scalar(r, "div_", root)
    ops.scalar(r, "add_", root)
    ops.ternary(r, "addcdiv_", weight, first, root, "-0.001")


def stepped(r: Recorder, name: str, shapes: tuple[tuple[int, ...], ...], *, decay: bool) -> None:
    """A step of Adam over several parameters."""
    weights = [tensor(shape, "f32") for shape in shapes]
    with (
        r.span("user_annotation", f"Optimizer.step#{name}.step"),
        r.frame("torch/optim/adam.py(346): _single_tensor_adam"),
        r.plant("adam_loop", tensors=len(weights), lists=4),
    ):
        for weight in weights:
            adam(r, weight, decay=decay)
    r.need(*weights)


@case("adam_loop")
def adam_loop_h100(r: Recorder) -> None:
    """``foreach=False``."""
    for _ in range(2):
        stepped(r, "Adam", SHAPES, decay=False)
        ops.linear(r, tensor((8, 512, 1024), "bf16"), 1024)


@case("adam_loop", MI300X, stacks=False)
def adamw_loop_mi300x(r: Recorder) -> None:
    """With decay; ops and the step's annotation alone."""
    stepped(r, "AdamW", SHAPES * 3, decay=True)


def adagrad(r: Recorder, weight: Tensor) -> None:
    """One parameter's update: its squares summed, their root, the quotient."""
    grad, total = tensor(weight.shape, "f32"), tensor(weight.shape, "f32")
    ops.ternary(r, "addcmul_", total, grad, grad, "1")
    root = ops.unary(r, "sqrt", total)
    ops.scalar(r, "add_", root)
    ops.ternary(r, "addcdiv_", weight, grad, root, "-0.01")


def rmsprop(r: Recorder, weight: Tensor) -> None:
    """The same with a moving average of the squares."""
    grad, average = tensor(weight.shape, "f32"), tensor(weight.shape, "f32")
    ops.scalar(r, "mul_", average)
    ops.ternary(r, "addcmul_", average, grad, grad, "0.01")
    root = ops.unary(r, "sqrt", average)
    ops.scalar(r, "add_", root)
    ops.ternary(r, "addcdiv_", weight, grad, root, "-0.01")


def rmsprop_with_momentum(r: Recorder, weight: Tensor) -> None:
    """With a buffer for the steps."""
    grad, average, buffer = (tensor(weight.shape, "f32") for _ in range(3))
    ops.scalar(r, "mul_", average)
    ops.ternary(r, "addcmul_", average, grad, grad, "0.01")
    root = ops.unary(r, "sqrt", average)
    ops.scalar(r, "add_", root)
    ops.scalar(r, "mul_", buffer)
    ops.ternary(r, "addcdiv_", buffer, grad, root, "1")
    ops.binary(r, "add_", weight, buffer, alpha="-0.01")


def looped(r: Recorder, pattern: str, update: Callable[[Recorder, Tensor], None], around: str, lists: int) -> None:
    """A step over several parameters."""
    weights = [tensor(shape, "f32") for shape in SHAPES * 2]
    with r.span("user_annotation", around), r.plant(pattern, tensors=len(weights), lists=lists):
        for weight in weights:
            update(r, weight)
    r.need(*weights)


@case("adagrad_loop")
def adagrad_loop_h100(r: Recorder) -> None:
    """As the trace of a recommender has it."""
    looped(r, "adagrad_loop", adagrad, "Optimizer.step#Adagrad.step", 3)


@case("rmsprop_loop", MI300X, stacks=False)
def rmsprop_loop_mi300x(r: Recorder) -> None:
    """Without momentum."""
    looped(r, "rmsprop_loop", rmsprop, "Optimizer.step#RMSprop.step", 3)


@case("rmsprop_momentum_loop")
def rmsprop_with_momentum_h100(r: Recorder) -> None:
    """With it."""
    looped(r, "rmsprop_momentum_loop", rmsprop_with_momentum, "Optimizer.step#RMSprop.step", 4)


@case("sgd_loop")
def sgd_with_momentum_h100(r: Recorder) -> None:
    """Buffer times momentum plus gradient, then the weight."""
    weights = [tensor(shape, "f32") for shape in SHAPES * 2]
    with r.span("user_annotation", "Optimizer.step#SGD.step"), r.plant("sgd_loop", tensors=len(weights), lists=3):
        for weight in weights:
            grad, buffer = tensor(weight.shape, "f32"), tensor(weight.shape, "f32")
            ops.scalar(r, "mul_", buffer)
            ops.binary(r, "add_", buffer, grad)
            ops.binary(r, "add_", weight, buffer, alpha="-0.01")
    r.need(*weights)


@case("optimizer_loop", MI300X)
def plain_sgd_of_many_small_parameters_mi300x(r: Recorder) -> None:
    """Sixty launches where one would do."""
    weights = [tensor((256 + 64 * number,), "f32") for number in range(60)]
    with r.span("user_annotation", "Optimizer.step#SGD.step"), r.plant("optimizer_loop", tensors=60, lists=2):
        for weight in weights:
            ops.binary(r, "add_", weight, tensor(weight.shape, "f32"), alpha="-0.01")
    r.need(*weights)


@case("gradient_clipping")
def gradient_clipping_in_pieces_h100(r: Recorder) -> None:
    """A norm a gradient, their norm, the factor, a product a gradient."""
    grads = [tensor((512 + 128 * number, 256), "f32") for number in range(24)]
    with r.frame("torch/nn/utils/clip_grad.py(164): clip_grad_norm_"):
        with r.plant("gradient_clipping", tensors=len(grads), lists=1):
            norms = [ops.norm(r, grad) for grad in grads]
            total = ops.norm(r, ops.cat(r, norms, word="stack"))
        factor_and_products(r, total, grads)


def factor_and_products(r: Recorder, total: Tensor, grads: list[Tensor]) -> None:
    """The clipping factor, a chain on one number, and the gradients times it, a loop."""
    with r.plant("novel"):
        factor = ops.scalar(r, "add", total)
        factor = ops.scalar(r, "mul", ops.unary(r, "reciprocal", factor))
        factor = ops.unary(r, "clamp", factor, None, "1")
    r.need(factor)
    with r.plant("same_op_loop", tensors=len(grads), lists=1):
        for grad in grads:
            ops.binary(r, "mul_", grad, factor)
    r.need(*grads)


@case("same_op_loop", MI300X)
def moving_average_of_weights_mi300x(r: Recorder) -> None:
    """One ``lerp_`` a parameter."""
    pairs = [(tensor((256, 64 + number), "f32"), tensor((256, 64 + number), "f32")) for number in range(40)]
    with r.frame("ema.py(31): update"), r.plant("same_op_loop", tensors=len(pairs), lists=2):
        for average, weight in pairs:
            with r.op("aten::lerp_", average, weight, "0.001"):
                work = Work(reads=(average, weight), writes=(average,), flops=3 * weight.numel)
                r.launch(
                    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
                    "lerp_scalar_kernel(at::TensorIteratorBase&)::{lambda()#2}, std::array<char*, 3ul> >",
                    work,
                )
            r.need(average)


@case("same_op_loop")
def scaling_of_many_small_tensors_h100(r: Recorder) -> None:
    """Unscaling gradients one by one."""
    grads = [tensor((1024,), "f32") for _ in range(32)]
    with r.frame("scaler.py(12): unscale"), r.plant("same_op_loop", tensors=len(grads), lists=1):
        for grad in grads:
            ops.scalar(r, "mul_", grad)
    r.need(*grads)


def nll(r: Recorder, x: Tensor, target: Tensor) -> Tensor:
    """The negative log-likelihood of the targets."""
    out, weight = tensor((), x.dtype), tensor((), x.dtype)
    with (
        r.op("aten::nll_loss_nd", x, target, None, "1", "-100"),
        r.op("aten::nll_loss", x, target, None, "1", "-100"),
        r.op("aten::nll_loss_forward", x, target, None, "1", "-100"),
    ):
        t = "float"
        looks = Work(reads=(target,), writes=(out,), scratch=(weight,), flops=x.shape[0])
        kernel = f"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<{t}, {t}, long>({t}*)"
        row = r.launch(kernel, looks)
        row.reads = (*row.reads, ((x.storage, x.storage.version), 4 * x.shape[0]))
    return out


@case("cross_entropy")
def loss_over_a_vocabulary_h100(r: Recorder) -> None:
    """Logits to float32, log-softmax, loss."""
    with r.module("LMHead_0"):
        logits = ops.linear(r, tensor((4096, 1024), "bf16"), 32000)
    with r.module("CrossEntropyLoss_0"), r.plant("cross_entropy"):
        wide = ops.cast(r, logits, "f32")
        r.need(nll(r, ops.softmax(r, wide, log=True), tensor((4096,), "i64")))


@case("cross_entropy", MI300X, stacks=False)
def loss_in_float32_without_stacks_mi300x(r: Recorder) -> None:
    """Two kernels."""
    for _ in range(2):
        logits = ops.linear(r, tensor((2048, 1024), "f32"), 32000)
        with r.op("aten::cross_entropy_loss", logits, tensor((2048,), "i64")), r.plant("cross_entropy"):
            r.need(nll(r, ops.softmax(r, logits, log=True), tensor((2048,), "i64")))


@case("novel")
def focal_loss_written_out(r: Recorder) -> None:
    """A loss of a detector in elementwise pieces."""
    with r.module("FocalLoss_0"), r.plant("novel"):
        logits, target = tensor((16, 100000), "f32"), tensor((16, 100000), "f32")
        share = ops.unary(r, "sigmoid", logits)
        away = ops.unary(r, "abs", ops.binary(r, "sub", target, share))
        factor = ops.unary(r, "pow", away, "2")
        r.need(ops.binary(r, "mul", factor, tensor((16, 100000), "f32")))
