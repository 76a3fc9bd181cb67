"""A kernel's name as a reader wants it: no namespaces, parameters or launchers, at most 80 characters."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_SHORT = 80
_MAX_DEPTH = 16
_MAX_TOKENS = 160
_INNER_LIMITS = (3, 2, 1)

# Launchers and adaptors of PyTorch that hide the interesting argument: shown as their last argument.
_TRANSPARENT = frozenset(
    {
        "gpu_kernel_impl",
        "gpu_kernel_impl_nocast",
        "gpu_index_kernel",
        "func_wrapper_t",
        "AUnaryFunctor",
        "BUnaryFunctor",
        "BinaryFunctor",
        "AbsoluteFunctor",
    }
)
# Wrappers whose own name says nothing: the whole kernel is shown as its first argument.
_WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel", "kentry"})
_WRAPPER_START = "enable_"
_NOISE = frozenset(
    {
        "array",
        "Array",
        "TrivialOffsetCalculator",
        "OffsetCalculator",
        "LoadWithCast",
        "LoadWithoutCast",
        "StoreWithCast",
        "StoreWithoutCast",
        "char*",
        "&",
    }
)
_MAX_READ = 220
_NUMBER_SUFFIX = re.compile(r"\b(\d+)[uU]?[lL]{1,2}\b|\b(\d+)[uU]\b")
_TOKENS = re.compile(r"[<>,]|[^<>,]+")
_QUALIFIER = re.compile(r"\b[A-Za-z_]\w*::|::")
# The type letters end with B (beta) or, where accumulation is in higher precision, BH.
_TENSILE = re.compile(
    r"^(?:Custom_)?(Cijk_A\w{3}_B\w{3}_(?:(?:[A-Z0-9]+_){1,3}?BH|[A-Z0-9]+(?:_MX)?_?B))_\w*?MT(\d+x\d+x\d+)_"
)
_MEANINGLESS = re.compile(r"^(?:\w+::)*?(\w+::(?:kernel|run|main|operator))(?:<|$)")


class _Part(NamedTuple):
    """A name and its template arguments."""

    name: str
    args: list[_Part]


def shorten(head: str) -> str:
    """Readable form of a prepared head (`text.NameText.head`), never over 80 characters."""
    if "<" not in head:
        tensile = _TENSILE.match(head) if "Cijk_" in head else None
        return _cut(f"{tensile[1]} MT{tensile[2]}" if tensile else _plain(head))
    root = _parse(_plain(head if len(head) <= _MAX_READ else head[: head.rfind(",", 0, _MAX_READ) + 1]))
    while root.name in _WRAPPERS or root.name.startswith(_WRAPPER_START):
        inner = [part for part in root.args if not part.name.isdecimal()]
        if not inner:
            break
        root = inner[0]
    return _render(root)


def _plain(head: str) -> str:
    """`head` without namespaces and number suffixes; a function named just `kernel` keeps one namespace."""
    text = _QUALIFIER.sub("", head) if "::" in head else head
    if "<" in text:
        text = _NUMBER_SUFFIX.sub(r"\1\2", text)
    kept = _MEANINGLESS.match(head)
    return kept[1] + text[len(kept[1].rpartition("::")[2]) :] if kept else text


def _parse(text: str) -> _Part:
    """The tree of names and template arguments; brackets that do not match are read as far as they go."""
    root = _Part("", [])
    stack = [root]
    name = ""
    for piece in _TOKENS.findall(text)[:_MAX_TOKENS]:
        if piece == "<":
            part = _Part(name.strip(), [])
            stack[-1].args.append(part)
            name = ""
            if len(stack) >= _MAX_DEPTH:
                break
            stack.append(part)
        elif piece in {",", ">"}:
            if name and not name.isspace():
                stack[-1].args.append(_Part(name.strip(), []))
            name = ""
            if piece == ">" and len(stack) > 1:
                stack.pop()
        else:
            name = piece
    if name and not name.isspace():
        stack[-1].args.append(_Part(name.strip(), []))
    return root.args[0] if root.args else _Part(text, [])


def _render(root: _Part) -> str:
    """The longest of ever plainer spellings that fits."""
    text = ""
    for limit in _INNER_LIMITS:
        text = _spell(root, limit)
        if len(text) <= MAX_SHORT:
            return text
    return _cut(text)


def _spell(part: _Part, limit: int) -> str:
    while part.name in _TRANSPARENT and part.args:
        part = part.args[-1]
    shown = [arg for arg in part.args if arg.name not in _NOISE]
    if not shown:
        return part.name
    if limit == 0:
        return f"{part.name}<…>"
    return f"{part.name}<{', '.join([_spell(arg, limit - 1) for arg in shown])}>"


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_SHORT else text[: MAX_SHORT - 1] + "…"
