# Everything a user runs. Each target sets up what it needs by itself.
#
#   make serve    the service on 127.0.0.1:10002, data in ./data; flags by ARGS="--table-port 0"
#   make check    style, types, layers, unit tests and conformance, in a few minutes: before each commit
#   make test     that, and patterns, SDKs, processes, engines, installation
#   make ci       that, and a mutation for each campaign to find: what CI runs
#   make coverage  that with branch coverage, which takes twice as long: by hand
#   make versions  parsers, codecs and the request path on newer Pythons, where these are installed; CI runs it, too
#   make patterns  the tests of the pattern library, patterns/, alone
#   make twins    the synchronous modules of the pattern library, written anew from the asynchronous ones
#   make models   the states of each model of the pattern library, onto its page of protocols; some by ARGS=saga
#   make pages    the tables of docs that are generated: compatibility, errors, versions (tests/pages.py)
#   make bench    the numbers, measured here and now, into benchmarks/RESULTS.md; a glance by ARGS=--quick
#   make browser  every page of the explorer in Chromium; CI runs three short journeys; some by ARGS="-k axe"
#   make screenshots  the pictures of docs/explorer.md
#   make study    the study of 2010, repeated here and now, into docs/study.md, in at most twenty minutes
#   make campaigns  make torture, make mutations and make fuzz, one after the other: by hand, and by time
#   make torture  crashes, power cuts, broken disks, hostile clients for TORTURE_SECONDS (600) in all; by ARGS="crash --goal 1000"
#   make mutations  that campaigns find each mutation, of which CI runs one of each; some by ARGS="-k blob"
#   make fuzz     hostile input for FUZZ_SECONDS (60) in all; targets by ARGS="batch url"

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A Python that can be used prints its version: 3.11 or newer, in $(VENV) with pip.
VERSION_OF = $(shell $(1) -c "import sys; sys.version_info >= (3, 11) and print('%d.%d' % sys.version_info[:2])" 2>/dev/null)
VENV_VERSION := $(if $(shell $(BIN)/python -c "import pip; print(1)" 2>/dev/null),$(call VERSION_OF,$(BIN)/python))
# Without PYTHON=…, any version will do.
WANTED_VERSION := $(if $(filter file,$(origin PYTHON)),$(VENV_VERSION),$(call VERSION_OF,$(PYTHON)))
VENV_IS_RIGHT := $(and $(VENV_VERSION),$(filter $(VENV_VERSION),$(WANTED_VERSION)))
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ARGS ?=
PROCESSES ?= 2
# A file's tests stay in one process, as they share a server. The order is that of tests/conftest.py: long files first.
PYTEST = $(BIN)/python -m pytest -q --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
FUZZ_SECONDS ?= 60
TORTURE_SECONDS ?= 600

# Hundreds of processes start in a run: they share compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: serve check test ci patterns twins models coverage versions lint tests pages bench study campaigns torture mutations fuzz browser screenshots clean

serve: $(VENV)/.runtime
	@exec $(BIN)/lazulite serve $(ARGS)

# tests/conftest.py says what this leaves out, beside the pattern library, which has a target of its own.
TIER_check = --tier check -o testpaths=tests
TIER_test = --tier test
TIER_ci = --tier ci
TIER_coverage = --cov --cov-report=term:skip-covered
# Tests wait now and then, and one process checks types: lint and tests run side by side.
check test ci coverage: $(VENV)/.test
	@$(MAKE) --no-print-directory -j2 lint tests TIER="$(TIER_$@)"

tests: $(VENV)/.test
	$(PYTEST) $(TIER) $(ARGS)

# Each Python has an environment of its own, such as .venv-python3.12.
NEWER_PYTHONS ?= python3.12 python3.13
REQUEST_PATH = $(wildcard $(addprefix tests/,protocol auth records service server/http table/batch table/model table/payload \
	table/plan table/query queue/test_payload.py queue/test_plans.py blob/requests blob/content))
versions:
	@for python in $(NEWER_PYTHONS); do \
		environment=.venv-$${python##*/}; \
		$$python -c "" 2>/dev/null || { echo "skipped: $$python is not installed"; continue; }; \
		test -e $$environment/.test || { $$python -m venv --clear $$environment \
			&& $$environment/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,test]' \
			&& touch $$environment/.test; } || exit 1; \
		$$environment/bin/python -m pytest -q --numprocesses $(PROCESSES) --dist loadfile --tier check $(REQUEST_PATH) $(ARGS) \
			|| exit 1; \
	done

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config patterns/pyproject.toml

# The pattern library by itself, against the endpoint of PATTERNS_CONNECTION_STRING or a server of its own.
patterns: $(VENV)/.test
	cd patterns && ../$(BIN)/python -m pytest -q $(ARGS)

# The modules of patterns/src/lazulite_patterns/aio are the source.
twins: $(VENV)/.test
	cd patterns && ../$(BIN)/python -m tests.twins

# With PATTERNS_CAMPAIGN=1, searches that take minutes run, too.
models: $(VENV)/.test
	cd patterns && ../$(BIN)/python -m tests.models $(ARGS)

pages: $(VENV)/.test
	$(BIN)/python -m tests.pages

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks $(ARGS)

study: $(VENV)/.test
	$(BIN)/python -m benchmarks.study $(ARGS)

campaigns: torture mutations fuzz

torture: $(VENV)/.test
	$(BIN)/python -m tests.torture --seconds $(TORTURE_SECONDS) $(ARGS)

mutations: $(VENV)/.test
	$(PYTEST) --tier mutations tests/torture $(ARGS)

fuzz: $(VENV)/.fuzz
	nice -n 10 $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(ARGS)

browser: $(VENV)/.test
	$(BIN)/python -m pytest -q --tier browser tests/ui/browser $(ARGS)

screenshots: $(VENV)/.test
	$(BIN)/python -m tests.ui.browser.screenshots $(ARGS)

clean:
	rm -rf $(VENV) .venv-* .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache build src/*.egg-info patterns/src/*.egg-info patterns/simulation/src/*.egg-info

# `exec` above leaves make out of the way of signals; these files say what is installed.
$(VENV)/.runtime: pyproject.toml constraints.txt $(if $(VENV_IS_RIGHT),,new-venv)
	$(PIP) -e '.[all]'
	@touch $@

# Python is missing in $(VENV), is too old there, has no pip, or is not the one of PYTHON=….
.PHONY: new-venv
new-venv:
	@test -n "$(call VERSION_OF,$(PYTHON))" || { echo "Lazulite needs Python 3.11 or newer, which '$(PYTHON)' is not: run make with PYTHON=python3.12, for example" >&2; exit 1; }
	@test ! -e $(VENV) || echo "$(VENV) has no Python that fits, or no pip: it is made again with $(PYTHON)" >&2
	$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.test: $(VENV)/.runtime patterns/pyproject.toml patterns/simulation/pyproject.toml
	$(PIP) -e '.[all,test,bench]' -e 'patterns[test]' -e patterns/simulation
	@touch $@

# Where there is no atheris, fuzzing goes unguided.
$(VENV)/.fuzz: $(VENV)/.test
	$(PIP) -e '.[fuzz]' || true
	@touch $@
