# Every target works on a fresh machine that has Python >= 3.11 and pip: it creates .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format bench nightly clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## a private triangle count on a generated graph
	$(BIN)/sqlrs demo

test: $(VENV)/.installed-dev  ## the whole suite, PostgreSQL included
	$(PYTEST) -n $(WORKERS) --dist worksteal

check: lint test  ## format, lint, types, then the tests

lint: $(VENV)/.installed-dev  ## format, lint and types only
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## rewrite the sources to the project's format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.installed-dev  ## the benchmarks
	$(BIN)/python -m benchmarks

nightly: $(VENV)/.installed-dev  ## all tests, the slow ones too, with fresh random examples
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "slow or not slow" --hypothesis-profile=nightly

clean:  ## remove .venv and everything that was generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Debian ships Python without ensurepip; the interpreter's own pip then fills the environment.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "sqlrs needs Python >= 3.11: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

# The stamps make a second run start at once; a changed pyproject.toml installs again.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(VENV)/.installed $@
