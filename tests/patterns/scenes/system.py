"""Traces whose host, copies or collectives show a pattern."""

from __future__ import annotations

from tests.patterns.scenes.stage import Stage, scene
from tests.support.trace_builder import collective

KERNEL = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def blocked(stage: Stage, call: str, us: float, op: str | None = None) -> None:
    """The device runs dry while a call of the host lasts."""
    begin = stage.host
    stage.launch(call, ts=stage.host + 1, dur=us)
    stage.host += us + 2
    if op is not None:
        stage.op(op, begin, stage.host - begin)


def worked(stage: Stage, us: float = 60.0, count: int = 3) -> None:
    """Some kernels, queued at once."""
    for _ in range(count):
        stage.call("aten::mm", [(KERNEL, us)])


@scene("idle", "graph_capture_in_run")
def capturing() -> Stage:
    """A graph is made in every step."""
    stage = Stage()
    for number in range(4):
        with stage.step(number):
            worked(stage)
            stage.drained()
            blocked(stage, "cudaGraphInstantiate", 700)
            worked(stage)
            stage.drained()
    return stage


@scene("idle", "graph_launch")
def slow_graph_launch() -> Stage:
    """Launching takes longer than the graph runs, and happens when the device is idle."""
    stage = Stage()
    for _ in range(8):
        correlation = stage.launch("cudaGraphLaunch", ts=stage.host, dur=220)
        start = stage.host + 200
        for number in range(6):
            stage.kernel(KERNEL, start, 12, correlation=correlation, **{"graph node id": number + 1})
            start += 12
        stage.host = start + 5
    return stage


@scene("idle", "host_code_generated")
def compiled_prologue() -> Stage:
    """The wrapper of a compiled region works for 2 ms before its first launch."""
    stage = Stage()
    for _ in range(8):
        with stage.frame("/cache/torchinductor/ab/cabcdefg.py(912): call"):
            stage.rest(2000)
            worked(stage)
        stage.drained()
    return stage


@scene("idle", "pinned_allocation")
def pinning() -> Stage:
    """Pinned memory is made in the loop."""
    stage = Stage()
    for _ in range(6):
        worked(stage)
        stage.drained()
        blocked(stage, "cudaHostAlloc", 800, "aten::pin_memory")
    worked(stage)
    return stage


@scene("idle", "profiler_overhead")
def flushing() -> Stage:
    """The profiler flushes its buffers."""
    stage = Stage()
    for _ in range(6):
        worked(stage)
        stage.drained()
        stage.event(ph="X", cat="overhead", name="Buffer Flush", pid=4242, tid=1, ts=stage.host + 1, dur=500, args={})
        stage.host += 510
    worked(stage)
    return stage


@scene("idle", "sync_inside_op")
def checking_op() -> Stage:
    """An op of linear algebra reads its error code."""
    stage = Stage()
    for _ in range(6):
        worked(stage)
        begin = stage.host
        stage.launched("void potrf_kernel<float>", 80)
        end = max(stage.gpu.values())
        stage.launch("cudaStreamSynchronize", ts=stage.host, dur=end + 5 - stage.host)
        stage.host = end + 40
        stage.op("aten::linalg_cholesky", begin, stage.host - begin)
    worked(stage)
    return stage


@scene("idle", "waits_for_stream")
def handed_over() -> Stage:
    """Two streams take turns; each waits for the other's event, 40 µs each time."""
    stage = Stage()
    end = 20.0
    for number in range(30):
        stream = 7 if number % 2 else 20
        record = stage.launch("cudaEventRecord", ts=stage.host, dur=1)
        stage.host += 1.5
        wait = stage.launch("cudaStreamWaitEvent", ts=stage.host, dur=1)
        stage.sync(ts=stage.host, stream=stream, wait_stream=27 - stream, wait_record=record, correlation=wait)
        stage.host += 1.5
        correlation = stage.launch(ts=stage.host, dur=2)
        stage.host += 3
        stage.kernel(KERNEL, end, 60, stream, correlation=correlation)
        end += 69
    return stage


def copied(stage: Stage, direction: str, us: float, nbytes: int, **more: object) -> None:
    """An asynchronous copy on its own or the kernels' stream."""
    stream = int(str(more.pop("stream", 7)))
    device = int(str(more.pop("device", 0)))
    op = str(more.pop("op", "aten::copy_"))
    begin = stage.host
    call = stage.launch("cudaMemcpyAsync", ts=stage.host + 1, dur=3)
    stage.host += 6
    start = max(stage.host, stage.gpu.get(stream, 0.0))
    stage.memcpy(direction, start, us, bytes=nbytes, stream=stream, device=device, correlation=call)
    stage.gpu[stream] = start + us
    stage.op(op, begin, stage.host - begin)


