#!/bin/sh
# Makes build/venv with the packages pinned in tools/requirements.txt (oracles and peers; never needed to build or run), or
# build/venv-NAME with those of tools/requirements-NAME.txt.
# llama-cpp-python is built from its source package with the machine's own instruction set, as its users do.
# usage: tools/venv.sh [NAME]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
suffix=${1:+-$1}
venv=build/venv$suffix
wanted=tools/requirements$suffix.txt
mark=$venv/.requirements
if [ -f "$mark" ] && cmp -s "$wanted" "$mark"; then exit 0; fi
mkdir -p build
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
CMAKE_ARGS="-DGGML_NATIVE=ON" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  --no-binary llama-cpp-python -r "$wanted"
cp "$wanted" "$mark"
