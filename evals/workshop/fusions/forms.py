"""The same work in other forms of a trace: nested modules, streams, threads, graphs, kernels alone, missing facts."""

from __future__ import annotations

from evals.workshop.fusions import kernels, ops
from evals.workshop.fusions.activations import gelu_tanh
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.norms import HIDDEN, attended, rms, rms_module
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.rotary import rotated
from evals.workshop.fusions.tensors import Tensor, tensor


def decoder_layer(r: Recorder, x: Tensor, layer: int) -> Tensor:
    """Norm, attention with rotary embedding, residual, norm, gated product, residual: what is open is planted."""
    length, width = x.shape[1], x.shape[2]
    with r.module(f"LlamaDecoderLayer_{layer}"):
        y = rms_module(r, x, f"LlamaRMSNorm_{2 * layer}")
        with r.module(f"LlamaSdpaAttention_{layer}"):
            heads = []
            for number in range(2):
                with r.module(f"Linear_{7 * layer + number}"):
                    flat = ops.linear(r, y, width).viewed((x.shape[0], length, width // 128, 128))
                r.view("aten::view", flat, list(flat.shape))
                heads.append(ops.transpose(r, flat, 1, 2))
            with r.module(f"Linear_{7 * layer + 2}"):
                ops.linear(r, y, width)
            tables = tensor((1, 1, length, 128), x.dtype), tensor((1, 1, length, 128), x.dtype)
            with r.plant("rope"):
                turned = [rotated(r, one, *tables) for one in heads]
            r.need(*turned)
            y = attended(r, tensor(x.shape, x.dtype))
            with r.module(f"Linear_{7 * layer + 3}"):
                y = ops.linear(r, y, width)
        with r.epilogue():
            x = ops.binary(r, "add", x, y)
        y = rms_module(r, x, f"LlamaRMSNorm_{2 * layer + 1}")
        with r.module(f"LlamaMLP_{layer}"), r.plant("swiglu") as plant:
            with r.apart(), r.module(f"Linear_{7 * layer + 4}"):
                gate = ops.linear(r, y, 4096)
            with r.module(f"SiLU_{layer}"):
                gate = ops.unary(r, "silu", gate)
            with r.apart(), r.module(f"Linear_{7 * layer + 5}"):
                up = ops.linear(r, y, 4096)
            with r.apart(plant):
                y = ops.binary(r, "mul", gate, up)
            with r.apart(), r.module(f"Linear_{7 * layer + 6}"):
                y = ops.linear(r, y, width)
        with r.epilogue():
            return ops.binary(r, "add", x, y)


def model(r: Recorder, layers: int) -> None:
    """Decoder layers in a model in a wrapper."""
    with r.module("LlamaForCausalLM_0"), r.module("LlamaModel_0"):
        x = tensor(HIDDEN, "bf16")
        for layer in range(layers):
            x = decoder_layer(r, x, layer)
        r.need(x)


@case("whole layers")
def decoder_layers_h100(r: Recorder) -> None:
    """Everything at once, in nested modules."""
    model(r, 3)


@case("whole layers", MI300X)
def decoder_layers_mi300x(r: Recorder) -> None:
    """The same on the other vendor's."""
    model(r, 2)


@case("whole layers", MI300X, stacks=False)
def decoder_layers_without_stacks_mi300x(r: Recorder) -> None:
    """Ops only: instances end where data does."""
    model(r, 2)


@case("streams and threads")
def norms_on_two_streams(r: Recorder) -> None:
    """Each stream has its own."""
    for layer in range(2):
        for stream in (7, 20):
            with r.on(stream=stream):
                r.need(rms_module(r, tensor(HIDDEN, "bf16"), f"LlamaRMSNorm_{layer}"))
                r.need(ops.linear(r, tensor(HIDDEN, "bf16"), 1024))


@case("streams and threads")
def threads_with_a_stream_each(r: Recorder) -> None:
    """Two threads at the same time; their calls lie between each other in the file."""
    for layer in range(2):
        for tid in (1, 3):
            with r.on(tid=tid, stream=7 + tid):
                r.need(rms_module(r, tensor(HIDDEN, "bf16"), f"LlamaRMSNorm_{layer}"))
                r.need(ops.linear(r, tensor(HIDDEN, "bf16"), 1024))


@case("streams and threads", MI300X)
def threads_by_turns_on_one_stream(r: Recorder) -> None:
    """Whole modules by turns: no kernel of the other thread comes between."""
    for turn in range(4):
        with r.on(tid=1 + 2 * (turn % 2)):
            with r.module(f"GELU_{turn}"), r.plant("gelu"):
                r.need(gelu_tanh(r, tensor((8, 512, 4096), "bf16")))
            r.wait()
        with r.on(tid=1 + 2 * ((turn + 1) % 2)):
            r.wait()


def bare_norms(r: Recorder, count: int) -> None:
    """Norms and products as kernels: the names say what they are, nothing says what they read."""
    for _ in range(count):
        x = tensor(HIDDEN, "bf16")
        with r.plant("rms_norm", modelled=False):
            y = rms(r, x)
        ops.linear(r, y, 1024)


@case("names alone")
def norms_in_a_replayed_graph(r: Recorder) -> None:
    """One launch for all."""
    for _ in range(3):
        with r.graph():
            bare_norms(r, 2)


@case("names alone", MI300X)
def norms_in_a_trace_of_the_device_alone(r: Recorder) -> None:
    """No host event at all."""
    with r.unrecorded():
        bare_norms(r, 6)


@case("names alone", shapes=False)
def norms_whose_shapes_are_not_recorded(r: Recorder) -> None:
    """Ops and modules, but no shapes."""
    with r.module("LlamaModel_0"):
        for layer in range(3):
            with r.module(f"LlamaRMSNorm_{layer}"), r.plant("rms_norm", modelled=False):
                y = rms(r, tensor(HIDDEN, "bf16"))
            with r.module(f"Linear_{layer}"):
                r.need(ops.linear(r, y, 1024))


@case("names alone", named=False)
def norms_on_a_gpu_that_the_trace_does_not_name(r: Recorder) -> None:
    """Found, but without a ceiling no time is claimed."""
    with r.module("LlamaModel_0"):
        for layer in range(2):
            with r.module(f"LlamaRMSNorm_{layer}"), r.plant("rms_norm", modelled=False):
                y = rms(r, tensor(HIDDEN, "bf16"))
            with r.module(f"Linear_{layer}"):
                r.need(ops.linear(r, y, 1024))


@case("before the window")
def kernels_before_the_first_recorded_call(r: Recorder) -> None:
    """The first layers were launched before recording began: counted apart, not among the instances."""
    with r.unrecorded():
        for _ in range(2):
            r.need(ops.linear(r, rms(r, tensor(HIDDEN, "bf16")), 2048))
    with r.module("LlamaModel_0"):
        for layer in range(3):
            y = rms_module(r, tensor(HIDDEN, "bf16"), f"LlamaRMSNorm_{layer}")
            with r.module(f"Linear_{layer}"):
                r.need(ops.linear(r, y, 2048))


def generated(r: Recorder, name: str, reads: tuple[Tensor, ...], out: Tensor) -> Tensor:
    """A kernel of Inductor under its own op."""
    with r.op(name, *reads, out, str(out.numel)):
        r.launch(name, Work(reads=reads, writes=(out,), flops=2 * out.numel), call="cuLaunchKernel")
    return out


@case("compiled")
def compiled_code_with_single_ops_left(r: Recorder) -> None:
    """Fused kernels stay as they are; two that hold one op each, in a row, could be one."""
    x = tensor(HIDDEN, "bf16")
    for _ in range(2):
        with r.op("Torch-Compiled Region: 0/0"), r.op("CompiledFxGraph"):
            weight = tensor((HIDDEN[-1],), "bf16")
            name = "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0"
            y = generated(r, name, (x, weight), tensor(HIDDEN, "bf16"))
            with r.op("extern_kernels.mm", y, tensor((2048, 2048), "bf16")):
                work = Work(reads=(y,), writes=(y,), flops=2.0 * 4096 * 2048 * 2048, unit=("matrix", "bf16"))
                r.launch(kernels.product("nvidia", "bf16"), work)
            with r.plant("novel"):
                a = generated(r, "triton_poi_fused_cos_1", (y,), tensor(HIDDEN, "bf16"))
                b = generated(r, "triton_poi_fused_tanh_2", (a,), tensor(HIDDEN, "bf16"))
            r.need(b)


@case("compiled", MI300X)
def eager_code_between_compiled_regions(r: Recorder) -> None:
    """A graph break leaves a gate in eager ops."""
    for layer in range(2):
        x = tensor(HIDDEN, "bf16")
        with r.op("Torch-Compiled Region: 0/0"):
            y = generated(r, "triton_poi_fused_add_mul_0", (x, x), tensor(HIDDEN, "bf16"))
        with r.module(f"Gate_{layer}"), r.plant("silu"):
            z = ops.binary(r, "mul", x, ops.unary(r, "sigmoid", y))
        with r.op("Torch-Compiled Region: 1/0"):
            r.need(generated(r, "triton_per_fused_add_native_layer_norm_1", (z, x), tensor(HIDDEN, "bf16")))


@case("crossing")
def a_copy_to_the_host_in_the_middle(r: Recorder) -> None:
    """GELU with a debugging print after its square: neither half reaches across."""
    x = tensor((8, 512, 4096), "bf16")
    for layer in range(2):
        with r.module(f"GELU_{layer}"):
            cubed = ops.unary(r, "pow", x, "3")
            with r.op("aten::topk", cubed, "1", "-1", "True", "True"):
                r.launch(
                    "void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>", Work(reads=(cubed,))
                )
            r.copy_out(tensor((), "bf16"))
            with r.plant("novel"):
                inner = ops.scalar(r, "mul", ops.binary(r, "add", x, ops.scalar(r, "mul", cubed)))
                grown = ops.scalar(r, "add", ops.unary(r, "tanh", inner))
                r.need(ops.binary(r, "mul", x, grown))


@case("crossing", MI300X)
def a_collective_between_gate_and_product(r: Recorder) -> None:
    """Gathered from other ranks in the middle: nothing is one kernel."""
    for layer in range(2):
        gate, up = tensor((8, 512, 4096), "bf16"), tensor((8, 512, 4096), "bf16")
        with r.module(f"ParallelMLP_{layer}"):
            active = ops.unary(r, "silu", gate)
            with r.op("c10d::allreduce_", [active], None):
                r.launch(kernels.COLLECTIVE["amd"], Work(reads=(active,), writes=(active,), ns=80_000))
            r.need(ops.binary(r, "mul", active, up))
