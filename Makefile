# `make check` is what a change must pass. The tools come with `pip install -e '.[dev]'`.
PYTHON ?= python3
SPHINX = $(PYTHON) -m sphinx -q -W --keep-going

.PHONY: check lint types views contracts test bench soak fuzz sanitize docs docs-text clean

check: lint types contracts test docs

lint:
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

# The page's modules, by the types in their comments; node fetches the checker.
views:
	npx --yes --package typescript@5 tsc -p jsconfig.json

# import-linter has no `python -m` form; PYTHONPATH makes it read this tree, not an installed copy.
contracts:
	PYTHONPATH=src $(PYTHON) -c 'from importlinter.cli import lint_imports_command as f; f()' --no-logo --no-cache

test:
	$(PYTHON) -m pytest

bench:
	$(PYTHON) benchmarks/schedule.py
	$(PYTHON) benchmarks/reduce.py
	$(PYTHON) benchmarks/hosts.py

soak:
	$(PYTHON) -m pytest --soak

# The part of `soak` that changes files for the readers, for one of them: `make fuzz READER=nccl_log`.
SECONDS ?= 600
SEED ?= $(shell date +%s)
fuzz:
	PYTHONPATH=src:tests $(PYTHON) tests/fuzzing.py $(READER) $(SECONDS) $(SEED)

# The parts of `soak` that build the native core anew, with the compiler's sanitizers.
sanitize:
	$(PYTHON) -m pytest --soak tests/test_engine_threads.py tests/test_sanitizers.py

docs:
	$(SPHINX) -b html docs docs/_build/en
	$(SPHINX) -b html -D language=zh_CN docs docs/_build/zh
	$(PYTHON) -m pytest tests/test_docs_build.py

# After a change of the English text: refresh the message catalogues, then translate what is new.
docs-text:
	$(SPHINX) -b gettext docs docs/_build/gettext
	$(PYTHON) -m sphinx_intl -c docs/conf.py update -p docs/_build/gettext -l zh_CN

clean:
	rm -rf build dist docs/_build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find benchmarks docs examples src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
