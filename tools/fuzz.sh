#!/bin/sh
# Runs every fuzz target for the given seconds with ASan and UBSan. Inputs that reach new code are kept for the next run in
# build/fuzz/found/<target>/; a crash is kept as fuzz/corpus/<target>/crash-<hash>, where the replays of `make test` read it,
# and ends the run with an error.
# usage: tools/fuzz.sh SECONDS [TARGET...]
set -eu
seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
cmake --preset fuzz >/dev/null
cmake --build build/fuzz -j "${JOBS:-$(nproc)}"
targets=${*:-$(cd build/fuzz/fuzz && ls | grep '^fuzz_' | sed 's/^fuzz_//')}
[ -n "$targets" ] || { echo "fuzz: no target was built" >&2; exit 1; }
failed=""
for target in $targets; do
  corpus="fuzz/corpus/$target"
  found="build/fuzz/found/$target"
  mkdir -p "$corpus" "$found"
  echo "fuzz: $target for $seconds s, $(ls "$corpus" | wc -l) inputs"
  if ! "build/fuzz/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
       -artifact_prefix="$corpus/crash-" "$found" "$corpus"; then
    failed="$failed $target"
  fi
done
if [ -n "$failed" ]; then
  echo "fuzz: failed:$failed (the inputs are in fuzz/corpus/<target>/crash-*)" >&2
  exit 1
fi
echo "fuzz: all targets passed: $(echo $targets | tr '\n' ' ')"
