"""Names of AMD's libraries: Tensile (rocBLAS, hipBLASLt), MIOpen's implicit GEMM, AITER's assembly GEMMs."""

from __future__ import annotations

from rooftrace.kernelnames.lazy import LazyPattern
from rooftrace.kernelnames.model import KernelFacts

# Letters of Tensile's DataType.
_TENSILE_TYPES = {
    "H": "float16",
    "B": "bfloat16",
    "S": "float32",
    "D": "float64",
    "C": "complex64",
    "Z": "complex128",
    "I": "int32",
    "I8": "int8",
    "F8": "float8_e4m3fn",
    "B8": "float8_e5m2",
    "F8N": "float8_e4m3fnuz",
    "B8N": "float8_e5m2fnuz",
}
_T = r"(?:F8N|B8N|F8|B8|I8|[HBSDCZI])"
_TENSILE = LazyPattern(
    # A and B: the index named first is contiguous. Types: input, then output and compute where they differ;
    # then the letters B (beta) and H (high-precision accumulation). `MX` after S: fp32 rounded to tf32.
    rf"Cijk_(?P<a>Ailk|Alik)_(?P<b>Bljk|Bjlk)_(?P<in>{_T})_?(?P<mx>MX)?(?:{_T}(?P<acc>{_T}))?_?BH?_"
    r"(?:\w*?_)?MT(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_"
)
_GSU = LazyPattern(r"_GSU(\d+)_")
_STREAM_K = LazyPattern(r"_SK([1-9])_")
_PERSISTENT = LazyPattern(r"_PK([1-9]\d*)_")
_ISA = LazyPattern(r"_ISA([0-9a-f]{3,4})_")
_IGEMM = LazyPattern(
    r"igemm_(?:fwd|bwd|wrw)_gtc\w*?_(?P<layout>nchw|nhwc)_(?P<type>fp32|fp16|bf16)_\w*?bt(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_"
)
_IGEMM_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_AITER = LazyPattern(r"(?P<in>bf16|fp16)gemm_(?:out)?(?:bf16|f32|fp32)_(?P<layout>tn|nn|nt|tt)_(?P<m>\d+)x(?P<n>\d+)")


def tensile(plain: str) -> KernelFacts | None:
    """``Cijk_Ailk_Bljk_HHS_BH_…_MT128x128x32_…_GSU1_…_SK3_…``."""
    match = _TENSILE.search(plain)
    if match is None:
        return None
    gsu = _GSU.search(plain)
    isa = _ISA.search(plain)
    precision = "tfloat32" if match["mx"] else _TENSILE_TYPES[match["in"]]
    factor = int(gsu[1]) if gsu else None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"])),
        split_k=factor,
        splits_k=factor is not None and factor > 1,
        layout=("N" if match["a"] == "Ailk" else "T") + ("N" if match["b"] == "Bljk" else "T"),
        precision=precision,
        accumulate=_TENSILE_TYPES[match["acc"]] if match["acc"] else None,
        architecture=f"gfx{isa[1]}" if isa else None,
        persistent=_PERSISTENT.search(plain) is not None,
        stream_k=_STREAM_K.search(plain) is not None,
    )


def miopen_igemm(plain: str) -> KernelFacts | None:
    """``igemm_fwd_gtcx2_nhwc_bf16_…_bt128x128x32_…_gkgs``; the suffix means that K is split over the grid."""
    match = _IGEMM.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"])),
        splits_k=plain.endswith("_gkgs"),
        layout=match["layout"].upper(),
        precision=_IGEMM_TYPES[match["type"]],
    )


def aiter_gemm(plain: str) -> KernelFacts | None:
    """``aiter::bf16gemm_outf32_tn_96x64_pf3_splitk``."""
    match = _AITER.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"])),
        splits_k="splitk" in plain.lower(),
        layout=match["layout"].upper(),
        precision=_IGEMM_TYPES[match["in"]],
    )
