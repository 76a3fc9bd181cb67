"""What crosses a file: pydantic models, their JSON Schemas, and reading and writing checked artifacts."""

from __future__ import annotations
