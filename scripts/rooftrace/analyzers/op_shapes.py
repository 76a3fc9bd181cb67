"""Sizes of attention calls and of pooled lookups from their recorded shapes, for advice that must fit them."""

from __future__ import annotations

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
