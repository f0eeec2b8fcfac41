#!/usr/bin/env python3
"""Run cyb-llm and llama.cpp in alternation on the same machine and print the ratios of their speeds.

A round runs, for each model and thread count, `cyb-llm bench` and llama.cpp's llama-bench one after the other (the
order turns round every round), so that a noisy neighbour hits both. Printed are the medians and spreads of all
samples, and the median of the rounds' own ratios. Also: time to the first token of a second start (file already in
the page cache) and the peak resident size. A ratio above 1 (for time and memory: below 1) is in our favour.

llama.cpp: llama-bench and llama-completion from tools/build_peers.py, $LLAMA_BENCH, PATH; without them the
llama-cpp-python of this interpreter is measured in a child process.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from cyb_tools import MODEL_FILES, ToolError, cache_dir, find_model, find_program, machine, main_guard, run, say

FLOORS = {"smollm2": 1.0, "gemma3": 0.8, "qwen2.5-coder": 0.8}  # speed ratios asked for at this stage
PROMPT = "The capital of France is"
CONTEXT = 512  # of the starts, the same for both


def spawn(command):
    """(stdout, seconds to the first byte of stdout, seconds in all, peak resident bytes)."""
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL)
        first = child.stdout.read(1)
        to_first = time.perf_counter() - start
        out = first + child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        total = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stdout.close()
        if child.returncode != 0:
            errors.seek(0)
            tail = errors.read().decode("utf-8", "replace").strip()[-1500:]
            raise ToolError(f"{' '.join(map(str, command))}\nended with {child.returncode}: {tail}")
    return out, to_first, total, usage.ru_maxrss * 1024


def as_json(out, command):
    try:
        return json.loads(out)
    except json.JSONDecodeError as error:
        raise ToolError(f"{' '.join(command)}: stdout is no JSON ({error})") from None


class Ours:
    name = "cyb-llm"

    def __init__(self, program, options):
        self.program, self.options = program, options

    def version(self):
        try:
            return run(self.program, "--version", timeout=30).decode().strip().splitlines()[0]
        except (ToolError, IndexError):
            return "cyb-llm (version unknown)"

    def warm(self, model):
        """Imports the GGUF into the store once and fills the page cache."""
        run(self.program, "bench", model, "-p", 8, "-n", 1, "-t", 1, "-r", 1, "--json", *self.options)

    def bench(self, model, args, threads):
        command = [self.program, "bench", model, "-p", str(args.prompt), "-n", str(args.generate), "-t", str(threads),
                   "-r", str(args.repeat), "--json", *self.options]
        out, _, _, peak = spawn(command)
        rows = {}
        for row in as_json(out, command)["rows"]:
            rows[row["name"]] = (row["tps_median"], row["tps_min"], row["tps_max"])
        return rows, peak

    def first_token(self, model, threads):
        return spawn([self.program, "run", model, PROMPT, "--raw", "--max-tokens", "1", "--temperature", "0",
                      "--ctx", str(CONTEXT), "--threads", str(threads), *self.options])


class LlamaBench:
    name = "llama.cpp"

    def __init__(self, bench, completion):
        self.program, self.completion, self.build = bench, completion, "unknown"

    def version(self):
        return f"llama.cpp {self.build} (llama-bench)"

    def warm(self, model):
        run(self.program, "-m", model, "-p", 8, "-n", 1, "-t", 1, "-r", 1, "-o", "json")

    def bench(self, model, args, threads):
        command = [self.program, "-m", model, "-p", str(args.prompt), "-n", str(args.generate), "-t", str(threads),
                   "-r", str(args.repeat), "-o", "json"]
        out, _, _, peak = spawn(command)
        rows = {}
        for row in as_json(out, command):
            self.build = f"{row.get('build_commit')}, {row.get('backends')}"
            samples = row["samples_ts"]
            test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
            rows[test] = (statistics.median(samples), min(samples), max(samples))
        return rows, peak

    def first_token(self, model, threads):
        if not self.completion:
            return None
        return spawn([self.completion, "-m", model, "-p", PROMPT, "-n", "1", "-c", str(CONTEXT), "-t", str(threads), "--temp", "0", "--no-warmup",
                      "-no-cnv", "--no-display-prompt", "--simple-io"])


class LlamaPython:
    """The same figures from llama-cpp-python, in a child process of this script."""
    name = "llama.cpp"

    def __init__(self):
        import llama_cpp
        self.build = llama_cpp.__version__

    def version(self):
        return f"llama-cpp-python {self.build}"

    def warm(self, model):
        self.child(model, 8, 1, 1, 1)

    def child(self, model, prompt, generate, threads, repeat):
        command = [sys.executable, os.path.abspath(__file__), "--worker", json.dumps([model, prompt, generate, threads, repeat])]
        out, _, _, peak = spawn(command)
        return as_json(out, command), peak

    def bench(self, model, args, threads):
        rows, peak = self.child(model, args.prompt, args.generate, threads, args.repeat)
        return {t: (statistics.median(s), min(s), max(s)) for t, s in rows.items()}, peak

    def first_token(self, model, threads):
        """Load, prompt and first token inside the child: the start of a Python interpreter is not llama.cpp's."""
        command = [sys.executable, os.path.abspath(__file__), "--worker", json.dumps([model, 0, 0, threads, 0])]
        out, _, total, peak = spawn(command)
        return out, as_json(out, command)["first_s"], total, peak


