#!/usr/bin/env python3
"""Goldens of `cyb-llm check` for the tiny model of tests/support/text_checkpoint.cpp: makes that folder, then runs tools/make_check.py on it.

usage: check.py [FOLDER]     writes tests/golden/check/check_goldens.json (transformers 5.x, torch)"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCE = (ROOT / "tests/support/text_checkpoint.cpp").read_text()


def weights():
    """The items of the C++ source, filled by its generator."""
    state, out = 42, {}
    for name, rows, columns in re.findall(r'\{"(model\.[^"]+)", (\d+), (\d+)\}', SOURCE):
        rows, columns = int(rows), int(columns)
        values = np.empty(rows * max(columns, 1), np.float32)
        for i in range(len(values)):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            unit = np.float32(state >> 8) * np.float32(2.0**-23) - np.float32(1)
            values[i] = np.float32(1) + np.float32(0.1) * unit if columns == 0 else np.float32(0.4) * unit
        out[name] = values.reshape((rows, columns) if columns else (rows,))
    return out


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests/golden/tokenizer/smollm.json", folder / "tokenizer.json")
    config = re.search(r'return R"\((\{"architectures.*?"max_position_embeddings":)\)"', SOURCE, re.S).group(1) + "128}"
    (folder / "config.json").write_text(config)
    template = re.search(r'kTemplate =\s*R"\((.*?)\)";', SOURCE, re.S).group(1)
    tokenizer = re.search(r'kTokenizerConfig =\s*R"\((.*?)\)";', SOURCE, re.S).group(1).replace("%TEMPLATE%", template)
    json.loads(tokenizer)
    (folder / "tokenizer_config.json").write_text(tokenizer)
    (folder / "generation_config.json").write_text('{"eos_token_id": [2]}')
    save_file(weights(), folder / "model.safetensors", metadata={"format": "pt"})
    out = ROOT / "tests/golden/check/check_goldens.json"
    return subprocess.run([sys.executable, ROOT / "tools/make_check.py", folder, "-o", out, "--texts", "500"]).returncode


if __name__ == "__main__":
    sys.exit(main())
