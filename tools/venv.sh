#!/bin/sh
# Makes build/venv with the packages pinned in tools/requirements.txt (oracles and peers; never needed to build or run).
# llama-cpp-python is built from its source package with the machine's own instruction set, as its users do.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
mark=build/venv/.requirements
if [ -f "$mark" ] && cmp -s tools/requirements.txt "$mark"; then exit 0; fi
mkdir -p build
[ -x build/venv/bin/python ] || python3 -m venv build/venv
CMAKE_ARGS="-DGGML_NATIVE=ON" build/venv/bin/python -m pip install --quiet --disable-pip-version-check \
  --no-binary llama-cpp-python -r tools/requirements.txt
cp tools/requirements.txt "$mark"
