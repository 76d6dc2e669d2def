# Every target installs what it needs into .venv first; nothing else has to be set up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q
SEEDS  ?= 500
STAMP  := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

# Hundreds of processes start here. Let them share compiled modules even where the environment forbids to write them.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install demo demo-slurm demo-web test test-busy check format docs e2e e2e-full swarm chaos slow properties mutants bench clean psij

help:            ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

# pip compiles all packages but an editable one, RAMP: several processes at once would each compile it as they start.
$(STAMP): pyproject.toml
	@echo "Installing RAMP and the packages that it needs into $(VENV) (one to two minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python .ci/progress "Installing packages" $(BIN)/python -m pip install --editable . --group dev
	@$(BIN)/python .ci/progress "Compiling RAMP" $(BIN)/python -m compileall -q ramp simulation
	@touch $(STAMP)

install: $(STAMP) ## make the virtual environment .venv

demo: $(STAMP)   ## the market at work: launch a swarm, auction a two-unit request, pay, stop
	$(BIN)/ramp demo

demo-slurm: $(STAMP)   ## a real Slurm of 64 emulated nodes: half of it sold to two users, a job on a slot, all stopped
	$(BIN)/ramp demo-slurm

demo-web: $(STAMP)   ## the market in a browser: machines and live tori, requests that keep coming, until Ctrl-C
	$(BIN)/ramp web demo --open

# A file's tests stay together, because they share what is costly to make. Inner loops run as they are written (numba's
# own variable): to compile them takes a minute, what they do here a second. `make slow` has them compiled.
FAST := NUMBA_DISABLE_JIT=1 $(PYTEST) -n auto --dist loadfile -m "not e2e and not swarm and not slow" --ignore tests/e2e
test: $(STAMP)   ## the fast tests
	$(FAST)

# How busy the computer is decides nothing: no test may depend on a limit that a busy computer reaches.
BUSY ?= 16
test-busy: $(STAMP) ## the fast tests beside BUSY endless loops
	@trap 'kill $$loops' EXIT; trap 'exit 130' INT TERM; \
	for number in $$(seq $(BUSY)); do $(BIN)/python -c "while True: pass" & loops="$$loops $$!"; done; \
	$(FAST)

# PSI/J and its executor for Grid Engine, in an environment of their own: its pins and SPADE's exclude one another.
# The system's interpreter, where it is new enough: accounts that jobs run as cannot see one in somebody's home.
PSIJ := .venv-psij/.installed
PSIJ_PYTHON ?= $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/python3 || echo $(PYTHON))
$(PSIJ): $(STAMP) $(shell find examples/psij_gridengine -name '*.py')
	$(PSIJ_PYTHON) -m venv --clear --without-pip .venv-psij
	$(BIN)/python -m pip --python .venv-psij/bin/python install --quiet --group launch-tests ./examples/psij_gridengine
	@touch $@

psij: $(PSIJ)    ## PSI/J for the tests of its snippets: .venv-psij/bin/python

WITH_PSIJ := @$(MAKE) --no-print-directory psij || echo "PSI/J cannot be installed: tests of its snippets are skipped"

check: $(STAMP)  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## put the code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What only the pages need; the HTML is build/docs/html, the man pages build/docs/man.
$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $(DOCS_STAMP)

docs: $(DOCS_STAMP) ## the documentation: build/docs/html/index.html, and man pages in build/docs/man
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs/html
	$(BIN)/python -m sphinx -q -W --keep-going -b man docs build/docs/man
	@echo "build/docs/html/index.html"

# They mostly wait for processes, so there are twice as many workers as cores. A file's tests share what is costly to
# start, and stay together; each page of the documentation is a class, and run by itself.
AT_ONCE ?= $(shell echo $$((2 * $$(nproc))))
E2E := --durations 25 --durations-min 20 -n $(AT_ONCE) --dist loadscope --no-loadscope-reorder \
	tests/documents tests/e2e tests/integration/test_examples.py
e2e: $(STAMP)    ## every flow, server and batch system once, for real, and every command of the documentation
	$(WITH_PSIJ)
	$(PYTEST) -m "e2e and not full" $(E2E)

e2e-full: $(STAMP) ## all end-to-end tests, also every kill point and attack (an hour)
	$(WITH_PSIJ)
	$(PYTEST) -m e2e $(E2E)

swarm: $(STAMP)  ## SEEDS simulated markets under faults, with dishonest parties; every invariant checked
	$(BIN)/python -m tests.swarm --seeds $(SEEDS)

MINUTES ?= 10
chaos: $(STAMP)  ## a real market struck for MINUTES: processes killed and stopped by turns, nothing lost
	$(BIN)/python -m tests.chaos --minutes $(MINUTES)

SLOW := $(PYTEST) -n auto --dist loadfile --durations 15 -m "(slow or hypothesis or loops or logs) and not e2e" --ignore tests/e2e
slow: $(STAMP)   ## the slower tests, a third of each property's examples, and the inner loops compiled
	RAMP_EXAMPLES=3 $(SLOW)

properties: $(STAMP) ## the same with all examples; not in .ci/run
	RAMP_EXAMPLES=1 $(SLOW)

# An hour or more at first on two cores; verdicts are kept, and only what is new or survived is tried again.
mutants: $(STAMP) ## changes in the machines that no test notices (MUTANTS="ramp.protocol.bank.party*": these only)
	$(BIN)/python -m pip install --quiet --editable . --group mutation
	$(BIN)/python -m tests.mutation $(MUTANTS)

bench: $(STAMP)  ## the project's benchmarks (BENCH="ledger messages": these only; BENCH=--quick: those that take seconds)
	$(BIN)/python -m tests.bench $(BENCH)

clean:           ## remove the environment and caches
	rm -rf $(VENV) .venv-psij .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis mutants build dist
