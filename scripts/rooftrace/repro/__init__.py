"""A finding of a run as a PyTorch script of its own: the calls as traced, and what may replace them.

Reads files of a run only. Names of a trace are data: an op's name is looked up among PyTorch's ops if it is spelled
like one, everything else is written as text that no interpreter takes for code.
"""

from rooftrace.repro.read import Subject, read_subject
from rooftrace.repro.script import Script, write_script

__all__ = ["Script", "Subject", "read_subject", "write_script"]
