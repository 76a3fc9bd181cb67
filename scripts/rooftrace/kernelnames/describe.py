"""Describes a kernel by its name: category, library, facts. A name is described once."""

from __future__ import annotations

from functools import lru_cache

from rooftrace.kernelnames import inductor
from rooftrace.kernelnames.facts import read_facts
from rooftrace.kernelnames.model import KernelInfo, Kind
from rooftrace.kernelnames.rules import START, Rule, Rules, first_match, load_rules
from rooftrace.kernelnames.short import shorten
from rooftrace.kernelnames.text import prepare

_GENERIC = "generic"
_UNNAMED = "(unnamed)"


@lru_cache(maxsize=16_384)
def describe(name: str) -> KernelInfo:
    """What `name` tells, by the rules of the pack. Any text is accepted; an unknown name is ``generic``."""
    return describe_with(_pack_rules(), name)


def describe_with(rules: Rules, name: str) -> KernelInfo:
    """What `name` tells, by `rules`."""
    text = prepare(name)
    head = START + text.head_lower
    library = first_match(rules.libraries, START + text.plain_lower)
    rule = first_match(rules.categories, head)
    if inductor.is_generated(text.head):
        category = inductor.category(text.head, rules.category_of_op)
        fused = inductor.is_fused(text.head, rules.category_of_op)
    else:
        category = (rule and rule.category) or (library and library.category) or _GENERIC
        fused = any(found is not None and found.is_fused(head) for found in (rule, library))
    return KernelInfo(
        name=name,
        short=shorten(text.head) or shorten(text.plain.strip(" :")) or _UNNAMED,
        category=category,
        library=library.name if library else None,
        kind=_kind(category, rule, head),
        fused=fused,
        facts=read_facts(text),
    )


def inductor_ops(name: str) -> tuple[str, ...] | None:
    """Ops that an Inductor kernel's name lists, as Inductor spells them; None where none is known."""
    return inductor.fused_ops(name, _pack_rules().category_of_op)


@lru_cache(maxsize=1)
def _pack_rules() -> Rules:
    return load_rules()


def _kind(category: str, rule: Rule | None, head: str) -> Kind:
    if category == "communication":
        return "communication"
    if rule is not None and any(probe.passes(head) for probe in rule.copies):
        return "copy"
    if rule is not None and any(probe.passes(head) for probe in rule.fills):
        return "fill"
    return "kernel"
