# The one task file. CI (.ci/run) calls these targets and no others.
#
#   make venv install     a virtual environment in .venv with everything in it
#   make quick            style, types, contracts, and the tests that take a moment: while you write
#   make check            what CI checks first, in CI's order: before you share
#   make nightly          every test, at the size of an hour and with new draws
#   make soak             the same tests at the size of hours, then faults and audits by the million; goes on where it was stopped
#   make PY=python test   use another interpreter than .venv's

VENV ?= .venv
PY ?= $(VENV)/bin/python
PYTHON ?= python3
# One more than the cores CI has: some tests wait, for a browser or for somebody's death.
WORKERS ?= 3
export PYTHONPATH := src

.PHONY: help venv install constraints format lint types contracts docs wheel dist test quick quick-test check nightly soak bench audit lapwing-faults clean

help:
	@sed -n 's/^#   //p' Makefile
	@echo "targets: venv install constraints format lint types contracts docs wheel dist test quick check nightly soak bench audit lapwing-faults clean"

venv:
	$(PYTHON) -m venv $(VENV)

# uv takes a third of pip's time. It knows nothing of pip's settings: where it cannot reach what pip reaches, pip does it.
PACKAGES = --quiet --constraint constraints.txt --editable '.[dev,docs]'
install:
	$(PY) -m pip install --quiet --constraint constraints.txt uv
	UV_LINK_MODE=copy UV_SYSTEM_CERTS=1 $(PY) -m uv pip install --python $(PY) $(PACKAGES) || $(PY) -m pip install $(PACKAGES)

# Resolves again; the result is reviewed like any other change.
constraints:
	@echo '# Versions the checks run with. Made by `make constraints`; the three pins that carry the guarantee are in pyproject.toml.' > constraints.new
	$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header --all-extras pyproject.toml >> constraints.new
	mv constraints.new constraints.txt

format:
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lint:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types:
	$(PY) -m mypy src tests docs/conf.py docs/make_trusted_base.py $(wildcard benchmarks)

contracts:
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

# Warnings are errors (-W), as is a reference to a name of ours that does not exist (-n); --keep-going shows them all at once.
docs:
	rm -rf docs/reference/generated
	$(PY) -m sphinx -W -n --keep-going -q -b html docs docs/_build/html

# A source archive, and a wheel made from it that installs and imports in an environment that has never seen the source tree.
wheel:
	./.ci/wheel $(PY)

# The same, kept in dist/: what a release publishes.
dist:
	rm -rf dist
	./.ci/wheel $(PY) dist

PYTEST = $(PY) -m pytest -q -n $(WORKERS) --dist loadgroup

# A test that hangs is stopped, and where it was is shown; the slowest are listed, since a run has little time.
test:
	PYTHONHASHSEED=0 $(PYTEST) --timeout 900 --durations 30

# Prints figures; there is no threshold to fail. BENCH passes arguments, such as BENCH="--rows 1_000_000".
bench:
	$(PY) -m benchmarks.bounding_plans $(BENCH)

# A million runs of everything, in hours; stop it at will, it goes on where it was. AUDIT passes arguments, such as AUDIT="--only plan/".
audit:
	$(PY) -m benchmarks.audit_report $(AUDIT)
	$(PY) -m benchmarks.audit_report --page > docs/reference/audit-report.md

# Faults at random against the ledger on PostgreSQL and the server over it, for an hour; it goes on where it was. FAULTS passes arguments:
# FAULTS="--minutes 600", or FAULTS="--only served --kills 310" for kills of the whole product alone.
lapwing-faults:
	$(PY) -m tests.faults.campaign $(FAULTS)

# Types and tests beside each other; what each says is shown when it is done.
quick: lint contracts
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target types quick-test

quick-test:
	$(PYTEST) -m 'not slow' $(addprefix tests/unit/,answers catalog engines kernel planning render sql) tests/golden

# Every test, with draws of a night of its own. NIGHTLY passes arguments, such as NIGHTLY="--third 0"; SEED repeats the draws of a night.
SEED ?= $(shell date +%F)
nightly:
	LAPWING_TIER=nightly LAPWING_SEED="$(SEED)" $(PYTEST) --timeout 900 --durations 30 $(NIGHTLY)

# What has passed is kept under the commit's name, so that a stopped soak goes on and a new commit begins anew. 5: no test is left.
soak:
	LAPWING_TIER=soak $(PYTEST) --resume .soak/$$(git rev-parse HEAD) || test $$? -eq 5
	$(MAKE) lapwing-faults
	$(MAKE) audit

# test comes last, so that the output ends with pytest's own summary.
check: lint types contracts docs wheel test

clean:
	rm -rf build dist docs/_build docs/reference/generated .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .soak
