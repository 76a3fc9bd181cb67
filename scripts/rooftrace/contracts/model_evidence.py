"""``evidence/model.json``: what a trace tells about the model that ran, and the best guess at which it is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rooftrace.contracts.base import Artifact, EvidenceValue, Record

Confidence = Literal["high", "medium", "low"]


class Component(Record):
    """A network of its own among those that ran: a text encoder beside a transformer, for example."""

    name: str = Field(max_length=120, description="Class of its outermost module that is no wrapper.")
    gpu_time_pct: float = Field(ge=0, description="Per cent of all kernel time launched under it.")
    layer_class: str | None = Field(max_length=120, description="Class that repeats as its layer; null if none does.")
    layers_count: int | None = Field(ge=1, description="Layers of that class in its deepest stack; null if none.")
    hidden_size: int | None = Field(ge=1, description="Width of what layers hand on; null where no shape tells.")


class ModuleClass(Record):
    """A class of modules."""

    name: str = Field(max_length=120, description="Class, without the number of the instance.")
    instances_count: int = Field(ge=1, description="Instances of it that ran.")


class Guess(Record):
    """The best guess at the model, made by rules."""

    name: str = Field(max_length=80, description="A model by its usual name, or its family.")
    family: str = Field(max_length=80, description="Kind of network.")
    confidence: Confidence = Field(
        description="high: class names and sizes agree with a known model; medium: class names tell the family; low: "
        "sizes alone, or nothing."
    )
    reasons: list[str] = Field(max_length=8, description="What it rests on, one reason each.")


class ModelEvidence(Artifact):
    """What is known of the model. `summary` are the citable quantities, as `{{model.<name>}}`."""

    analyzer: Literal["model"] = Field(default="model", description="Always `model`.")
    summary: dict[str, EvidenceValue] = Field(
        description="Quantities by name: layers_count, hidden_size, heads_count, vocabulary_size, precision …; "
        "what the trace does not tell is absent."
    )
    guess: Guess = Field(description="The best guess, by rules.")
    components: list[Component] = Field(max_length=8, description="Networks that ran, most kernel time first.")
    classes: list[ModuleClass] = Field(max_length=24, description="Classes of modules, most instances first.")
    sources: list[str] = Field(max_length=6, description="Source files of models among the frames.")

    @property
    def tells_something(self) -> bool:
        """Whether there is anything to write about."""
        return bool(self.components or self.classes or self.sources or len(self.summary) > 1)

    def names(self) -> list[str]:
        """Every name that a writer may take from here."""
        words = [self.guess.name, self.guess.family, *self.guess.reasons, *self.sources]
        words += [text for part in self.components for text in (part.name, part.layer_class) if text]
        words += [item.name for item in self.classes]
        return words + [value for value in self.summary.values() if isinstance(value, str)]


def evidence_lines(evidence: ModelEvidence) -> list[str]:
    """The evidence for a reader, one thing a line; not escaped."""
    guess = evidence.guess
    lines = [f"best guess by rules: {guess.name}; {guess.family}; confidence {guess.confidence}"]
    lines += [f"  because {reason}" for reason in guess.reasons]
    lines += [f"model.{name} = {value}" for name, value in evidence.summary.items()]
    for part in evidence.components:
        layers = f", {part.layers_count} x {part.layer_class}" if part.layer_class else ""
        hidden = f", hidden size {part.hidden_size}" if part.hidden_size else ""
        lines.append(f"network {part.name}: {part.gpu_time_pct:g} % of kernel time{layers}{hidden}")
    if evidence.classes:
        lines.append("classes: " + ", ".join(f"{item.name} x{item.instances_count}" for item in evidence.classes))
    lines += [f"source: {source}" for source in evidence.sources]
    return lines
