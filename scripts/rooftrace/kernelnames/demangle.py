"""Reads the function name and template arguments out of a mangled C++ kernel name, within fixed bounds.

A kernel's parameters are not read: rules and facts never need them. What is not understood ends the text with
``…`` instead of raising. Text, depth and the length of every remembered substitution are capped, because a
mangled name can expand to exponential size.

Own code rather than the ``itanium-demangler`` package: that takes 8 to 25 ms for a name as ROCm records
them (its table of substitutions is searched linearly), and refuses ``DF16b``, expressions and lambdas.
Grammar: Itanium C++ ABI, section 5.1, "External Names".
"""

from __future__ import annotations

import re

_MAX_INPUT = 2_048
_MAX_OUTPUT = 700
_MAX_DEPTH = 24
_MAX_REMEMBERED = 240

_BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}
_LONG_BUILTIN = {"DF16b": "__bf16", "DF16_": "_Float16", "Dh": "_Float16", "Dn": "std::nullptr_t"}
_STD = {"a": "std::allocator", "b": "std::basic_string", "s": "std::string"}
_PREFIXES = ("_ZTS", "__Z", "_Z")
_DIGITS = re.compile(r"\d{1,4}")
_SEQUENCE = re.compile(r"([0-9A-Z]*)_")
_LITERAL = re.compile(r"(n?)(\d+)E")
_QUALIFIERS = re.compile(r"[rVK]*[RO]?")


class _StopReading(Exception):  # noqa: N818 - ends the parse; never leaves this module
    """The text is not understood from here on, or enough of it is."""


class _Reader:
    """A cursor over the mangled text; ``out`` is the readable text so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.written = 0
        self.remembered: list[str] = []
        self.depth = 0
        self.open_brackets = 0

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _StopReading
        self.at = match.end()
        return match

    def write(self, piece: str) -> None:
        self.out.append(piece)
        self.written += len(piece)
        if self.written > _MAX_OUTPUT:
            raise _StopReading

    def remember(self, start: int) -> None:
        text = "".join(self.out[start:])
        self.remembered.append(text if len(text) <= _MAX_REMEMBERED else text[:_MAX_REMEMBERED].split("<")[0] + "<…>")


def demangle(name: str) -> str:
    """Readable form of a name starting with ``_Z``, ``__Z`` or ``_ZTS`` (SYCL); other names come back unchanged."""
    start = next((len(prefix) for prefix in _PREFIXES if name.startswith(prefix)), None)
    if start is None:
        return name
    reader = _Reader(name[start:_MAX_INPUT])
    try:
        _name(reader)
    except _StopReading:
        if not reader.out:
            return name
        return "".join(reader.out)[:_MAX_OUTPUT].removesuffix("::") + "…" + ">" * reader.open_brackets
    return "".join(reader.out)


def _name(reader: _Reader) -> None:
    if reader.take("N"):
        _nested(reader)
        return
    start = len(reader.out)
    substituted = _substitution(reader) if reader.peek() == "S" else False
    if not substituted:
        _component(reader)
    if reader.peek() == "I":
        if not substituted:
            reader.remember(start)
        _template_args(reader)


def _nested(reader: _Reader) -> None:
    """``N prefix… E``: every proper prefix can be referred to later."""
    reader.take_match(_QUALIFIERS)
    start = len(reader.out)
    while not reader.take("E"):
        fresh = True
        if reader.peek() == "I":
            _template_args(reader)
        elif reader.peek() == "S":
            fresh = not _substitution(reader)
        elif reader.peek() == "T":
            _template_parameter(reader)
        else:
            if len(reader.out) > start:
                reader.write("::")
            _component(reader)
        if fresh and reader.peek() != "E":
            reader.remember(start)


def _component(reader: _Reader) -> None:
    """An unqualified name: ``<length><identifier>``, with the mark for internal linkage before it."""
    reader.take("L")
    length = int(reader.take_match(_DIGITS).group())
    identifier = reader.peek(length)
    reader.at += length
    reader.write("(anonymous namespace)" if identifier.startswith("_GLOBAL__N") else identifier)
    if len(identifier) < length:
        raise _StopReading
    while reader.take("B"):  # ABI tags are no part of a readable name
        reader.at += int(reader.take_match(_DIGITS).group())


def _substitution(reader: _Reader) -> bool:
    """Write what ``S…`` stands for; false where it only opens a new ``std::`` name."""
    reader.at += 1
    if reader.take("t"):
        reader.write("std::")
        _component(reader)
        return False
    if reader.peek() in _STD:
        reader.write(_STD[reader.peek()])
        reader.at += 1
        return True
    digits = reader.take_match(_SEQUENCE).group(1)
    index = int(digits, 36) + 1 if digits else 0
    if index >= len(reader.remembered):
        raise _StopReading
    reader.write(reader.remembered[index])
    return True


def _template_parameter(reader: _Reader) -> None:
    reader.at += 1
    reader.write(f"T{reader.take_match(_SEQUENCE).group(1)}")


def _template_args(reader: _Reader) -> None:
    reader.at += 1
    reader.depth += 1
    if reader.depth > _MAX_DEPTH:
        raise _StopReading
    reader.write("<")
    reader.open_brackets += 1
    _arguments(reader)
    reader.write(">")
    reader.open_brackets -= 1
    reader.depth -= 1


def _arguments(reader: _Reader) -> None:
    """Template arguments up to the closing ``E``, separated by commas."""
    first = True
    while not reader.take("E"):
        if reader.take("J"):  # a pack: its members stand where it stands
            before = len(reader.out)
            if not first:
                reader.write(", ")
            _arguments(reader)
            if not first and len(reader.out) == before + 1:
                reader.out.pop()
            continue
        if not first:
            reader.write(", ")
        first = False
        if reader.take("L"):
            _literal(reader)
        else:
            _type(reader)


def _literal(reader: _Reader) -> None:
    """``L<type><value>E``: bools by name, other values as a number, of enumerations too."""
    if reader.take("b"):
        reader.write("true" if reader.take_match(_LITERAL).group(2) == "1" else "false")
        return
    at, written = len(reader.out), reader.written
    _type(reader)
    del reader.out[at:]
    reader.written = written
    sign, digits = reader.take_match(_LITERAL).groups()
    reader.write(("-" if sign else "") + digits)


def _type(reader: _Reader) -> None:
    reader.depth += 1
    if reader.depth > _MAX_DEPTH:
        raise _StopReading
    start = len(reader.out)
    letter = reader.peek()
    if letter in _BUILTIN:
        reader.at += 1
        reader.write(_BUILTIN[letter])
    elif letter in {"P", "R", "O", "K", "V", "r"}:
        reader.at += 1
        _type(reader)
        reader.write({"P": "*", "R": "&", "O": "&&", "K": " const"}.get(letter, ""))
        reader.remember(start)
    elif letter == "D":
        _long_builtin(reader)
    elif letter == "T":
        _template_parameter(reader)
        reader.remember(start)
    elif letter == "S":
        _substituted_type(reader, start)
    else:
        _name(reader)
        reader.remember(start)
    reader.depth -= 1


def _substituted_type(reader: _Reader, start: int) -> None:
    whole = _substitution(reader)
    if not whole:
        reader.remember(start)
    if reader.peek() == "I":
        _template_args(reader)
        reader.remember(start)


def _long_builtin(reader: _Reader) -> None:
    for code, text in _LONG_BUILTIN.items():
        if reader.take(code):
            reader.write(text)
            return
    raise _StopReading
