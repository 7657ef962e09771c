# Every target works from a fresh clone; `make help` lists them.
#
# PYTHON   the Python to make the virtual environment with   make setup PYTHON=python3.12
# VENV     where that environment is                         make test VENV=/tmp/venv
# TEXT     the text whose words the demo counts              make demo TEXT=book.txt
# ARGS     more arguments for pytest or the benchmark        make quick ARGS="-k ledger -x"

PYTHON ?= python3
VENV ?= .venv
VENV_BENCH ?= .venv-bench
VENV_LOCK ?= .venv-lock

PIP_INSTALL := -m pip --disable-pip-version-check install --quiet
INSTALLED := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
INSTALLED_BENCH := $(VENV_BENCH)/.installed
NO_PYTHON := There is no $(PYTHON) here: install Python 3.11 or newer, or name it with PYTHON=.
PREREQUISITES := command -v "$(PYTHON)" >/dev/null || { echo "$(NO_PYTHON)" >&2; exit 1; }; \
	"$(PYTHON)" scripts/check_prerequisites.py
PYTEST := $(VENV)/bin/python -m pytest
# Two processes, each with a Spark session of its own; a file's tests stay together, and those that
# wait for clusters and servers do not come last, when nothing else is left to do beside them.
IN_TWO := --numprocesses=2 --dist=loadfile --no-loadscope-reorder
# Many short tests: whichever process is done first takes over some that the other has still to do.
SHARED := --numprocesses=2 --dist=worksteal
LOCK := $(VENV_LOCK)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock"

# The tiers that need no Java; a folder counts from the day it is there.
UNIT := $(wildcard tests/unit tests/property tests/plan) tests/test_layers.py src/sparkstorm

# All of it is marked as a sweep, and to import what it needs takes seconds.
NOT_QUICK := --ignore=tests/unit/ui/test_openapi.py

# What the compiled modules do, to be tested a second time without the compiler's help.
PLAIN := $(addprefix tests/unit/, multilang packets state tasks test_tuples.py) \
	$(addprefix tests/behaviour/bolts/test_, bolts.py held_tuples.py) \
	$(addprefix tests/behaviour/tracking/test_, failures.py storm_integration.py tracking.py \
	unreadable_values.py)

# What runs for each tuple, as Python and as what Cython needs to make C of it.
HOT := $(shell find src -name "*.pxd")

# An environment of another Python than the named one is made anew.
ifneq ($(origin PYTHON),file)
WHICH := -c "import sys; print(sys.version, sys.base_prefix)"
ifneq ($(shell "$(PYTHON)" $(WHICH)),$(shell "$(VENV)/bin/python" $(WHICH) 2>/dev/null))
.PHONY: $(INSTALLED)
endif
endif

# Rewriting the tests' assertions takes pytest two seconds, unless it may keep what it has written.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup java demo quick test test-unit test-plain test-all check fmt lint types docs bench lock coverage release-check clean

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(COMPILED) ## Make the virtual environment .venv with everything that the other targets need.

demo: java $(COMPILED) ## Count the words of a text on a local Spark, every message tracked (TEXT=file).
	@$(VENV)/bin/sparkstorm run examples/word_count.py --available-now $(if $(TEXT),-- "$(TEXT)")

test: java lint types test-plain ## Run all checks, and all tests but the slow ones.
	@$(PYTEST) $(IN_TWO) -m "not slow" $(ARGS)

quick: $(COMPILED) ## Run the short tests of the pure tiers, with few examples, in half a minute.
	@HYPOTHESIS_PROFILE=quick $(PYTEST) $(SHARED) -m "not (slow or process or sweep)" $(NOT_QUICK) $(UNIT) $(ARGS)

test-unit: $(COMPILED) ## Run all tests that need no Java, in a minute.
	@$(PYTEST) $(SHARED) -m "not slow" $(UNIT) $(ARGS)

