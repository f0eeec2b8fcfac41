#!/usr/bin/env python3
"""Exports tiny transformers models with tools/export_torch.py's code and runs them on the graph against their goldens.

    tiny.py --program BUILD/cyb-llm [--only REGEX] [--goldens FOLDER]

The models are those of tests/golden/tiny_graph and tests/golden/tiny: config.json, names and shapes of the weights (tools/rebuild_tiny.py
makes them), golden.safetensors with in.NAME and out.NAME. A model is exported to ONNX, imported and run by the program. Metric:
max|a - b| / max(1, max|b|), at most 1e-5. Exit status 1 if a model failed or fewer than 20 were exported.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parents[1] / "golden"
sys.path[:0] = [str(HERE.parents[2] / "tools"), str(HERE)]
import export_torch  # noqa: E402
import rebuild_tiny  # noqa: E402
from noise import without_noise  # noqa: E402
from real import Ours  # noqa: E402

TOLERANCE = 1e-5
FEWEST = 20  # exported models


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


def run(source, program):
    inputs, outputs = goldens(source)
    with tempfile.TemporaryDirectory(prefix="onnx_tiny_") as root:
        work = pathlib.Path(root)
        rebuild_tiny.TINY = str(source.parent)
        folder = pathlib.Path(rebuild_tiny.rebuild(source.name, root))
        try:
            export(folder, inputs, outputs, str(work / "model.onnx"))
        except Exception as error:  # the exporter's own limits are no result of ours
            return None, f"not exported: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
        without_noise(work / "model.onnx")  # goldens of models with noise were made without it
        try:
            got = Ours(program, str(work / "model.onnx"), work)({k: inputs[k] for k in input_names(work / "model.onnx")})
        except RuntimeError as error:
            return False, str(error)[:300]
        worst = 0.0
        for name, want in outputs.items():
            if got[name].shape != want.shape:
                return False, f"{name}: shape {got[name].shape}, expected {want.shape}"
            worst = max(worst, float(np.abs(got[name].astype(np.float64) - want).max() / max(1.0, np.abs(want).max())))
    return worst <= TOLERANCE, f"{worst:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--goldens", type=pathlib.Path, action="append", help="folders of goldens (default: tiny_graph and tiny)")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    results = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the exporter prints whole graphs
    folders = sorted(f for g in args.goldens or [GOLDEN / "tiny_graph", GOLDEN / "tiny"] for f in g.iterdir() if re.search(args.only, f.name))
    counts = {True: 0, False: 0, None: 0}
    for source in folders:
        if not json.loads((source / "config.json").read_text()).get("architectures"):
            continue  # of another library than transformers
        good, text = run(source, args.program)
        counts[good] += 1
        print({True: "ok  ", False: "FAIL", None: "-   "}[good], source.name, text, file=results, flush=True)
    print(f"{counts[True]} passed, {counts[False]} failed, {counts[None]} not exported", file=results, flush=True)
    return 1 if counts[False] or (not args.only and counts[True] < FEWEST) else 0


if __name__ == "__main__":
    sys.exit(main())
