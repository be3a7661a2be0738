# Two commands do all the set-up: `make demo` and `make test`. Both make a virtual environment in .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CONSTRAINTS := constraints.txt

.PHONY: demo test test-slow lint docs zoo networks networks-quick power sweep-kill adversary fuzz kill-campaign clean venv

venv: $(STAMP)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 10) <= v <= (3, 13) else f"trtconv needs Python 3.10 to 3.13, this is {v[0]}.{v[1]}; say make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) torch
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[cpu,sign,dev]'
	@# Real trained weights for one example; its dependencies (an old torch) are not wanted.
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --no-deps facenet-pytorch
	@# Headers of TensorRT 10.14 and the plugin registry of 11.4, with which the plugins' C++ is tested without a GPU.
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --no-deps kernel-lens
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/lean \
		tensorrt-lean-cu13-libs==11.4.0.106 tensorrt-lean-cu13-bindings==11.4.0.106
	@touch $(STAMP)

demo: venv
	$(BIN)/trtconv doctor
	$(BIN)/trtconv convert --config examples/text_attention.toml -o out/text_attention
	$(BIN)/trtconv convert --config examples/refinedet.toml -o out/refinedet
	@echo; echo "Made:"; ls -lh out/text_attention out/refinedet | grep -v ^total

# One thread for each of the two workers: with torch's own count they wait for each other.
test: venv
	OMP_NUM_THREADS=1 TRTCONV_LEAN_SITE=$(CURDIR)/$(VENV)/lean $(BIN)/python -m pytest -q -n 2 --dist worksteal \
		-m "not gpu and not slow" --durations=20 --durations-min=8

# What compiles kernels, builds every rule's result with TensorRT-RTX and exports more of the zoo (20 minutes on two cores).
test-slow: venv
	TRTCONV_LEAN_SITE=$(CURDIR)/$(VENV)/lean $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "slow and not gpu"

lint: venv
	$(BIN)/ruff check .
	$(BIN)/mypy

# The documentation as a site in build/site. Every warning is an error, and so is a page that loads something over the
# network. To look at it: open build/site/index.html.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m docs_site.outside build/site

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[docs]'
	@touch $@

# The conversion zoo: every case through export, rewrite and a TensorRT-RTX build; fails when one got worse.
zoo: venv
	$(BIN)/python -m tests.zoo.run_zoo $(ZOO)

# Whole networks of public packages: `make networks FILTER=yolo`. Without a filter it takes hours; a stopped run goes on.
networks: venv
	$(BIN)/python -m networks $(FILTER) --write $(NETWORKS)

# The part of them that the workflow `networks` converts.
networks-quick: venv
	$(BIN)/python -m networks --quick --seconds 600 $(NETWORKS)

# How many small faults `trtconv check` reports on every example and 20 networks of the zoo (an hour on two cores).
power: venv
	$(BIN)/python -m benchmarks proof.power $(POWER)

# 200 kills of a sweep's driver at random moments, each resumed: nothing is lost, nothing is done twice (half an hour).
sweep-kill: venv
	$(BIN)/python -m benchmarks sweep.kills $(KILLS)

# Attacks on "never silently wrong", modules and graphs; each has to end as it is written down (half an hour).
adversary: venv
	$(BIN)/python -m tests.adversary --all $(ADVERSARY)

# Hostile input for everything that trtconv reads; what is found is kept in tests/fuzz/findings and run by the tests.
MINUTES ?= 10
fuzz: venv
	$(BIN)/python -m tests.fuzz.campaign --minutes $(MINUTES) $(FUZZ)

# SIGKILL at random moments of convert, rewrite, build, check and the cache; afterwards no set may be mixed unseen.
kill-campaign: venv
	$(BIN)/python -m benchmarks proof.kills $(KILL)

clean:
	rm -rf out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
