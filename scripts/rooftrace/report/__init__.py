"""Turns the files of a run into the report: ``report.json``, ``analysis.md``, plots and findings.

Reads files only, so that it works on a run made elsewhere. The entry points are in ``assemble``.
"""

from __future__ import annotations
