"""Which model ran.

What it finds: the networks in a trace, their layers, sizes, precision and use; and a best guess at the model.

Why it matters: advice depends on it, and a reader wants to know at once whether this is the right trace.

How it is computed: module paths of Python frames give classes and counts, weighted by the kernel time launched under
them; shapes of forward calls give sizes; a table of known models gives a name where classes and sizes agree.

What it cannot see: weights, configuration files, and anything about a network that ran without stacks and shapes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace.analyzers import model_shapes as shapes
from rooftrace.analyzers.known_models import Sizes, guess
from rooftrace.calltree import Work, module_class
from rooftrace.contracts.fencing import one_line
from rooftrace.roofline import Rating
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind
from rooftrace.units import pct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooftrace.analyzers.model_shapes import Call, Path
    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.contracts.base import EvidenceValue

_MOST_COMPONENTS = 8
_MOST_CLASSES = 24
_MOST_SOURCES = 6
_NAME = 120
# Modules round a model, and modules that only hold others.
_WRAPPERS = re.compile(r"^(?:Distributed)?DataParallel$|^FullyShardedDataParallel$|^OptimizedModule$|Wrapper$|^FSDP")
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})
# Building blocks of any network: none is a model or a layer by itself.
_BLOCKS = re.compile(
    r"^(?:\w*Linear|Conv[123]d|ConvTranspose[123]d|\w*Norm(?:[123]d)?|\w*Embedding|Dropout\w*|\w*Activation|\w*Pool[123]d|"
    r"ReLU6?|LeakyReLU|GELU|SiLU|Tanh|Sigmoid|ELU|Softmax|Identity|Flatten|Unflatten|Upsample\w*|CrossEntropyLoss|MSELoss|"
    r"LogitsProcessor|Sampler|Mish|Hardswish|PReLU)$"
)
_OPTIMIZER = re.compile(r"^Optimizer\.step#(\w{1,60})\.step$")
# Source files of models, as frames name them, without the place they are installed in.
_SOURCE = re.compile(
    r"(?:^|[/\\])((?:transformers|diffusers|torchvision|timm|vllm|sglang|megatron|fairseq|detectron2|mmdet|ultralytics)[\w./\\-]*?"
    r"(?:models?|modeling|model_executor)[\w./\\-]*\.py)\("
)
_HELPERS = re.compile(
    r"processing|mask_utils|modeling_(?:layers|utils|outputs)|activations|(?:model|graph)_runner|layers/|utils\.py$"
)
_LIBRARY = re.compile(
    r"(?:^|[/\\])(transformers|diffusers|torchvision|timm|vllm|sglang|megatron|fairseq|deepspeed)[/\\]"
)


class _Network(Struct, frozen=True, kw_only=True):
    """Paths of one outermost module class, and the kernel time launched under them."""

    name: str
    paths: frozenset[Path]
    ns: int


class _Stack(Struct, frozen=True, kw_only=True):
    """The layers of a network: their class, how many the heaviest stack has, and its paths."""

    layer_class: str
    count: int


def identify(workload: RatedRun) -> dict[str, Any]:
    """Fields of ``evidence/model.json``."""
    networks = _networks(workload)
    calls = shapes.telling_calls(workload)
    main = networks[0] if networks else None
    inside = [call for call in calls if call.path in main.paths] if main else calls
    stack = _stack(main.paths) if main else None
    sizes = _sizes(inside or calls, stack)
    sources, libraries = _sources(workload)
    best = guess(
        classes=[network.name for network in networks] + ([stack.layer_class] if stack else []),
        sources=sources,
        sizes=sizes,
        is_training=workload.context.has_backward or workload.context.has_optimizer,
    )
    total = sum(network.ns for network in networks)
    return {
        "summary": _summary(workload, main, stack, sizes) | ({"framework": libraries[0]} if libraries else {}),
        "guess": best,
        "components": [_component(network, calls, total) for network in networks[:_MOST_COMPONENTS]],
        "classes": _classes(workload),
        "sources": [one_line(source, 200) for source in sources[:_MOST_SOURCES]],
    }


def _networks(workload: RatedRun) -> list[_Network]:
    """Outermost modules that are models, most kernel time first; what runs again in a backward pass is not another."""
    context, activities = workload.context, workload.activities
    compute = np.flatnonzero((activities.work == int(Work.COMPUTE)) & (activities.launch >= 0))
    module_ns: Counter[int] = Counter()
    at = context.module[activities.launch[compute]].tolist()
    for module, ns in zip(at, activities.dur[compute].tolist(), strict=True):
        module_ns[module] += ns
    paths: defaultdict[str, set[Path]] = defaultdict(set)
    time: Counter[str] = Counter()
    below: defaultdict[str, set[str]] = defaultdict(set)
    for number, path in enumerate(context.module_paths):
        name = _model_name(path)
        if name:
            paths[name].add(path)
            time[name] += module_ns[number]
            below[name] |= {module_class(part) for part in path} - {name}
    inner = set[str]().union(*below.values())
    networks = [
        _Network(name=one_line(name, _NAME), paths=frozenset(paths[name]), ns=time[name])
        for name in paths
        if name not in inner
    ]
    return sorted(networks, key=lambda network: (-network.ns, -len(network.paths), network.name))


def _model_name(path: Path) -> str | None:
    """Class of the first module of a path that is neither wrapper nor container; None if it is a mere block."""
    for part in path:
        name = module_class(part)
        if not _holds_only(name):
            return None if _BLOCKS.match(name) else name
    return None


def _stack(paths: Iterable[Path]) -> _Stack | None:
    """The class that repeats side by side with most modules below it: the network's layer."""
    holders = _holders(paths)
    below = _modules_below(holders)
    # NB: members of a stack never hold one another, since what a member holds has that member above it.
    stacks: defaultdict[tuple[str, Path], list[int]] = defaultdict(list)
    above: dict[Path, Path] = {(): ()}  # of what a module holds, the modules that do more than hold others
    for path in holders:
        name, outside = module_class(path[-1]), above[path[:-1]]
        above[path] = outside if _holds_only(name) else (*outside, path[-1])
        if outside and not _holds_only(name) and not _BLOCKS.match(name):
            stacks[(name, outside)].append(below[path])
    repeated = [key for key, members in stacks.items() if len(members) > 1]
    if not repeated:
        return None
    key = min(repeated, key=lambda key: (-sum(stacks[key]), len(key[1]), key))
    return _Stack(layer_class=one_line(key[0], _NAME), count=len(stacks[key]))


