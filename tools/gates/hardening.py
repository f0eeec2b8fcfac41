#!/usr/bin/env python3
"""Hardening gate: the program is position independent, has full RELRO, a stack protector, fortified calls and no executable
stack or other segment that is both writable and executable.

usage: hardening.py PROGRAM"""
import re
import shutil
import subprocess
import sys
import tempfile

import source


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def check(path):
    problems = []
    if not re.search(r"Type:\s+DYN", readelf("-h", path)):
        problems.append("not position independent")
    segments = readelf("-l", path)
    if "GNU_RELRO" not in segments:
        problems.append("no RELRO segment")
    dynamic = readelf("-d", path)
    if not re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic):
        problems.append("RELRO is partial: symbols are bound lazily")
    stack = re.search(r"^\s+GNU_STACK\b.*0x[0-9a-f]+ ([R ][W ][E ]) 0x[0-9a-f]+\s*$", segments, re.M)
    if not stack or "E" in stack.group(1):
        problems.append("the stack is executable")
    for line in segments.splitlines():
        if re.match(r"\s+LOAD\b.*\sRWE\s", line):
            problems.append("a segment is writable and executable")
    symbols = readelf("--dyn-syms", path)
    if "__stack_chk_fail" not in symbols:
        problems.append("no stack protector")
    if not re.search(r"__\w+_chk\b(?<!__stack_chk)", symbols.replace("__stack_chk_fail", "")):
        problems.append("no fortified call")
    return [f"{path}: {problem}" for problem in problems], "1 program"


def self_test():
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler or not shutil.which("readelf"):
        raise SystemExit("hardening: needs a C compiler and readelf")
    with tempfile.TemporaryDirectory() as folder:
        name = folder + "/a.c"
        with open(name, "w", encoding="utf-8") as f:
            f.write("int main(void) { return 0; }\n")
        subprocess.run([compiler, "-no-pie", "-fno-stack-protector", "-Wl,-z,norelro,-z,execstack", name, "-o", name + ".out"], check=True)
        problems, _ = check(name + ".out")
    assert len(problems) == 6, problems


if __name__ == "__main__":
    self_test()
    sys.exit(source.finish("hardening", *check(sys.argv[1])))
