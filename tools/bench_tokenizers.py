#!/usr/bin/env python3
"""Run the tokenizers of cyb-llm and of the `tokenizers` package in alternation on one thread and print the ratios of their speeds.

The text is 10 MB of prose, code, CJK, emoji and numbers in blocks of 2 to 8 kB, made from this Python's own library and a seed, or
--text FILE. FILE...: tokenizer.json files; without any, five are trained here (BPE of the shapes gpt2, llama3, qwen2 and o200k, and Unigram).
Both get the same documents (--document bytes each); the package is timed the fastest way it has on one thread, and ids are held equal.

    bench_tokenizers.py [--program build/release/cyb-llm] [--rounds 3] [FILE...]
"""
import argparse
import ast
import collections
import glob
import json
import math
import os
import random
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from cyb_tools import ToolError, cache_dir, find_program, machine, main_guard, run, say

FLOOR = 3.0  # asked of every tokenizer.json
SHARES = {"prose": 0.35, "code": 0.35, "cjk": 0.15, "symbols": 0.05, "numbers": 0.1}
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")
UP, LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UP}*{LOW}+{K}|[^\r\n\p{{L}}\p{{N}}]?{UP}+{LOW}*{K}|\p{{N}}{{1,3}}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def library(size, rng):
    """Sources of the standard library, and its documentation strings."""
    files = sorted(f for f in glob.glob(os.path.join(sysconfig.get_path("stdlib"), "**", "*.py"), recursive=True) if "site-packages" not in f)
    rng.shuffle(files)
    code, prose, n_code, n_prose = [], [], 0, 0
    for path in files:
        if n_code > size and n_prose > size:
            break
        try:
            with open(path, encoding="utf-8") as f:
                source = f.read()
            nodes = list(ast.walk(ast.parse(source))) if n_prose <= size else []
        except (SyntaxError, ValueError, RecursionError):
            continue
        if n_code <= size:
            code.append(source)
            n_code += len(source)
        for node in nodes:
            text = ast.get_docstring(node) if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) else None
            if text and len(text) > 80:
                prose.append(text)
                n_prose += len(text)
    return "\n".join(code), "\n\n".join(prose)


def cjk(size, rng):
    """Words of one to four characters, drawn by Zipf's law, in sentences: Chinese, Japanese, Korean."""
    scripts = [[(0x4E00, 0x9FA5)], [(0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5)], [(0xAC00, 0xD7A3)]]
    words = []
    for ranges in scripts:
        words.append(["".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 4))) for _ in range(20000)])
    weights = [1 / (rank + 2) for rank in range(20000)]
    sums = [0.0]
    for weight in weights:
        sums.append(sums[-1] + weight)
    out, count = [], 0
    while count < size:
        script = rng.randrange(3)
        line = (" " if script == 2 else "").join(rng.choices(words[script], cum_weights=sums[1:], k=rng.randint(5, 30)))
        out.append(line + rng.choice("。！？，") + ("\n" if rng.random() < 0.3 else ""))
        count += len(out[-1].encode())
    return "".join(out)


