#!/usr/bin/env python3
"""Build llama.cpp's llama-bench, llama-completion, llama-perplexity and llama-server with native flags, for the tools that compare.

The source is the one inside the source package of llama-cpp-python (pinned), fetched with pip and checked; the
programs stay in the user's cache. Needs pip, cmake, ninja and a C++ compiler; takes some 15 minutes on two cores.
"""
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile

from cyb_tools import ToolError, cache_dir, main_guard, say

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
TARGETS = ("llama-bench", "llama-completion", "llama-perplexity", "llama-server")
OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF",
           "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_TOOLS=ON",
           "-DLLAMA_USE_PREBUILT_UI=OFF", "-DBUILD_SHARED_LIBS=ON")


def step(command, **kw):
    say("+", " ".join(command))
    if subprocess.run(command, stdout=sys.stderr, check=False, **kw).returncode != 0:
        raise ToolError(f"this step failed: {' '.join(command)}")


def fetch(folder):
    archive = os.path.join(folder, f"llama_cpp_python-{VERSION}.tar.gz")
    if not os.path.exists(archive):
        step([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--disable-pip-version-check",
              "--dest", folder, f"{PACKAGE}=={VERSION}"])
    with open(archive, "rb") as f:
        found = hashlib.sha256(f.read()).hexdigest()
    if found != SHA256:
        raise ToolError(f"{archive} has SHA-256 {found}, expected {SHA256}. Remove it and run again.")
    source = os.path.join(folder, f"llama_cpp_python-{VERSION}")
    if not os.path.isdir(source):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
    return os.path.join(source, "vendor", "llama.cpp")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=cache_dir("peers"), help="folder for source, build and programs (default: the user's cache)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="parallel compilations (default: one a core)")
    args = parser.parse_args()
    for tool in ("cmake", "ninja"):
        if not shutil.which(tool):
            raise ToolError(f"{tool} is missing (Debian: apt-get install cmake ninja-build)")
    folder = os.path.abspath(args.dir)
    os.makedirs(folder, exist_ok=True)
    if all(os.access(os.path.join(folder, "build", "bin", t), os.X_OK) for t in TARGETS):
        say("already built")
    else:
        source, build = fetch(folder), os.path.join(folder, "build")
        launcher = [f"-DCMAKE_{x}_COMPILER_LAUNCHER=ccache" for x in ("C", "CXX")] if shutil.which("ccache") else []
        step(["cmake", "-G", "Ninja", "-S", source, "-B", build, *OPTIONS, *launcher])
        step(["ninja", "-C", build, f"-j{args.jobs}", *TARGETS])
    for target in TARGETS:
        print(os.path.join(folder, "build", "bin", target))
    return 0


if __name__ == "__main__":
    main_guard(main)
