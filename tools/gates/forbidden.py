#!/usr/bin/env python3
"""Forbidden-call gate: what may not appear in src/ (comments and literals aside), with the folders where each is allowed."""
import re
import sys

import source

# (name, pattern, folders or files where it is allowed)
RULES = [
    ("ending the process", r"\b(?:std\s*::\s*)?(?:abort|exit|_exit|_Exit|quick_exit|terminate)\s*\(", ["src/cli/"]),
    ("printing", r"\b(?:std\s*::\s*)?(?:printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|fputc|perror)\s*\(|\bfmt\s*::\s*print\w*\s*\(", ["src/cli/"]),
    ("standard streams", r"\bstd\s*::\s*(?:cout|cerr|clog|cin)\b|#\s*include\s*<iostream>", ["src/cli/"]),
    ("assert on input", r"(?<![\w_])assert\s*\(", ["src/base/thread_pool", "src/tensor/", "src/ops/", "src/backends/", "src/paths/"]),
    ("std::regex", r"\bstd\s*::\s*w?(?:regex|smatch|cmatch)\b|#\s*include\s*<regex>", []),
    ("number parsing without bounds", r"\b(?:std\s*::\s*)?(?:sto(?:i|l|ll|ul|ull|f|d|ld)|ato(?:i|l|ll|f)|strto(?:l|ll|ul|ull|f|d|ld|imax|umax)|v?[fs]?scanf)\s*\(", []),
    ("unbounded string functions", r"\b(?:strcpy|strcat|sprintf|vsprintf|gets|alloca|strtok)\s*\(", []),
    # Inside the template engine a failure unwinds from deep expressions; Template::compile and render catch it at the door.
    ("throw", r"\bthrow\b", ["src/text/template/"]),
    ("random numbers outside Philox", r"\b(?:mt19937(?:_64)?|default_random_engine|minstd_rand0?|uniform_\w+_distribution|normal_distribution|discrete_distribution)\b|(?<![\w_])(?:s?rand|random|drand48)\s*\(", []),
    # The system's entropy is for seeds and names of temporary files, never for results.
    ("system randomness", r"\brandom_device\b|\bgetrandom\s*\(", ["src/runtime/sampling.cpp", "src/model/store"]),
    ("volatile", r"\bvolatile\b(?!\s*\()", []),
    ("atomic floats", r"\batomic(?:_ref)?\s*<\s*(?:float|double|long\s+double|std\s*::\s*float)", []),
    ("starting programs", r"(?<![\w.>])(?:(?:std\s*)?::\s*)?(?:system|popen|execl\w*|execv\w*|posix_spawnp?)\s*\(|(?<![\w])::\s*v?fork\s*\(", []),
    ("loading libraries", r"\bdlopen\s*\(", ["src/backends/wgpu/"]),
    ("std::format and <print>", r"\bstd\s*::\s*(?:v?format|print|println)\b|#\s*include\s*<(?:format|print)>", []),
    ("fast-math pragmas", r"#\s*pragma\s+(?:omp|STDC\s+FP_CONTRACT\s+ON)|fast-math|\bfast_math\b", []),
    ("detached threads", r"\.\s*detach\s*\(\s*\)", []),
]


def check_text(path, text):
    code = source.blank(text)
    problems = []
    for name, pattern, allowed in RULES:
        if any(path.startswith(prefix) for prefix in allowed):
            continue
        for match in re.finditer(pattern, code):
            line = code.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: {name}: {match.group(0).strip()}")
    return problems


def check(root):
    problems, names = [], source.files(root, ["src"])
    for path in names:
        problems += check_text(path, source.read(root, path))
    return problems, f"{len(names)} files"


def self_test():
    planted = ["std::abort();", "exit(1);", "printf(\"x\");", "std::cerr << 1;", "assert(x);", "std::regex r;", "int i = std::stoi(s);",
               "throw 1;", "std::mt19937 g;", "std::random_device d;", "volatile int v;", "std::atomic<float> a;", "system(c);", "std::system(c);", "::fork();", "dlopen(p, 0);",
               "std::format(f);", "t.detach();", "rand();", "#include <iostream>", "strtol(p, e, 10);", "::_exit(1);"]
    for line in planted:
        assert check_text("src/model/a.cpp", line), line
    innocent = ["// std::abort();", "auto s = \"exit(1) throw\";", "static_assert(sizeof(int) == 4);", "asm volatile(\"yield\");",
                "on_exit_code(kind);", "fmt::format(\"x\");", "fmt::format_to(out, \"x\");", "grammar.terminate_state = 1;",
                "std::atomic<std::uint32_t> a;", "int exit_code(ErrorKind kind) noexcept;", "snprintf(b, 1, \"\");", "R\"(throw)\";",
                "model.system(x);", "Sequence fork() const;", "Sequence Sequence::fork() const {", "vector.at(rand_index);"]
    for line in innocent:
        assert not check_text("src/model/a.cpp", line), (line, check_text("src/model/a.cpp", line))
    assert not check_text("src/cli/main.cpp", "std::exit(2); std::cerr << 1;")


if __name__ == "__main__":
    self_test()
    sys.exit(source.finish("forbidden", *check(sys.argv[1])))