def worker(spec):
    """Child of LlamaPython: tokens per second of prefill and decode, `repeat` samples each, or (repeat 0) the seconds to a first token."""
    import llama_cpp
    model, prompt, generate, threads, repeat = json.loads(spec)
    if not repeat:
        start = time.perf_counter()
        llm = llama_cpp.Llama(model, n_ctx=CONTEXT, n_threads=threads, n_threads_batch=threads, verbose=False)
        llm.eval(llm.tokenize(PROMPT.encode(), add_bos=False))
        llm.sample(temp=0.0)
        print(json.dumps({"first_s": time.perf_counter() - start}))
        return
    llm = llama_cpp.Llama(model, n_ctx=max(prompt, generate) + 8, n_batch=2048, n_ubatch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
    vocab, rows = llm.n_vocab(), {f"pp{prompt}": [], f"tg{generate}": []}
    for sample in range(repeat + 1):  # the first one warms up
        llm.reset()
        llm._ctx.kv_cache_clear()
        ids = [(i * 7919 + sample) % (vocab - 300) + 200 for i in range(prompt)]
        start = time.perf_counter()
        llm.eval(ids)
        pp = prompt / (time.perf_counter() - start)
        llm.reset()
        llm._ctx.kv_cache_clear()
        llm.eval(ids[:1])
        start = time.perf_counter()
        for i in range(generate):
            llm.eval([(i * 104729 + sample) % (vocab - 300) + 200])
        tg = generate / (time.perf_counter() - start)
        if sample:
            rows[f"pp{prompt}"].append(pp)
            rows[f"tg{generate}"].append(tg)
    print(json.dumps(rows))


def find_peer(args):
    folders = [os.path.join(cache_dir("peers"), "build", "bin")]

    def look(name, given):
        for path in (given, os.environ.get(name.upper().replace("-", "_")), *(os.path.join(f, name) for f in folders), shutil.which(name)):
            if path and os.access(path, os.X_OK):
                return os.path.abspath(path)
        return None

    bench = look("llama-bench", args.llama_bench)
    if bench:
        return LlamaBench(bench, look("llama-completion", args.llama_completion))
    try:
        return LlamaPython()
    except ImportError:
        raise ToolError("no llama.cpp found. Build it (python3 tools/build_peers.py), name it with --llama-bench, or "
                        "install llama-cpp-python into this interpreter.") from None


def measure(engines, models, args):
    """results[(model, threads or 'start', test)][engine] = list of (median, min, max) a round."""
    results = {}

    def add(key, engine, row):
        results.setdefault(key, {}).setdefault(engine.name, []).append(row)

    for path in models.values():
        for engine in engines:
            engine.warm(path)
    for turn in range(args.rounds):
        order = engines if turn % 2 == 0 else engines[::-1]
        for name, path in models.items():
            for threads in args.threads:
                for engine in order:
                    say(f"round {turn + 1} of {args.rounds}: {name}, {threads} threads, {engine.name}")
                    rows, peak = engine.bench(path, args, threads)
                    for test, row in rows.items():
                        add((name, threads, test), engine, row)
                    add((name, threads, "peak MiB"), engine, (peak / 2**20,) * 3)
            if args.starts:
                starts = {e.name: [] for e in order}
                for _ in range(args.starts):
                    for engine in order:
                        start = engine.first_token(path, max(args.threads))
                        if start:
                            starts[engine.name].append((start[1] * 1000, start[3] / 2**20))
                for engine in order:
                    times = [t for t, _ in starts[engine.name]]
                    if times:
                        add((name, max(args.threads), "first token ms"), engine, (statistics.median(times), min(times), max(times)))
                        add((name, max(args.threads), "start peak MiB"), engine, (max(p for _, p in starts[engine.name]),) * 3)
    return results


def summary(results):
    rows = []
    for (model, threads, test), by_engine in results.items():
        row = {"model": model, "threads": threads, "test": test}
        for engine, samples in by_engine.items():
            row[engine] = {"median": statistics.median(s[0] for s in samples), "min": min(s[1] for s in samples), "max": max(s[2] for s in samples)}
        ours, theirs = by_engine.get(Ours.name), by_engine.get("llama.cpp")
        if ours and theirs:
            ratios = [a[0] / b[0] for a, b in zip(ours, theirs)]
            row["ratio"] = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
        rows.append(row)
    return rows


def show(rows):
    def cell(value):
        return "-" if value is None else f"{value['median']:.1f} ({value['min']:.1f}..{value['max']:.1f})"

    print("| model | test | threads | cyb-llm | llama.cpp | ratio |\n|---|---|---|---|---|---|")
    for row in rows:
        ratio = row.get("ratio")
        text = "-" if ratio is None else f"{ratio['median']:.2f} ({ratio['min']:.2f}..{ratio['max']:.2f})"
        print(f"| {row['model']} | {row['test']} | {row['threads']} | {cell(row.get('cyb-llm'))} | {cell(row.get('llama.cpp'))} | {text} |")


def below_floor(rows):
    return [f"{r['model']} {r['test']} at {r['threads']} threads: {r['ratio']['median']:.2f}, asked {FLOORS[r['model']]}"
            for r in rows if r["model"] in FLOORS and r["test"][:2] in ("pp", "tg") and "ratio" in r and r["ratio"]["median"] < FLOORS[r["model"]]]


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--worker":
        worker(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"MODEL: a GGUF file or one of {', '.join(MODEL_FILES)}, all (default: all)\nexample: bench_peers.py --rounds 3 smollm2")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3, help="alternations (default 3)")
    parser.add_argument("-p", "--prompt", type=int, default=512, help="prompt tokens of the prefill test (default 512)")
    parser.add_argument("-n", "--generate", type=int, default=128, help="tokens of the decode test (default 128)")
    parser.add_argument("-t", "--threads", default="1,2", help="thread counts (default 1,2)")
    parser.add_argument("-r", "--repeat", type=int, default=3, help="samples a run (default 3)")
    parser.add_argument("--starts", type=int, default=5, help="starts a round for the time to the first token (default 5, 0: none)")
    parser.add_argument("--program", "--cyb", dest="program", help="the cyb-llm program (default: $CYB_LLM, a build folder, PATH)")
    parser.add_argument("--cyb-option", action="append", default=[], metavar="OPT", help="passed to cyb-llm, e.g. --cyb-option=--exact")
    parser.add_argument("--llama-bench", help="llama.cpp's llama-bench")
    parser.add_argument("--llama-completion", help="llama.cpp's llama-completion, for the start")
    parser.add_argument("--peer-only", action="store_true", help="measure llama.cpp alone")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--check", action="store_true", help=f"exit 1 if a speed ratio is under the floors {FLOORS}")
    args = parser.parse_args()
    try:
        args.threads = [int(t) for t in args.threads.split(",")]
    except ValueError:
        parser.error("--threads takes numbers with commas between, as in 1,2")
    names = args.models or ["all"]
    names = list(MODEL_FILES) if "all" in names else names
    models = {n if n in MODEL_FILES else os.path.basename(n): find_model(n) for n in names}
    engines = [find_peer(args)]
    if not args.peer_only:
        engines.insert(0, Ours(find_program(args.program), args.cyb_option))
    rows = summary(measure(engines, models, args))
    report = {"machine": machine(), "engines": [e.version() for e in engines], "rounds": args.rounds, "repeat": args.repeat, "results": rows}
    low = below_floor(rows)
    if args.json:
        print(json.dumps({**report, "below_floor": low}))
    else:
        print(f"machine: {report['machine']}\nengines: {'; '.join(report['engines'])}\n{args.rounds} rounds in alternation, {args.repeat} samples a run; tokens per second, median (min..max)\n")
        show(rows)
        print("\n" + ("all speed ratios reach the floors" if not low else "under the floor: " + "; ".join(low)) if not args.peer_only else "")
    return 1 if args.check and low else 0


if __name__ == "__main__":
    main_guard(main)
