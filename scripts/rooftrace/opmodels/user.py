"""Op models from the user's own Python files, for the ops of their own kernels.

Running such a file is running Python: it may do whatever its author wrote. Only a path that a person gives on the
command line gets here, never one out of a trace. A file registers its models as the modules of this folder do::

    from rooftrace.opmodels import Cost, Example, Op, Tensor, op_model

Its models hold for one run. Each has a worked example, checked when the file is loaded; one that takes the place of a
built-in model says ``replaces=True``; whatever they cost is noted with the file's name.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager, redirect_stdout
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from .dtypes import ITEMSIZE
from .op import NoCostError, Op
from .registry import Cost, Example, Model, RegistrationError, Unmodelled, exchange, kept, models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_UNITS = ("matrix", "vector")
_PRECISIONS = {*ITEMSIZE, "tfloat32", "float8", "float6", "float4"}
_MEND_FILE = "Mend the file, or leave --models out"
_MEND_MODEL = "Mend the model; where the shapes do not tell a cost, return `Unmodelled(reason=...)`"
_MEND_EXAMPLE = "Mend the model or its example; a multiply-add is 2 FLOPs, bytes are counted at each tensor's dtype"


@contextmanager
def user_models(paths: Iterable[Path]) -> Iterator[None]:
    """Let the models of these files hold while the context lasts; `UsageError` for what is wrong in one."""
    with kept(), ExitStack() as stack:
        seen: set[Path] = set()
        for path in paths:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                _load(path, stack)
        yield


def _load(path: Path, stack: ExitStack) -> None:
    source = _read(path)
    module = ModuleType(path.name)  # models bear it as the name of their module, in messages
    module.__file__ = str(path)
    known = models()
    sys.modules[path.name] = module  # where a dataclass looks its module up
    stack.callback(sys.modules.pop, path.name, None)
    try:
        with redirect_stdout(sys.stderr):  # stdout is the command's
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - see above
    except RegistrationError as error:
        _fail(path, error, str(error), error.hint)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        _fail(path, error, _told(error), _MEND_FILE)
    added = [model for model in models() if all(model is not other for other in known)]
    if not added:
        _refuse(f"{path} registers no model", "Decorate a function with `@op_model(...)` of `rooftrace.opmodels`")
    for model in added:
        at = f"{path}:{_line(model)}"
        guarded = replace(model, cost=_guarded(path, at, model))
        exchange(model, guarded)
        _check_examples(at, guarded)


def _read(path: Path) -> bytes:
    from rooftrace.errors import InputError  # here and below: needed only where a user's file is wrong

    hint = "Give a Python file (.py) that registers op models"
    try:
        if path.suffix != ".py" or (path.exists() and not path.is_file()):
            raise InputError(f"`{path}` is not a Python file", hint=hint)
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read `{path}`: {error.strerror}", hint=hint) from None


def _guarded(path: Path, at: str, model: Model) -> Callable[[Op], Cost | Unmodelled]:
    """The cost function with its errors told as the file's, its result checked and noted."""

    def cost(op: Op) -> Cost | Unmodelled:
        try:
            with redirect_stdout(sys.stderr):
                found: object = model.cost(op)
        except (NoCostError, ArithmeticError, LookupError, ValueError):
            raise  # told by the registry, as of any model: the arguments are not as the op defines them
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
            _fail(path, error, f"the model of `{op.name}` failed: {_told(error)}", _MEND_MODEL)
        if isinstance(found, Unmodelled) and isinstance(found.reason, str):
            return found
        wrong = _wrong_cost(found)
        if not isinstance(found, Cost) or wrong:
            _refuse(f"{at}: the model of `{op.name}` returned {wrong}", _MEND_MODEL)
        return replace(found, notes=(*found.notes, f"model from {path.name}"))

    return cost


def _wrong_cost(found: object) -> str | None:
    """What is wrong with a result, ``None`` where nothing is."""
    if not isinstance(found, Cost):
        return f"{type(found).__name__} instead of `Cost` or `Unmodelled`"
    for field in ("flops", "bytes_read", "bytes_written"):
        value = getattr(found, field)
        if type(value) is not int or value < 0:
            return f"{field}={value!r}, which is no whole number from 0 up"
    if found.unit not in _UNITS:
        return f"unit={found.unit!r}, which is none of {', '.join(_UNITS)}"
    if found.precision is not None and found.precision not in _PRECISIONS:
        return f"precision={found.precision!r}, which is no dtype's name as PyTorch spells it (`bfloat16`)"
    if not isinstance(found.notes, tuple) or not all(isinstance(note, str) for note in found.notes):
        return f"notes={found.notes!r}, which is no tuple of texts"
    return None


def _check_examples(at: str, model: Model) -> None:
    """Every example under every name it is for; of a model that only patterns reach, under those."""
    for name in model.names or model.patterns:
        examples = [example for example in model.examples if example.only in {None, name}]
        if not examples:
            _refuse(f"{at}: the model of `{name}` has no worked example", "Add `examples=(Example(...),)` to it")
        for example in examples:
            expected, found = _expected(example), _found(model, Op(name=name, args=example.args))
            if expected != found:
                _refuse(
                    f"{at}: a worked example of `{name}` does not hold",
                    _MEND_EXAMPLE,
                    details=(f"expected: {expected} ({example.why})", f"found:    {found}"),
                )


def _expected(example: Example) -> str:
    if example.unmodelled is not None:
        return f"no cost: {example.unmodelled}"
    return f"{example.flops} FLOPs, {example.bytes_read} bytes read, {example.bytes_written} written"


def _found(model: Model, op: Op) -> str:
    try:
        cost = model.cost(op)
    except (NoCostError, ArithmeticError, LookupError, ValueError) as error:
        return f"no cost: {error}" if isinstance(error, NoCostError) else _told(error)
    if isinstance(cost, Unmodelled):
        return f"no cost: {cost.reason}"
    return f"{cost.flops} FLOPs, {cost.bytes_read} bytes read, {cost.bytes_written} written"


def _line(model: Model) -> int:
    """Line of the function; 0 for what is none."""
    code = getattr(model.cost, "__code__", None)
    return code.co_firstlineno if code is not None else 0


def _told(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(": ")


def _fail(path: Path, error: BaseException, what: str, hint: str) -> NoReturn:
    """Tell an error at the innermost line of the file that it passed through."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    _refuse(f"{path}:{lines[-1]}: {what}" if lines else f"{path}: {what}", hint)


def _refuse(what: str, hint: str, details: tuple[str, ...] = ()) -> NoReturn:
    from rooftrace.errors import UsageError

    raise UsageError(what, details=details, hint=hint) from None
