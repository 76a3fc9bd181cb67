"""The texts that rules and facts look at: control characters replaced, lengths capped, parameters cut off."""

from __future__ import annotations

import re

from msgspec import Struct

from rooftrace.kernelnames.demangle import demangle

# Real names reach several thousand characters; what tells kernels apart is in the first few hundred.
_MAX_NAME = 2_048
_MAX_UNCUT = 1_024
_MAX_HEAD = 240
_MAX_PARENTHESES = 8

_TORCH = "at::native::"
_INNERMOST = re.compile(r"\([^()]*\)")
_LAMBDA = re.compile(r"::\{[^{}]*\}|::operator(?: const)?(?![\w<])")
_ENABLE_IF = re.compile(r"^(?:typename )?std::enable_if<[^(]{0,200}?>::type ")


class NameText(Struct, frozen=True, kw_only=True):
    """One kernel name, prepared once and looked at by every rule."""

    plain: str  # printable and demangled, at most 2,048 characters: facts are read from it
    head: str  # qualified function name and template arguments without any parentheses and lambdas
    head_lower: str  # category rules match this
    plain_lower: str  # library rules match this: the start of `plain`, parameters included


def prepare(name: str) -> NameText:
    """Texts of ``name``; linear in the capped length."""
    plain = printable(name[:_MAX_NAME])
    if plain.startswith(("_Z", "__Z")):
        plain = demangle(plain.removesuffix(".kd"))
    plain = plain.removeprefix("void ").removesuffix(".kd")
    if plain.startswith(("std::enable_if<", "typename ")):
        plain = _ENABLE_IF.sub("", _without_parentheses(plain[:_MAX_UNCUT])) or plain
    named = plain[:_MAX_UNCUT].replace("(anonymous namespace)::", "")
    head = _head(named)
    return NameText(plain=plain, head=head, head_lower=head.lower(), plain_lower=named[:_MAX_HEAD].lower())


def printable(text: str) -> str:
    """``text`` with every unprintable character (control characters, lone surrogates) as a space."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _head(plain: str) -> str:
    head = _without_parentheses(plain) if "(" in plain else plain
    if "::{" in head or "::operator" in head:
        head = _LAMBDA.sub("", head)
    head = head.strip().removeprefix("::")
    if head.startswith(_TORCH):
        head = _TORCH + head[len(_TORCH) :].replace(_TORCH, "")
    return head[:_MAX_HEAD]


def _without_parentheses(text: str) -> str:
    """``text`` without ``(…)`` at any depth up to eight; what is left open by a cut name ends it."""
    for _ in range(_MAX_PARENTHESES):
        text, removed = _INNERMOST.subn("", text)
        if not removed or "(" not in text:
            break
    opened = text.find("(")
    return text if opened < 0 else text[:opened]
