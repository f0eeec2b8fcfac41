# Thin front of CMake: every target says what it runs. Options: JOBS=n, MODELS=folder of the real models.
JOBS ?= $(shell nproc)
BUILD = build/release
PROGRAM = $(BUILD)/cyb-llm
PROMPT ?= What is gravity?
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
# Alternations of the programs that bench-peers compares, where not the number that each comparison is made for.
rounds = $(if $(ROUNDS),--rounds $(ROUNDS))
# The lists of headers that the compiler writes tell ccache what a file depends on; else it runs the preprocessor once more.
export CCACHE_DEPEND = 1

.PHONY: help demo program web test test-page test-slow bench bench-peers fuzz lint format install setup clean

help:
	@echo "make demo         set up, build, get a small real model (94 MiB), answer a prompt"
	@echo "make test         build and run the tests and gates"
	@echo "make web          the program with the page that serve shows (installs nodejs and npm where there are none)"
	@echo "make test-page    the page's types and its tests in Chromium, with a real model"
	@echo "make test-slow    all real models, the page, ONNX, sanitizers, forced regimes (PARTS=\"tests clients page onnx tokenizers asan tsan regimes\")"
	@echo "make bench        micro benchmarks and cyb-llm bench"
	@echo "make bench-peers  cyb-llm in alternation with llama.cpp, the tokenizers package, and on ONNX models with ONNX Runtime and OpenVINO (ROUNDS=n: alternations)"
	@echo "make fuzz         every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make lint         clang-format and clang-tidy"
	@echo "make install      into PREFIX=$(PREFIX)"
	@echo "make setup        install the Debian packages that the build needs"
	@echo "make clean        remove build/"

setup:
	@tools/setup.sh build test

$(BUILD)/build.ninja:
	@cmake --preset release -Wno-dev >/dev/null

program: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) --target cyb-llm

# npm may be another package than Debian's: what is there is used. A program without it has no page, all else is the same.
web:
	@command -v npm >/dev/null || tools/setup.sh web
	@tools/setup.sh build
	@cmake --preset release -DCYB_WEB=ON -Wno-dev >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target cyb-llm

demo:
	@tools/setup.sh build
	@cmake --preset release -DCYB_TESTS=OFF -DCYB_EXAMPLES=OFF -B build/demo >/dev/null
	@cmake --build build/demo -j $(JOBS) --target cyb-llm
	@model=$$(python3 tools/fetch_models.py smollm2) && build/demo/cyb-llm run "$$model" "$(PROMPT)" --max-tokens 256

test:
	@tools/setup.sh build test
	@cmake --preset release -DCYB_AARCH64=$(if $(filter x86_64,$(shell uname -m)),ON,OFF) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
	@python3 tools/fetch_models.py smollm2 >/dev/null
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error -LE slow

test-page: web
	@command -v chromium >/dev/null || tools/setup.sh page
	@cd $(BUILD)/web/work && node node_modules/typescript/bin/tsc --noEmit
	@tests/e2e/page/run.sh $(BUILD) "$$(python3 tools/fetch_models.py smollm2)"

test-slow:
	@tools/setup.sh build test
	@JOBS=$(JOBS) tools/test_slow.sh $(PARTS)

bench:
	@tools/setup.sh build bench
	@cmake --preset bench >/dev/null
	@cmake --build build/bench -j $(JOBS)
	@for name in base cpu_dot; do build/bench/bench/bench_$$name || exit 1; done
	@model=$$(python3 tools/fetch_models.py smollm2) && build/bench/cyb-llm bench "$$model"

bench-peers: program
	@tools/setup.sh build peers
	@tools/venv.sh
	@build/venv/bin/python tools/bench_peers.py --program $(PROGRAM) $(rounds)
	@build/venv/bin/python tools/bench_tokenizers.py --program $(PROGRAM) $(rounds)
	@python3 tools/build_peers.py >/dev/null && python3 tools/bench_serve.py --program $(PROGRAM) --idle 1000 $(rounds)
	@tools/venv.sh bench
	@build/venv-bench/bin/python tools/bench_onnx.py --program $(PROGRAM) --save build/bench_onnx.json $(rounds)

fuzz:
	@tools/setup.sh build fuzz
	@JOBS=$(JOBS) tools/fuzz.sh $(FUZZ_SECONDS)

lint:
	@tools/setup.sh build test lint
	@JOBS=$(JOBS) tools/lint.sh

format:
	@git ls-files -z '*.cpp' '*.hpp' '*.h' '*.c' | xargs -0 clang-format-19 -i

install: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) --target cyb-llm cyb
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	@rm -rf build
