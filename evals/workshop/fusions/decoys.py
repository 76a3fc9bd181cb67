"""Calls that look like a composition and share no data, or would gain nothing."""

from __future__ import annotations

from evals.workshop.fusions import kernels, ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.norms import attended
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import Tensor, tensor

FAMILY = "decoy"
X = (8, 512, 2048)


def topk(r: Recorder, x: Tensor) -> None:
    """A kernel that nothing is fused with."""
    with r.op("aten::topk", x, "8", "-1", "True", "True"):
        r.launch("void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>", Work(reads=(x,)))


@case(FAMILY)
def two_products_of_equal_shape(r: Recorder) -> None:
    """Elementwise products of four tensors."""
    for layer in range(3):
        a, b, c, d = (tensor(X, "bf16") for _ in range(4))
        with r.module(f"TwoGates_{layer}"):
            r.need(ops.binary(r, "mul", a, b), ops.binary(r, "mul", c, d))
            topk(r, a)


@case(FAMILY)
def activation_and_product_of_other_shapes(r: Recorder) -> None:
    """SiLU of one branch, a product of another."""
    for layer in range(3):
        with r.module(f"Branches_{layer}"):
            r.need(ops.unary(r, "silu", tensor(X, "bf16")))
            other = tensor((8, 512, 512), "bf16")
            r.need(ops.binary(r, "mul", other, tensor(other.shape, "bf16")))


@case(FAMILY, MI300X)
def activation_and_product_of_other_types(r: Recorder) -> None:
    """Equal shapes, but the product is of float32 tensors."""
    for layer in range(3):
        with r.module(f"Mixed_{layer}"):
            r.need(ops.unary(r, "silu", tensor(X, "bf16")))
            r.need(ops.binary(r, "mul", tensor(X, "f32"), tensor(X, "f32")))


@case(FAMILY)
def residual_of_another_branch_after_a_product(r: Recorder) -> None:
    """The add that follows a product is of tensors it did not make."""
    for layer in range(3):
        with r.module(f"Branches_{layer}"):
            with r.module(f"Linear_{layer}"):
                r.need(ops.linear(r, tensor(X, "bf16"), 512))
            r.need(ops.binary(r, "add", tensor(X, "bf16"), tensor(X, "bf16")))
            topk(r, tensor(X, "bf16"))


@case(FAMILY, MI300X)
def activation_of_another_tensor_after_a_product(r: Recorder) -> None:
    """The activation reads what came before the product."""
    for layer in range(3):
        with r.module(f"Experts_{layer}"):
            with r.module(f"Router_{layer}"):
                r.need(ops.linear(r, tensor(X, "bf16"), 8))
            r.need(ops.unary(r, "gelu", tensor(X, "bf16"), "none"))
            topk(r, tensor(X, "bf16"))


@case(FAMILY)
def softmax_of_a_router_between_products(r: Recorder) -> None:
    """Product, softmax, top-k, product: no attention."""
    for layer in range(3):
        with r.module(f"SparseMoe_{layer}"):
            with r.module(f"Linear_{layer}"):
                logits = ops.linear(r, tensor(X, "bf16"), 8)
            weights = ops.softmax(r, logits)
            topk(r, weights)
            r.need(ops.linear(r, tensor(X, "bf16"), 2048))


@case(FAMILY)
def gate_and_product_on_two_streams(r: Recorder) -> None:
    """The product waits for the other stream."""
    for layer in range(3):
        gate, up = tensor(X, "bf16"), tensor(X, "bf16")
        with r.module(f"MLP_{layer}"):
            active = ops.unary(r, "silu", gate)
            with r.on(stream=20):
                r.need(ops.binary(r, "mul", active, up))


@case(FAMILY, MI300X)
def gate_and_product_in_two_threads(r: Recorder) -> None:
    """Two programs that share a stream."""
    for _ in range(3):
        with r.on(tid=1):
            r.need(ops.unary(r, "silu", tensor(X, "bf16")))
        with r.on(tid=3):
            r.wait()
            r.need(ops.binary(r, "mul", tensor(X, "bf16"), tensor(X, "bf16")))
        r.wait()


