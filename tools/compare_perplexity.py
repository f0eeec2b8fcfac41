#!/usr/bin/env python3
"""Perplexity of one text, by llama-perplexity's protocol, four ways.

Full windows of --ctx tokens, BOS in place of a window's first token where the model wants one, and of each window the
second half is scored:
  transformers  f32 on weights dequantised by the `gguf` package: the reference,
  llama.cpp     llama-perplexity, built by tools/build_peers.py, with its defaults (8-bit activations, f16 KV),
  cyb-llm       cyb-llm perplexity --second-half --ctx N,
  --exact       the same with --exact.
Exit code 1 unless cyb-llm's default is no farther from transformers than llama.cpp's and within 0.1 % of --exact, and
--exact within 0.05 % of transformers. transformers' and llama.cpp's figures are kept in the user's cache.
"""
import argparse
import json
import math
import os
import re
import subprocess

import numpy as np

import oracle
from compare_logprobs import versions
from cyb_tools import GOLDEN, MODEL_FILES, ToolError, cache_dir, find_model, find_program, machine, main_guard, run_json, say

NEAR_EXACT, EXACT_NEAR_TRANSFORMERS = 1e-3, 5e-4


def windows(path, text, ctx):
    """int lists of ctx ids."""
    ids = [int(i) for i in oracle.llama_cpp_tokenize(path, text)]
    bos = bool(oracle.Gguf(path).key("tokenizer.ggml.add_bos_token", False))
    out = []
    for begin in range(0, len(ids) - ctx + 1, ctx):
        part = ids[begin : begin + ctx]
        out.append([ids[0], *part[1:]] if bos else part)
    return out


def by_transformers(path, text, ctx):
    """[sum of negative log-probabilities, tokens]"""
    model, total, count = oracle.build(path), 0.0, 0
    parts = windows(path, text, ctx)
    for n, ids in enumerate(parts):
        rows = oracle.transformers_logits(model, ids)
        first = ctx // 2
        total -= oracle.log_softmax_at(rows(first, ctx - 1), np.asarray(ids[first + 1 :])).sum()
        count += ctx - 1 - first
        if n % 10 == 0:
            say(f"transformers: window {n + 1} of {len(parts)}, {math.exp(total / count):.4f}")
    return np.array([total, count])


def by_llama_cpp(path, file, ctx, threads):
    """[sum of negative log-probabilities, tokens], from the last of its running estimates."""
    tool = os.path.join(cache_dir("peers"), "build", "bin", "llama-perplexity")
    tool = os.environ.get("LLAMA_PERPLEXITY", tool)
    if not os.access(tool, os.X_OK):
        raise ToolError("llama-perplexity is not built. Build it with tools/build_peers.py or name it with $LLAMA_PERPLEXITY.")
    # One chunk a batch: its windows are as long as ours.
    command = [tool, "-m", path, "-f", file, "-c", str(ctx), "-b", str(ctx), "-t", str(threads), "--no-escape"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = re.findall(r"\[(\d+)\]([0-9.]+),", done.stdout)
    final = re.search(r"Final estimate: PPL = ([0-9.]+)", done.stdout + done.stderr)
    if done.returncode != 0 or not final:
        raise ToolError(f"{' '.join(command)}\nended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
    count = int(last[-1][0]) * (ctx - 1 - ctx // 2)
    return np.array([math.log(float(final[1])) * count, count])


def by_us(program, path, file, ctx, threads, more):
    answer = run_json(program, "perplexity", path, "--file", file, "--second-half", "--ctx", ctx, "--threads", threads, "--json", *more)
    return answer["perplexity"], answer["tokens"]


def compare(args, name, program):
    path = find_model(name)
    with open(args.text, encoding="utf-8") as f:
        text = f.read()
    key = f"{oracle.digest(path)}-{oracle.digest(args.text)}-{args.ctx}"
    theirs = oracle.cached("ppl_llama", f"{key}-{versions('llama-cpp-python')}",
                           lambda: by_llama_cpp(path, args.text, args.ctx, args.threads))
    reference = oracle.cached("ppl_transformers", f"{key}-{versions('transformers', 'torch', 'gguf')}",
                              lambda: by_transformers(path, text, args.ctx))
    ours, n = by_us(program, path, args.text, args.ctx, args.threads, [])
    exact, n_exact = by_us(program, path, args.text, args.ctx, args.threads, ["--exact"])
    if {int(theirs[1]), int(reference[1]), n_exact} != {n}:
        raise ToolError(f"{name}: not the same tokens: transformers {reference[1]}, llama.cpp {theirs[1]}, ours {n}, {n_exact}")
    true, peer = (math.exp(total / count) for total, count in (reference, theirs))
    figures = {"tokens": n, "transformers": true, "llama.cpp": peer, "cyb-llm": ours, "exact": exact}
    apart = {"llama.cpp": abs(peer / true - 1), "cyb-llm": abs(ours / true - 1), "exact": abs(exact / true - 1), "default to exact": abs(ours / exact - 1)}
    ok = (apart["cyb-llm"] <= apart["llama.cpp"], apart["default to exact"] <= NEAR_EXACT, apart["exact"] <= EXACT_NEAR_TRANSFORMERS)
    say(f"{name}: {n} tokens scored; transformers {true:.4f}, llama.cpp {peer:.4f} ({100 * (peer / true - 1):+.3f} %), "
        f"cyb-llm {ours:.4f} ({100 * (ours / true - 1):+.3f} %), --exact {exact:.4f} ({100 * (exact / true - 1):+.4f} %)")
    return {**figures, "apart": apart, "no_farther": ok[0], "near_exact": ok[1], "exact_near_transformers": ok[2]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODEL_FILES), help="GGUF files or names (default: all three)")
    parser.add_argument("--text", default=os.path.join(GOLDEN, "text", "own_long.txt"), help="default: a text of this project")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--program", help="cyb-llm (default: the one built here)")
    args = parser.parse_args()
    program = find_program(args.program)
    say(machine())
    results = {name: compare(args, name, program) for name in args.models}
    print(json.dumps(results, indent=1))
    return 0 if all(r["no_farther"] and r["near_exact"] and r["exact_near_transformers"] for r in results.values()) else 1


if __name__ == "__main__":
    main_guard(main)
