# The environment lives in .venv and is made once; `make run` and `make test` make it when missing.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
# Drawing needs neither torch nor Hydra: a clone that only draws gets the small environment.
DRAWING := $(VENV)/.drawing
DRAWS := $(if $(wildcard $(STAMP)),$(STAMP),$(DRAWING))
# PYTHON=/path/to/python3.12 chooses the interpreter; by default the first one found that fits.
PYTHON ?=
ARGS ?=

.PHONY: help run test test-slow smoke lint bench plan reproduce verify tables figures report clean

help: ## this list
	@echo 'specfit: make TARGET [ARGS="selector=specfit cache_slots=12"] [PYTHON=python3.12]'
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
	@echo 'SPECFIT_DATA=<folder of real datasets> is passed through to runs and tests.'

run: $(STAMP) ## the main job: python -m specfit.run $(ARGS)
	@$(BIN)/python -m specfit.run $(ARGS)

test: $(STAMP) ## the tests that take seconds
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-slow: $(STAMP) ## all tests, the slow ones too
	@$(BIN)/python -m pytest -m "slow or not slow" $(ARGS)

# What a new clone does, on whatever CPU there is: cells that need other cells' files, ids against
# plain generate, and a recording whose last bits are another machine's.
smoke: $(STAMP) ## suites from an empty results folder at the smallest size (minutes)
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(BIN)/python scripts/reproduce.py --size smoke --suite advice table_3 --results "$$folder"; \
	$(BIN)/python scripts/draw.py --tables --only table_3 table_advice --size smoke --results "$$folder"; \
	$(BIN)/python scripts/check/ids.py --results "$$folder" dataset=embedded_gsm8k limit=1; \
	$(BIN)/python -m pytest -q -k perturbed_last_bit tests/workflows/recording

lint: $(STAMP) ## ruff (rules and format) and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(STAMP) ## every scripts/bench/*.py; rows go to results/bench
	@for script in scripts/bench/*.py; do \
	    echo "== $$script"; $(BIN)/python "$$script" $(ARGS); \
	done

# SUITE="table_2 figure_4" takes some of experiments/, SIZE=preview or smoke, REPEATS=3, RESULTS=<folder>,
# PART="24 12" the cells with such a name in their label,
# LAUNCHER="joblib hydra.launcher.n_jobs=2". ARGS replaces values in every cell, or with a name in front
# in the cells of that name: ARGS="model=qwen3-30b-a3b drafter=redhat-eagle3 gsm8k:dataset=gsm8k".
ASKED = $(if $(SUITE),--suite $(SUITE)) $(if $(PART),--part $(PART)) $(if $(SIZE),--size $(SIZE)) $(if $(REPEATS),--repeats $(REPEATS)) \
	$(if $(RESULTS),--results $(RESULTS))

plan: $(STAMP) ## what reproduce would run: a line a suite, or CELLS=1; minutes, disk, what is there
	@$(BIN)/python scripts/plan.py $(ASKED) $(if $(CELLS),--cells) -- $(ARGS)

reproduce: $(STAMP) ## runs what the suites of experiments/ need and is missing
	@$(BIN)/python scripts/reproduce.py $(ASKED) $(if $(LAUNCHER),--launcher $(LAUNCHER)) -- $(ARGS)

verify: $(STAMP) ## runs a suite again and compares it with the reference rows
	@$(BIN)/python scripts/verify.py $(ASKED) -- $(ARGS)

# ONLY="table_2 figure_2" makes some; SIZE=preview, RESULTS and ARGS as for `make reproduce`.
SHOWN = $(if $(SIZE),--size $(SIZE)) $(if $(RESULTS),--results $(RESULTS))
DRAW = $(BIN)/python scripts/draw.py $(SHOWN) $(if $(ONLY),--only $(ONLY)) -- $(ARGS)

tables: $(DRAWS) ## every table from the rows that are there: results/tables
	@$(DRAW:draw.py=draw.py --tables)

figures: $(DRAWS) ## every table and figure: results/tables, results/figures
	@$(DRAW)

# Draws them itself, unless `make figures report` has just done so.
report: $(DRAWS) $(filter figures,$(MAKECMDGOALS)) ## the figures and results/report.html: all of it on one page
	@$(BIN)/python scripts/report.py $(SHOWN) $(if $(filter figures,$(MAKECMDGOALS)),--as-drawn) -- $(ARGS)

clean: ## the environment and every cache; rows in results/ stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	rm -rf dist build/lib build/bdist.*
	find specfit tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): EXTRAS := run,figures,dev
$(DRAWING): EXTRAS := figures

# A candidate is tried, not looked up: a version manager's shim may exist and run nothing.
$(STAMP) $(DRAWING): pyproject.toml constraints.txt
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
	@echo 'installing specfit[$(EXTRAS)] into $(VENV) (minutes the first time)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