def _holders(paths: Iterable[Path]) -> list[Path]:
    """All modules that hold some of the paths, outer ones first."""
    holders: set[Path] = set()
    for path in paths:
        holder = path[:-1]
        while holder and holder not in holders:  # with a module, all that hold it are known
            holders.add(holder)
            holder = holder[:-1]
    return sorted(holders, key=len)


def _modules_below(holders: Sequence[Path]) -> Counter[Path]:
    """Of each of some modules, outer ones first, how many of them it holds, itself among them."""
    below: Counter[Path] = Counter(holders)
    for path in reversed(holders):
        below[path[:-1]] += below[path]
    return below


def _holds_only(name: str) -> bool:
    """Whether a class only wraps or holds other modules."""
    return name in _CONTAINERS or _WRAPPERS.search(name) is not None


def _sizes(calls: Sequence[Call], stack: _Stack | None) -> Sizes:
    convolutions = sum(call.count for call in calls if call.op in ("aten::conv2d", "aten::conv3d"))
    found = shapes.products(calls)
    is_convolutional = convolutions > sum(call.count for call, *_ in found)
    # Without modules, attention or words, a frequent width may be anything's.
    is_known = bool(stack or shapes.attention_shape(calls) or shapes.vocabulary(calls) or any(c.path for c in calls))
    hidden = shapes.hidden_size(calls) if is_known and not is_convolutional else None
    heads = shapes.heads(calls, hidden)
    words, image = shapes.vocabulary(calls), shapes.first_image(calls)
    experts = shapes.experts(calls, found)
    return Sizes(
        layers=stack.count if stack else None,
        layer_class=stack.layer_class if stack else None,
        hidden=hidden,
        intermediate=shapes.intermediate_size(calls, hidden),
        heads=heads[0] if heads else None,
        head_size=heads[1] if heads else None,
        vocabulary=words[0] if words else None,
        experts=experts[0] if experts else None,
        experts_per_token=experts[1] if experts else None,
        image=image[0][-1] if image else None,
        patch=image[1][-1] if image and not is_convolutional else None,
        batch_and_length=_batch(calls, stack, words[1] if words else None),
        image_batch=image[0][0] if image else None,
    )


