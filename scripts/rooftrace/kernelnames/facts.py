"""What a kernel's name spells about how it works. A fact is stated only where the name says it.

One reader per naming scheme, chosen by a marker that only that scheme has. A name that follows none, or
breaks off in the middle, gives no facts rather than wrong ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.kernelnames import facts_amd, facts_nvidia, facts_templates
from rooftrace.kernelnames.model import NO_FACTS, KernelFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.kernelnames.text import NameText

# Real names of these schemes are shorter, but for Tensile's. The cap bounds what a hostile name can cost.
_MAX_READ = 640

# Marker in the plain name, and the reader of names that have it. The first that finds anything decides.
_READERS: tuple[tuple[str, Callable[[str], KernelFacts | None]], ...] = (
    ("at::native::", facts_templates.torch_native),
    ("Cijk_", facts_amd.tensile),
    ("igemm_", facts_amd.miopen_igemm),
    ("gemm_", facts_amd.aiter_gemm),
    ("nvjet_", facts_nvidia.nvjet),
    ("_xmma_", facts_nvidia.xmma),
    ("cutlass3x_", facts_nvidia.cutlass3),
    ("cutlass", facts_nvidia.cutlass2),
    ("bmm_", facts_nvidia.trtllm_gen),
    ("cudnn_generated_", facts_nvidia.cudnn_generated),
    ("fmha_cutlass", facts_nvidia.fmha_cutlass),
    ("gemm", facts_nvidia.by_generation),
    ("cudnn", facts_nvidia.by_generation),
    ("_matmul_ogs_", facts_templates.matmul_ogs),
    ("nccl", facts_templates.nccl),
    ("cublasGemvTensor", facts_templates.cublas_tensor),
    ("cublasSplitKParams", facts_templates.cublas_split_k),
    ("FlashAttn", facts_templates.flash_attention_3),
    ("kernel_traits<", facts_templates.flash_attention_2),
)


def read_facts(text: NameText) -> KernelFacts:
    """Facts that the name of `text` spells; `NO_FACTS` where it spells none."""
    plain = text.plain
    for marker, reader in _READERS:
        if marker in plain:
            facts = reader(plain if reader is facts_amd.tensile else plain[:_MAX_READ])
            if facts is not None:
                return facts
    return NO_FACTS
