# Every target works on a fresh machine that has Python >= 3.11 and pip: it creates .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help demo test coverage check lint format golden bench nightly versions lock docs dist clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## a private triangle count on a generated graph
	$(BIN)/sqlrs demo

test: $(VENV)/.installed-dev  ## the whole suite, PostgreSQL included
	$(PYTEST) -n $(WORKERS) --dist worksteal

coverage: $(VENV)/.installed-dev  ## the whole suite, with the lines that it reaches; a fifth slower
	$(PYTEST) -n $(WORKERS) --dist worksteal -p tests.support.coverage

check: lint test  ## format, lint, types, then the tests

lint: $(VENV)/.installed-dev  ## format, lint and types only
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## rewrite the sources to the project's format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

golden: $(VENV)/.installed-dev  ## write golden SQL and generated pages anew; then read the difference
	SQLRS_WRITE_GOLDEN=1 $(PYTEST) -q tests/golden tests/planning/test_plans.py \
	  tests/compiler/test_reference.py tests/test_docs.py tests/test_configuration.py -k "kept or golden or generated or page or figures"
	git diff --stat

bench: $(VENV)/.installed-dev  ## the benchmarks
	$(BIN)/python -m benchmarks

nightly: $(VENV)/.installed-dev  ## all tests, the slow ones too, with fresh random examples
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "slow or not slow" --hypothesis-profile=nightly

# What depends on the versions of the engines, the drivers and the parser.
OLDEST := .venv-oldest
VERSION_TESTS := tests/engines tests/compiler tests/golden tests/planning tests/ledger tests/test_release.py

versions: $(VENV)/.installed-dev  ## the tests of engines and compiler, both servers, at the lower ends of all ranges
	$(PYTHON) -m venv $(OLDEST) 2>/dev/null || { \
	  $(PYTHON) -m venv --clear --without-pip $(OLDEST) && \
	  $(PYTHON) -m pip --python $(OLDEST)/bin/python install --quiet pip; }
	$(BIN)/python -m tests.support.oldest > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OLDEST)/constraints.txt -e '.[dev]'
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(VERSION_TESTS)
	SQLRS_PG=embedded $(PYTEST) -n $(WORKERS) --dist worksteal tests/engines tests/golden

lock: $(BIN)/python  ## the versions and hashes that the container installs, anew
	$(BIN)/python docker/lock.py

docs: $(VENV)/.installed-docs  ## the documents as a site, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(VENV)/.installed-docs  ## sdist and wheel, each tried in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python packaging/check_dist.py

clean:  ## remove .venv and everything that was generated
	rm -rf $(VENV) $(OLDEST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

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

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@
