"""Which op has which model: registration, lookup, and the one place where a cost is computed."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from .op import MALFORMED, NO_SHAPES, Arg, NoCostError, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Unit = Literal["matrix", "vector"]

CATEGORIES: Final = (
    "gemm", "attention", "moe", "elementwise", "reduction", "normalization", "convolution", "triton", "generic",
    "memory", "optimizer", "quantization", "embedding", "sort", "ssm", "communication",
)  # fmt: skip


class Cost(Struct, frozen=True, kw_only=True):
    """What one call must do: FLOPs (a multiply-add is 2) and compulsory bytes."""

    flops: int
    bytes_read: int
    bytes_written: int
    unit: Unit = "vector"
    precision: str | None = None  # element type that decides the compute ceiling
    notes: tuple[str, ...] = ()

    @property
    def bytes_total(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte; ``None`` when nothing is moved."""
        return self.flops / self.bytes_total if self.bytes_total else None


class Unmodelled(Struct, frozen=True, kw_only=True):
    """Why an op has no cost."""

    reason: str


class Example(Struct, frozen=True, kw_only=True):
    """A worked example of a model: arguments, the expected result, and the arithmetic that gives it."""

    args: tuple[Arg, ...]
    why: str
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    unmodelled: str | None = None  # the expected reason, for a call that has no cost
    only: str | None = None  # the one name it holds for, where the names of a model read arguments differently


class Model(Struct, frozen=True, kw_only=True):
    """A cost function and what it is for."""

    names: tuple[str, ...]
    patterns: tuple[str, ...]
    category: str
    claims_subtree: bool
    cost: Callable[[Op], Cost | Unmodelled]
    module: str
    examples: tuple[Example, ...]


_models: dict[str, Model] = {}
_patterns: dict[str, Model] = {}
_categories: dict[str, tuple[str, str]] = {}
_category_patterns: list[tuple[str, str]] = []
_found: dict[str, Model | None] = {}
_found_categories: dict[str, str | None] = {}

MODELS: Final[Mapping[str, Model]] = MappingProxyType(_models)


class RegistrationError(ValueError):
    """A model that cannot be registered, with what would mend it."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def op_model(
    *names: str,
    category: str,
    claims_subtree: bool = True,
    patterns: tuple[str, ...] = (),
    examples: tuple[Example, ...] = (),
    replaces: bool = False,
) -> Callable[[Callable[[Op], Cost | Unmodelled]], Callable[[Op], Cost | Unmodelled]]:
    """Register the decorated cost function for op names, and for name patterns that an exact name overrides.

    With ``replaces`` it takes the place of the models that these names have; its patterns are tried first.
    """

    def register(function: Callable[[Op], Cost | Unmodelled]) -> Callable[[Op], Cost | Unmodelled]:
        _check_category(category)
        model = Model(
            names=names,
            patterns=patterns,
            category=category,
            claims_subtree=claims_subtree,
            cost=function,
            module=function.__module__,
            examples=examples,
        )
        if replaces:
            _check_registered(names)
        _check_unregistered(names, {} if replaces else _models, model.module)
        _check_unregistered(patterns, {} if replaces else _patterns, model.module)
        _models.update(dict.fromkeys(names, model))
        if replaces:
            _put_first(patterns, model)
        else:
            _patterns.update(dict.fromkeys(patterns, model))
        _found.clear()
        return function

    return register


def _check_category(category: str) -> None:
    if category not in CATEGORIES:
        raise RegistrationError(f"unknown category `{category}`", f"Known: {', '.join(CATEGORIES)}")


def _check_unregistered(names: Iterable[str], registered: Mapping[str, Model], module: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in registered or name in seen:
            first = registered[name].module if name in registered else module
            raise RegistrationError(
                f"`{name}` has a model in {first} already; {module} registers another",
                "Give `replaces=True` if this one is to be used instead",
            )
        seen.add(name)


def _check_registered(names: Iterable[str]) -> None:
    for name in names:
        if find_model(name) is None:
            raise RegistrationError(f"`{name}` has no model to replace", "Leave `replaces=True` out, or mend the name")


def _put_first(patterns: tuple[str, ...], model: Model) -> None:
    """A pattern decides by its place: one that replaces others has to be met before them."""
    others = {pattern: other for pattern, other in _patterns.items() if pattern not in patterns}
    _patterns.clear()
    _patterns.update({**dict.fromkeys(patterns, model), **others})


@contextmanager
def kept() -> Iterator[None]:
    """The registry is afterwards what it was before: for models that hold for one run."""
    models_before, patterns_before = dict(_models), dict(_patterns)
    categories_before, category_patterns_before = dict(_categories), list(_category_patterns)
    try:
        yield
    finally:
        _models.clear()
        _models.update(models_before)
        _patterns.clear()
        _patterns.update(patterns_before)
        _categories.clear()
        _categories.update(categories_before)
        _category_patterns[:] = category_patterns_before
        _found.clear()
        _found_categories.clear()


def exchange(old: Model, new: Model) -> None:
    """Let ``new`` answer wherever ``old`` does."""
    for registered in (_models, _patterns):
        registered.update({name: new for name, model in registered.items() if model is old})
    _found.clear()


def categorise(category: str, *names: str, patterns: tuple[str, ...] = (), module: str = "") -> None:
    """Give ops without a cost model a category."""
    _check_category(category)
    for name in names:
        if name in _categories and _categories[name][0] != category:
            raise ValueError(f"`{name}` has a category from {_categories[name][1]} already; {module} gives another")
        _categories[name] = (category, module)
    _category_patterns.extend((pattern, category) for pattern in patterns)
    _found_categories.clear()


def models() -> tuple[Model, ...]:
    """Every model once, those that only patterns reach included, in the order of registration."""
    found = [*_models.values(), *_patterns.values()]
    return tuple({id(model): model for model in found}.values())


def find_model(name: str) -> Model | None:
    """The model of an op name: exact, else the first pattern that matches, in the order of registration."""
    model = _models.get(name)
    if model is not None:
        return model
    if name not in _found:
        _found[name] = next((m for pattern, m in _patterns.items() if _matches(pattern, name)), None)
    return _found[name]


def category_of(name: str) -> str | None:
    """The category of an op: its model's, else the one stated for names without a model."""
    model = find_model(name)
    if model is not None:
        return model.category
    if name in _categories:
        return _categories[name][0]
    if name not in _found_categories:
        found = (category for pattern, category in _category_patterns if _matches(pattern, name))
        _found_categories[name] = next(found, None)
    return _found_categories[name]


def _matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).search(name) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when first needed: most runs meet few names without an exact match."""
    return re.compile(pattern)


def claims_subtree(name: str) -> bool:
    """Whether a call of this op owns every kernel launched below it."""
    model = find_model(name)
    return model is not None and model.claims_subtree


def cost_of(op: Op) -> Cost | Unmodelled:
    """The cost of a call, or why it has none; never raises, whatever the shapes."""
    model = find_model(op.name)
    if model is None:
        return Unmodelled(reason="no cost model")
    if not op.args:
        return Unmodelled(reason=NO_SHAPES)
    try:
        cost = model.cost(op)
    except NoCostError as reason:
        return Unmodelled(reason=str(reason))
    except (ArithmeticError, LookupError, ValueError):  # a shape of the wrong rank, a size of zero
        return Unmodelled(reason=MALFORMED)
    if isinstance(cost, Cost) and min(cost.flops, cost.bytes_read, cost.bytes_written) < 0:  # a negative size
        return Unmodelled(reason=MALFORMED)
    return cost
