"""Three runs small enough to read: what is recorded, and why each case is there."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.trace_builder import TraceBuilder

GEMM = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_"
    "execute_segment_k_off_kernel__5x_cublas"
)
RELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar"
    "(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}, "
    "std::array<char*, 2ul> >(int, at::native::(anonymous namespace)::launch_clamp_scalar, std::array<char*, 2ul>)"
)
SGD = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::TensorListMetadata<2> >()"


def gpu_training() -> TraceBuilder:
    """Two steps of one layer with shapes and modules: copy, forward, backward, optimizer, then a wait for the host.

    The forward product takes 40 us; its floor on the platform is far less, so it becomes a finding.
    """
    #          0      100    200    300    400 us   (one step; the second begins at 500)
    # stream 7  [copy][addmm ][relu]  [mm]   [sgd]
    trace = TraceBuilder()
    trace.device()
    trace.header(record_shapes=1, with_stack=1)
    for number in (0, 1):
        _training_step(trace, number, 500.0 * number)
    return trace


def _training_step(trace: TraceBuilder, number: int, at: float) -> None:
    trace.annotation(f"ProfilerStep#{number}", at, 460)
    trace.python("train.py(10): main", at + 1, 455)
    copy = trace.launch("cudaMemcpyAsync", ts=at + 4, dur=3)
    trace.memcpy("HtoD", at + 10, 20, bytes=524_288, correlation=copy)
    trace.python("nn.Module: Linear_0", at + 20, 60)
    trace.op(
        "aten::addmm",
        at + 25,
        20,
        dims=[[1024], [512, 1024], [1024, 1024], [], []],
        types=["c10::BFloat16"] * 3 + ["Scalar"] * 2,
        sequence=7 + number,
    )
    trace.kernel(GEMM, at + 60, 40, correlation=trace.launch(ts=at + 30, dur=4))
    trace.op("aten::relu", at + 90, 15, dims=[[512, 1024]], types=["c10::BFloat16"], sequence=8 + number)
    trace.kernel(RELU, at + 120, 4, correlation=trace.launch(ts=at + 95, dur=4))
    trace.op("autograd::engine::evaluate_function: AddmmBackward0", at + 140, 60, tid=2, sequence=7 + number)
    trace.op("aten::mm", at + 150, 30, tid=2, dims=[[1024, 512], [512, 1024]], types=["c10::BFloat16"] * 2)
    trace.kernel(GEMM, at + 200, 25, correlation=trace.launch(ts=at + 160, dur=4, tid=2))
    trace.annotation("Optimizer.step#SGD.step", at + 260, 120)
    parameters = [[[1024, 1024], [1024]], [[1024, 1024], [1024]], []]
    trace.op("aten::_foreach_add_", at + 270, 40, dims=parameters, types=["TensorList", "TensorList", "Scalar"])
    trace.kernel(SGD, at + 300, 12, correlation=trace.launch(ts=at + 280, dur=4))


def cpu_only() -> TraceBuilder:
    """Two steps without a GPU: the report has a host section and no findings."""
    trace = TraceBuilder()
    for number in (0, 1):
        at = 1000.0 * number
        trace.annotation(f"ProfilerStep#{number}", at, 900)
        trace.op("aten::linear", at + 10, 600, dims=[[64, 128], [128, 128]], types=["float", "float"])
        trace.op("aten::addmm", at + 20, 550, dims=[[128], [64, 128], [128, 128]], types=["float"] * 3)
        trace.op("aten::relu", at + 650, 100, dims=[[64, 128]], types=["float"])
    return trace


def graph_replay() -> TraceBuilder:
    """Three replays of one graph: kernels with names and neither ops nor shapes; one collective, partly hidden."""
    #            0    10   20   30   40
    # stream 7    [gemm   ][relu]            compute 8 + 2 = 10 us a replay
    # stream 9          [all-reduce  ]       12 us, of which 12 - 5 = 7 us are exposed
    trace = TraceBuilder()
    trace.device()
    trace.header(distributedInfo={"backend": "nccl", "rank": 1, "world_size": 2, "nccl_version": "2.21.5"})
    for number in range(3):
        at = 100.0 * number
        replay = trace.launch("cudaGraphLaunch", ts=at, dur=5, cbid=311)
        trace.kernel(GEMM, at + 10, 8, correlation=replay, **{"graph node id": 1})
        trace.kernel(RELU, at + 18, 2, correlation=replay, **{"graph node id": 2})
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        trace.kernel(name, at + 15, 12, stream=9, correlation=replay, **{"graph node id": 3})
    return trace


CASES: dict[str, Callable[[], TraceBuilder]] = {
    "gpu_training": gpu_training,
    "cpu_only": cpu_only,
    "graph_replay": graph_replay,
}
