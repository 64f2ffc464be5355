# `make demo` and `make test` do all their own set-up: a virtual environment in .venv, then the work.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-image lint format docs benchmarks soak clean

demo: $(VENV)/.installed
	$(BIN)/gagar demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto -m "" $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, in build/site. A link that leads nowhere, or a page that no menu names, is an error.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

benchmarks: $(VENV)/.installed-dev
	for script in $(filter-out benchmarks/soak.py, $(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$script || exit 1; done

soak: $(VENV)/.installed-dev test-image
	$(BIN)/python benchmarks/soak.py

# What the tests marked `docker` need; without, they are skipped. Starts an engine and makes images: Debian, as root.
test-image:
	.ci/engine
	.ci/test-image

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "gagar-env needs Python 3.10 or newer; set PYTHON=..."; exit 1; }
	@git --version >/dev/null || { echo "gagar-env needs git: install it"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
