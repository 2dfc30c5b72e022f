# A thin wrapper: every target is one or two commands that you could type yourself.
# Only python3 and make are needed; the first run makes .venv and installs into it, later ones start at once.

VENV := .venv
BIN := $(VENV)/bin
EXTRAS := cli,server,postgres,mysql,vectors,embeddings,runs,dbos,otel,testing,pydantic-ai,langchain,openai-agents,agent-framework,mcp,django,flask
DEMO := server,runs
BENCH := runs
# The first python3 that is new enough. Say `make test PYTHON=/path/to/python3` to choose another one.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)

# What to install is one argument, so lists with commas come in by name.
# uv first, because it takes seconds; pip where uv cannot be had or cannot reach what pip is configured for.
define install
@echo "installing $(1) into $(VENV)"
@if [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1); then :; \
	else $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && $(BIN)/python -m pip install --quiet $(1); fi
@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help serve test check format bench clean

help:  ## Show this list
	@echo "onfile: memory for AI assistants"
	@sed -n 's/^\([a-z]*\):.*##/  make \1 /p' Makefile

serve: $(VENV)/serve.stamp  ## Set everything up and run the demo on 127.0.0.1 (ARGS="--port 8080")
	@$(BIN)/onfile serve --demo $(ARGS)

test: $(VENV)/test.stamp  ## Set everything up and run all tests, two at a time (ARGS="-k digest -x": these, one at a time)
	@$(BIN)/python -m pytest $(if $(ARGS),$(ARGS),-n 2 --dist worksteal)

check: $(VENV)/check.stamp  ## Format, lint, types, import contract, dependencies, spelling: all of them, then the verdict
	@failed=; for tool in 'ruff format --check' 'ruff check' 'pyright' 'lint-imports --no-logo' 'deptry src' 'codespell'; do \
		printf '%s\n' "== $$tool"; $(BIN)/$$tool || failed="$$failed [$$tool]"; \
	done; [ -z "$$failed" ] || { echo "make check failed:$$failed"; exit 1; }

format: $(VENV)/check.stamp  ## Format the code and fix what can be fixed without you
	@$(BIN)/ruff check --quiet --fix-only; $(BIN)/ruff format

bench: $(VENV)/bench.stamp  ## Measure what the docs claim (BENCH=load, or any other module in bench/)
	@$(BIN)/python -m bench.$(BENCH) $(ARGS)

clean:  ## Remove the environment and every cache
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build

# A stamp is older than pyproject.toml after a change to it, so the next run installs again.
$(VENV)/venv.stamp:
	@if [ -z "$(PYTHON)" ]; then echo "onfile needs Python 3.11 or newer, and no python3 here is that new: install one, or name it with PYTHON=..." >&2; exit 1; fi
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8,<1' || echo "uv could not be installed, so pip does it all: slower, otherwise the same"
	@touch $@

$(VENV)/serve.stamp: pyproject.toml $(VENV)/venv.stamp
	$(call install,--editable '.[$(DEMO)]')

$(VENV)/test.stamp: pyproject.toml $(VENV)/venv.stamp
	$(call install,--editable '.[$(EXTRAS)]' --group test)

$(VENV)/bench.stamp: pyproject.toml $(VENV)/venv.stamp
	$(call install,--editable '.[$(EXTRAS)]' --group bench)

$(VENV)/check.stamp: pyproject.toml $(VENV)/venv.stamp
	$(call install,--editable '.[$(EXTRAS)]' --group dev)
