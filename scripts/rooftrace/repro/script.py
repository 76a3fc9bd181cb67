"""The script of a finding: its cases written into the template."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct

from rooftrace.errors import UsageError
from rooftrace.pack import TEMPLATES
from rooftrace.repro.calls import CannotRebuild, Numbers
from rooftrace.repro.program import program_of
from rooftrace.repro.replacements import replacements
from rooftrace.repro.variants import variants
from rooftrace.units import NS_PER_US

if TYPE_CHECKING:
    from rooftrace.contracts.chains import Chain
    from rooftrace.repro.program import Option, Program
    from rooftrace.repro.read import Subject

TEMPLATE = "repro/script.py.j2"
MARK = '#!/usr/bin/env python3\n"""Runs the calls behind '
_COMPILED = "torch.compile of the chain"
_MOST_TEXT = 200


class Case(Struct, frozen=True, kw_only=True):
    """One chain in a script."""

    op_id: str | None
    calls: tuple[str, ...]
    compared_with: tuple[str, ...]
    traced_us: float


class Script(Struct, frozen=True, kw_only=True):
    """The text of a script, and what is in it."""

    text: str
    cases: tuple[Case, ...]
    refused: tuple[str, ...]  # why the other chains of the finding are not


def write_script(subject: Subject) -> Script:
    """A self-contained script; `UsageError` where none of the finding's calls can be rebuilt."""
    numbers = Numbers()
    refused: list[str] = []
    built: list[tuple[Chain, Program, list[Option]]] = []
    for chain in subject.chains:
        try:
            program = program_of(chain, len(built), numbers)
            options = replacements(program) if chain.pattern else variants(program, subject.finding.patterns)
        except CannotRebuild as reason:
            refused.append(str(reason))
            continue
        built.append((chain, program, options))
    if not built:
        details = list(dict.fromkeys(refused)) or ["the run holds no calls for it"]
        raise UsageError(
            f"`{subject.finding.id}` cannot be run alone",
            details=details,
            hint="Profile with `record_shapes=True`, outside graphs; ops of other libraries need their own benchmark",
        )
    cases = [_case(chain, options) for chain, _, options in built]
    text = (
        _environment()
        .get_template(TEMPLATE)
        .render(
            finding=subject.finding.id,
            facts=_facts(subject, [(chain, case) for (chain, _, _), case in zip(built, cases, strict=True)]),
            constants=sorted(numbers.values.items(), key=lambda item: int(item[0].rpartition("_")[2])),
            cases=[_lines(program, options) for _, program, options in built],
        )
    )
    return Script(text=text, cases=tuple(cases), refused=tuple(dict.fromkeys(refused)))


def _case(chain: Chain, options: list[Option]) -> Case:
    names = [option.name for option in options]
    return Case(
        op_id=chain.op_id,
        calls=tuple(step.op for step in chain.steps if step.role != "view"),
        compared_with=(*names, *([_COMPILED] if chain.pattern else [])),
        traced_us=round(sum(step.kernel_ns for step in chain.steps) / NS_PER_US, 3),
    )


def _facts(subject: Subject, cases: list[tuple[Chain, Case]]) -> str:
    """What the script prints of the trace, as a literal of ASCII text and numbers."""
    finding = subject.finding
    facts = {
        "finding": finding.id,
        "title": _text(finding.title),
        "gpu": _text(subject.gpu),
        "trace": _text(subject.trace),
        "tf32": finding.evidence.get("tf32") is True,
        "cases": [
            {
                "name": _text(_name(chain, case)),
                "instances": chain.instances,
                "traced_us": case.traced_us,
                "as_traced": "the chain as traced" if len(case.calls) > 1 else "the call as traced",
                "compile": bool(chain.pattern),
                "calls": [
                    {
                        "op": _text(step.op),
                        "us": round(step.kernel_ns / NS_PER_US, 3),
                        "kernels": [_text(name) for name in step.kernels],
                    }
                    for step in chain.steps
                    if step.role != "view"
                ],
            }
            for chain, case in cases
        ],
    }
    return _literal(facts, 0)


def _literal(value: object, depth: int) -> str:
    """Python for plain values, on lines of their own where they hold others."""
    inner = "    " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{inner}{key!a}: {_literal(item, depth + 1)},\n" for key, item in value.items()]
        return "{\n" + "".join(parts) + "    " * depth + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        parts = [f"{inner}{_literal(item, depth + 1)},\n" for item in value]
        return "[\n" + "".join(parts) + "    " * depth + "]"
    return ascii(value)


def _name(chain: Chain, case: Case) -> str:
    if chain.op_id is not None:
        return f"{case.calls[0]} ({chain.op_id})"
    return f"{len(case.calls)} calls, {chain.pattern}" + (
        f", the first of {chain.left_out} more" if chain.left_out else ""
    )


def _text(text: str) -> str:
    """Printable ASCII of a name, of limited length: it goes to a terminal."""
    shown = "".join(sign if sign in string.printable and sign.isprintable() else "?" for sign in text)
    return shown if len(shown) <= _MOST_TEXT else shown[: _MOST_TEXT - 3] + "..."


def _lines(program: Program, options: list[Option]) -> list[str]:
    """The body of a case's function."""
    lines = [
        *program.bindings,
        "inputs = [",
        *(f"    {line}" for line in program.inputs),
        "]",
        "",
        *program.traced(),
    ]
    for option in options:
        lines += ["", *option.lines] if option.lines else []
    texts = ", ".join(option.text for option in options)
    return [*lines, "", f'return {{"inputs": inputs, "traced": traced, "options": [{texts}]}}']


def _environment() -> Environment:
    """Templates of the pack; Python is no HTML, so nothing is escaped: what goes in is safe already."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - see above
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
