#!/usr/bin/env python3
"""Run cyb-llm, ONNX Runtime and, where it is installed, OpenVINO in alternation on ONNX models and print the ratios.

A round runs, for each case and thread count, every program for a few runs one after the other (the order turns round
every round), so that a noisy neighbour hits all. Planning, loading and the first run are not counted. Printed are the
medians of all runs in milliseconds and the median of the rounds' own ratios, theirs over ours: above 1 is in our favour.

The models are lines of tests/golden/onnx/models.jsonl and are fetched from packages; the inputs are random numbers.
ONNX Runtime has its optimisations on, as it comes; OpenVINO computes in f32 on one stream. Before it is measured, each of
them gives the same numbers as we do, within TOLERANCE. `make bench-peers` runs it in build/venv-bench
(tools/requirements-bench.txt), with the rows as JSON in build/bench_onnx.json.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnxruntime

import fetch_models
from cyb_tools import GOLDEN, ToolError, cache_dir, find_program, machine, main_guard, run_json, say

try:
    import openvino
except ImportError:
    openvino = None

FLOOR = 0.8  # of ONNX Runtime's speed
TOLERANCE = 1e-3  # max|a - b| / max(1, max|b|)


def uniform(*shape):
    return np.random.default_rng(1).random(shape, dtype=np.float32)


def words(batch, tokens):
    ids = np.random.default_rng(1).integers(1000, 20000, (batch, tokens)).astype(np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


# case: model of models.jsonl, inputs
CASES = {
    "yolov8n-320": ("yolov8n-320", {"images": uniform(1, 3, 320, 320)}),
    "yolov8n-640": ("yolov8n-640", {"images": uniform(1, 3, 640, 640)}),
    "thin-resnet50": ("thin-resnet50", {"input_0": uniform(1, 224, 224, 3) * 200 - 100}),
    "ocr-det": ("ocr-det", {"x": uniform(1, 3, 640, 640)}),
    **{f"minilm-{b}x{t}": ("minilm", words(b, t)) for b in (1, 32) for t in (32, 128)},
}


def model_rows():
    with open(os.path.join(GOLDEN, "onnx", "models.jsonl"), encoding="utf-8") as f:
        return {row["name"]: row for row in map(json.loads, filter(str.strip, f))}


class Ours:
    name = "cyb-llm"

    def __init__(self, program, path, inputs, folder):
        self.program, self.path, self.given = program, path, []
        for name, array in inputs.items():
            file = os.path.join(folder, f"{name}.npy")
            np.save(file, array)
            self.given += ["--input", f"{name}={file}"]

    def answers(self):
        """The outputs, in the model's order."""
        with tempfile.TemporaryDirectory() as folder:
            out = run_json(self.program, "run", self.path, *self.given, "--output", folder, "--json")
            return [np.load(row["file"]) for row in out["outputs"]]

    def __call__(self, threads, repeats):
        out = run_json(self.program, "bench", self.path, *self.given, "-t", threads, "-r", repeats, "--json")
        return out["rows"][0]["ms"]


class Timed:
    """A program inside this process; one session per thread count, warm."""

    def __init__(self):
        self.sessions = {}

    def answers(self):
        return self.open(1)()

    def __call__(self, threads, repeats):
        if threads not in self.sessions:
            self.sessions = {threads: self.open(threads)}  # the others' threads would spin beside it
            self.sessions[threads]()
        infer, ms = self.sessions[threads], []
        for _ in range(repeats):
            start = time.perf_counter()
            infer()
            ms.append((time.perf_counter() - start) * 1e3)
        return ms


class OnnxRuntime(Timed):
    name = "onnxruntime"

    def __init__(self, path, inputs):
        super().__init__()
        self.path, self.inputs = path, inputs

    def open(self, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, self.inputs)


class OpenVino(Timed):
    name = "openvino"

    def __init__(self, path, inputs):
        super().__init__()
        self.path, self.inputs = path, inputs

    def open(self, threads):
        core = openvino.Core()
        model = core.read_model(self.path)
        model.reshape({name: list(array.shape) for name, array in self.inputs.items()})
        how = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        compiled = core.compile_model(model, "CPU", how)
        request = compiled.create_infer_request()
        return lambda: [np.array(a) for a in request.infer(self.inputs).values()]


