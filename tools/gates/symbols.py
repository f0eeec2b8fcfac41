#!/usr/bin/env python3
"""Symbol gate: an inline function compiled in a file of ISA kernels may be the copy that the linker keeps for every caller.
So objects of src/backends/*/kernels define no weak or unique symbol of ours outside a per-target namespace (N_AVX2, ...),
and none at all where the file was compiled with ISA flags. Also: no object asks for an executable stack.

usage: symbols.py SOURCE_ROOT BUILD_FOLDER"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import source

TARGET = re.compile(r"::(?:N_[A-Z][A-Z0-9_]*|isa_\w+)(?:::|\b)")
OURS = re.compile(r"\bcyb::")
ISA_FLAG = re.compile(r"(?:^|\s)-m(?:avx|sse4|fma|f16c|arch=|cpu=|bmi)\S*")


def weak_symbols(nm, path):
    """Demangled names of defined weak (W, V) and unique (u) symbols."""
    done = subprocess.run([nm, "-C", "--defined-only", path], capture_output=True, text=True, check=True)
    names = []
    for line in done.stdout.splitlines():
        match = re.match(r"[0-9a-f]*\s+([WVwvu])\s+(.*)", line)
        if match:
            names.append(match.group(2))
    return names


def check_object(label, names, has_isa_flags):
    problems = []
    for name in names:
        # The namespace of the symbol itself counts, not one in its template arguments or parameters.
        owner = re.split(r"[<(]", re.sub(r"^(?:vtable for|typeinfo(?: name)? for|guard variable for) ", "", name), maxsplit=1)[0]
        if TARGET.search("::" + owner):
            continue
        if has_isa_flags or OURS.search(owner):
            problems.append(f"{label}: weak symbol {name}")
    return problems


def check(root, build):
    nm = shutil.which("nm") or "nm"
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    problems, n = [], 0
    for entry in entries:
        path = os.path.relpath(entry["file"], root)
        if not re.match(r"src/backends/[^/]+/kernels/", path):
            continue
        command = entry.get("command") or " ".join(entry["arguments"])
        output = entry.get("output") or re.search(r"\s-o\s+(\S+)", command).group(1)
        output = os.path.join(entry["directory"], output)
        if not os.path.exists(output):
            problems.append(f"{path}: object {os.path.basename(output)} is not built")
            continue
        n += 1
        problems += check_object(path, weak_symbols(nm, output), bool(ISA_FLAG.search(command)))
    return problems, f"{n} objects"


def self_test():
    """Compiles a planted violation and its repair."""
    compiler, nm = shutil.which("g++") or shutil.which("c++"), shutil.which("nm")
    if not compiler or not nm:
        raise SystemExit("symbols: needs a C++ compiler and nm")
    bad = "namespace cyb { inline int f(int x) { return x * 2; } int g(int x); int (*k)(int) = &f; }\n"
    good = "namespace cyb { namespace N_AVX2 { inline int f(int x) { return x * 2; } } static int h(int x) { return x; } int (*k)(int) = &N_AVX2::f; int (*l)(int) = &h; }\n"
    with tempfile.TemporaryDirectory() as folder:
        for text, expected in ((bad, 1), (good, 0)):
            name = os.path.join(folder, "a.cpp")
            with open(name, "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run([compiler, "-c", name, "-o", name + ".o"], check=True)
            assert len(check_object("a", weak_symbols(nm, name + ".o"), False)) == expected, text
    assert check_object("a", ["std::vector<int>::push_back(int const&)"], True)
    assert not check_object("a", ["std::vector<int>::push_back(int const&)"], False)
    assert check_object("a", ["cyb::f(cyb::N_AVX2::T)"], False)


if __name__ == "__main__":
    self_test()
    sys.exit(source.finish("symbols", *check(sys.argv[1], sys.argv[2])))
