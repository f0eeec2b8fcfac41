#!/usr/bin/env python3
"""Ids of vocabulary-only GGUF files: each NAME.gguf in FOLDER that has NAME.gguf.inp (texts) and NAME.gguf.out (ids) is imported as a
tokenizer alone and every text is encoded. Exit code 1 where an id differs.

    check_vocabularies.py FOLDER [--program build/release/cyb-llm] [NAME...]
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

SEPARATOR = "\n__ggml_vocab_test__\n"


def ids_of(program, model, text, folder):
    path = os.path.join(folder, "text")
    with open(path, "wb") as f:
        f.write(text.encode())
    done = subprocess.run([program, "tokenize", model, "--no-bos", "--json", "--file", path], capture_output=True, text=True)
    return json.loads(done.stdout)["ids"] if done.returncode == 0 else done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--program", default="build/release/cyb-llm")
    args = parser.parse_args()
    bad = n_files = 0
    for out in sorted(glob.glob(os.path.join(args.folder, "*.gguf.out"))):
        source = out[:-len(".out")]
        if args.names and not any(n in source for n in args.names):
            continue
        n_files += 1
        with open(source + ".inp", encoding="utf-8", newline="") as f:
            texts = f.read().split(SEPARATOR)
        with open(out) as f:
            wanted = [[int(i) for i in line.split()] for line in f.read().split("\n")]
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "t.model")
            done = subprocess.run([args.program, "import", source, "--tokenizer-only", "-q", "-o", model], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{os.path.basename(source)}: {done.stderr.strip()}")
                bad += 1
                continue
            equal = 0
            for text, want in zip(texts, wanted):
                got = ids_of(args.program, model, text, folder) if text else []
                equal += got == want
                if got != want:
                    print(f"  {text!r}\n    ids  {got}\n    want {want}")
            print(f"{os.path.basename(source)}: {equal} of {len(texts)} texts", flush=True)
            bad += equal != len(texts)
    print(f"{n_files - bad} of {n_files} vocabularies equal")
    return 1 if bad or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
