#!/usr/bin/env python3
"""Size gate: file <= 400 lines (soft) and 600 (hard), function <= 60 (kernels 120), at most 3 % of functions longer,
parameters <= 6, nesting <= 4, README of every source folder <= 15 lines. Tables (.inc) and generated code are free."""
import os
import sys

import source

SOFT_FILE, HARD_FILE, FUNCTION, KERNEL, SHARE, PARAMETERS, NESTING, README = 400, 600, 60, 120, 0.03, 6, 4, 15

SELF_TEST = """
namespace a {
class B {
 public:
  explicit B(int x) : x_{x}, y_(x) {
    for (;;) {
      if (x) {
        while (x) {
          do {
            if (x) { x = 0; }
          } while (x);
        }
      }
    }
  }
  bool operator()(int a, int b) const { return a < b; }
  int x_, y_;
};
constexpr int kTable[] = {1, 2, 3};  // { not a function
const char* text = "void f(int) {";
template <class T, class U>
std::map<int, T> many(int a, std::pair<int, int> b, U c, int d, int e, int f, int g = h(1, 2)) noexcept {
  auto inner = [&](int q) { return q + 'x' + 1'000; };
  return {};
}
void long_one() {
""" + "  x();\n" * 59 + """}
}
"""


def is_kernel(path):
    return "/kernels/" in path


def check_functions(path, functions):
    problems, longer = [], 0
    for f in functions:
        where = f"{path}:{f.first}: {f.name}"
        if f.parameters > PARAMETERS:
            problems.append(f"{where}: {f.parameters} parameters, at most {PARAMETERS}")
        if f.nesting > NESTING:
            problems.append(f"{where}: nesting {f.nesting}, at most {NESTING}")
        if f.lines > KERNEL:
            problems.append(f"{where}: {f.lines} lines, at most {KERNEL}")
        elif f.lines > FUNCTION and not is_kernel(path):
            longer += 1
    return problems, longer


def check(root):
    problems, notes, n_functions, n_longer, longer_names = [], [], 0, 0, []
    for path in source.files(root, ["src", "include", "examples", "fuzz", "bench", "tests"], (".cpp", ".hpp", ".c", ".h")):
        text = source.read(root, path)
        lines = text.count("\n")
        if lines > HARD_FILE:
            problems.append(f"{path}: {lines} lines, at most {HARD_FILE}")
        elif lines > SOFT_FILE:
            notes.append(f"note: {path}: {lines} lines, aim at {SOFT_FILE}")
        if path.startswith(("tests", "bench")):
            continue
        functions = source.functions(text)
        found, longer = check_functions(path, functions)
        problems += found
        n_functions += len(functions)
        n_longer += longer
        if longer:
            longer_names += [f"note: {path}:{f.first}: {f.name}: {f.lines} lines" for f in functions if f.lines > FUNCTION]
    if n_longer > SHARE * n_functions:
        problems += longer_names
        problems.append(f"{n_longer} of {n_functions} functions are longer than {FUNCTION} lines, at most {SHARE:.0%} may be")
    problems += check_readmes(root)
    print("\n".join(notes)) if notes else None
    return problems, f"{n_functions} functions, {n_longer} over {FUNCTION} lines"


def check_readmes(root):
    problems, src = [], os.path.join(root, "src")
    for folder in sorted(os.listdir(src)) if os.path.isdir(src) else []:
        path = f"src/{folder}/README.md"
        if not source.files(root, [f"src/{folder}"]):
            continue
        if not os.path.isfile(os.path.join(root, path)):
            problems.append(f"{path}: missing")
        elif source.read(root, path).count("\n") > README:
            problems.append(f"{path}: more than {README} lines")
    return problems


def self_test():
    functions = {f.name: f for f in source.functions(SELF_TEST)}
    assert set(functions) == {"B", ")", "many", "long_one"} or set(functions) == {"B", "operator", "many", "long_one"}, functions.keys()
    assert functions["B"].nesting == 5 and functions["B"].parameters == 1, vars(functions["B"])
    assert functions["many"].parameters == 7, functions["many"].parameters
    assert functions["long_one"].lines == 61, functions["long_one"].lines
    problems, longer = check_functions("src/x.cpp", functions.values())
    assert len(problems) == 2 and longer == 1, problems
    assert check_functions("src/backends/cpu/kernels/x.cpp", functions.values())[1] == 0


if __name__ == "__main__":
    self_test()
    sys.exit(source.finish("sizes", *check(sys.argv[1])))
