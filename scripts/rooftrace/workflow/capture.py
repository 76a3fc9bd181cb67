"""Words for what a recording lacks, in the options of the profiler that wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.trace.formats import chrome, legacy_autograd, nsys_json, nsys_sqlite, rocprofv3, xla_chrome, xplane

if TYPE_CHECKING:
    from rooftrace.trace import Trace


class Recorder(Struct, frozen=True, kw_only=True):
    """Options of one profiler: what records the GPU, and a sentence each for ops, shapes, stacks and a light capture.

    Sentences that follow another begin with a space; an empty one says that nothing can be done with this tool.
    """

    gpu: str
    ops: str
    shapes: str
    stacks: str
    light: str


_TORCH = Recorder(
    gpu="ProfilerActivity.CUDA",
    ops="",
    shapes=" Profile with record_shapes=True.",
    stacks=" Profile with with_stack=True.",
    light="Capture again with record_shapes=False and with_stack=False before acting on findings about the host.",
)
_NSYS = Recorder(
    gpu="`nsys profile --trace=cuda,nvtx`",
    ops=" Run the loop under `torch.autograd.profiler.emit_nvtx()` and record with `nsys profile --trace=cuda,nvtx`.",
    shapes=" Run the loop under `torch.autograd.profiler.emit_nvtx(record_shapes=True)` and record with "
    "`nsys profile --trace=cuda,nvtx`.",
    stacks=" Put NVTX ranges round modules; stacks of Python are read from profiles of torch.profiler only.",
    light="Capture again with `nsys profile --trace=cuda --sample=none`, without emit_nvtx, before acting on findings "
    "about the host.",
)
_ROCPROF = Recorder(
    gpu="`rocprofv3 --kernel-trace --hip-trace --memory-copy-trace --output-format json`",
    ops=" Run the loop under `torch.autograd.profiler.emit_nvtx()` and add `--marker-trace` to `rocprofv3 "
    "--kernel-trace --hip-trace --memory-copy-trace`.",
    shapes=" Run the loop under `torch.autograd.profiler.emit_nvtx(record_shapes=True)` and add `--marker-trace` to "
    "`rocprofv3 --kernel-trace --hip-trace --memory-copy-trace`.",
    stacks=" Put ROCTx ranges round modules (`--marker-trace`); stacks of Python are read from profiles of "
    "torch.profiler only.",
    light="Capture again with `rocprofv3 --kernel-trace --hip-trace` alone before acting on findings about the host.",
)
_XLA = Recorder(
    gpu="`jax.profiler.start_trace` in the process that runs on the GPU",
    ops=" Put `jax.profiler.TraceAnnotation` round the stages of the program.",
    shapes=" XLA's profile holds none: they stand in the HLO (`XLA_FLAGS=--xla_dump_to=DIR`).",
    stacks=" Raise `python_tracer_level` of `jax.profiler.ProfileOptions`, for a step or two.",
    light="Capture again with `python_tracer_level` of `jax.profiler.ProfileOptions` at zero before acting on findings "
    "about the host.",
)
_OTHER = Recorder(
    gpu="the GPU's activity (`rocprofv3 --kernel-trace --hip-trace`, ProfilerActivity.CUDA of torch.profiler)",
    ops=" Ops are recorded by torch.profiler with ProfilerActivity.CPU.",
    shapes=" Shapes are recorded by torch.profiler with record_shapes=True.",
    stacks=" Stacks are recorded by torch.profiler with with_stack=True.",
    light="Capture again with the lightest settings of the profiler before acting on findings about the host.",
)
# By the layout that the reader tells; torch.profiler's files are called by their JSON alone.
_BY_LAYOUT = {
    nsys_json.NAME: _NSYS,
    nsys_sqlite.NAME: _NSYS,
    rocprofv3.NAME: _ROCPROF,
    xla_chrome.NAME: _XLA,
    xplane.NAME: _XLA,
    chrome.NAME: _OTHER,
    legacy_autograd.NAME: _TORCH,
}


def recorder_of(trace: Trace) -> Recorder:
    """The profiler that wrote a trace."""
    return _BY_LAYOUT.get(trace.layout, _TORCH)
