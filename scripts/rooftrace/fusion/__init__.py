"""Finds what several kernels in a row could do as one: instances, their data flow, the time of the fused kernel."""

from __future__ import annotations

from rooftrace.fusion import describe
from rooftrace.fusion.calls import FusionInputs
from rooftrace.fusion.candidates import Candidate, Rejected
from rooftrace.fusion.find import FusionResult, find_candidates

__all__ = ["Candidate", "FusionInputs", "FusionResult", "Rejected", "describe", "find_candidates"]
