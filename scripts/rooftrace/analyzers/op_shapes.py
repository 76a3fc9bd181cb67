"""Sizes of attention, convolutions and pooled lookups from their recorded shapes, for advice that must fit them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace import opmodels, platforms
from rooftrace.opmodels.attention import call_shape
from rooftrace.opmodels.attention_ops import form_of
from rooftrace.opmodels.embedding_tables import lookup_shape, stored_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.platforms import Platform

# Queries that one block of a fused attention kernel takes in most libraries; some take 64.
_TILE_QUERIES = 128
# Convolutions whose second input is the weight [out, in / groups, window …] and whose fourth is the stride.
_CONVOLUTIONS = frozenset({"aten::convolution", "aten::_convolution", "aten::conv1d", "aten::conv2d", "aten::conv3d"})
_WEIGHT_RANKS = (3, 4, 5)
_STRIDE_AT = 3
_NUMBER = re.compile(r"\d{1,9}")
_MAX_SIZE = 1 << 50  # above it, not a size but damage


def attention_evidence(group: OpGroup, platform: Platform | None) -> dict[str, EvidenceValue]:
    """``causal`` where the op is known, and its sizes where its shapes tell; else nothing."""
    form = form_of(group.name)
    op = _op_of(group)
    if form is None or op is None:
        return {}
    shape = call_shape(op, form)
    causal: dict[str, EvidenceValue] = {"causal": {True: "yes", False: "no", None: "unknown"}[shape.causal]}
    if shape.sizes is None or max(shape.sizes) > _MAX_SIZE:
        return causal
    heads, queries, keys = shape.sizes
    tiles = heads * -(-queries // _TILE_QUERIES)
    per_unit = {"tiles_per_unit": round(tiles / platform.compute_units, 2)} if platform else {}
    return {**causal, "heads_count": heads, "query_tokens": queries, "key_tokens": keys, **per_unit}


def convolution_evidence(group: OpGroup) -> dict[str, EvidenceValue]:
    """``in_channels`` and ``patches``, whether windows lie side by side; nothing where shapes or stride are missing."""
    dims = group.inputs.dims if group.inputs is not None else None
    concrete = group.inputs.concrete if group.inputs is not None else None
    if group.name not in _CONVOLUTIONS or not isinstance(dims, list) or not isinstance(concrete, list):
        return {}
    weight = dims[1] if len(dims) > _STRIDE_AT else None
    if not isinstance(weight, list) or len(weight) not in _WEIGHT_RANKS or len(concrete) <= _STRIDE_AT:
        return {}
    stride = [int(text) for text in _NUMBER.findall(str(concrete[_STRIDE_AT]))]
    channels, window = weight[1], weight[2:]
    if not stride or type(channels) is not int or not 0 < channels <= _MAX_SIZE:
        return {}
    strides = stride * len(window) if len(stride) == 1 else stride
    return {"in_channels": channels, "patches": window == strides and max(strides) > 1}


def lookup_evidence(groups: Sequence[OpGroup], platform: Platform | None) -> dict[str, EvidenceValue]:
    """Sizes of the first pooled lookup in several tables among the groups; nothing without one."""
    for group in groups:
        op = _op_of(group)
        shape = lookup_shape(op) if op is not None and group.name.startswith("fbgemm::") else None
        stored = stored_bytes(op) if op is not None and shape is not None else None
        if shape is not None and stored is not None and max(*shape, stored) <= _MAX_SIZE:
            cache = platforms.last_level_cache_bytes(platform) if platform else None
            return {
                "tables_count": shape[1],
                "indices_count": shape[2],
                "stored_bytes": stored,
                "fits_cache": cache is not None and stored <= cache,
            }
    return {}


def _op_of(group: OpGroup) -> opmodels.Op | None:
    if group.inputs is None:
        return None
    recorded = (group.inputs.dims, group.inputs.types, group.inputs.strides, group.inputs.concrete)
    return opmodels.op_from_record(group.name, *(part if isinstance(part, list) else None for part in recorded))
