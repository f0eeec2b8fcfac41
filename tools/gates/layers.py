#!/usr/bin/env python3
"""Layer gate: an #include goes only to a lower-numbered folder of src/ or stays in its own folder; depth under src/ <= 3."""
import re
import sys

import source

LAYERS = {"base": 0, "tensor": 1, "ops": 2, "model": 3, "backends": 3, "text": 4, "media": 4, "paths": 4, "import": 5,
          "net": 5, "runtime": 5, "compile": 5, "server": 6, "api": 6, "cli": 7}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
MAX_DEPTH = 3  # src/backends/cpu/kernels is the deepest


def check_file(path, text):
    """Problems of one file, `path` relative to the repository."""
    parts = path.split("/")
    folder = parts[1]
    if folder not in LAYERS:
        return [f"{path}: folder src/{folder} has no layer number"]
    problems = []
    if len(parts) - 2 > MAX_DEPTH:
        problems.append(f"{path}: deeper than {MAX_DEPTH} folders under src/")
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        target = name.split("/")[0]
        line = text.count("\n", 0, match.start()) + 1
        if kind == '"' and name.startswith("."):
            problems.append(f"{path}:{line}: \"{name}\": write includes from src/ on")
        elif kind == '"' and "/" not in name and folder != "cli":
            problems.append(f"{path}:{line}: \"{name}\": write includes from src/ on")
        if target not in LAYERS or "/" not in name:
            continue
        if target != folder and LAYERS[target] >= LAYERS[folder]:
            problems.append(f"{path}:{line}: {folder} ({LAYERS[folder]}) includes \"{name}\" of {target} ({LAYERS[target]})")
    return problems


def check_public(path, text):
    """The public headers stand alone: no header of src/."""
    problems = []
    for match in INCLUDE.finditer(text):
        if match.group(2).split("/")[0] in LAYERS and "/" in match.group(2):
            problems.append(f"{path}: public header includes \"{match.group(2)}\"")
    return problems


def check(root):
    problems, names = [], source.files(root, ["src"])
    for path in names:
        problems += check_file(path, source.read(root, path))
    public = source.files(root, ["include"])
    for path in public:
        problems += check_public(path, source.read(root, path))
    if len([p for p in public if p.startswith("include/cyb/") and p.endswith(".hpp")]) > 8:
        problems.append("include/cyb: more than 8 C++ headers")
    return problems, f"{len(names) + len(public)} files"


def self_test():
    assert check_file("src/model/a.cpp", '#include "tensor/dtype.hpp"\n#include "model/b.hpp"\n#include <vector>\n') == []
    assert len(check_file("src/model/a.cpp", '#include "runtime/engine.hpp"\n')) == 1
    assert len(check_file("src/model/a.cpp", '  #  include "backends/backend.hpp"\n')) == 1  # same number, other folder
    assert len(check_file("src/base/a.cpp", '#include "../tensor/dtype.hpp"\n')) == 1
    assert len(check_file("src/other/a.cpp", "")) == 1
    assert len(check_public("include/cyb/a.hpp", '#include "runtime/engine.hpp"\n')) == 1


if __name__ == "__main__":
    self_test()
    sys.exit(source.finish("layers", *check(sys.argv[1])))
