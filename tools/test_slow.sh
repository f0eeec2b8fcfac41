#!/bin/sh
# The slow suite: all tests with all real models, the page in Chromium, ONNX and tokenizers against other implementations, everything
# under ASan+UBSan, the threaded tests under TSan, and the whole suite again under forced regimes (CYB_BACKEND, CYB_PATH, CYB_ISA, CYB_THREADS).
# Ends with a list of what passed.
# usage: tools/test_slow.sh [tests] [clients] [page] [onnx] [tokenizers] [asan] [tsan] [regimes]      (default: all of them)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
jobs=${JOBS:-$(nproc)}
passed=""
failed=""
parts=${*:-tests clients page onnx tokenizers asan tsan regimes}
for part in $parts; do
  case $part in
    tests | clients | page | onnx | tokenizers | asan | tsan | regimes) ;;
    *) echo "test_slow: $part is none of: tests clients page onnx tokenizers asan tsan regimes" >&2; exit 1 ;;
  esac
done
wanted() { case " $parts " in *" $1 "*) true ;; *) false ;; esac; }

step() {
  name=$1
  shift
  echo "==== $name"
  began=$(date +%s)
  if "$@"; then result="ok     "; else result="FAILED "; failed=yes; fi
  passed="$passed
  $result $name ($(($(date +%s) - began)) s)"
}

build() { cmake --preset "$1" >/dev/null && cmake --build "build/$1" -j "$jobs"; }
suite() { folder=$1; shift; ctest --test-dir "build/$folder" -j "$jobs" --output-on-failure --no-tests=error "$@"; }
onnx() { script=$1; shift; build/venv-onnx/bin/python "tests/conformance/onnx_backend/$script" "$@"; }
# 10,000 texts for every kind of tokenizer, made by the packages themselves, and the tests on them.
texts() { script=$1; shift; build/venv-tokenizers/bin/python "tests/golden/make/$script" --random 10000 --out "$@"; }
kinds() { CYB_TOKENIZER_KINDS="build/tokenizer_kinds" build/release/tests/test_text --gtest_filter='*Kinds*'; }
files() { CYB_TOKENIZER_FILES="build/tokenizer_files" build/release/tests/test_import --gtest_filter='*SentencePiece*:*Tiktoken*'; }
client() { venv=$1; "build/venv-$venv/bin/python" "tests/e2e/clients/$2" --program build/release/cyb-llm "$(python3 tools/fetch_models.py smollm2)"; }
regime() { env "$@" ctest --test-dir build/release -j "$jobs" --output-on-failure -LE slow -E "^gate_|fuzz_replay|^aarch64$unfit"; }
unfit=

python3 tools/fetch_models.py all >/dev/null
if wanted tests || wanted clients || wanted onnx || wanted tokenizers || wanted regimes; then step "build release" build release; fi
if wanted tests; then step "all tests, all real models" suite release; fi
if wanted clients; then
  step "packages of clients" tools/venv.sh clients
  step "64 marked prompts over HTTP" python3 tests/e2e/clients/markers.py --program build/release/cyb-llm \
    "$(python3 tools/fetch_models.py smollm2)"
  for name in openai ollama langchain litellm; do step "the client $name" client clients "${name}_client.py"; done
  step "schemathesis" client clients openapi_check.py
  step "packages of LlamaIndex" tools/venv.sh llamaindex
  step "the client llamaindex" client llamaindex llamaindex_client.py
  if [ "$(node -p 'parseInt(process.versions.node)' 2>/dev/null || echo 0)" -ge 20 ]; then
    step "the openai package of npm" client clients npm_client.py
  else
    passed="$passed
  not run the openai package of npm (it needs Node 20)"
  fi
fi
if wanted page; then
  if command -v npm >/dev/null && command -v chromium >/dev/null; then
    step "the page in Chromium" make --no-print-directory test-page JOBS="$jobs"
  else
    passed="$passed
  not run the page in Chromium (no npm or no chromium: make test-page installs them)"
  fi
fi
if wanted onnx; then
  step "packages for ONNX" tools/venv.sh onnx
  step "ONNX backend cases" onnx run.py --driver build/release/tests/onnx_driver
  step "ONNX operators of com.microsoft" onnx contrib.py --driver build/release/tests/onnx_driver
  step "real ONNX models" onnx real.py --program build/release/cyb-llm
  step "tiny models from torch" onnx tiny.py --program build/release/cyb-llm
fi
if wanted tokenizers; then
  step "packages for tokenizers" tools/venv.sh tokenizers
  step "texts of the tokenizers package" texts tokenizer_kinds.py build/tokenizer_kinds
  step "tokenizer.json, 10,000 texts a kind" kinds
  step "texts of sentencepiece and tiktoken" texts tokenizer_files.py build/tokenizer_files
  step "sentencepiece and tiktoken, 10,000 texts a kind" files
  # The vocabularies that llama.cpp's sources carry, where tools/build_peers.py has put them.
  vocabularies=$(ls -d "${XDG_CACHE_HOME:-$HOME/.cache}"/cyb-llm/peers/llama_cpp_python-*/vendor/llama.cpp/models 2>/dev/null | tail -n 1)
  if [ -n "$vocabularies" ]; then
    step "vocabularies of llama.cpp" python3 tools/check_vocabularies.py "$vocabularies" --program build/release/cyb-llm
  else
    passed="$passed
  not run vocabularies of llama.cpp (python3 tools/build_peers.py fetches them)"
  fi
fi
if wanted asan; then
  step "build asan" build asan
  # The examples are programs without a sanitizer: they cannot load a library that has one. RealPlan weighs the process, and a sanitizer
  # with it.
  step "asan" env ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1 CYB_SLOW=0 \
    ctest --test-dir build/asan -j "$jobs" --output-on-failure --no-tests=error -LE slow -E '^gate_|^Api.ExamplesRun|^RealPlan'
fi
if wanted tsan; then
  step "build tsan" build tsan
  step "tsan" ctest --test-dir build/tsan -j 1 --output-on-failure --no-tests=error -LE slow \
    -R 'Pool|Thread|Determin|Session|Engine|Concurren|Cancel|Tensor|CpuBackend|Server|Http|Scheduler|BatchMarkers'
fi
if wanted regimes; then
  isas=$(build/release/cyb-llm backends --json | python3 -c 'import json,sys; print(" ".join(next((b.get("isas", []) for b in json.load(sys.stdin)["backends"] if b["name"] == "cpu"), [])))')
  for isa in $isas; do step "regime cpu, ISA $isa" regime CYB_BACKEND=cpu CYB_ISA="$isa"; done
  step "regime reference" regime CYB_BACKEND=reference
  step "regime path graph" regime CYB_PATH=graph
  # Models of tensors have the graph path alone.
  unfit='|^TensorModel|^TensorFiles|^TensorPasses|^MediaInput|^Plan\.'
  step "regime path curated" regime CYB_PATH=curated
  unfit=
  for threads in 1 3; do step "regime $threads threads" regime CYB_THREADS="$threads"; done
fi

echo "==== summary$passed"
[ -z "$failed" ]
