# Two commands do all the set-up: `make demo` runs the main job, `make test` runs the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
unexport PYTHONDONTWRITEBYTECODE  # each of the many processes that the tests start would compile the package anew

.PHONY: demo test slow lint docs clean

demo: $(VENV)/.core
	$(BIN)/evolvent run grpo --task countdown --model tiny

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow -n auto --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(VENV)/.core  ## the tables in docs/ that are generated from the registry and the evidence
	$(BIN)/python -m evolvent.recipes.tables

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# torch goes first, at the version of constraints.txt; one that is there already, whatever its build and version, is
# left alone: under the constraint pip would replace it
$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -c "import torch" 2>/dev/null || $(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install -q -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
