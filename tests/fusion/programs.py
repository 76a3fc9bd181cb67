"""Small programs with modules, views and kernels, as the reader gives them to the fusion analysis."""

from __future__ import annotations

from contextlib import contextmanager

from rooftrace import platforms
from rooftrace.calltree import build_context, build_tree, collect_activities
from rooftrace.fusion import FusionInputs
from tests.support.trace_builder import TraceBuilder

BF16, F32, I64, BOOL = "c10::BFloat16", "float", "long int", "bool"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 2ul> >"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float>>>"
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"
ADD = ELEMENTWISE.format("CUDAFunctor_add<float>")
MUL = ELEMENTWISE.format("BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >")
COPY = ELEMENTWISE.format("direct_copy_kernel_cuda")
OTHER = ELEMENTWISE.format("some_kernel_cuda")


class Model(TraceBuilder):
    """Calls one after the other, 10 µs of host each; kernels run back to back on one stream."""

    def __init__(self, gpu="NVIDIA H100 80GB HBM3"):
        super().__init__()
        if gpu:
            self.device(None if "H100" in gpu else gpu)
        self.host, self.gpu = 10.0, 1000.0
        self.thread = 1

    def _host(self, cat, name, ts, dur, tid, args):  # noqa: ARG002 - the model's own thread counts
        super()._host(cat, name, ts, dur, self.thread, args)

    @contextmanager
    def module(self, name):
        """A module instance around the calls made inside."""
        start = self.host
        self.host += 1
        yield
        self.host += 1
        self.python(f"nn.Module: {name}", ts=start, dur=self.host - start)
        self.host += 1

    @contextmanager
    def frame(self, name):
        """A Python function of the user's around the calls made inside."""
        start = self.host
        self.host += 1
        yield
        self.host += 1
        self.python(name, ts=start, dur=self.host - start)
        self.host += 1

    def call(self, name, dur, *tensors, kernel=OTHER, stream=7, scalars=(), **more):
        """An op that reads ``tensors`` (shape, type) and launches one kernel of ``dur`` µs."""
        self.op(name, self.host, 8, **recorded(tensors, scalars))
        correlation = self.launch(ts=self.host + 2, dur=3)
        self.kernel(kernel, ts=self.gpu, dur=dur, stream=stream, correlation=correlation, **more)
        self.gpu += dur
        self.host += 10

    def view(self, name, tensor, *scalars):
        """An op that launches nothing."""
        self.op(name, self.host, 2, **recorded((tensor,), scalars))
        self.host += 3

    def copy_between(self, direction, dur=5):
        """A copy that the host asks for."""
        self.op("aten::copy_", self.host, 8)
        correlation = self.launch("cudaMemcpyAsync", ts=self.host + 2, dur=3)
        self.memcpy(direction, ts=self.gpu, dur=dur, correlation=correlation, bytes=4096)
        self.gpu += dur
        self.host += 10

    def bare(self, kernel, dur, **more):
        """A kernel without any host record."""
        self.kernel(kernel, ts=self.gpu, dur=dur, **more)
        self.gpu += dur


class Alternating(Model):
    """Kernels of threads 1 and 2 alternate on their stream: 30 µs apart, 60 those of one thread."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def switch(self, thread):
        """Go on as another thread, which begins at the same time."""
        self.thread, self.count, self.host = thread, 0, 10.0

    def kernel(self, name, ts, dur, **more):  # noqa: ARG002 - its turn says when
        """A kernel in its thread's turn."""
        super().kernel(name, ts=1000 + 30 * (2 * self.count + self.thread), dur=dur, **more)
        self.count += 1


def recorded(tensors, scalars=()):
    """Kineto's lists of inputs: tensors, lists of tensors (as lists), then scalars."""
    dims = [t[0] if isinstance(t, tuple) else [shape for shape, _ in t] for t in tensors] + [[] for _ in scalars]
    types = [t[1] if isinstance(t, tuple) else "TensorList" for t in tensors] + ["Scalar" for _ in scalars]
    concrete = ["" for _ in tensors] + [str(value) for value in scalars]
    return {"dims": dims, "types": types, "concrete": concrete}


def inputs_of(builder, platform="h100-sxm"):
    """What candidates are found from."""
    trace = builder.build()
    tree = build_tree(trace)
    return FusionInputs(
        trace=trace,
        tree=tree,
        context=build_context(trace, tree),
        activities=collect_activities(trace, tree),
        platform=platforms.load_platform(platform) if platform else None,
    )


X, ROWS = ([8192, 1024], F32), ([8192, 1], F32)
HALF = ([8192, 1024], BF16)


def rms_norm(model, instance=0, name="LlamaRMSNorm"):
    """RMSNorm as Transformers writes it: eight kernels, 20 + 20 + 10 + 2 + 2 + 20 + 15 + 15 = 104 µs."""
    with model.module(f"{name}_{instance}"):
        model.call("aten::copy_", 20, X, HALF, kernel=COPY, scalars=("False",))
        model.call("aten::pow", 20, X, scalars=("2",))
        model.op(
            "aten::mean",
            model.host,
            8,
            dims=[[8192, 1024], [], [], []],
            types=[F32, "ScalarList", "Scalar", ""],
            concrete=["", "[-1]", "True", ""],
        )
        correlation = model.launch(ts=model.host + 2, dur=3)
        model.kernel(REDUCE, ts=model.gpu, dur=10, correlation=correlation)
        model.gpu, model.host = model.gpu + 10, model.host + 10
        model.call("aten::add", 2, ROWS, kernel=ADD, scalars=("1e-6", "1"))
        model.call("aten::rsqrt", 2, ROWS)
        model.call("aten::mul", 20, X, ROWS, kernel=MUL)
        model.call("aten::copy_", 15, HALF, X, kernel=COPY, scalars=("False",))
        model.call("aten::mul", 15, ([1024], BF16), HALF, kernel=MUL)
