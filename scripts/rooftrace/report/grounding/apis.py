"""Names that are no trace's: APIs, settings, variables, options, tools, files of a run, data types.

What they are is knowledge (``knowledge/prose_names.json``); here is how they may be written.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import orjson

from rooftrace.pack import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPE = re.compile(
    r"(?:b?float|bf|fp|tf|tfloat|u?int|complex|mxfp|nvfp|mxint)_?(?:4|6|8|16|19|32|64|128)(?:_?e[2-5]m[1-5]\w*)?"
    r"|e[2-5]m[1-5]\w*|W[48]A(?:8|16)",
    re.IGNORECASE,
)
_DTYPES_IN_WORDS = ("half", "double", "bool")
_DIGIT = re.compile(r"[0-9]")
# `Conv2d`, `conv3d`: a dimension, no quantity.
_DIMENSION = re.compile(r"(?<=[A-Za-z_])[123][dD](?![A-Za-z0-9])")
# A tool of the list with options and words.
_COMMAND = re.compile(r"([a-z][\w-]*)((?: --?[a-zA-Z][\w-]*(?:[ =][\w./:,-]+)?| [A-Za-z][\w./-]*)*)")
_VARIABLE = re.compile(r"([A-Z]+[0-9]?(?:_[A-Z0-9]+)*)(?:=[\"']?[\w:,.+/-]{0,60}[\"']?)?")
_SETTING = re.compile(r"([\"']?)([A-Za-z_][\w.]*)\1\s*[=:]\s*(.{1,120})")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:[ =]([\w./:,+-]{1,40}))?")
_FLAGS = re.compile(r"\s+(?=--?[A-Za-z])")
_DOTTED = re.compile(r"[.@]?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
# A configuration by its name: `vision_config.output_attentions`.
_CONFIGURATION = re.compile(r"(?:[a-z]+_)*(?:config|cfg|args|kwargs|options|settings)")
_CALL = re.compile(r"([.@]?[A-Za-z_][\w.]*)\((.{0,200})\)", re.S)
_FILE = re.compile(r"(?:evidence|findings|plots|prose|tasks)/[\w.<>-]+|(?:report|manifest|state)\.json|analysis\.md")
# What a listed setting may be set to: a word, a number, a name, or a few of them.
_ONE = r"(?:\"[\w ./:,+-]{1,60}\"|'[\w ./:,+-]{1,60}'|-?[0-9][0-9_.]*(?:e-?[0-9]+)?|[A-Za-z_][\w./:+-]{0,60})"
_VALUE = re.compile(rf"{_ONE}|[\[({{]\s*{_ONE}(?:\s*[,:]\s*{_ONE}){{0,7}}\s*,?\s*[\])}}]")
_COMMA = re.compile(r",\s*(?![^(\[{]*[)\]}])")


@cache
def _listed() -> dict[str, frozenset[str]]:
    """The lists of names, by kind."""
    content = orjson.loads((KNOWLEDGE / "prose_names.json").read_bytes())
    return {kind: frozenset(names) for kind, names in content.items() if kind != "about"}


def layer_names() -> frozenset[str]:
    """Classes of layers that any text may name."""
    return _listed()["layers"]


def is_api(text: str) -> bool:
    """Whether it is written like an API, a setting, a tool, a file of a run or a data type; digits are data."""
    name = text.strip()
    if name in _listed()["tools"] or DTYPE.fullmatch(name) or _FILE.fullmatch(name):
        return True
    if name in _known_api() or name in _DTYPES_IN_WORDS or _is_variable(name) or _is_command(name):
        return True
    rest = name.replace(_head(name), "") if _is_listed(_head(name)) else name
    if "::" in rest or "<" in rest or "_kernel" in rest:
        return False  # written like a kernel or an op: only the trace can vouch for it
    return any(is_it(name) for is_it in _FORMS)


def _head(name: str) -> str:
    """What is called or set."""
    return re.split(r"[(=]", name, maxsplit=1)[0].strip(" .@")


def _is_listed(name: str) -> bool:
    """Whether a name, or what stands after its last dot, is on a list of APIs or settings."""
    last = name.rpartition(".")[2]
    return any(each in _listed()[kind] for each in (name, last) for kind in ("apis", "settings"))


def _has_digit(text: str) -> bool:
    """Whether there are digits that belong to no data type and no dimension."""
    return bool(_DIGIT.search(_DIMENSION.sub("", DTYPE.sub("", text))))


def _is_variable(name: str) -> bool:
    """Whether it is an environment variable of a known family, alone or with a value."""
    found = _VARIABLE.fullmatch(name)
    return found is not None and any(found.group(1).startswith(f"{word}_") for word in _listed()["variables"])


def _is_command(text: str) -> bool:
    """Whether it is a tool with words and options; an option's number only where the option is on the list."""
    found = _COMMAND.fullmatch(text)
    if found is None or found.group(1) not in _listed()["tools"]:
        return False
    words, *options = _FLAGS.split(found.group(2))
    return not _has_digit(words) and all(map(_is_flags, options))


