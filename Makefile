# Everything that is done to this repository. Nothing is installed outside of $(VENV).

PYTHON ?= python3
VENV   ?= .venv
BENCH  ?=
FUZZ   ?=
MODELS ?=
STUDIES ?= --help

BIN    := $(VENV)/bin
SHIPPED := $(VENV)/shipped
STAMPS := $(VENV)/.done
SAMPLES := sample_traces/two-flows.pcapng.gz sample_traces/mixed.pcap.zst sample_traces/dumbbell.tr.xz \
	sample_traces/dccp-ccid3.pcap.gz

# What the compiled core is made from: a change to any of them builds it again.
CORE := pyproject.toml setup.py MANIFEST.in Cargo.toml Cargo.lock $(shell find parsers/native -path '*/target' -prune -o \
	-path '*/fuzz' -prune -o -type f \( -name '*.rs' -o -name '*.toml' \) -print)

# Both names: the second is what newer pip reads for the isolated build. Relative, because pip splits at blanks.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH
# Every process would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# What drives a browser is larger than all else that tests need, and of use where there is one.
BROWSER := $(if $(shell command -v chromium || command -v chromium-browser || command -v google-chrome),$(STAMPS)/browser)

# What is no package and has types, a run of mypy for each: in one run no two programs may share a name, and each run
# reads the types of the whole tool.
PROGRAMS := 'docs/generate.py evaluation/*.py evaluation/corpus/*.py evaluation/fields/*.py parsers/native/fuzz/*.py \
	tests/data/*.py sample_traces/studies/zhang/runs.py' \
	'evaluation/dumbbells/*.py evaluation/hostile/*.py evaluation/links/*.py' \
	'evaluation/kernel_farm/*.py sample_traces/make.py sample_traces/studies/casoni-merani/runs.py' \
	'benchmarks/run.py benchmarks/instructions.py benchmarks/batches.py benchmarks/decompression.py \
	tests/data/hangs/make.py sample_traces/studies/de-cicco-mascolo/runs.py' \
	'evaluation/bcp133/*.py tests/data/tunnels/make.py sample_traces/studies/lillis/runs.py' \
	'sample_traces/studies/make.py sample_traces/studies/rao-janani-reddy/runs.py'

# A list of requirements in pyproject.toml, one in a line.
listed = $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))$(1), sep="\n")'

# Modules are compiled when they are imported first, which few of them ever are.
FIRST_INSTALL = $(BIN)/pip install --quiet --no-compile

# The compiler works while pip fetches and unpacks: most of a minute on a fresh machine.
MAKEFLAGS += --jobs=2

.PHONY: help setup demo test test-slow test-all test-rust snapshots properties fuzz agreement lint licences format corpus models links studies bench bench-check docs screenshot clean
.DELETE_ON_ERROR:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/tfrctrace $(STAMPS)/test $(BROWSER) $(STAMPS)/lint ## make .venv and install the package and the tools of development

demo: $(STAMPS)/tfrctrace ## write a report on the sample traces and say where it is
	@mkdir -p demo
	$(BIN)/tfrctrace report $(SAMPLES) -o demo/report.html
	@echo "the report: file://$(CURDIR)/demo/report.html"

test: $(STAMPS)/tfrctrace $(STAMPS)/test $(BROWSER) ## run the Python test suite, without tests that are marked slow
	$(BIN)/pytest -n auto --dist worksteal

test-slow: $(STAMPS)/tfrctrace $(STAMPS)/test $(BROWSER) ## run the tests that are marked slow
	$(BIN)/pytest -n auto --dist worksteal -m slow $$(grep -rl 'mark\.slow' tests --include='test_*.py')

test-all: $(STAMPS)/tfrctrace $(STAMPS)/test $(BROWSER) ## run all tests, those of the core too
	$(BIN)/pytest -n auto --dist worksteal -m ''
	cargo test --locked --lib

snapshots: $(STAMPS)/tfrctrace $(STAMPS)/test ## show what changed in printed tables and documents, and ask what to keep
	$(BIN)/pytest --inline-snapshot=review -m '' $$(grep -rl 'from inline_snapshot import' tests)

test-rust: ## run the tests of the core
	cargo test --locked --lib

properties: $(STAMPS)/tfrctrace $(STAMPS)/test ## check each property with thousands of new draws (takes an hour)
	PROPTEST_CASES=20000 CARGO_PROFILE_DEV_OPT_LEVEL=2 cargo test --locked --lib --target-dir target/properties
	HYPOTHESIS_PROFILE=many $(BIN)/pytest -n auto --dist worksteal $$(grep -rl 'from hypothesis import' tests)

fuzz: $(STAMPS)/tfrctrace ## attack the commands, then run each fuzz target until it covers no more (make fuzz FUZZ='pair --seconds 600' HOSTILE='files --seconds 600')
	$(BIN)/python evaluation/hostile/run.py $(HOSTILE)
	$(PYTHON) parsers/native/fuzz/campaign.py $(FUZZ)

agreement: $(STAMPS)/tfrctrace ## compare packets and fields of your captures with tshark and tcptrace (make agreement CAPTURES='FOLDER...')
	$(BIN)/python evaluation/agreement.py $(CAPTURES)
	$(BIN)/python evaluation/fields/compare_fields.py $(CAPTURES)

lint: licences $(STAMPS)/tfrctrace $(STAMPS)/test $(STAMPS)/lint ## check style, types and licences of Python and Rust
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	for programs in $(PROGRAMS); do MYPYPATH=sample_traces/studies:tests/data:evaluation:evaluation/links:evaluation/kernel_farm $(BIN)/mypy $$programs || exit 1; done
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	cargo fmt --check
	cargo clippy --locked --all-targets --features python -- -D warnings

