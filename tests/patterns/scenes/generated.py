"""Traces of experts, and of Triton kernels that the compiler or a person wrote."""

from __future__ import annotations

from tests.patterns.scenes.stage import BF16, F32, I64, MI300X, Input, Stage, scene

FUSED_MOE = "fused_moe_kernel"


def experts(stage: Stage, tokens: int, us: float, *, kernel: str = FUSED_MOE, calls: int = 6) -> None:
    """Eight experts of width 4,096 and 14,336, two a token, in one op with two products."""
    inputs: tuple[Input, ...] = (
        ((tokens, 4096), BF16),
        ((8, 28672, 4096), BF16),
        ((8, 4096, 14336), BF16),
        ((tokens, 2), F32),
        ((tokens, 2), I64),
    )
    for _ in range(calls):
        stage.call("vllm::fused_experts", [(kernel, 0.7 * us), (kernel, 0.3 * us)], inputs)


@scene("moe", "compute_bound_experts")
def many_tokens() -> Stage:
    """8,192 tokens x 2 x 3 x 2 x 4,096 x 14,336 = 5.8 TFLOP: 7.3 ms at 795 TFLOP/s."""
    stage = Stage()
    experts(stage, 8192, 14_000, kernel="cutlass_grouped_moe_gemm_kernel", calls=3)
    return stage


@scene("moe", "memory_bound_experts")
def few_tokens() -> Stage:
    """64 tokens reach all eight experts: 2.8 GB, 0.89 ms at 3.2 TB/s."""
    stage = Stage()
    experts(stage, 64, 1200, kernel="cutlass_grouped_moe_gemm_kernel")
    return stage


@scene("moe", "triton_experts_nvidia")
def default_tiles() -> Stage:
    """The same at 42 % of the roofline, with the engine's own kernel."""
    stage = Stage()
    experts(stage, 64, 2100)
    return stage


@scene("moe", "triton_experts_amd")
def default_tiles_on_instinct() -> Stage:
    """2.8 GB take 0.66 ms at 4.3 TB/s."""
    stage = Stage(MI300X)
    experts(stage, 64, 1600)
    return stage


@scene("moe", "latency_bound_experts")
def tiny_experts() -> Stage:
    """Four experts of width 128 and 64 for four tokens: less than a kernel's fixed cost."""
    stage = Stage()
    inputs: tuple[Input, ...] = (
        ((4, 128), BF16),
        ((4, 128, 128), BF16),
        ((4, 128, 64), BF16),
        ((4, 2), F32),
        ((4, 2), I64),
    )
    for _ in range(20):
        stage.call("vllm::fused_experts", [(FUSED_MOE, 4), (FUSED_MOE, 4)], inputs)
    return stage


@scene("moe", "uneven_calls")
def uneven_experts() -> Stage:
    """Equal shapes; every third call has one full expert."""
    stage = Stage()
    for number in range(12):
        experts(stage, 512, 2000 if number % 3 else 6000, kernel="cutlass_grouped_moe_gemm_kernel", calls=1)
    return stage


@scene("moe", "routing_kernels")
def routing() -> Stage:
    """Top-k, alignment and sum as ops of their own."""
    stage = Stage()
    for _ in range(10):
        inputs: tuple[Input, ...] = (((4096, 2), F32), ((4096, 2), I64), ((4096, 2), I64), ((4096, 128), F32))
        stage.call("_moe_C::topk_softmax", [("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16>", 40)], inputs)
    return stage


@scene("moe", "unfused_experts")
def loop_over_experts() -> Stage:
    """An op that calls two products and a gather for each of eight experts."""
    stage = Stage()
    kernels = [(f"expert_gemm_kernel<{number % 3}>", 12.0) for number in range(24)]
    for _ in range(4):
        stage.call("vllm::moe_forward", kernels)
    return stage


def generated(stage: Stage, name: str, us: float, calls: int) -> None:
    """Calls of one kernel without recorded arguments."""
    for _ in range(calls):
        stage.call(name, [(name, us)])


@scene("triton", "nameless")
def nameless() -> Stage:
    """All kernels are called alike."""
    stage = Stage()
    generated(stage, "triton__0d1d2d3d", 40, 12)
    return stage


@scene("triton", "template")
def template() -> Stage:
    """A template of an op that is not known."""
    stage = Stage()
    generated(stage, "triton_tem_fused_my_product_3", 200, 6)
    return stage


@scene("triton", "undecoded")
def undecoded() -> Stage:
    """A reduction over a custom op."""
    stage = Stage()
    for _ in range(6):
        stage.launched("triton_red_fused_my_custom_op_2", 80)
    return stage


@scene("triton", "handwritten")
def handwritten() -> Stage:
    """A kernel that somebody wrote."""
    stage = Stage()
    generated(stage, "triton_my_attention_bias", 120, 6)
    return stage


@scene("triton", "many_small")
def many_small() -> Stage:
    """120 kernels of 4 µs."""
    stage = Stage()
    generated(stage, "triton_my_update", 4, 120)
    return stage


@scene("triton", "uneven_calls")
def tuning() -> Stage:
    """A search over configurations: the same kernel, good and bad."""
    stage = Stage()
    for number in range(12):
        generated(stage, "triton_my_search", 50 + 40 * (number % 4), 1)
    return stage


@scene("triton", "replayed")
def replayed() -> Stage:
    """Kernels of a replayed graph."""
    stage = Stage()
    for _ in range(4):
        correlation = stage.launch("cudaGraphLaunch", ts=stage.host, dur=8)
        stage.host += 10
        for number in range(6):
            start = max(stage.host, stage.gpu.get(7, 0.0))
            stage.kernel(
                f"triton_my_part_{number % 2}", start, 60, correlation=correlation, **{"graph node id": number + 1}
            )
            stage.gpu[7] = start + 60
    return stage
