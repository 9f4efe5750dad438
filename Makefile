# make demo: install, then profile, recommend and train here.
# make test: install, then run all checks but those of the slow tiers.
# make test-all: run those as well, and the demo.
# make test-under-load: run `make test` three times beside four busy loops.
# make chaos: as root, break runs at random; RUNS=200 FIRST=0 OUT=chaos.jsonl.
# make old-python: install what the tests of old boards need.

# A pyenv shim may exist without running, so each candidate is asked for its own path.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.version_info < (3, 11) and sys.exit(1); print(sys.executable)' \
	2>/dev/null && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
OLD := .venv36/bin
OLD_STAMP := .venv36/.installed

# Tests start hundreds of processes, each of which would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-all test-under-load chaos venv old-python lint clean
.DELETE_ON_ERROR:

demo: venv
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

# Most tests wait for processes that they start, so there are more workers than cores.
WORKERS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

# Tiers of tests that `make test` leaves out: markers, which pyproject.toml explains.
TIERS := tensorflow python36 lab e2e chaos
SLOW := $(shell echo $(TIERS) | sed 's/ / or /g')
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -rs

# Import contracts and the Python 3.6 of what ships to devices are tests of their own.
test: lint
	$(PYTEST) -m "not ($(SLOW))"
	@echo "Not run: $(TIERS); 'make test-all' runs these tiers, and the demo."

test-slow: venv
	$(PYTEST) -m "$(SLOW)"

test-all: test test-slow demo

# A test that a busy machine can fail fails here first.
test-under-load: venv
	@loops=""; trap 'kill $$loops' EXIT; \
	for _ in 1 2 3 4; do while :; do :; done & loops="$$loops $$!"; done; \
	for round in 1 2 3; do echo "round $$round of 3"; $(MAKE) --no-print-directory test || exit 1; done

# Stopped, it goes on where it was; docs/reliability.md tells what it has found.
RUNS ?= 200
FIRST ?= 0
OUT ?= chaos.jsonl
chaos: venv
	$(BIN)/python -m tests.chaos --runs $(RUNS) --first $(FIRST) --out $(OUT)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

venv: $(STAMP)

# uv does not read pip's settings, so it is told where pip would also look for wheels.
$(STAMP): pyproject.toml constraints.txt
	@python="$(PYTHON)"; set -eu; \
	test -n "$$python" || { echo "No Python 3.11 or newer found; say where one is: make PYTHON=/path/to/python3"; exit 1; }; \
	echo "Installing into .venv (a minute or two the first time)"; \
	if command -v uv >/dev/null; then \
		links=$$(echo $${PIP_FIND_LINKS:-$$("$$python" -m pip config get global.find-links 2>/dev/null)} | tr ' ' ','); \
		if test -n "$$links"; then export UV_FIND_LINKS="$$links"; fi; \
		uv venv --quiet --allow-existing --python "$$python" .venv; \
		uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[torch,tensorflow,export,tensorboard,metrics,test,dev]'; \
	else \
		"$$python" -c 'import ensurepip' 2>/dev/null || { echo "$$python makes no virtual environments; remedy: apt install python3-venv"; exit 1; }; \
		"$$python" -m venv .venv; \
		$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch,tensorflow,export,tensorboard,metrics,test,dev]'; \
	fi
	@touch $@

# The software of a Jetson TX2, or nearly. What needs it is skipped, visibly, where there is none.
old-python: $(OLD_STAMP)

$(OLD_STAMP): constraints-old.txt
	@set -eu; \
	python=$$(for python in python3.6 $$(ls -d "$$(pyenv root 2>/dev/null)"/versions/3.6*/bin/python 2>/dev/null); do \
		$$python -c 'import sys; sys.version_info[:2] != (3, 6) and sys.exit(1); print(sys.executable)' 2>/dev/null && break; \
	done) || { echo "No Python 3.6 found, neither python3.6 nor one of pyenv's"; exit 1; }; \
	echo "Installing into .venv36 (a minute or two)"; \
	"$$python" -m venv --clear .venv36; \
	$(OLD)/python -m pip install --quiet --upgrade 'pip<22'; \
	$(OLD)/python -m pip install --quiet -c constraints-old.txt tensorflow-cpu
	@touch $@

clean:
	rm -rf .venv .venv36 build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
