#!/usr/bin/env python3
"""Exports tiny transformers models with tools/export_torch.py's code and runs them on the graph against their goldens.

    tiny.py --driver BUILD/tests/onnx_driver --checkpoints FOLDER [--only REGEX]

FOLDER has one sub-folder for each model: config.json with `architectures`, the weights, and golden.safetensors with in.NAME and out.NAME
(tools/rebuild_tiny.py writes such folders). Metric: max|a - b| / max(1, max|b|), at most 1e-5.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import export_torch  # noqa: E402
from noise import without_noise  # noqa: E402

TOLERANCE = 1e-5


class WithMask(torch.nn.Module):
    """The model with an attention mask of ones."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs, attention_mask=torch.ones_like(inputs["input_ids"]))


def goldens(folder):
    tensors = load_file(folder / "golden.safetensors")
    inputs = {k[3:]: v for k, v in tensors.items() if k.startswith("in.")}
    outputs = {k[4:]: v for k, v in tensors.items() if k.startswith("out.") and k != "out.greedy" and "." not in k[4:]}
    return inputs, outputs


def export(folder, inputs, outputs, path):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, name).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    model.config.use_cache = False
    if "input_ids" in inputs and "attention_mask" not in inputs and not model.config.is_encoder_decoder:
        model = WithMask(model)  # without a mask transformers looks for packed sequences with an operator that ONNX lacks
    wrapped = export_torch.wrap(torch, model, list(inputs), list(outputs)).eval()
    examples = tuple(torch.from_numpy(v) for v in inputs.values())
    axes = {k: {0: "batch"} for k in inputs}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(wrapped, examples, path, dynamo=False, opset_version=17, input_names=list(inputs), output_names=list(outputs),
                          dynamic_axes=axes)


def input_names(path):
    import onnx

    return [v.name for v in onnx.load(path, load_external_data=False).graph.input]


def run(folder, driver):
    inputs, outputs = goldens(folder)
    with tempfile.TemporaryDirectory(prefix="onnx_tiny_") as root:
        case = pathlib.Path(root)
        try:
            export(folder, inputs, outputs, str(case / "model.onnx"))
        except Exception as error:  # the exporter's own limits are no result of ours
            return None, f"not exported: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
        without_noise(case / "model.onnx")  # goldens of models with noise were made without it
        for k, name in enumerate(input_names(case / "model.onnx")):
            np.save(case / f"in_{k}.npy", inputs[name])
        done = subprocess.run([driver], input=f"{case}\n", capture_output=True, text=True, check=False)
        answer = done.stdout.strip().split(" ", 1)[-1]
        if answer != "ok":
            return False, answer[:300] or f"status {done.returncode}"
        worst = 0.0
        for k, want in enumerate(outputs.values()):
            got = np.load(case / f"out_{k}.npy")
            if got.shape != want.shape:
                return False, f"shape {got.shape}, expected {want.shape}"
            worst = max(worst, float(np.abs(got.astype(np.float64) - want).max() / max(1.0, np.abs(want).max())))
    return worst <= TOLERANCE, f"{worst:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    results = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the exporter prints whole graphs
    counts = {True: 0, False: 0, None: 0}
    for folder in sorted(args.checkpoints.iterdir()):
        config = folder / "config.json"
        if not config.exists() or "architectures" not in json.loads(config.read_text()) or not re.search(args.only, folder.name):
            continue
        try:
            good, text = run(folder, args.driver)
        except Exception as error:
            good, text = None, f"not loaded: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
        counts[good] += 1
        print({True: "ok  ", False: "FAIL", None: "-   "}[good], folder.name, text, file=results, flush=True)
    print(f"{counts[True]} ok, {counts[False]} failed, {counts[None]} not exported", file=results, flush=True)
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
