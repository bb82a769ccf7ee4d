# `make` alone lists the main targets. They install into .venv and the cache only, and name a missing program with the command that installs it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPARK ?= 1
# Pins the pyspark that is tested; the package's extra takes a wider range.
CONSTRAINTS := constraints.txt
# Tests start Python some hundred times. Where this variable is set, as in many images of containers, each start would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=
STAMP := $(VENV)/.installed-$(if $(filter 0,$(SPARK)),dev,all)

comma := ,

.DEFAULT_GOAL := help
.PHONY: help demo report test test-all conformance long fuzz check docs generate rules bench race ab broker needs needs-java needs-browser needs-clients needs-valgrind needs-go install

help:
	@echo "make demo         check real clients and Spark on three brokers (SPARK=0 leaves Spark out)"
	@echo "make broker       start three brokers on ports 9092 to 9094 (ARGS=\"...\" adds options)"
	@echo "make report       write the report of a recorded trace or a capture (TRACE=DIR OUT=DIR)"
	@echo "make conformance  run the conformance suite, also on Kafka (ARGS=\"--bootstrap HOST:PORT\" for yours)"
	@echo "make test         run the fast tests, which need only Python (ARGS=\"...\" adds options of pytest)"
	@echo "make test-all     run every test: also Java, a real Kafka, Spark, a browser, and the slow ones"
	@echo "make check        check format, lint, types, import contracts and generated files"
	@echo "make docs         build the documentation into site/"
	@echo "make ab           compare speed and memory of the working tree with BASE (default: HEAD)"
	@echo "make race         measure the broker against bare asyncio, kfake and a real Kafka"
	@echo "make bench        measure codec, quotas, traces, kafka_py and the race; writes docs/benchmarks.md"
	@echo "make long         run slow comparisons with a missing or outdated result (ARGS=--list lists them)"

needs:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or later is missing ($$($(PYTHON) --version 2>&1)). Get it: apt install python3.11 python3.11-venv, or brew install python@3.11;" \
	       "then run make PYTHON=python3.11 ..." >&2; exit 1; }
	@case "$$(uname -s)" in Linux|Darwin) ;; *) echo "kafkaproto runs on Linux and macOS; on Windows use it inside WSL" >&2; exit 1;; esac

needs-java: needs
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { \
	  echo "A JDK 17 or later is missing (Spark and the Java oracle need it). Get it: apt install openjdk-17-jdk-headless, or brew install openjdk@17;" \
	       "make demo SPARK=0 does without" >&2; exit 1; }

needs-browser:
	@for name in $${KAFKAPROTO_BROWSER:-} chromium chromium-browser google-chrome google-chrome-stable; do command -v "$$name" >/dev/null && exit 0; done; \
	  echo "A browser is missing: the report's page is tested in one. Get it: apt install chromium, or brew install --cask chromium, or set KAFKAPROTO_BROWSER" >&2; exit 1

$(VENV)/.installed-dev: EXTRAS := dev
$(VENV)/.installed-all: EXTRAS := dev,spark
$(VENV)/.installed-%: pyproject.toml Makefile $(CONSTRAINTS) | needs
	@echo "installing into $(VENV): $(EXTRAS)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment. Get what is missing: apt install python3-venv" >&2; exit 1; }
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[$(EXTRAS)]'
	@$(BIN)/python -m compileall -q kafkaproto broker
	@touch $@

install: $(STAMP)

demo: $(if $(filter 0,$(SPARK)),needs,needs-java) $(STAMP)
	@$(BIN)/python -m kafkaproto.pipeline.demo $(if $(filter 0,$(SPARK)),--without-spark,)

report: OUT ?= $(patsubst %/,%,$(TRACE)).tables
report: needs-java $(VENV)/.installed-all
	@test -n "$(TRACE)" || { echo "make report needs a trace: make report TRACE=DIR, of kafkaproto broker --trace DIR" >&2; exit 3; }
	@$(BIN)/python -m kafkaproto.pipeline.trace.report "$(TRACE)" --out "$(OUT)" $(ARGS)

needs-go:
	@command -v go >/dev/null || { \
	  echo "Go is missing: kfake, which the race measures, is built with it. Get it: apt install golang-go, or brew install go;" \
	       "make race ARGS=--alone does without" >&2; exit 1; }

needs-clients:
	@for name in mvn go npm; do command -v $$name >/dev/null || { \
	  echo "$$name is missing: tests run the clients in Java, Go and JavaScript of the documentation. Get it: apt install maven golang-go npm," \
	       "or brew install maven go node" >&2; exit 1; }; done

needs-valgrind:
	@command -v valgrind >/dev/null || { echo "valgrind is missing: make ab counts instructions with it. Get it: apt install valgrind" >&2; exit 1; }

# Markers of tests that need more than Python or take long; tests/rules.py knows the same.
test: $(or $(wildcard $(VENV)/.installed-all),$(VENV)/.installed-dev)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not java and not spark and not browser and not slow" $(ARGS)

# Two workers keep two cores busy; the others get the tests that mostly wait (tests/support/scheduling.py).
test-all: needs-java needs-clients needs-browser needs-valgrind $(VENV)/.installed-all
	$(BIN)/python -m pytest -q -n 4 --dist loadfile --max-worker-restart 0 -p tests.time_by_file $(ARGS)

conformance: needs-java $(VENV)/.installed-all
	@$(BIN)/python -m tests.conformance $(if $(RIVALS),--subjects ours-kafka$(comma)ours-kafka-manual$(comma)ours-kip-manual$(comma)real$(comma)kfake$(comma)librdkafka-mock) $(ARGS)

long: needs-java $(VENV)/.installed-all
	$(BIN)/python -m tests.long_run $(ARGS)

fuzz: SECONDS ?= 1200
fuzz: $(STAMP)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz $(SECONDS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m kafkaproto.generator --check
	$(BIN)/python -m tests.rules
	$(BIN)/python -m tests.documentation

docs: $(STAMP)
	@$(BIN)/python -c 'import mkdocs, material, mkdocstrings' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@if grep -rlE '(src|<link[^>]*href)="https?:' site --include=*.html; then echo "these pages load files from elsewhere" >&2; exit 1; fi
	@echo "site/index.html is written: open it in a browser"

generate: $(STAMP)
	$(BIN)/python -m kafkaproto.generator

rules: $(STAMP)
	$(BIN)/python -m tests.rules

bench: needs-java needs-go $(VENV)/.installed-all
	$(BIN)/python -m benchmarks.codec
	$(BIN)/python -m benchmarks.costs
	$(BIN)/python -m benchmarks.kafka_py --check
	$(BIN)/python -m benchmarks.race --check

race: $(if $(findstring --alone,$(ARGS)),,needs-java needs-go) $(STAMP)
	$(BIN)/python -m benchmarks.race $(if $(findstring --alone,$(ARGS)),,--check) $(ARGS)

ab: BASE ?= HEAD
ab: $(STAMP)
	@$(BIN)/python -m benchmarks.ab $(BASE) $(ARGS)

broker: $(STAMP)
	@$(BIN)/kafkaproto broker --brokers 3 -c 0.broker.rack=a -c 1.broker.rack=b -c 2.broker.rack=c \
	  -c replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector $(ARGS)
