#!/usr/bin/env python3
"""Compare cyb-llm's log-probabilities with transformers and llama.cpp, or with the text goldens.

Default mode: the log-probability of each token of a text under a model, computed three ways:
  (a) transformers in f32 on weights dequantised by the `gguf` package: the reference,
  (b) llama.cpp through llama-cpp-python, with its defaults (8-bit activations, f16 KV),
  (c) cyb-llm logits MODEL.
Prints the mean absolute difference of (b) and of (c) to (a). Exit code 1 if cyb-llm's is the larger one.
(a) and (b) are slow and kept in the user's cache, keyed by model, text and package versions.

--goldens: checks tests/golden/text/MODEL.json: prompt ids (tokenize --parse-special), the argmax teacher-forced on the
golden's own tokens wherever its margin exceeds a bound, and the log-probabilities of the prompt.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np

import oracle
from cyb_tools import (GOLDEN, MODEL_FILES, ToolError, find_model, find_program, golden_of, main_guard,
                       program_logits, run_json, say)

MARGIN_EXACT, MARGIN_DEFAULT, LOGPROB_EXACT = 0.05, 0.5, 2e-3


def options_of(args):
    given = [f"--backend={args.backend}"] if args.backend else []
    given += [f"--path={args.path}"] if args.path else []
    return given + (["--exact"] if args.exact else [])


def versions(*modules):
    from importlib.metadata import PackageNotFoundError, version
    out = []
    for module in modules:
        try:
            out.append(f"{module.split('-')[0]}{version(module)}")
        except PackageNotFoundError:
            out.append(f"{module.split('-')[0]}-any")
    return "-".join(out)


def cache_key(path, text, limit, *modules):
    import hashlib
    return f"{oracle.digest(path)}-{hashlib.sha256(text.encode()).hexdigest()[:12]}-{limit or 'all'}-{versions(*modules)}"


def reference_values(path, text, args):
    """(ids, transformers' log-probabilities, llama.cpp's)."""
    key = cache_key(path, text, args.max_tokens, "llama-cpp-python")
    ids = [int(i) for i in oracle.cached("ids", key, lambda: oracle.llama_cpp_tokenize(path, text)[: args.max_tokens])]
    llama = oracle.cached("llama_cpp", key, lambda: oracle.llama_cpp_logprobs(path, ids, args.threads))

    def by_transformers():
        model = oracle.build(path)
        return oracle.chunked_logprobs(oracle.transformers_logits(model, ids), ids)

    key = cache_key(path, text, args.max_tokens, "transformers", "torch", "gguf")
    return ids, oracle.cached("transformers", key, by_transformers), llama


def compare(name, args):
    path = find_model(name)
    with open(args.text, encoding="utf-8") as f:
        text = f.read()
    ids, want, llama = reference_values(path, text, args)
    theirs = np.abs(llama - want)
    row = {"model": os.path.basename(path), "tokens": len(ids), "perplexity_transformers": float(np.exp(-want.mean())),
           "perplexity_llama_cpp": float(np.exp(-llama.mean())), "llama_cpp": float(theirs.mean()), "llama_cpp_max": float(theirs.max())}
    if args.oracles_only:
        print(json.dumps(row))
        return True
    program = find_program(args.program)
    told = run_json(program, "tokenize", path, "--file", args.text, "--json")["ids"][: args.max_tokens]
    if told != ids:
        at = next((i for i, (a, b) in enumerate(zip(told, ids)) if a != b), min(len(told), len(ids)))
        raise ToolError(f"cyb-llm tokenizes the text differently from llama.cpp at token {at}: {told[at:at + 5]} and {ids[at:at + 5]}")
    with tempfile.TemporaryDirectory(prefix="cyb-logprobs-", dir=args.tmp) as folder:
        logits = program_logits(program, path, ids, folder, options_of(args))
        ours = oracle.chunked_logprobs(lambda a, b: logits[a:b], ids)
        del logits
    mine = np.abs(ours - want)
    row |= {"options": options_of(args), "perplexity_ours": float(np.exp(-ours.mean())), "ours": float(mine.mean()), "ours_max": float(mine.max()),
            "ratio": float(mine.mean() / theirs.mean()), "pass": bool(mine.mean() <= theirs.mean())}
    if args.json:
        print(json.dumps(row))
    else:
        print(f"{row['model']}: {len(ids)} tokens, mean |difference of log-probability| to transformers f32:\n"
              f"  llama.cpp {row['llama_cpp']:.6f} (max {row['llama_cpp_max']:.4f})   cyb-llm {row['ours']:.6f} (max {row['ours_max']:.4f})"
              f"   ratio {row['ratio']:.3f}   {'ok' if row['pass'] else 'WORSE THAN llama.cpp'}\n"
              f"  perplexity: transformers {row['perplexity_transformers']:.4f}, llama.cpp {row['perplexity_llama_cpp']:.4f}, cyb-llm {row['perplexity_ours']:.4f}")
    return row["pass"]


# ---------------------------------------------------------------- goldens

def check_rows(entry, rows, strict):
    """Failures of one golden prompt; rows(begin, end) -> logits of prompt + greedy ids but the last."""
    prompt, golden = entry["prompt_ids"], entry["transformers"]
    greedy, margins = golden["greedy_ids"], golden["top1_minus_top2"]
    bound = MARGIN_EXACT if strict else MARGIN_DEFAULT
    first = len(prompt) - 1
    picked = np.asarray(rows(first, first + len(greedy))).argmax(axis=1)
    checked = [i for i, m in enumerate(margins) if m > bound]
    wrong = [(i, int(picked[i]), greedy[i], margins[i]) for i in checked if picked[i] != greedy[i]]
    logprobs = oracle.log_softmax_at(rows(0, first), np.asarray(prompt[1:]))
    off = float(np.abs(logprobs - np.asarray(golden["prompt_logprobs"])).max())
    problems = [f"step {i}: argmax {a}, golden {b} with margin {m}" for i, a, b, m in wrong]
    if strict and off >= LOGPROB_EXACT:
        problems.append(f"a prompt log-probability is {off:.2e} off, allowed {LOGPROB_EXACT}")
    return problems, f"{len(checked)} of {len(greedy)} steps with margin > {bound}, prompt log-probabilities within {off:.2e}"


def goldens(name, args):
    path = find_model(name)
    golden = args.golden or golden_of(path)
    if not golden or not os.path.exists(golden):
        raise ToolError(f"no golden for {os.path.basename(path)}; name one with --golden")
    with open(golden, encoding="utf-8") as f:
        entries = json.load(f)["prompts"]
    strict = args.exact or args.backend == "reference" or args.check_oracle
    model = oracle.build(path) if args.check_oracle else None
    program = None if args.check_oracle else find_program(args.program)
    good = True
    for entry in entries:
        problems = []
        ids = entry["prompt_ids"] + entry["transformers"]["greedy_ids"][:-1]
        with tempfile.TemporaryDirectory(prefix="cyb-goldens-", dir=args.tmp) as folder:
            if model is not None:
                rows = oracle.transformers_logits(model, ids)
            else:
                told = run_json(program, "tokenize", path, entry["prompt"], "--parse-special", "--json")["ids"]
                if told != entry["prompt_ids"]:
                    problems.append(f"prompt ids {told}, golden {entry['prompt_ids']}")
                logits = program_logits(program, path, ids, folder, options_of(args))
                rows = lambda a, b: logits[a:b]  # noqa: E731, B023
            more, summary = check_rows(entry, rows, strict)
        problems += more
        good &= not problems
        print(f"{os.path.basename(path)} {json.dumps(entry['prompt'])[:50]}: {'FAILED' if problems else 'ok'}; {summary}")
        for problem in problems:
            print(f"  {problem}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"MODEL: a GGUF file or one of {', '.join(MODEL_FILES)}, all (default: all)\n"
                                     "examples: compare_logprobs.py smollm2\n          compare_logprobs.py --goldens --exact all\n"
                                     "          compare_logprobs.py --oracles-only all      (only fills the cache)\n"
                                     "          compare_logprobs.py --check-oracle all      (transformers against the goldens)")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--goldens", action="store_true", help="check against tests/golden/text instead")
    parser.add_argument("--golden", help="the golden file to use with --goldens")
    parser.add_argument("--check-oracle", action="store_true", help="check (a) itself against the goldens")
    parser.add_argument("--oracles-only", action="store_true", help="compute and keep (a) and (b), do not run cyb-llm")
    parser.add_argument("--text", default=os.path.join(GOLDEN, "text", "own_text.txt"), help="the text (default: tests/golden/text/own_text.txt)")
    parser.add_argument("--max-tokens", type=int, help="use only the first N tokens")
    parser.add_argument("--exact", action="store_true", help="run cyb-llm with --exact")
    parser.add_argument("--backend", choices=("auto", "reference", "cpu"), help="passed to cyb-llm")
    parser.add_argument("--path", choices=("auto", "curated", "graph"), help="passed to cyb-llm")
    parser.add_argument("--program", "--cyb", dest="program", help="the cyb-llm program (default: $CYB_LLM, a build folder, PATH)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads for llama.cpp")
    parser.add_argument("--tmp", help="folder for the logits file; it holds 4*T*V bytes, 2.6 GB for Gemma")
    parser.add_argument("--json", action="store_true", help="one JSON object a model")
    args = parser.parse_args()
    names = args.models or ["all"]
    names = list(MODEL_FILES) if "all" in names else names
    check = goldens if args.goldens or args.check_oracle else compare
    results = [check(name, args) for name in names]
    if not all(results):
        say("compare_logprobs: FAILED")
    return 0 if all(results) else 1


if __name__ == "__main__":
    main_guard(main)