def _batch(
    calls: Sequence[Call], stack: _Stack | None, indices: tuple[int, ...] | None
) -> tuple[int, int | None] | None:
    """Batch and positions: of a norm outside the layers, of the indices of words, of fused attention."""

    def is_outside(path: Path) -> bool:
        return stack is None or all(module_class(part) != stack.layer_class for part in path)

    norm, attention = shapes.norm_input(calls, is_outside), shapes.attention_shape(calls)
    if norm:
        return norm[0], norm[1]
    if indices and len(indices) == 2:
        return indices[0], indices[1]
    if attention:
        return attention[0], attention[2]
    return (indices[0], None) if indices and len(indices) == 1 else None


def _summary(workload: RatedRun, main: _Network | None, stack: _Stack | None, sizes: Sizes) -> dict[str, EvidenceValue]:
    context = workload.context
    batch, length = sizes.batch_and_length or (sizes.image_batch, None)
    is_training = context.has_backward or context.has_optimizer
    values: dict[str, EvidenceValue | None] = {
        "model_class": main.name if main else None,
        "layer_class": stack.layer_class if stack else None,
        "layers_count": sizes.layers,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "heads_count": sizes.heads,
        "head_size": sizes.head_size,
        "vocabulary_size": sizes.vocabulary,
        "experts_count": sizes.experts,
        "experts_per_token": sizes.experts_per_token,
        "image_size": sizes.image,
        "patch_size": sizes.patch,
        "batch_size": batch,
        "sequence_length": length,
        "precision": _precision(workload),
        "use": "training" if is_training else "inference",
        "optimizer": _optimizer(workload),
        "wrapper": _wrapper(workload),
    }
    return {name: value for name, value in values.items() if value is not None}


def _precision(workload: RatedRun) -> str | None:
    """Of the rated kernels' time, what most ran in."""
    time: Counter[str] = Counter()
    for group, rating in zip(workload.groups, workload.ratings, strict=True):
        if isinstance(rating, Rating) and rating.precision:
            time[rating.precision] += group.kernel_ns
    return min(time, key=lambda name: (-time[name], name)) if time else None


def _optimizer(workload: RatedRun) -> str | None:
    tree, names = workload.tree, workload.trace.names
    marks = np.isin(tree.kind, [int(Kind.ANNOTATION), int(Kind.CPU_OP)])
    found = (_OPTIMIZER.match(names[code]) for code in sorted_unique(tree.name[marks]).tolist())
    return next((match.group(1) for match in found if match), None)


def _wrapper(workload: RatedRun) -> str | None:
    first = {module_class(path[0]) for path in workload.context.module_paths if path}
    return next((one_line(name, _NAME) for name in sorted(first) if _WRAPPERS.search(name)), None)


def _component(network: _Network, calls: Sequence[Call], total_ns: int) -> dict[str, Any]:
    stack = _stack(network.paths)
    sizes = _sizes([call for call in calls if call.path in network.paths], stack)
    return {
        "name": network.name,
        "gpu_time_pct": round(pct(network.ns, total_ns), 2),
        "layer_class": stack.layer_class if stack else None,
        "layers_count": stack.count if stack else None,
        "hidden_size": sizes.hidden,
    }


def _classes(workload: RatedRun) -> list[dict[str, Any]]:
    instances = {path[-1] for path in workload.context.module_paths if path}
    counts = Counter(module_class(name) for name in instances)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_CLASSES]
    return [{"name": one_line(name, _NAME) or "unnamed", "instances_count": count} for name, count in ordered]


def _sources(workload: RatedRun) -> tuple[list[str], list[str]]:
    """Source files of models and the libraries they are from, most frames first."""
    tree, names = workload.tree, workload.trace.names
    codes, counts = np.unique(tree.name[tree.kind == int(Kind.PYTHON)], return_counts=True)
    files: Counter[str] = Counter()
    libraries: Counter[str] = Counter()
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        source, library = _SOURCE.search(names[code]), _LIBRARY.search(names[code])
        if source and not _HELPERS.search(source.group(1)):
            files[source.group(1).replace("\\", "/")] += count
        if library:
            libraries[library.group(1)] += count

    def order(counter: Counter[str]) -> list[str]:
        return sorted(counter, key=lambda name: (-counter[name], name))

    return order(files), order(libraries)