licences: $(STAMPS)/tfrctrace $(STAMPS)/test $(STAMPS)/lint ## compare licences of crates and packages with docs/licences.md
	$(BIN)/python .ci/licences.py

format: $(STAMPS)/lint ## format Python and Rust
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cargo fmt

corpus: $(STAMPS)/tfrctrace ## ask us, tshark and tcptrace about the labelled corpus, and write docs/classes-measured.md
	$(BIN)/python evaluation/corpus/confusion_matrix.py --write

models: $(STAMPS)/tfrctrace ## run ns-2 on dumbbells, and write the tables of docs/validation.md (options: make models MODELS='--references FOLDER')
	$(BIN)/python evaluation/dumbbells/measure.py --write $(MODELS)

links: $(STAMPS)/tfrctrace ## judge and audit drawn links, and write the tables of docs/validation.md
	$(BIN)/python evaluation/links/evaluate.py --write
	$(BIN)/python evaluation/links/evaluate_audit.py --write

studies: $(STAMPS)/tfrctrace ## simulate and measure the five papers at their own scale (make studies STUDIES='--out FOLDER')
	$(BIN)/python sample_traces/studies/make.py $(STUDIES)

bench: $(STAMPS)/shipped ## measure against other programs (options: make bench BENCH='--packets 1000000')
	$(SHIPPED)/bin/python benchmarks/run.py $(BENCH)

bench-check: $(STAMPS)/shipped ## compare the core's instructions for a packet with the recorded ones (make bench-check BENCH=--record)
	cargo build --quiet --locked --profile profiling --package tfrctrace-native --example analyse
	$(SHIPPED)/bin/python benchmarks/instructions.py target/profiling/examples/analyse $(BENCH)

docs: $(STAMPS)/tfrctrace $(STAMPS)/docs ## write the generated pages and build the documentation
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "the documentation: file://$(CURDIR)/docs/_build/html/index.html"

screenshot: demo ## take the README's picture of a report again (needs chromium)
	$(BIN)/tfrctrace report --quiet sample_traces/two-flows.pcapng.gz -o demo/picture.html
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --blink-settings=preferredColorScheme=1 \
		--virtual-time-budget=4000 --window-size=1200,2020 --screenshot=demo/picture.png file://$(CURDIR)/demo/picture.html
	$(BIN)/python -c "from PIL import Image; Image.open('demo/picture.png').convert('RGB').quantize(128).save('docs/images/report.png', optimize=True)"

clean: ## remove everything that was made here
	rm -rf $(VENV) target build dist demo docs/_build benchmarks/captures *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis parsers/_native*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(PYTHON) is too old: Python 3.11 or later is needed; name one with `make PYTHON=python3.12`")'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/build: $(STAMPS)/venv constraints.txt pyproject.toml
	@$(call listed,["build-system"]["requires"]) > $(STAMPS)/build.txt
	@grep -v uplot $(STAMPS)/build.txt | $(FIRST_INSTALL) --requirement /dev/stdin
	@# Only its two files are needed, and not IPython, on which it depends: so it is not in the environment itself.
	@grep uplot $(STAMPS)/build.txt | $(FIRST_INSTALL) --no-deps --target $(STAMPS)/uplot --upgrade --requirement /dev/stdin
	@touch $@

# A part of what the core is made from that is the same whether or not there is a Python yet.
$(STAMPS)/crates: Cargo.toml Cargo.lock
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust from https://rustup.rs" >&2; exit 1; }
	@cargo build --quiet --locked --profile quick --package arrow-data
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/core: $(STAMPS)/crates $(STAMPS)/build $(CORE)
	@echo "building and installing tfrctrace (minutes the first time)"
	@PYTHONPATH=$(CURDIR)/$(STAMPS)/uplot SETUPTOOLS_RUST_CARGO_PROFILE=quick $(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMPS)/libraries: $(STAMPS)/build constraints.txt pyproject.toml
	@echo "installing what tfrctrace needs"
	@$(call listed,["project"]["dependencies"]) > $(STAMPS)/libraries.txt
	@# The compiler uses all processors for the crates, and one for the first half of the core: this fills the others.
	@nice $(FIRST_INSTALL) --requirement $(STAMPS)/libraries.txt
	@# What a report imports is compiled here, and not at its start, when a single processor has work.
	@nice $(BIN)/python -c 'import matplotlib.backends.backend_svg, matplotlib.figure, msgspec, polars, typer'
	@touch $@

$(STAMPS)/tfrctrace: $(STAMPS)/core $(STAMPS)/libraries
	@touch $@

# What is measured is what is shipped: built as a wheel is, and not found by way of this folder.
$(STAMPS)/shipped: $(STAMPS)/venv constraints.txt $(CORE) $(shell find tfrctrace parsers metrics reports -name '*.py')
	@echo "building and installing what benchmarks measure (minutes)"
	$(PYTHON) -m venv $(SHIPPED)
	@$(SHIPPED)/bin/pip install --quiet '.[bench]'
	@touch $@

$(STAMPS)/%: $(STAMPS)/libraries constraints.txt pyproject.toml
	@echo "installing what $* needs"
	@$(call listed,["project"]["optional-dependencies"]["$*"]) > $(STAMPS)/$*.txt
	@$(FIRST_INSTALL) --requirement $(STAMPS)/$*.txt
	@touch $@

# Two pips at a time may not install the same package.
$(STAMPS)/browser: | $(STAMPS)/test
$(STAMPS)/dask: | $(STAMPS)/test $(BROWSER)
$(STAMPS)/moto: | $(STAMPS)/test $(BROWSER)
$(STAMPS)/lint: | $(STAMPS)/test $(BROWSER)