@case(FAMILY)
def gate_and_product_in_unrelated_modules(r: Recorder) -> None:
    """The end of one model and the beginning of another."""
    for layer in range(3):
        with r.module(f"Encoder_{layer}"):
            topk(r, tensor(X, "bf16"))
            r.need(ops.unary(r, "silu", tensor(X, "bf16")))
        with r.module(f"Critic_{layer}"):
            r.need(ops.binary(r, "mul", tensor(X, "bf16"), tensor(X, "bf16")))
            topk(r, tensor(X, "bf16"))


@case(FAMILY)
def pieces_of_two_norms_by_turns(r: Recorder) -> None:
    """The same step of two norms, then something else: no step is followed by its own next."""
    for layer in range(2):
        with r.module(f"TwinNorm_{layer}"):
            pair = [tensor((8, 512, 4096), "bf16"), tensor((8, 512, 1024), "bf16")]
            wide = [ops.cast(r, x, "f32") for x in pair]
            topk(r, pair[0])
            means = [ops.reduce(r, "mean", x) for x in wide]
            topk(r, pair[1])
            r.need(*(ops.binary(r, "sub", x, mean) for x, mean in zip(wide, means, strict=True)))


@case("by turns")
def two_norms_kernel_by_kernel(r: Recorder) -> None:
    """Two norms of other shapes in turn: each is a chain by its data, though another kernel lies between."""
    for layer in range(2):
        with r.module(f"TwinNorm_{layer}"):
            pair = [tensor((8, 512, 32, 128), "bf16"), tensor((8, 512, 8, 128), "bf16")]
            plants = []
            for _ in pair:
                with r.plant("novel") as plant:
                    plants.append(plant)
            for word in ("cast", "mean", "sub", "back"):
                for number, plant in enumerate(plants):
                    with r.apart(plant):
                        pair[number] = _step(r, word, pair[number])
            r.need(*pair)
            topk(r, pair[0])


def _step(r: Recorder, word: str, x: Tensor) -> Tensor:
    if word == "cast":
        return ops.cast(r, x, "f32")
    if word == "mean":
        return ops.binary(r, "sub", x, ops.reduce(r, "mean", x))
    return ops.unary(r, "tanh", x) if word == "sub" else ops.cast(r, x, "bf16")


@case("by turns", MI300X)
def tables_of_sines_and_cosines(r: Recorder) -> None:
    """Cosine and sine of one tensor, each scaled: two chains with a common input."""
    for layer in range(2):
        with r.module(f"LlamaRotaryEmbedding_{layer}"):
            angles = tensor((8, 4096, 128), "f32")
            for word in ("cos", "sin"):
                with r.plant("novel"):
                    r.need(ops.scalar(r, "mul", ops.unary(r, word, angles)))
            topk(r, angles)


@case(FAMILY)
def copies_of_separate_tensors(r: Recorder) -> None:
    """Queries, keys and values made dense, each for itself."""
    for layer in range(3):
        with r.module(f"Attention_{layer}"):
            for _ in range(3):
                r.need(ops.contiguous(r, ops.transpose(r, tensor((8, 512, 16, 64), "bf16"), 1, 2)))
            attended(r, tensor(X, "bf16"))


@case(FAMILY, MI300X)
def copies_of_other_sizes(r: Recorder) -> None:
    """A cast of weights, then one of the input."""
    for layer in range(3):
        with r.module(f"Linear_{layer}"):
            ops.cast(r, tensor((2048, 2048), "f32"), "bf16")
            x = ops.cast(r, tensor(X, "f32"), "bf16")
            r.need(ops.linear(r, x, 2048))


@case(FAMILY)
def adds_at_the_speed_of_memory(r: Recorder) -> None:
    """Large additions of separate tensors: one multi-tensor launch would move as much."""
    with r.frame("bench.py(3): main"):
        for _ in range(10):
            a, b, out = (tensor((8192, 4096), "f32") for _ in range(3))
            with r.op("aten::add", a, b, "1"):
                ns = round(3 * a.nbytes / r.gpu.bytes_per_s * 1e9) + 400
                r.launch(kernels.pointwise("add", out, 2), Work(reads=(a, b), writes=(out,), flops=a.numel, ns=ns))
            r.need(out)


