#!/bin/sh
# The slow suite: everything under ASan+UBSan, the threaded tests under TSan, all real models, and the whole suite again
# under forced regimes (CYB_BACKEND, CYB_PATH, CYB_ISA, CYB_THREADS). Ends with a list of what passed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
jobs=${JOBS:-$(nproc)}
passed=""
failed=""

step() {
  name=$1
  shift
  echo "==== $name"
  if "$@"; then passed="$passed
  ok      $name"; else failed="$failed
  FAILED  $name"; fi
}

build() { cmake --preset "$1" >/dev/null && cmake --build "build/$1" -j "$jobs"; }
suite() { folder=$1; shift; ctest --test-dir "build/$folder" -j "$jobs" --output-on-failure --no-tests=error "$@"; }

python3 tools/fetch_models.py all >/dev/null
step "build release" build release
step "all tests, all real models" suite release

# ONNX against onnxruntime, torch and the cases of the onnx package.
onnx() { script=$1; shift; build/venv-onnx/bin/python "tests/conformance/onnx_backend/$script" "$@"; }
step "packages for ONNX" tools/venv.sh onnx
step "ONNX backend cases" onnx run.py --driver build/release/tests/onnx_driver
step "ONNX operators of com.microsoft" onnx contrib.py --driver build/release/tests/onnx_driver
step "real ONNX models" onnx real.py --program build/release/cyb-llm
step "tiny models from torch" onnx tiny.py --program build/release/cyb-llm

# The examples are programs without a sanitizer: they cannot load a library that has one.
step "build asan" build asan
step "asan" env ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1 CYB_SLOW=0 \
  ctest --test-dir build/asan -j "$jobs" --output-on-failure --no-tests=error -LE slow -E '^gate_|^Api.ExamplesRun'
step "build tsan" build tsan
step "tsan" ctest --test-dir build/tsan -j 1 --output-on-failure --no-tests=error -LE slow -R 'Pool|Thread|Determin|Session|Engine|Concurren|Cancel'

isas=$(build/release/cyb-llm backends --json | python3 -c 'import json,sys; print(" ".join(next((b.get("isas", []) for b in json.load(sys.stdin)["backends"] if b["name"] == "cpu"), [])))')
for isa in $isas; do
  step "regime cpu, ISA $isa" env CYB_BACKEND=cpu CYB_ISA="$isa" ctest --test-dir build/release -j "$jobs" --output-on-failure -LE slow -E '^gate_|fuzz_replay'
done
step "regime reference" env CYB_BACKEND=reference ctest --test-dir build/release -j "$jobs" --output-on-failure -LE slow -E '^gate_|fuzz_replay'
for path in curated graph; do
  step "regime path $path" env CYB_PATH="$path" ctest --test-dir build/release -j "$jobs" --output-on-failure -LE slow -E '^gate_|fuzz_replay'
done
for threads in 1 3; do
  step "regime $threads threads" env CYB_THREADS="$threads" ctest --test-dir build/release -j "$jobs" --output-on-failure -LE slow -E '^gate_|fuzz_replay'
done

echo "==== summary$passed$failed"
[ -z "$failed" ]
