#!/usr/bin/env python3
"""Exports tiny transformers models with tools/export_torch.py and runs them on the graph against their goldens.

    tiny.py --program BUILD/cyb-llm [--only REGEX] [--goldens FOLDER] [--table docs/onnx.md]

The models are those of tests/golden/tiny_graph and tests/golden/tiny: config.json, names and shapes of the weights (tools/rebuild_tiny.py
makes them), golden.safetensors with in.NAME and out.NAME. A model is exported to ONNX, imported and run by the program, language models
also for each prompt of the golden's greedy answer (other lengths than the exporter saw), but for a module that no exporter takes with
dynamic axes: `fixed`. Metric: max|a - b| / max(1, max|b|), at most 1e-5.
Exit status 1 if a model failed or fewer than 20 were exported.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx
import torch
import transformers
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parents[1] / "golden"
sys.path[:0] = [str(HERE.parents[2] / "tools"), str(HERE)]
import export_torch  # noqa: E402
import rebuild_tiny  # noqa: E402
from real import Ours, replace_table  # noqa: E402

TOLERANCE = 1e-5
FEWEST = 20  # exported models
START, END = "<!-- tiny: begin -->", "<!-- tiny: end -->"
COLUMNS = 3  # of the table


def goldens(folder):
    tensors = load_file(folder / "golden.safetensors")
    inputs = {k[3:]: v for k, v in tensors.items() if k.startswith("in.")}
    outputs = {k[4:]: v for k, v in tensors.items() if k.startswith("out.") and k != "out.greedy" and "." not in k[4:]}
    if set(outputs) == {"out"}:  # a module whose only output has no name
        outputs = {"output": outputs["out"]}
    return inputs, outputs, tensors.get("out.greedy")


def axes(inputs, name, decoder):
    """The dynamic axes of an input: the batch, and the tokens of a language model. `decoder` None: all are fixed."""
    if decoder is None:
        return ""
    batches = {value.shape[0] for value in inputs.values()}
    batch = "batch" if len(batches) == 1 else f"batch{inputs[name].shape[0]}"
    return f"[{batch}{',tokens' if decoder else ''}]"


def export(folder, inputs, outputs, decoder, work):
    """ONNX and .model by the tool; the reason where torch's exporters cannot."""
    words = [f"hf:{folder}", "--onnx", str(work / "model.onnx")]
    for name, value in inputs.items():
        np.save(work / f"example_{name}.npy", value)
        words += ["--input", f"{name}={work / f'example_{name}.npy'}{axes(inputs, name, decoder)}"]
    for name in outputs:
        words += ["--output", name]
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            export_torch.main(words)
    except SystemExit as error:  # InternLM2 and MiMo are renamed checkpoints
        if "transformers has no class" not in str(error):
            raise
        return f"not exported: {error}"
    except Exception as error:  # the exporters' own limits are no result of ours
        return f"not exported: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
    return ""


def difference(got, want):
    return float(np.abs(got.astype(np.float64) - want).max() / max(1.0, np.abs(want).max()))


def greedy_step(ours, ids, greedy, length):
    """The token that the golden's answer has after `length` tokens is ours too."""
    logits = ours({"input_ids": ids[:, :length]})["logits"]
    return int(logits[0, -1].argmax()) == int(greedy[0, length])


def run(source, program):
    inputs, outputs, greedy = goldens(source)
    with tempfile.TemporaryDirectory(prefix="onnx_tiny_") as root:
        work = pathlib.Path(root)
        rebuild_tiny.TINY = str(source.parent)
        folder = pathlib.Path(rebuild_tiny.rebuild(source.name, root))
        fixed = bool(export(folder, inputs, outputs, greedy is not None, work))
        reason = export(folder, inputs, outputs, None, work) if fixed else ""
        if reason:
            return None, reason
        kept = [v.name for v in onnx.load(work / "model.onnx", load_external_data=False).graph.input]
        try:
            ours = Ours(program, str(work / "model.onnx"), work)
            got = ours({k: inputs[k] for k in kept})
            for name, want in outputs.items():
                if got[name].shape != want.shape:
                    return False, f"{name}: shape {got[name].shape}, expected {want.shape}"
            worst = max(difference(got[name], want) for name, want in outputs.items())
            if greedy is not None and not fixed:
                ids, first = greedy.astype(np.int64), inputs["input_ids"].shape[1]
                for length in range(first, ids.shape[1]):
                    if not greedy_step(ours, ids, greedy, length):
                        return False, f"{worst:.1e}, but another greedy token after {length}"
        except RuntimeError as error:
            return False, str(error)[:300]
    return worst <= TOLERANCE, f"{worst:.1e}{', fixed' if fixed else ''}"


def table(results):
    """Name and error of each model for docs/onnx.md, in columns."""
    cells = [f"{name} | {text}" for name, good, text in results if good is not None]
    cells += [" | "] * (-len(cells) % COLUMNS)
    rows = [" | ".join(cells[k : k + COLUMNS]) for k in range(0, len(cells), COLUMNS)]
    left = [name for name, good, _ in results if good is None]
    note = [] if not left else ["", f"Not exported by torch: {', '.join(left)}."]
    return "\n".join(["| " + " | ".join(["model | error"] * COLUMNS) + " |", "|---|---" * COLUMNS + "|", *(f"| {r} |" for r in rows), *note])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--goldens", type=pathlib.Path, action="append", help="folders of goldens (default: tiny_graph and tiny)")
    parser.add_argument("--table", type=pathlib.Path, help="put the figures into this file")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    results = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the exporter prints whole graphs
    folders = sorted(f for g in args.goldens or [GOLDEN / "tiny_graph", GOLDEN / "tiny"] for f in g.iterdir() if re.search(args.only, f.name))
    counts, done = {True: 0, False: 0, None: 0}, []
    for source in folders:
        config = source / "config.json"
        if not config.exists() or not json.loads(config.read_text()).get("architectures"):
            continue  # of another library than transformers
        good, text = run(source, args.program)
        counts[good] += 1
        done.append((source.name, good, text))
        print({True: "ok  ", False: "FAIL", None: "-   "}[good], source.name, text, file=results, flush=True)
    if args.table and not args.only:
        replace_table(args.table, table(done), START, END)
    print(f"{counts[True]} passed, {counts[False]} failed, {counts[None]} not exported", file=results, flush=True)
    return 1 if counts[False] or (not args.only and counts[True] < FEWEST) else 0


if __name__ == "__main__":
    sys.exit(main())