@case(FAMILY, MI300X)
def products_in_a_row(r: Recorder) -> None:
    """Linears of a multilayer perceptron without activations."""
    with r.module("Deep_0"):
        x = tensor(X, "bf16")
        for layer in range(6):
            with r.module(f"Linear_{layer}"):
                x = ops.linear(r, x, 2048, bias=True)
        r.need(x)


@case(FAMILY)
def loss_of_other_logits(r: Recorder) -> None:
    """Log-softmax of one head, the loss of another."""
    for layer in range(2):
        with r.module(f"TwoHeads_{layer}"):
            r.need(ops.softmax(r, tensor((4096, 1000), "f32"), log=True))
            topk(r, tensor(X, "bf16"))
            x, target, out = tensor((4096, 50), "f32"), tensor((4096,), "i64"), tensor((), "f32")
            with r.op("aten::nll_loss_forward", x, target, None, "1", "-100"):
                kernel = (
                    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>"
                )
                r.launch(kernel, Work(reads=(x, target), writes=(out,)))
            r.need(out)


@case(FAMILY)
def embedding_and_norm(r: Recorder) -> None:
    """A gather is no part of a norm."""
    for layer in range(2):
        table, index = tensor((30522, 1024), "bf16"), tensor((8, 512), "i64")
        out = tensor((8, 512, 1024), "bf16")
        with r.module(f"Embeddings_{layer}"):
            with (
                r.op("aten::embedding", table, index, "0", "False", "False"),
                r.op("aten::index_select", table, "0", index.viewed((4096,))),
            ):
                name = "indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>"
                work = Work(reads=(index, out), writes=(out,))
                r.launch(f"void at::native::(anonymous namespace)::{name}", work)
            r.need(ops.layer_norm(r, out))


@case(FAMILY)
def gradients_set_to_zero(r: Recorder) -> None:
    """Fills have nothing to read: memory is set, not computed."""
    with r.frame("train.py(40): zero_grad"):
        for number in range(20):
            grad = tensor((1024, 64 + number), "f32")
            with r.op("aten::zero_", grad), r.op("aten::fill_", grad, "0"):
                fill = "at::native::FillFunctor<float>, std::array<char*, 1ul>"
                kernel = f"void at::native::vectorized_elementwise_kernel<4, {fill} >(int)"
                r.launch(kernel, Work(writes=(grad,)))


@case(FAMILY)
def a_mask_made_of_other_numbers(r: Recorder) -> None:
    """Comparison, inversion and fill of a mask, none of which reads another's result."""
    for layer in range(2):
        with r.module(f"Masks_{layer}"):
            r.need(ops.unary(r, "eq", tensor((8, 512), "i64"), "1", dtype="bool"))
            topk(r, tensor(X, "bf16"))
            r.need(ops.unary(r, "bitwise_not", tensor((512, 512), "bool")))


@case(FAMILY, MI300X)
def buffers_and_buckets_of_data_parallelism(r: Recorder) -> None:
    """Copies in a row that DistributedDataParallel makes: buffers from rank 0, gradients from buckets."""
    with (
        r.frame("torch/nn/parallel/distributed.py(2110): _distributed_broadcast_coalesced"),
        r.frame("<built-in method _broadcast_coalesced of PyCapsule object at 0x7f468be8c150>"),
    ):
        for number in range(20):
            copied(r, 64 + number)
    topk(r, tensor(X, "bf16"))
    for number in range(20):
        with r.op("torch.distributed.ddp.reducer::copy_bucket_to_grad", tensor((256 + number,), "f32")):
            copied(r, 256 + number)


def copied(r: Recorder, size: int) -> None:
    """One tensor into another."""
    source, out = tensor((size,), "f32"), tensor((size,), "f32")
    with r.op("aten::copy_", out, source, "False"):
        r.copy_on_device(source, out)
    r.need(out)
