# Everything a developer does here. Two cores are enough; only a Python package index is needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Another host version for the same tests: make .venv-hermes-0.17.0
OLD_HERMES := 0.17.0

.PHONY: setup demo test slow fire lint format bench old-host clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml fixtures/third_party/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -e fixtures/third_party
	touch $@

demo: $(VENV)/.ready
	$(BIN)/hermes-memory demo

test: $(VENV)/.ready
	$(BIN)/python -m pip check
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# What takes longer, and everything the real host does, on both hosts.
slow: $(VENV)/.ready old-host
	HERMES_017_PYTHON="$$PWD/.venv-hermes-$(OLD_HERMES)/bin/python" $(BIN)/python -m pytest -n 2 --dist loadfile -m "slow or hermes"

# Ten minutes of killed processes on one home; HERMES_MEMORY_FIRE_SEED=N repeats a run's choices.
fire: $(VENV)/.ready
	HERMES_MEMORY_FIRE_SECONDS=$${HERMES_MEMORY_FIRE_SECONDS:-600} $(BIN)/python -m pytest -q -s -m slow tests/fire

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

old-host: .venv-hermes-$(OLD_HERMES)/.ready

.venv-hermes-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-hermes-$*
	.venv-hermes-$*/bin/python -m pip install --quiet --disable-pip-version-check hermes-agent==$* 'aiohttp>=3.9' -e .
	.venv-hermes-$*/bin/python -m pip check
	touch $@

clean:
	rm -rf .venv .venv-hermes-* dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
