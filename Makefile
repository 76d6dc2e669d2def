# Every target installs what it needs into .venv first; nothing else has to be set up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SEEDS  ?= 200
STAMP  := $(VENV)/.installed

.PHONY: help demo test check format e2e swarm bench clean

help:            ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $(STAMP)

install: $(STAMP) ## make the virtual environment .venv

demo: $(STAMP)   ## the market at work: launch a swarm, auction a two-unit request, pay, stop
	$(BIN)/ramp demo

# A file's tests stay together: two workers of a fresh clone seldom have to compile the same loops at the same time.
test: $(STAMP)   ## the fast tests
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not e2e and not swarm and not slow"

check: $(STAMP)  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## put the code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

e2e: $(STAMP)    ## agents in separate processes on real XMPP servers
	$(BIN)/python -m pytest -q -m e2e tests/e2e

swarm: $(STAMP)  ## SEEDS simulated markets under faults, every invariant checked
	$(BIN)/ramp swarm --seeds $(SEEDS)

slow: $(STAMP)   ## the slower tests
	$(BIN)/python -m pytest -q -m slow

bench: $(STAMP)  ## the project's benchmarks
	$(BIN)/python -m tests.bench

clean:           ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
