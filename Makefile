# Two commands: `make demo` and `make test`. Both set up .venv first, and are fast the second time.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
EXTRAS := .venv/.extras
TORCH := .venv/.torch
# Tests, and the programs that they start, share what was compiled.
COMPILED := JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.venv/compiled JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.1

.PHONY: demo test test-slow fuzz mutants sequences lint docs package benchmark clean

demo: $(READY)  ## learn the three rooms of Figure 1: a table, a picture, and a report to open
	$(BIN)/understudy reproduce fig1

test: $(EXTRAS)  ## everything but the slow tests
	$(COMPILED) $(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow"

test-slow: $(TORCH)  ## the tests that take minutes
	$(COMPILED) $(BIN)/python -m pytest -q -m "slow or torch"

fuzz: $(EXTRAS)  ## 56,000 spoilt files for the readers; a quarter of an hour
	UNDERSTUDY_FUZZ=3500 $(COMPILED) $(BIN)/python -m pytest -q tests/demos/test_fuzz.py

mutants: $(EXTRAS)  ## does a test notice 120 small changes to the sources? hours; goes on where it was
	$(BIN)/python tools/mutants.py --count 120 --seed 0

sequences: $(EXTRAS)  ## 2,000 sequences of all that can happen to a run's folder
	UNDERSTUDY_SEQUENCES=2000 $(COMPILED) $(BIN)/python -m pytest -q tests/experiments/test_folders.py

lint: $(EXTRAS)  ## format, lint and types (pyright needs Node.js)
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/pyright

docs: $(EXTRAS)  ## the documentation, to site/index.html; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q

package: $(READY)  ## wheel and sdist, installed into an empty environment and used; minutes
	$(COMPILED) bash tests/distribution.sh

benchmark: $(READY)  ## the compiled learner beside a plain NumPy loop
	$(BIN)/python benchmarks/tabular.py

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" \
	  || { echo "understudy needs Python 3.11 or newer; set PYTHON=python3.12, say"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check --no-deps -e .
	@touch $@

# What the demo can do without: simulators, formats, trackers, and the tools of tests and docs.
$(EXTRAS): requirements-extras.lock $(READY)
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -r requirements-extras.lock
	@touch $@

# PyTorch, for Stable-Baselines3 and a benchmark: large, and so apart.
$(TORCH): requirements-torch.lock $(EXTRAS)
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -r requirements-torch.lock
	@touch $@

clean:
	rm -rf .venv runs site
