"""One module a section of the report: what its template shows."""

from __future__ import annotations
