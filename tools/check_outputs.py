#!/usr/bin/env python3
"""Check cyb-llm on the tiny random models of tests/golden/tiny against transformers' outputs.

For each model the checkpoint is rebuilt from names (tools/rebuild_tiny.py), imported with `cyb-llm import`, and run
with `cyb-llm logits --exact` on each backend and path. Checked: the logits of both rows of the golden (metric
max|a-b| / max(1, max|b|), at most 1e-5), and the last 8 ids of out.greedy, teacher-forced on the golden's own ids.
"""
import argparse
import os
import sys
import tempfile

import numpy as np

import rebuild_tiny
from cyb_tools import ToolError, error_metric, find_program, main_guard, program_logits, run, say

LIMIT = 1e-5


def check(program, model, golden, options, folder):
    """(largest metric over the golden's rows, ids that differ)."""
    worst, prompts = 0.0, golden["in.input_ids"].astype(np.int64)
    for row, want in zip(prompts, golden["out.logits"]):
        worst = max(worst, error_metric(program_logits(program, model, row.tolist(), folder, options), want))
    greedy = golden["out.greedy"].reshape(-1).astype(np.int64).tolist()
    first = prompts.shape[1]
    logits = program_logits(program, model, greedy[:-1], folder, options)
    picked = np.asarray(logits[first - 1 :]).argmax(axis=1).tolist()
    return worst, [(i, a, b) for i, (a, b) in enumerate(zip(picked, greedy[first:])) if a != b]


def main():
    known = rebuild_tiny.known()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"models: {' '.join(known)}\nexample: check_outputs.py --backend cpu --path curated,graph qwen3")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="which models (default: all)")
    parser.add_argument("--backend", default="reference,cpu", help="backends, with commas between (default: reference,cpu)")
    parser.add_argument("--path", default="curated,graph", help="paths, with commas between (default: curated,graph)")
    parser.add_argument("--program", "--cyb", dest="program", help="the cyb-llm program (default: $CYB_LLM, a build folder, PATH)")
    parser.add_argument("--keep", metavar="DIR", help="keep checkpoints and .model files there")
    args = parser.parse_args()
    for name in args.models:
        if name not in known:
            parser.error(f"unknown model '{name}'; known: {' '.join(known)}")
    program, failures, done = find_program(args.program), 0, 0
    rebuild_tiny.self_check()
    with tempfile.TemporaryDirectory(prefix="cyb-tiny-") as scratch:
        folder = os.path.abspath(args.keep) if args.keep else scratch
        for name in args.models or known:
            golden = rebuild_tiny.read_safetensors(os.path.join(rebuild_tiny.TINY, name, "golden.safetensors"))
            model = os.path.join(folder, name + ".model")
            try:
                run(program, "import", rebuild_tiny.rebuild(name, folder), "-o", model, "--force")
            except ToolError as error:
                failures += 1
                print(f"{name}: import FAILED: {error}")
                continue
            for backend in args.backend.split(","):
                for path in args.path.split(","):
                    done += 1
                    try:
                        worst, wrong = check(program, model, golden, ["--exact", f"--backend={backend}", f"--path={path}"], scratch)
                        problem = f"metric over {LIMIT}" if worst > LIMIT else f"ids differ (step, ours, golden): {wrong}" if wrong else ""
                        print(f"{name} {backend} {path}: {worst:.2e}, {8 - len(wrong)} of 8 ids {'FAILED: ' + problem if problem else 'ok'}")
                    except ToolError as error:
                        problem = str(error)
                        print(f"{name} {backend} {path}: FAILED: {problem}")
                    failures += bool(problem)
    print(f"{done} runs, {failures} failed")
    if failures:
        say("check_outputs: FAILED")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        main_guard(main)
    except RuntimeError as error:
        sys.exit(f"check_outputs: {error}")
