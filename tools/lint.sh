#!/bin/sh
# clang-format and clang-tidy over the project's own sources; any finding is an error.
# usage: tools/lint.sh [FILE...]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
files=${*:-$(git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | grep -v '^tests/golden/')}
echo "$files" | xargs clang-format-19 --dry-run -Werror
echo "lint: clang-format has nothing to say on $(echo "$files" | wc -w) files"
cmake --preset lint >/dev/null
sources=$(echo "$files" | tr ' ' '\n' | grep '^src/.*\.cpp$' || true)
[ -n "$sources" ] || exit 0
echo "$sources" | xargs -P "${JOBS:-$(nproc)}" -n 4 clang-tidy-19 --quiet -p build/lint
echo "lint: clang-tidy has nothing to say on $(echo "$sources" | wc -w) files"
