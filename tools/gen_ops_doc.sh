#!/bin/sh
# Writes docs/ops.md from the op tables of a build: tools/gen_ops_doc.sh [path of test_conformance].
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
binary=${1:-$root/build/release/tests/test_conformance}
CYB_WRITE_OPS_DOC=$root/docs/ops.md "$binary" --gtest_filter=OpsDoc.IsWhatTheTablesSay >/dev/null || true
# The second run reads what the first one wrote: it fails if the text was not written.
"$binary" --gtest_filter='OpsDoc.*'