@scene("multi_kernel", "copies_on_compute_stream")
def copies_in_line() -> Stage:
    """Pinned batches on the stream of the kernels: 8 MB at 50 GB/s."""
    stage = Stage()
    for _ in range(8):
        copied(stage, "HtoD", 160, 8_000_000)
        worked(stage)
    return stage


@scene("multi_kernel", "dtoh_in_loop")
def results_read_back() -> Stage:
    """Pinned results in every step."""
    stage = Stage()
    for _ in range(8):
        worked(stage)
        copied(stage, "DtoH", 160, 8_000_000)
    return stage


@scene("multi_kernel", "peer_copies")
def layers_on_two_gpus() -> Stage:
    """Activations go from one GPU to the other."""
    stage = Stage()
    for _ in range(8):
        worked(stage)
        copied(stage, "PtoP", 200, 16_000_000)
    return stage


@scene("multi_kernel", "small_copies")
def many_scalars() -> Stage:
    """Sixty copies of eight bytes a step, from one op of the program's own."""
    stage = Stage()
    for _ in range(4):
        worked(stage)
        for number in range(60):
            copied(stage, "HtoD", 3, 8 + 8 * number)
    return stage


@scene("multi_kernel", "repeated_transfers")
def same_mask_again() -> Stage:
    """The same mask is copied for every layer."""
    stage = Stage()
    for number in range(4):
        with stage.step(number):
            for _ in range(6):
                copied(stage, "HtoD", 30, 1_500_000)
                worked(stage, 40, 1)
            stage.rest(20)
    return stage


@scene("multi_kernel", "repeated_transfers_in_frame")
def same_line_again() -> Stage:
    """The same, with the line that does it."""
    stage = Stage()
    for number in range(4):
        with stage.step(number):
            for _ in range(6):
                with stage.frame("model.py(41): forward"):
                    copied(stage, "HtoD", 30, 1_500_000)
                worked(stage, 40, 1)
            stage.rest(20)
    return stage


def exchanged(stage: Stage, kernel: str, us: float, ops: tuple[str, ...], described: dict[str, object]) -> None:
    """A collective on a stream of its own, which the next kernels wait for; ``ops`` are open, outermost first."""
    begin = stage.host
    stage.host += len(ops)
    correlation = stage.launch(ts=stage.host, dur=2)
    stage.host += 3
    start = max(stage.gpu.values(), default=stage.host)
    stage.kernel(kernel, max(start, stage.host), us, 20, correlation=correlation, **described)
    stage.gpu[20] = stage.gpu[7] = max(start, stage.host) + us
    for depth, name in enumerate(ops):
        stage.op(name, begin + 0.5 * depth, stage.host - begin - 0.5 * depth + 1 - 0.25 * depth)
    stage.host += 1


@scene("multi_kernel", "expert_exchange")
def tokens_sent_to_experts() -> Stage:
    """An all-to-all before and after the experts."""
    stage = Stage()
    described = collective("all_to_allv", 16_000_000, dtype="BFloat16", ranks=tuple(range(8)))
    for _ in range(8):
        worked(stage)
        exchanged(stage, SEND_RECV, 180, ("MoEDispatch", "c10d::alltoall_base_", "nccl:all_to_all"), described)
    worked(stage)
    return stage


@scene("multi_kernel", "pipeline_transfers")
def stages_of_a_pipeline() -> Stage:
    """Activations received from the stage before."""
    stage = Stage()
    described = collective("send", 8_000_000, dtype="BFloat16", ranks=(0, 1))
    for _ in range(8):
        worked(stage)
        exchanged(stage, SEND_RECV, 180, ("c10d::recv_", "nccl:recv 0<-1"), described)
    worked(stage)
    return stage


@scene("multi_kernel", "serving_all_reduce")
def tensor_parallel_serving() -> Stage:
    """The engine's custom all-reduce after every layer."""
    stage = Stage()
    for _ in range(12):
        worked(stage, 20)
        exchanged(stage, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", 25, ("vllm::all_reduce",), {})
    worked(stage)
    return stage


@scene("multi_kernel", "sharded_parameters")
def gathered_parameters() -> Stage:
    """Parameters of each unit are gathered before it runs."""
    stage = Stage()
    described = collective("_allgather_base", 64_000_000, dtype="BFloat16", ranks=tuple(range(8)))
    for _ in range(8):
        ops = ("FullyShardedDataParallel.forward", "c10d::_allgather_base_", "nccl:_all_gather_base")
        exchanged(stage, ALL_GATHER, 220, ops, described)
        worked(stage)
    return stage
