#!/bin/sh
# Installs the Debian packages that a purpose needs (tools/packages.txt). Does nothing where all are there.
# usage: tools/setup.sh [build] [test] [web] [page] [bench] [peers] [fuzz] [lint]      (default: build test)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
purposes=${*:-build test}

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "setup: this is not a Debian system; install the libraries named in tools/packages.txt yourself." >&2
  exit 0
fi

installed() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }
available() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }

# Lines of the sections asked for.
wanted=$(awk -v purposes=" $purposes " '
  /^#/ || /^$/ { next }
  /^\[/ { section = substr($0, 2, length($0) - 2); next }
  index(purposes, " " section " ") { print }' "$here/packages.txt" | sort -u)

find_missing() {
  missing=""
  unknown=""
  OLD_IFS=$IFS
  IFS='
'
  for line in $wanted; do
    IFS=$OLD_IFS
    found=""
    candidate=""
    for name in $(echo "$line" | tr '|' ' '); do
      if installed "$name"; then found=yes; break; fi
      if [ -z "$candidate" ] && available "$name"; then candidate=$name; fi
    done
    if [ -z "$found" ]; then
      if [ -n "$candidate" ]; then missing="$missing $candidate"; else unknown="$unknown $line"; fi
    fi
    IFS='
'
  done
  IFS=$OLD_IFS
}

find_missing
[ -n "$missing$unknown" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "setup: missing packages:$missing$unknown" >&2
    echo "setup: run as root, or install sudo, or: apt-get install$missing$unknown" >&2
    exit 1
  fi
  as_root="sudo"
fi
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"; }

if [ -n "$unknown" ]; then
  echo "setup: reading the package lists" >&2
  apt update >&2
  find_missing
fi
if [ -n "$unknown" ]; then
  echo "setup: this release has no package for:$unknown" >&2
  exit 1
fi
echo "setup: installing$missing" >&2
# The lists may be older than the archive: read them and try once more.
apt install --yes --no-install-recommends $missing >&2 || { apt update >&2 && apt install --yes --no-install-recommends $missing >&2; }
