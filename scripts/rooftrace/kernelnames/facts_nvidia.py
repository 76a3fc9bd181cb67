"""Names of NVIDIA's GEMM, convolution and attention kernels: nvjet, xmma, CUTLASS, cuDNN, TensorRT-LLM."""

from __future__ import annotations

from rooftrace.kernelnames.lazy import LazyPattern
from rooftrace.kernelnames.model import KernelFacts

_TYPES = {
    "fp16": "float16",
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
    "f32": "float32",
    "fp32": "float32",
    "f64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "i8": "int8",
    "s8": "int8",
    "int8": "int8",
    "u8": "uint8",
    "s32": "int32",
}
# First letter of ``s16816gemm``: the accumulator. BLAS letters for kernels without a matrix instruction.
_ACCUMULATE = {"s": "float32", "h": "float16", "d": "float64", "i": "int32"}
_BLAS = {"s": "float32", "h": "float16", "d": "float64", "c": "complex64", "z": "complex128"}
_TYPE = r"(?:[bt]?fp?\d\d|e\dm\d|int8|[isu]\d+)"  # read loosely, looked up in `_TYPES`

_NVJET = LazyPattern(
    r"^nvjet_(?:(?P<sm>sm\d+a?)_)?[a-z]+_(?:mma_)?(?P<m>\d+)x(?P<n>\d+)"
    r"(?:_(?P<k>\d+)x(?P<stages>\d+)|x(?P<mma_k>\d+)_(?P<mma_stages>\d+))_\w*?_(?P<ab>[NT]{2})[NT]{0,2}$"
)
_XMMA = LazyPattern(
    rf"^(?P<sm>sm\d+)_xmma_(?P<op>gemm|fprop|dgrad|wgrad)_\w*?(?P<in>{_TYPE}){_TYPE}_(?P<math>{_TYPE}){_TYPE}_(?P<acc>{_TYPE})_"
    r"(?:(?P<a>[nt])(?P<b>[nt])_n|(?:nhwc|nchw)\w*?_(?P<layout>nhwc|nchw))_"
    r"tilesize(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?:stage(?P<stages>\d+)_)?"
)
_CUTLASS3 = LazyPattern(
    rf"cutlass3x_(?P<sm>sm\d+a?)_(?:bs)?tensorop_(?:\w*?_)?(?P<acc_letter>[shdi])\d+x\d+x\d+gemm_(?P<in>{_TYPE})_{_TYPE}_"
    rf"(?P<acc>{_TYPE})_\w+?_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_\d+x\d+x\d+_(?P<stages>\d+)_(?P<a>[nt])(?P<b>[nt])[nt]_"
)
_CUTLASS2 = LazyPattern(
    rf"cutlass_(?:(?P<sm>\d\d)_)?(?P<unit>wmma_tensorop|tensorop|simt)_(?:(?P<in>{_TYPE})_)?"
    r"(?P<letter>[shdciz])(?P<shape>\d+)?(?P<math>tf32|bf16|f16|f32)?(?P<op>gemm|fprop|dgrad|wgrad)_"
    rf"(?:\w*?_)??(?:(?P<in2>{_TYPE})_)?"
    r"(?P<m>\d+)x(?P<n>\d+)(?:_(?:sliced\w+_)?(?P<k>\d+)x(?P<stages>\d+))?_(?P<layout>nn|nt|tn|tt|nhwc|nchw)(?=_|$|>|:)"
)
_GENERATION = LazyPattern(
    rf"(?P<gen>maxwell|pascal|volta|turing|ampere|ada|hopper|sm\d\d)_(?:(?P<in>{_TYPE}|int8x?\d*)_)?"
    r"(?P<letter>[shdcizg]{1,2})(?P<shape>\d{3,6})?(?P<op>gemm|cudnn)_"
    rf"(?:(?P<in2>{_TYPE})_)?(?:winograd_)?(?P<m>\d+)x(?P<n>\d+)_(?P<rest>\w*)"
)
_GENERATION_STAGES = LazyPattern(r"stages_(\d+)x(\d+)_")
_LAYOUT_AT_END = LazyPattern(r"(?:^|_)(nn|nt|tn|tt)(?:_v\d)?$")
_TRTLLM_GEN = LazyPattern(
    r"\bbmm_\w*?_t(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:u\d+)?_s(?P<stages>\d+)_\w*?(?:_(?P<layout>TN|NN|NT|TT)_|$)"
)
_CUDNN_GENERATED = LazyPattern(r"cudnn_generated_\w*?_(?P<sm>sm\d+)_\w*?knob_\w*?_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_")
_FMHA_CUTLASS = LazyPattern(
    r"fmha_cutlass[FB]_(?P<in>bf16|f16|f32)_(?:not)?aligned_(?P<m>\d+)x(?P<n>\d+)_\w*?(?P<sm>sm\d+)"
)


