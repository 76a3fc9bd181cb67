"""One colour a category and part, the same in every plot.

For light ground; lightness differs as well as hue, for eyes that mix up red and green.
"""

from __future__ import annotations

COLOURS = {
    "gemm": "#1f5fa8",
    "attention": "#5b3f99",
    "moe": "#8c5fc0",
    "convolution": "#2a86c9",
    "elementwise": "#2f8f5b",
    "memory": "#6f9c33",
    "optimizer": "#8f8b1f",
    "quantization": "#4f6f27",
    "reduction": "#1d8f8f",
    "normalization": "#37938b",
    "triton": "#a0527a",
    "generic": "#8a6d4b",
    "embedding": "#a3743f",
    "sort": "#6b4f3a",
    "ssm": "#b05f9c",
    "compute": "#1f5fa8",
    "exposed_comm": "#c9640f",
    "exposed_copy": "#c23b3b",
    "idle": "#c9cdd2",
    "fused": "#9bbfe3",
    "communication": "#c9640f",
    "copy": "#c23b3b",
    "host": "#e3b23c",
    "launch": "#f0d58a",
    "synchronisation": "#b58a17",
    "device": "#8fb3d9",
    "dependency": "#7f8fa6",
    "unexplained": "#3b3f45",
}
OTHER = "#555b63"


def colour_of(slug: str) -> str:
    """Colour of a category or part; one grey for what has none."""
    return COLOURS.get(slug, OTHER)