test-plain: $(COMPILED) ## Test what is compiled as plain Python, as it runs where there is no C compiler.
	@PLAIN_PYTHON=1 $(PYTEST) --numprocesses=2 --dist=loadfile -m "not slow and not spark" $(PLAIN)

test-all: java lint types test-plain ## Run all checks and all tests, the slow ones too, with many examples.
	@HYPOTHESIS_PROFILE=thorough $(PYTEST) $(IN_TWO) $(ARGS)

check: test ## Run what must pass before a commit: the same as test.

fmt: $(INSTALLED) ## Format the code, and mend what ruff can mend by itself.
	@$(VENV)/bin/ruff check --fix-only --quiet .
	@$(VENV)/bin/ruff format --quiet .

lint: $(INSTALLED) ## Check style and format without changing anything.
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: $(INSTALLED) ## Check the types, strictly.
	@$(VENV)/bin/mypy

docs: $(COMPILED) ## Run every example in the README, the documentation and the docstrings.
	@$(PYTEST) --doctest-glob="*.md" $(wildcard README.md docs) src/sparkstorm $(ARGS)

bench: java $(COMPILED) $(INSTALLED_BENCH) ## Measure the word count, here and in the systems compared with.
	@PEERS_PYTHON="$(abspath $(VENV_BENCH))/bin/python" $(VENV)/bin/python -m benchmarks.word_count $(ARGS)

lock: ## Resolve the dependencies anew and write the lock files.
	@$(PREREQUISITES)
	@$(PYTHON) -m venv $(VENV_LOCK)
	@$(VENV_LOCK)/bin/python $(PIP_INSTALL) uv
	@$(LOCK) --group dev --output-file requirements.lock pyproject.toml
	@$(LOCK) --constraints requirements.lock --group build --output-file requirements-build.lock
	@$(LOCK) --constraints requirements.lock --group bench --output-file requirements-bench.lock

coverage: $(COMPILED) ## Show which lines the tests without Java reach; it is no gate.
	@PLAIN_PYTHON=1 HYPOTHESIS_PROFILE=quick $(VENV)/bin/python -m coverage run -m pytest \
		-m "not (slow or spark or e2e or cluster)" --quiet $(UNIT) tests/behaviour tests/simulation
	@$(VENV)/bin/python -m coverage report
	@echo "Not measured: processes that the tests start, and all that runs on Spark."

release-check: $(COMPILED) ## Build wheel and source archive, and check both in a fresh environment.
	@$(VENV)/bin/python scripts/check_release.py

clean: ## Remove what the other targets made: environments, caches, build results.
	@rm -rf $(VENV) $(VENV_BENCH) $(VENV_LOCK) build dist .coverage .hypothesis .mypy_cache .pytest_cache
	@rm -rf .ruff_cache artifacts derby.log metastore_db spark-warehouse
	@find src -name "*.so" -delete
	@find benchmarks examples scripts src tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

java:
	@$(PREREQUISITES) java

# Without build isolation, so that what builds PySpark and us is locked as well.
$(INSTALLED): pyproject.toml requirements.lock requirements-build.lock
	@$(PREREQUISITES)
	@echo "Setting up $(VENV): PySpark alone is 450 MB, so the first time takes minutes."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/python $(PIP_INSTALL) --require-hashes -r requirements-build.lock
	@$(VENV)/bin/python $(PIP_INSTALL) --require-hashes --no-build-isolation -r requirements.lock
	@$(VENV)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# Python prefers compiled modules to their sources, so they have to follow each change of these.
$(COMPILED): $(INSTALLED) hatch_build.py $(HOT) $(HOT:.pxd=.py)
	@$(VENV)/bin/python hatch_build.py
	@touch $@

# The systems that we compare with live apart from us; the benchmark starts them by PEERS_PYTHON.
$(INSTALLED_BENCH): requirements-bench.lock
	@$(PREREQUISITES)
	@$(PYTHON) -m venv $(VENV_BENCH)
	@$(VENV_BENCH)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements-bench.lock
	@touch $@
