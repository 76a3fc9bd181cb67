"""The slots of a side as a tree of modules, with labels that both sides share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from rooftrace.calltree import module_class
from rooftrace.compare.leaves import Leaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

# What an agreement weighs. Slots: op and shapes, op, kernels, what each kernel does, category. Modules, which hold
# more: class and content, class and content without shapes, class, content alone.
LEAF_WEIGHTS = (12, 8, 6, 4, 2)
# Of children of one module, slots are matched by their names first: what only does alike is looked at together.
WEIGHTS = (48, 40, 24, 20, *LEAF_WEIGHTS[:3])


class Node(Struct, kw_only=True, eq=False):
    """A module (or a phase, or the whole run) with what is called in it, in order of first appearance."""

    path: tuple[str, ...]
    children: list[Node | Leaf] = field(default_factory=list)
    content: tuple[int, int] = (-1, -1)  # labels of all below it, with shapes and without

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path[-1] if self.path else ""

    def leaves(self) -> list[Leaf]:
        """All slots below it, in order."""
        found: list[Leaf] = []
        todo: list[Node | Leaf] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, Leaf):
                found.append(item)
            else:
                todo += reversed(item.children)
        return found


class Labels:
    """Numbers for whatever is to be compared, the same for both sides."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def of(self, *what: Any) -> int:
        """The number of something."""
        return self._known.setdefault(what, len(self._known))

    def of_leaf(self, leaf: Leaf) -> tuple[int, ...]:
        """The five labels of a slot."""
        return (
            self.of("shaped", leaf.name, leaf.shapes, leaf.part),
            self.of("op", leaf.name, leaf.part),
            self.of("kernels", leaf.kinds, leaf.kernels),
            self.of("kinds", leaf.kinds, leaf.part, leaf.fused),
            self.of("category", leaf.category, leaf.part, leaf.fused),
        )

    def of_stray(self, leaf: Leaf) -> tuple[int, ...]:
        """Labels of a slot without regard to its module, by phase: with its kernels, without, without shapes.

        The last one only where there are no modules: else it would match what another module calls.
        """
        what = (leaf.path[:1], leaf.name, leaf.part)
        return (
            self.of("stray with kernels", *what, leaf.shapes, leaf.kernels),
            self.of("stray", *what, leaf.shapes),
            self.of("stray name", *what) if len(leaf.path) <= 1 else -1,
        )

    def of_node(self, node: Node) -> tuple[int, ...]:
        """The four labels of a module."""
        name = module_class(node.name)
        return (
            self.of("module", name, node.content[0]),
            self.of("class and content", name, node.content[1]),
            self.of("class", name),
            self.of("content", node.content[1]),
        )

    def matrix(self, items: Sequence[Node | Leaf]) -> NDArray[np.int64]:
        """Labels of a mixed sequence: four rows for modules, three for slots."""
        rows = np.full((len(WEIGHTS), len(items)), -1, dtype=np.int64)
        for at, item in enumerate(items):
            if isinstance(item, Leaf):
                rows[4:, at] = self.of_leaf(item)[:3]
            else:
                rows[:4, at] = self.of_node(item)
        # The first row serves as the one to trim and to anchor by: the strongest label of either kind.
        rows[0] = np.where(rows[0] >= 0, rows[0], rows[4])
        return rows


def build_tree(leaves: Iterable[Leaf], labels: Labels) -> Node:
    """The tree of a side's slots; a module that holds nothing but another one is passed over."""
    root = Node(path=())
    nodes: dict[tuple[str, ...], Node] = {(): root}
    made = [root]
    for leaf in leaves:
        parent = root
        for depth in range(1, len(leaf.path) + 1):
            path = leaf.path[:depth]
            if path not in nodes:
                nodes[path] = Node(path=path)
                made.append(nodes[path])
                parent.children.append(nodes[path])
            parent = nodes[path]
        parent.children.append(leaf)
    for node in reversed(made):  # children were made after their parents
        node.children = [_without_wrapper(child) for child in node.children]
        node.content = _content(node, labels)
    return root


def _without_wrapper(child: Node | Leaf) -> Node | Leaf:
    """The only module inside a module that calls nothing else; phases stay."""
    if isinstance(child, Node) and len(child.path) > 1 and len(child.children) == 1:
        inner = child.children[0]
        if isinstance(inner, Node):
            return inner
    return child


def _content(node: Node, labels: Labels) -> tuple[int, int]:
    exact: list[Any] = []
    rough: list[Any] = []
    for child in node.children:
        if isinstance(child, Leaf):
            exact.append((child.name, child.shapes))
            rough.append(child.name)
        else:
            exact.append(child.content[0])
            rough.append(child.content[1])
    return labels.of("exact", tuple(exact)), labels.of("rough", tuple(rough))


def similarity(base: Node, target: Node) -> float:
    """How much of what two modules call is the same: common ops over all, counted."""
    ours = Counter(leaf.name for leaf in base.leaves())
    theirs = Counter(leaf.name for leaf in target.leaves())
    either = sum((ours | theirs).values())
    return sum((ours & theirs).values()) / either if either else 0.0