def _is_settings(name: str) -> bool:
    """`name=value`, or several with commas between."""
    found = [_SETTING.fullmatch(part) for part in _COMMA.split(name)]
    return all(part is not None and _is_set(part) for part in found)


def _is_set(part: re.Match[str]) -> bool:
    is_pair = part.group(0).startswith(("'", '"')) or re.match(r"[\w.]+\s*:", part.group(0)) is not None
    return not (is_pair and not _is_listed(part.group(2))) and _is_setting(part.group(2), part.group(3))


def _is_setting(name: str, value: str) -> bool:
    """A setting whose value is a word, or one of the list with any value."""
    if not _has_digit(value) and not _has_digit(name):
        return True
    return _is_listed(name) and _VALUE.fullmatch(value.strip()) is not None


def _is_call(name: str) -> bool:
    """A call of an API: settings among its arguments as they stand alone, numbers only for one of the list."""
    call = _CALL.fullmatch(name)
    if call is None:
        return False
    is_listed = _is_listed(_head(name))
    parts = [part.strip() for part in _COMMA.split(call.group(2)) if part.strip()]
    bare = [part for part in parts if not _SETTING.fullmatch(part)]
    if not is_listed and any(map(_has_digit, [call.group(1), *bare])):
        return False
    return all(_is_settings(part) or (is_listed and _is_value(part)) for part in parts if part not in bare)


def _is_value(part: str) -> bool:
    found = _SETTING.fullmatch(part)
    return found is not None and _VALUE.fullmatch(found.group(3).strip()) is not None


def _is_flags(name: str) -> bool:
    """Options of a command line."""
    found = [_FLAG.fullmatch(part.strip()) for part in _FLAGS.split(name)]
    return all(part and _is_setting(part.group(1).replace("-", "_"), part.group(2) or "") for part in found)


def _is_dotted(name: str) -> bool:
    """A dotted name under a known package or variable, or one of the list."""
    if not _DOTTED.fullmatch(name):
        return False
    if _is_listed(name.strip(".@")):
        return True
    root = name.split(".")[0]
    is_known = name[0] in ".@" or root in _listed()["roots"] or ("." in name and _CONFIGURATION.fullmatch(root))
    return not _has_digit(name) and bool(is_known)


_FORMS: tuple[Callable[[str], bool], ...] = (_is_settings, _is_call, _is_flags, _is_dotted)


@cache
def _known_api() -> frozenset[str]:
    """Pieces of code that the knowledge base itself writes, read when they are first needed."""
    spans: set[str] = set()
    for path in sorted((KNOWLEDGE / "patterns").glob("*/*.json")):
        content = orjson.loads(path.read_bytes())
        for field in ("title", "insight", "action", "reasoning", "resolution", "verify", "cannot_see"):
            spans.update(re.findall(r"`([^`{]+)`", content.get(field) or ""))
    words = {word for span in spans for word in re.findall(r"[A-Za-z_]\w*", span) if not _DIGIT.search(word)}
    return frozenset(spans | words | _listed()["apis"] | _listed()["settings"])
