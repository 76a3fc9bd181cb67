"""Advice to do what the evidence shows as done, or what the GPU cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.report.grounding.wording import Wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.report.grounding.grounds import AnyFinding, Basis, Slot

_ADVISING = ("action", "resolution", "summary")
_DO = Wording(
    r"\b(?:use|using|enable|allow|turn on|switch\w*|adopt|move|set|call|replace|convert|try|add|apply|capture|wrap|run"
    r"|put|fuse|compile|pin)\b",
    ("",),
)
_TAKEN_BACK = Wording(
    r"\b(?:already|no need|not needed|do not|don't|is on|are on|is enabled|without|instead of|stays?|keep)\b", ("",)
)
_HALF = ("bfloat16", "float16")


class _Advice(Struct, frozen=True, kw_only=True):
    """What is advised, when the evidence shows it as done, and how the refusal says so."""

    wording: Wording
    is_done: Callable[[AnyFinding], bool]
    why: str
    unless: Wording | None = None


def _advice(words: str, is_done: Callable[[AnyFinding], bool], why: str, unless: Wording | None = None) -> _Advice:
    return _Advice(wording=Wording(words, ("",)), is_done=is_done, why=why, unless=unless)


def _holds(name: str) -> Callable[[AnyFinding], bool]:
    return lambda finding: finding.evidence.get(name) is True


def _is_without_tf32(finding: AnyFinding) -> bool:
    """Known not to have it: where the GPU is unknown nothing is claimed."""
    return bool(finding.evidence.get("gpu_name")) and finding.evidence.get("gpu_tf32") is False


def _is_fused_attention(finding: AnyFinding) -> bool:
    return finding.category == "attention" and finding.evidence.get("fused") is True


def _is_half(finding: AnyFinding) -> bool:
    return finding.evidence.get("precision") in _HALF


def _is_channels_last(finding: AnyFinding) -> bool:
    if finding.evidence.get("channels_last") is True:
        return True
    kernel = str(finding.evidence.get("top_kernel", "")).lower()
    return "nhwc" in kernel and finding.evidence.get("layout_ms") == 0


def _is_generated(finding: AnyFinding) -> bool:
    return finding.category == "triton" and str(finding.evidence.get("top_kernel", "")).startswith("triton_")


_ADVISED = (
    _advice(
        r"scaled_dot_product_attention|\bSDPA\b|\bfused attention\b|\bflash[- ]?attention\b(?![- ]?[34])"
        r"|\bfuse\b[^.;]*\battention\b",
        _is_fused_attention,
        "the attention kernels are fused already; advise another backend or version by name, or other shapes",
        Wording(r"\b(?:backends?|compare|newer|version|package|CK|AITER|cuDNN|FlashInfer)\b", ("",)),
    ),
    _advice(
        r"\bTF32\b|allow_tf32|set_float32_matmul_precision",
        _holds("tf32"),
        "TF32 is on: the kernel's name shows it",
    ),
    _advice(
        r"\bTF32\b|allow_tf32|set_float32_matmul_precision",
        _is_half,
        "the products run in 16 bits already; TF32 would be a step back",
    ),
    _advice(
        r"\bTF32\b|allow_tf32|set_float32_matmul_precision",
        _is_without_tf32,
        "this GPU has no TF32, as far as the evidence tells",
    ),
    _advice(
        r"\bautocast\b|\bmixed precision\b|\bAMP\b"
        r"|\b(?:in|to|use|using) (?:bf16|fp16|bfloat16|float16|half precision)\b",
        _is_half,
        "it runs in 16 bits already",
    ),
    _advice(
        r"\bchannels[-_ ]last\b|\bNHWC\b",
        _is_channels_last,
        "the kernels run on channels-last data and no layout change is among them",
    ),
    _advice(
        r"\b(?:CUDA|HIP) ?graphs?\b|\bgraph capture\b|torch\.cuda\.(?:CUDAGraph|graph)|reduce-overhead"
        r"|make_graphed_callables",
        _holds("graph_replayed"),
        "these kernels are launched by a graph already",
    ),
    _advice(
        r"\bfused=True|\bfused optimi[sz]er\b|\bFusedAdam\b",
        lambda finding: "optimizer_fused" in finding.patterns,
        "the optimizer is fused already",
    ),
    _advice(
        r"torch\.compile(?!\()|torch\.compile\((?!mode)",
        _is_generated,
        "these kernels come from the compiler already; advise a mode or a change of the graph",
    ),
    _advice(
        r"\bpin_memory\b|\bpinned\b|\bpin the\b",
        lambda finding: finding.evidence.get("pageable_ms") == 0 and finding.evidence.get("memory") != "unknown",
        "no copy goes through pageable memory",
    ),
)


def needless_advice(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Advice that the finding's evidence (for a summary: that of all its findings) shows as done."""
    if slot.name not in _ADVISING:
        return
    findings = [slot.finding] if slot.finding else grounds.findings_of(slot.analyzer)
    if not findings:
        return
    done = [advice for advice in _ADVISED if all(advice.is_done(finding) for finding in findings)]
    for sentence in slot.text.sentences if done else ():
        words = slot.text.spelled(sentence)
        for advice in done:
            match = advice.wording.search(words)
            if match and _is_meant(advice, words):
                yield f"“{match.group()}”: {advice.why}"


def _is_meant(advice: _Advice, words: str) -> bool:
    """Whether the sentence advises it, and does not say that it is done or name a variant."""
    if not _DO.search(words) or _TAKEN_BACK.search(words):
        return False
    return advice.unless is None or not advice.unless.search(words)
