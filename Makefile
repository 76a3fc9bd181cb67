# Names for the commands; everything here can be run by hand, and CI runs nothing else.

PYTHON ?= python3
TOOLS = PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 "$$($(PYTHON) tests/run.py --print-python)"

.PHONY: all lint types test format gen gen-check bench coverage replay-report fusion-report compare-report pattern-report token-report growth-report eval eval-short fuzz test-torch

all:
	$(PYTHON) tests/run.py

lint:
	$(PYTHON) tests/run.py --only lint

types:
	$(PYTHON) tests/run.py --only types

test:
	$(PYTHON) tests/run.py --only tests

format:
	$(TOOLS) -m ruff format --no-cache .

gen:
	$(TOOLS) -m rooftrace.contracts.generate

gen-check:
	$(PYTHON) tests/run.py --only schemas

bench:
	$(TOOLS) -m benchmarks

coverage:
	$(TOOLS) -m benchmarks.coverage

replay-report:
	$(TOOLS) -m benchmarks.replay_report

fusion-report:
	$(TOOLS) -m benchmarks.fusion_report

compare-report:
	$(TOOLS) -m benchmarks.compare_report

pattern-report:
	$(TOOLS) -m benchmarks.pattern_report

token-report:
	$(TOOLS) -m benchmarks.token_report

# Inputs that were made to be slow, up to a million events a kind: half an hour; make growth-report KINDS="shapes threads"
growth-report:
	$(TOOLS) -m benchmarks.growth $(KINDS)

# The whole corpus; `make eval-short` takes a part of it
eval:
	$(TOOLS) -m evals.scoring

eval-short:
	$(TOOLS) -m evals.scoring --short

# Growth of the run time, then random inputs: make fuzz MINUTES=120
MINUTES ?= 10
fuzz:
	ROOFTRACE_GROWTH=1 $(TOOLS) -m pytest -q -p no:cacheprovider tests/fuzz/test_growth.py
	$(TOOLS) -m tests.fuzz --minutes $(MINUTES)

# Against real torch, in an environment that has it: make test-torch TORCH_PYTHON=/path/to/python
TORCH_PYTHON ?= $(PYTHON)
test-torch:
	ROOFTRACE_TORCH_PYTHON="$(TORCH_PYTHON)" $(PYTHON) tests/run.py --only tests tests/calibrate tests/repro
	PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 "$(TORCH_PYTHON)" -m pytest -p no:cacheprovider tests/opmodels_torch
