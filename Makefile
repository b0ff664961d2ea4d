# The environment lives in .venv and is made once; `make run` and `make test` make it when missing.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
# PYTHON=/path/to/python3.12 chooses the interpreter; by default the first one found that fits.
PYTHON ?=
ARGS ?=

.PHONY: help run test test-slow lint bench clean

help: ## this list
	@echo 'specfit: make TARGET [ARGS="selector=specfit cache_slots=12"] [PYTHON=python3.12]'
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
	@echo 'SPECFIT_DATA=<folder of real datasets> is passed through to runs and tests.'

run: $(STAMP) ## the main job: python -m specfit.run $(ARGS)
	@$(BIN)/python -m specfit.run $(ARGS)

test: $(STAMP) ## the tests that take seconds
	@$(BIN)/python -m pytest $(ARGS)

test-slow: $(STAMP) ## all tests, the slow ones too
	@$(BIN)/python -m pytest -m "slow or not slow" $(ARGS)

lint: $(STAMP) ## ruff (rules and format) and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(STAMP) ## every scripts/bench_*.py; rows go to results/bench
	@for script in scripts/bench_*.py; do \
	    [ -e "$$script" ] || { echo 'no scripts/bench_*.py yet'; break; }; \
	    echo "== $$script"; $(BIN)/python "$$script" $(ARGS); \
	done

clean: ## the environment and every cache; rows in results/ stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	rm -rf dist build/lib build/bdist.*
	find specfit tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# A candidate is tried, not looked up: a version manager's shim may exist and run nothing.
$(STAMP): pyproject.toml constraints.txt
	@fits='import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))'; \
	found=''; \
	for candidate in $(or $(PYTHON),python3.11 python3.12 python3 python); do \
	    if "$$candidate" -c "$$fits" >/dev/null 2>&1; then found="$$candidate"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo 'specfit needs Python 3.11 or 3.12 with venv, and found none in: $(or $(PYTHON),python3.11 python3.12 python3 python).' \
	         'Install one, or name it: make PYTHON=/path/to/python3.12' >&2; \
	    exit 2; \
	fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    echo "making $(VENV) with $$found"; \
	    "$$found" -m venv --clear $(VENV); \
	fi
	@echo 'installing specfit[run,figures,dev] into $(VENV) (minutes the first time)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[run,figures,dev]'
	@touch $@