def nvjet(plain: str) -> KernelFacts | None:
    """``nvjet_tst_128x160_64x6_1x2_h_bz_coopA_NNT``: m x n, k x stages, cluster, options, transposes.

    NB: the type letters (`tst`, `hsh`, `qqtst`) are not documented, so no precision is stated.
    """
    match = _NVJET.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"] or match["mma_k"])),
        splits_k="splitk" in plain.lower(),
        stages=int(match["stages"] or match["mma_stages"]),
        layout=match["ab"],
        architecture=match["sm"],
    )


def xmma(plain: str) -> KernelFacts | None:
    """``sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_stage3_…``.

    ``f32f32_tf32f32`` rounds fp32 inputs to tf32.
    """
    match = _XMMA.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"])),
        splits_k="splitk" in plain or "split_k" in plain,
        stages=int(match["stages"]) if match["stages"] else None,
        layout=(match["a"] + match["b"] if match["a"] else match["layout"]).upper(),
        precision="tfloat32" if match["math"] == "tf32" else _TYPES.get(match["in"]),
        accumulate=_TYPES.get(match["acc"]),
        architecture=match["sm"],
    )


def cutlass3(plain: str) -> KernelFacts | None:
    """``cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_ttn_…``.

    Stages of 0 mean that the library chose; a pingpong or cooperative schedule is persistent.
    """
    match = _CUTLASS3.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"])),
        stages=int(match["stages"]) or None,
        layout=(match["a"] + match["b"]).upper(),
        precision=_TYPES.get(match["in"]),
        accumulate=_TYPES.get(match["acc"]),
        architecture=match["sm"],
        persistent="persistent" in plain or "_pingpong" in plain or "_cooperative" in plain,
        stream_k="stream_k" in plain or "streamk" in plain,
    )


def cutlass2(plain: str) -> KernelFacts | None:
    """``cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8``.

    A tensor-core kernel without a type and with the 16x8x8 shape multiplies fp32 inputs as tf32.
    """
    match = _CUTLASS2.search(plain)
    if match is None:
        return None
    is_simt = match["unit"] == "simt"
    spelled = match["in"] or match["math"] or (match["in2"] if match["op"] != "gemm" else None)
    if spelled:
        precision = _TYPES.get(spelled)
    elif is_simt:
        precision = _BLAS.get(match["letter"])
    else:
        precision = "tfloat32" if match["letter"] == "s" and match["shape"] == "1688" else None
    tile = (int(match["m"]), int(match["n"]), *((int(match["k"]),) if match["k"] else ()))
    return KernelFacts(
        tile=tile,
        splits_k="splitk" in plain.lower(),
        stages=int(match["stages"]) if match["stages"] else None,
        layout=match["layout"].upper(),
        precision=precision,
        accumulate=(_BLAS if is_simt else _ACCUMULATE).get(match["letter"]),
        architecture=f"sm{match['sm']}" if match["sm"] else None,
    )


def by_generation(plain: str) -> KernelFacts | None:
    """``ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn``, ``volta_scudnn_128x64_relu_…_nn``."""
    match = _GENERATION.search(plain)
    if match is None:
        return None
    rest = match["rest"]
    stages = _GENERATION_STAGES.search(rest)
    layout = _LAYOUT_AT_END.search(rest)
    letter = match["letter"]
    has_matrix_unit = match["shape"] is not None
    spelled = match["in"] or match["in2"]
    if spelled:
        precision = "int8" if spelled.startswith("int8") else _TYPES.get(spelled)
    else:  # s1688gemm alone may be fp16, bf16 or tf32
        precision = None if has_matrix_unit and letter == "s" else _BLAS.get(letter[-1])
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), *((int(stages[1]),) if stages else ())),
        splits_k="splitk" in rest.lower(),
        stages=int(stages[2]) if stages else None,
        layout=layout[1].upper() if layout else None,
        precision=precision,
        accumulate=(_ACCUMULATE if has_matrix_unit else _BLAS).get(letter[-1]),
        architecture=match["gen"],
    )


def trtllm_gen(plain: str) -> KernelFacts | None:
    """``bmm_E4m3_E4m3E4m3_Fp32_t128x16x128_s7_…_TN_…``: the batched GEMMs of TensorRT-LLM's generator."""
    match = _TRTLLM_GEN.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"])),
        stages=int(match["stages"]),
        layout=match["layout"],
    )


def cudnn_generated(plain: str) -> KernelFacts | None:
    """``cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_…``."""
    match = _CUDNN_GENERATED.search(plain)
    if match is None:
        return None
    return KernelFacts(tile=(int(match["m"]), int(match["n"]), int(match["k"])), architecture=match["sm"])


def fmha_cutlass(plain: str) -> KernelFacts | None:
    """``fmha_cutlassF_bf16_aligned_64x128_rf_sm80``: memory-efficient attention of PyTorch and xFormers."""
    match = _FMHA_CUTLASS.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"])),
        precision=_TYPES[match["in"]],
        architecture=match["sm"],
    )
