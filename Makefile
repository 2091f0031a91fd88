# The same targets run here and in CI. `make demo` and `make test` need nothing but Python >= 3.10 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TOOLKIT := $(VENV)/.toolkit

.PHONY: demo test unit thorough lint types imports format extension docs bench fuzz clean install

install: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --quiet --disable-pip-version-check install --editable '.[dev]'
	@touch $@

## the main job on real input: findings over a folder of kernels, then confirmed by running them
demo: $(STAMP) $(TOOLKIT)
	@$(BIN)/cuda-lsp check fixtures/demo --dynamic emulator --fail-on never

# Where no nvcc is, NVIDIA's compiler as wheels; without it (or g++) the demo says what is missing.
$(TOOLKIT): $(STAMP)
	@command -v nvcc >/dev/null || test -x /usr/local/cuda/bin/nvcc || \
		$(BIN)/python -m pip --quiet --disable-pip-version-check install --editable '.[toolkit]' || true
	@touch $@

## what every change runs: everything this machine can, of what takes long a part; what is skipped says why
test: $(STAMP) lint types imports
	$(BIN)/python -m pytest tests/protocol tests/e2e -n 3 --dist loadfile
	$(BIN)/python -m pytest tests/unit tests/gpu -n 2 --dist loadgroup

unit: $(STAMP)
	$(BIN)/python -m pytest tests/unit -n 2 --dist loadgroup

## all of what takes long as well, before a release or a merge that changes verdicts: hours on two slow cores
thorough: $(STAMP)
	$(BIN)/python -m pytest tests/unit -n 2 --dist loadgroup -m ''

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/pyright

imports: $(STAMP)
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

extension:
	cd vscode-extension && npm ci --no-audit --no-fund && npm run package

## the documentation as a site, in site/
docs: $(STAMP)
	@$(BIN)/python -m pip --quiet --disable-pip-version-check install --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

## texts and conversations that nobody should have; tests/unit/test_fuzz.py runs a short part of it
fuzz: $(STAMP)
	$(BIN)/python tests/fuzz/sources.py --count 10000
	$(BIN)/python tests/fuzz/settings.py --seconds 60
	$(BIN)/python tests/fuzz/faults.py --seconds 120
	$(BIN)/python tests/fuzz/conversations.py --messages 5000

bench: $(STAMP)
	$(BIN)/python benchmarks/latency.py

clean:
	rm -rf $(VENV) build dist test-artifacts .pytest_cache .ruff_cache .hypothesis
