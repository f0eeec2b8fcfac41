#!/bin/sh
# The page's tests in Chromium: against the mock and against the program with a real model. Screenshots go to build/page/shots.
# usage: tests/e2e/page/run.sh BUILD_FOLDER MODEL
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
build=$(cd "$1" && pwd)
work=$root/build/page
[ -d "$build/web/work/dist" ] || { echo "run.sh: $1 has no page: configure with -DCYB_WEB=ON" >&2; exit 1; }
mkdir -p "$work/shots"
cp tests/e2e/page/*.mjs tests/e2e/page/package.json tests/e2e/page/package-lock.json "$work"
cd "$work"
# No script of a package runs: the browser is the system's.
if ! cmp -s package-lock.json .installed; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp package-lock.json .installed
fi
export DIST="$build/web/work/dist" SHOTS="$work/shots" PROGRAM="$build/cyb-llm" MODEL="$2"
exec node --test mock_test.mjs real_test.mjs