def symbols(size, rng):
    parts = ["😀", "👨‍👩‍👧‍👦", "👍🏽", "🇫🇷", "❤️", "🤷🏾‍♀️", "→", "∑", "Привет", "γειά", "שלום", "नमस्ते", "naïve", "Straße", "ﬁ", "½"]
    out = "".join(rng.choice(parts) + rng.choice(["", " ", "  ", "\n", ", "]) for _ in range(size // 8))
    return out


def numbers(size, rng):
    rows = [",".join(rng.choice([str(rng.randint(0, 10 ** rng.randint(1, 12))), f"{rng.uniform(-1e3, 1e3):.6g}", f"{rng.randint(1990, 2030)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}"])
                     for _ in range(8)) for _ in range(size // 55)]
    return "\n".join(rows)


def mixed_text(size, seed=5):
    rng = random.Random(seed)
    code, prose = library(int(size * 0.4), rng)
    pools = {"prose": prose, "code": code, "cjk": cjk(int(size * 0.2), rng), "symbols": symbols(int(size * 0.06), rng), "numbers": numbers(int(size * 0.12), rng)}
    out, count, at, have = [], 0, dict.fromkeys(pools, 0), dict.fromkeys(pools, 0)
    while count < size:
        name = min(pools, key=lambda n: have[n] / SHARES[n])  # what is furthest behind its share
        length = rng.randint(2000, 8000)
        block = pools[name][at[name]:at[name] + length]
        at[name] = at[name] + length if at[name] + length < len(pools[name]) else 0
        out.append(block + "\n")
        n_bytes = len(out[-1].encode())
        have[name] += n_bytes
        count += n_bytes
    return "".join(out).encode()[:size].decode("utf-8", "ignore")


def documents(text, size):
    """The text in pieces of at most `size` bytes that end at characters, as cyb-llm bench --tokenize cuts it."""
    data, at = text.encode(), 0
    while at < len(data):
        end = min(at + size, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[at:end].decode()
        at = end


def train(folder, text):
    """Tokenizers of common shapes, trained on a part of the text."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    sample = [text[i:i + 20000] for i in range(0, len(text), 80000)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()

    def byte_level(pattern, normalizer=None):
        tok = Tokenizer(models.BPE())
        steps = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
        tok.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)])
        if not pattern:
            tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        if normalizer:
            tok.normalizer = normalizer
        tok.decoder = decoders.ByteLevel()
        tok.train_from_iterator(sample, trainers.BpeTrainer(vocab_size=32000, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False))
        return tok

    def unigram():
        """Every character and the substrings of words that cover most text, scored by their counts: training proper takes too long."""
        words = collections.Counter(w for part in sample for w in ("\u2581" + part.replace(" ", " \u2581")).replace("\n", " ").split(" ") if w)
        counts = collections.Counter()
        for word, n in words.items():
            for at in range(min(len(word), 24)):
                for end in range(at + 1, min(at + 12, len(word)) + 1):
                    counts[word[at:end]] += n
        chars = {p for p in counts if len(p) == 1}
        best = sorted((p for p in counts if len(p) > 1 and counts[p] > 2), key=lambda p: (-counts[p] * len(p), p))[:40000]
        total = math.log(sum(counts.values()))
        pieces = sorted(chars | set(best), key=lambda p: (-counts[p], p))
        tok = Tokenizer(models.Unigram([("<unk>", 0.0)] + [(p, math.log(counts[p]) - total) for p in pieces], unk_id=0))
        tok.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
        tok.decoder = decoders.Metaspace(prepend_scheme="always")
        return tok

    makers = {"gpt2": lambda: byte_level(None), "llama3": lambda: byte_level(LLAMA3), "qwen2": lambda: byte_level(QWEN2, normalizers.NFC()),
              "o200k": lambda: byte_level(O200K), "unigram": unigram}
    out = {}
    for name, make in makers.items():
        out[name] = os.path.join(folder, name + ".json")
        if not os.path.exists(out[name]):
            say(f"training {name}")
            make().save(out[name] + ".part")
            os.replace(out[name] + ".part", out[name])
    return out


class Package:
    """The `tokenizers` package: encode_fast (no offsets) where there is one, whole batches or one by one, whichever is faster."""

    def __init__(self, path, texts):
        from tokenizers import Tokenizer
        self.tok, self.texts = Tokenizer.from_file(path), texts
        self.n_bytes = sum(len(t.encode()) for t in texts)
        one = lambda: [self.tok.encode(t, add_special_tokens=False) for t in texts]
        ways = {"encode": one, "encode_batch": lambda: self.tok.encode_batch(texts, add_special_tokens=False)}
        if hasattr(self.tok, "encode_batch_fast"):
            ways["encode_batch_fast"] = lambda: self.tok.encode_batch_fast(texts, add_special_tokens=False)
        times = {name: self.timed(way) for name, way in ways.items()}
        self.name = min(times, key=times.get)
        self.way = ways[self.name]

    @staticmethod
    def timed(way):
        start = time.perf_counter()
        way()
        return time.perf_counter() - start

    def speed(self):
        return self.n_bytes / 1e6 / self.timed(self.way)

    def n_ids(self):
        return sum(len(e.ids) for e in self.way())


def ours(program, model, path, args):
    out = run(program, "bench", model, "--tokenize", path, "--document", args.document, "-r", args.repeats, "--json")
    return json.loads(out)


def measure(program, path, name, text, text_path, args, folder):
    texts = list(documents(text, args.document))
    model = os.path.join(folder, name + ".model")
    run(program, "import", path, "--tokenizer-only", "-q", "-o", model)
    package = Package(path, texts)
    first = ours(program, model, text_path, args)
    if first["n_ids"] != package.n_ids():
        raise ToolError(f"{name}: {first['n_ids']} ids, the package has {package.n_ids()}")
    rows = []
    for turn in range(args.rounds):
        order = [lambda: ours(program, model, text_path, args)["mb_per_second"], package.speed]
        values = [order[0](), order[1]()] if turn % 2 == 0 else [order[1](), order[0]()][::-1]
        say(f"{name}: round {turn + 1} of {args.rounds}: {values[0]:.1f} and {values[1]:.1f} MB/s")
        rows.append(values)
    ratios = [a / b for a, b in rows]
    return {"tokenizer": name, "n_ids": first["n_ids"], "way": package.name, "ours": statistics.median(r[0] for r in rows),
            "package": statistics.median(r[1] for r in rows), "ratio": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="encodings a round of ours (the median counts)")
    parser.add_argument("--document", type=int, default=100_000, help="bytes of a document (default 100000)")
    parser.add_argument("--size", type=int, default=10_000_000, help="bytes of the text (default 10 MB)")
    parser.add_argument("--text", help="a UTF-8 file instead of the text that is made")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help=f"exit code 1 where a ratio is under {FLOOR}")
    args = parser.parse_args()
    program = find_program(args.program)
    import tokenizers
    with tempfile.TemporaryDirectory() as folder:
        if args.text:
            with open(args.text, encoding="utf-8", newline="") as f:
                text = f.read()
        else:
            text = mixed_text(args.size)
        text_path = os.path.join(folder, "text")
        with open(text_path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        trained = os.path.join(cache_dir("tokenizers"), f"size-{args.size}-{tokenizers.__version__}")
        if not args.files:
            os.makedirs(trained, exist_ok=True)
        files = {os.path.splitext(os.path.basename(f))[0] if f.count("/") < 2 else f: f for f in args.files} or train(trained, mixed_text(args.size))
        rows = [measure(program, path, name.replace("/", "_"), text, text_path, args, folder) for name, path in files.items()]
    low = [r["tokenizer"] for r in rows if r["ratio"] < FLOOR]
    if args.json:
        print(json.dumps({"machine": machine(), "package": tokenizers.__version__, "bytes": len(text.encode()), "results": rows, "below_floor": low}))
    else:
        print(f"machine: {machine()}\ntokenizers {tokenizers.__version__}, one thread, {len(text.encode()) / 1e6:.1f} MB in documents of {args.document} bytes, {args.rounds} rounds in alternation\n")
        print("| tokenizer | ids | cyb-llm MB/s | tokenizers MB/s (how) | ratio (min..max) |\n|---|---|---|---|---|")
        for r in rows:
            print(f"| {r['tokenizer']} | {r['n_ids']:,} | {r['ours']:.1f} | {r['package']:.1f} ({r['way']}) | {r['ratio']:.2f} ({r['min']:.2f}..{r['max']:.2f}) |")
        print("\n" + (f"all ratios reach {FLOOR}" if not low else f"under {FLOOR}: " + ", ".join(low)))
    return 1 if args.check and low else 0


if __name__ == "__main__":
    main_guard(main)
