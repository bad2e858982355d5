# Every target works on a fresh machine that has nothing but Python 3.11 or newer: the first one to
# run makes a virtual environment in .venv and installs the package into it with its tools.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
ARGS ?=
# Processes that share the tests.
JOBS ?= auto

# What makes each benchmark small; one without a line here is small by itself.
BENCHMARKS := $(sort $(basename $(notdir $(wildcard benchmarks/[a-z]*.py))))
SMALL_compaction := --sessions 0.1
SMALL_recognition := --rows 0.1
SMALL_kernels := --quick
SMALL_gpu := --quick
SMALL_train_vs_peers := --queries 200 --trees 20 --sessions 10 --runs 1
SMALL_metrics := --queries 1000
SMALL_simulation := --sessions 200000 --repeat 1
SMALL_compressed_vs_raw := --queries 60 --seeds 2 --trees 10
SMALL_quality_mq2008 := --sessions 10 --seeds 1
SMALL_latency := --queries 50 --trees 50

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test fuzz lint types bench docs clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Learn from simulated clicks and show what debiasing gains
	$(BIN)/unskew demo $(ARGS)

test: lint types ## Check style and types, then run every test and every code block of the docs
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

CASES ?= 51000

fuzz: $(READY) ## Damage every kind of file that is read, CASES=51000 times; writers, kills
	PYTHONPATH=tests $(BIN)/python -m fuzz $(CASES)

lint: $(READY) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## Check types
	$(BIN)/mypy src $(wildcard benchmarks)

bench: $(addprefix bench-,$(BENCHMARKS)) ## Run every benchmark in its small mode

bench-%: $(READY)
	$(BIN)/python benchmarks/$*.py $(SMALL_$*)

docs: $(READY) ## Build the documentation into site/
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs site
	@echo "open site/index.html"

clean: ## Remove everything that was made, the virtual environment too
	rm -rf .venv build dist site demo .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Installed anew when the requirements change.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and no python3 was found" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, but $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
	       "name another with make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: install its venv package" \
	       "(python3-venv on Debian and Ubuntu)" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