def check_answers(case, ours, peers):
    """That all programs compute the same."""
    want = ours.answers()
    for peer in peers:
        got = peer.answers()
        if [a.shape for a in got] != [a.shape for a in want]:
            raise ToolError(f"{case}: {peer.name} gives {[a.shape for a in got]}, we give {[a.shape for a in want]}")
        worst = max(float(np.abs(a.astype(np.float64) - b).max() / max(1.0, np.abs(b).max())) for a, b in zip(want, got))
        if not worst <= TOLERANCE:
            raise ToolError(f"{case}: we and {peer.name} differ by {worst:.1e}")


def measure(case, options, program):
    """One row per thread count: medians in ms by program, ratios by peer."""
    model, inputs = CASES[case]
    row = model_rows().get(model)
    if row is None:
        raise ToolError(f"{model} is not in models.jsonl")
    path = options.file or fetch_models.fetch_entry(model, {**row, "about": row["file"]}, options.models)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        runners = [Ours(program, path, inputs, folder), OnnxRuntime(path, inputs)]
        if openvino is not None and not options.no_openvino:
            runners.append(OpenVino(path, inputs))
        check_answers(case, runners[0], runners[1:])
        for threads in options.threads:
            times = {r.name: [] for r in runners}
            for i in range(options.rounds):
                for r in runners if i % 2 == 0 else runners[::-1]:
                    times[r.name].append(r(threads, options.repeats))
            medians = {name: statistics.median(sum(rounds, [])) for name, rounds in times.items()}
            ours = [statistics.median(r) for r in times["cyb-llm"]]
            ratios = {name: statistics.median(statistics.median(r) / o for r, o in zip(rounds, ours))
                      for name, rounds in times.items() if name != "cyb-llm"}
            rows.append({"case": case, "threads": threads, "ms": medians, "ratios": ratios})
    return rows


def print_row(row):
    ms = "  ".join(f"{name} {value:8.2f} ms" for name, value in row["ms"].items())
    ratios = "  ".join(f"{name} {value:.2f}x" for name, value in row["ratios"].items())
    low = "" if row["ratios"]["onnxruntime"] >= FLOOR else f"  below {FLOOR}"
    print(f"{row['case']:<16} {row['threads']} thread{' ' if row['threads'] == 1 else 's'}  {ms}  |  {ratios}{low}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the cyb-llm to measure")
    parser.add_argument("--cases", default=",".join(CASES), help=f"of {', '.join(CASES)}")
    parser.add_argument("--models", default=cache_dir("onnx"), help="folder of the model files")
    parser.add_argument("--file", help="this ONNX file in place of the case's own (one case)")
    parser.add_argument("--threads", default="1,2", help="thread counts (default 1,2)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each program in a round")
    parser.add_argument("--no-openvino", action="store_true")
    parser.add_argument("--json", action="store_true", help="JSON in place of the table")
    parser.add_argument("--save", metavar="FILE", help="the JSON, into this file")
    parser.add_argument("--check", action="store_true", help=f"fail where we have less than {FLOOR} of ONNX Runtime's speed")
    options = parser.parse_args()
    options.threads = [int(t) for t in options.threads.split(",")]
    cases = options.cases.split(",")
    for case in cases:
        if case not in CASES:
            parser.error(f"no case {case}; there are {', '.join(CASES)}")
    os.makedirs(options.models, exist_ok=True)
    program = find_program(options.program)
    peers = f"onnxruntime {onnxruntime.__version__}" + (f", openvino {openvino.__version__}" if openvino else "")
    say(f"{machine()}; {peers}")
    rows = []
    for case in cases:
        for row in measure(case, options, program):
            rows.append(row)
            if not options.json:
                print_row(row)
    report = json.dumps({"machine": machine(), "peers": peers, "rows": rows})
    if options.json:
        print(report)
    if options.save:
        with open(options.save, "w", encoding="utf-8") as f:
            f.write(report + "\n")
    low = [r for r in rows if r["ratios"]["onnxruntime"] < FLOOR]
    return 1 if options.check and low else 0


if __name__ == "__main__":
    main_guard(main)
