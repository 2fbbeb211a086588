# Two commands matter: `make demo` and `make test`. Both set up everything they need in .venv.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/ready

CHROMIUM := /usr/bin/chromium

.PHONY: demo test types tests nightly bench docs lock clean chromium java

demo: $(READY)
	@$(BIN)/discretion demo

test: $(READY) chromium java
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory --jobs 2 types tests

# Side by side: many tests wait for processes, browsers and clocks.
types:
	$(BIN)/mypy

tests:
	$(BIN)/pytest -n 2 --dist loadgroup --durations 25

nightly: $(READY) chromium java
	$(BIN)/pytest -n 2 --dist loadgroup -m "slow or not slow"

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/pytest tests/test_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "open docs-output/index.html"

# The pages are tested in Chromium, which is installed if we may; if not, the tests of the pages are skipped and say so.
chromium:
	@if [ ! -x $(CHROMIUM) ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; fi; \
	if [ ! -x $(CHROMIUM) ]; then echo "The pages are NOT tested: there is no $(CHROMIUM), and it cannot be installed here."; fi

# Spark needs Java 17 or newer, which is installed if we may; if not, the tests with Spark are skipped and say so.
java:
	@if ! command -v java >/dev/null && [ -z "$$JAVA_HOME" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null; fi; \
	if ! command -v java >/dev/null && [ -z "$$JAVA_HOME" ]; then \
	    echo "Spark is NOT tested: there is no Java, and it cannot be installed here."; fi

# The environment is rebuilt when the lock or the project file changes, and reused otherwise.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --no-compile --no-deps --require-hashes -r requirements.lock  # the lock names everything
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

lock: pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	    --extra dev --output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache demo-output docs-output bench-output
