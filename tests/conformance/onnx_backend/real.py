#!/usr/bin/env python3
"""Runs real ONNX models through `cyb-llm import` and `cyb-llm run` and compares with onnxruntime (graph optimisations off).

    real.py --shake 1e-7 [--only REGEX]
    real.py --program BUILD/cyb-llm [--models FOLDER] [--only REGEX] [--backend cpu|reference] [--table docs/onnx.md] [--write | --committed]

The models are the lines of tests/golden/onnx/models.jsonl: where the file comes from (packages, size and sha256), its inputs, the
tolerance. Metric: max|a - b| / max(1, max|b|) as in docs/ir.md. Where onnxruntime is not installed (or with --committed), the samples
of tests/golden/onnx/expected/ stand in for it (--write makes them). Random operators become zeros in both.

A model of integers is also compared between its roundings (`stages`): there a last bit decides whether a value becomes k or k + 1, and
a long chain of them makes any two programs differ, onnxruntime from itself included. Each stretch starts from what onnxruntime found.
Where that is so for every input (`chaotic` says why), the run of the whole is only asked for finite values in as many dimensions.
--shake R shows it: onnxruntime against itself, its f32 weights moved by R of their size, five times.
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
import onnx

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parents[1] / "golden" / "onnx"
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "tools")]
import fetch_models  # noqa: E402
from noise import cut, exposed, shaken, silence, unsigned_weights  # noqa: E402

START, END = "<!-- real: begin -->", "<!-- real: end -->"
SAMPLES = 64  # of each output, in the committed goldens
PHOTO = {"file": "astronaut.png", "about": "a photo", "size": 791555, "sha256": "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
         "parts": [("scikit-image==0.26.0", "skimage/data/astronaut.png")]}


def photo(folder, shape, mean, std):
    """The photo as [1, 3, H, W], cut to the aspect ratio, resized and normalised."""
    from PIL import Image

    h, w = shape[2:]
    image = Image.open(fetch_models.fetch_entry("photo", PHOTO, str(folder))).convert("RGB")
    scale = min(image.width / w, image.height / h)
    left, top = (image.width - w * scale) / 2, (image.height - h * scale) / 2
    image = image.resize((w, h), Image.BILINEAR, box=(left, top, left + w * scale, top + h * scale))
    pixels = (np.asarray(image, np.float32) / 255 - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def voice(shape, rate, chunk):
    """Vowels and pauses: harmonics of 120 Hz under moving formants."""
    n = int(np.prod(shape))
    t = (np.arange(n) + chunk * n) / rate
    tone = sum(np.sin(2 * np.pi * 120 * k * t + k) * np.exp(-(((120 * k - 500 - 300 * np.sin(2 * np.pi * 3 * t)) / 400) ** 2)) for k in range(1, 25))
    return (0.2 * tone * (np.sin(2 * np.pi * 2.5 * t) > -0.3)).astype(np.float32).reshape(shape)


def make_input(folder, kind, args, chunk):
    rng = np.random.default_rng(len(kind) + chunk)
    if kind == "photo":
        return photo(folder, *args)
    if kind == "voice":
        return voice(args[0], args[1], chunk)
    if kind == "uniform":
        return rng.uniform(args[1], args[2], args[0]).astype(np.float32)
    if kind == "integers":
        return rng.integers(args[1], args[2], args[0]).astype(np.int64)
    if kind == "prefix":  # a mask: the first n of each row
        return (np.arange(args[0][1]) < np.array(args[1])[:, None]).astype(np.int64)
    if kind == "zeros":
        return np.zeros(args[0], args[1])
    if kind == "each":
        return np.array(args[0][chunk], args[1])
    return np.array(args[0], args[1])  # "list", "value"


def fix_dims(graph, sizes):
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def prepared(row, folder, work):
    """The ONNX file as both programs read it."""
    path = fetch_models.fetch_entry(row["name"], {**row, "about": row["file"]}, str(folder))
    if not row.get("silence") and not row.get("dims"):
        return path
    model = onnx.load(path)
    silence(model.graph)
    fix_dims(model.graph, row.get("dims", {}))
    onnx.save(model, work / "model.onnx")
    return str(work / "model.onnx")


def oracle_path(row, path, work):
    """The file for onnxruntime: ours, or the same with u8 weights."""
    if not row.get("unsigned"):
        return path
    model = onnx.load(path)
    unsigned_weights(model)
    onnx.save(model, work / "oracle.onnx")
    return str(work / "oracle.onnx")


class Oracle:
    """onnxruntime with its optimisations off, or the reference evaluator of the onnx package."""

    def __init__(self, row, path):
        self.names = [v.name for v in onnx.load(path, load_external_data=False).graph.output]
        if row.get("oracle") == "reference":
            from onnx.reference import ReferenceEvaluator

            self.run = lambda feeds: ReferenceEvaluator(path).run(None, feeds)
            return
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.run = lambda feeds: session.run(None, feeds)

    def __call__(self, feeds):
        return dict(zip(self.names, self.run(feeds)))


def places(size):
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, SAMPLES)).astype(np.int64))


def sampled(array):
    values = array.reshape(-1)[places(array.size)].tolist() if array.size else []
    scale = float(np.abs(array.astype(np.float64)).max()) if array.size else 0.0
    return {"dtype": str(array.dtype), "shape": list(array.shape), "max": float(f"{scale:.9g}"),
            "values": [float(f"{v:.9g}") if isinstance(v, float) else v for v in values]}


def difference(got, want):
    """The metric, or text. `want` is an array or a sample."""
    kind, shape = (want["dtype"], want["shape"]) if isinstance(want, dict) else (str(want.dtype), list(want.shape))
    if list(got.shape) != shape or str(got.dtype) != kind:
        return f"{got.dtype}{list(got.shape)}, expected {kind}{shape}"
    if isinstance(want, dict):
        scale, want, got = want["max"], np.array(want["values"]), got.reshape(-1)[places(got.size)]
    else:
        scale = float(np.abs(want.astype(np.float64)).max()) if want.size else 0.0
    if not np.isfinite(got).all() or not np.isfinite(want).all():
        return "not finite"
    if not want.size:
        return 0.0
    error = float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max())
    return error / max(1.0, scale) if np.issubdtype(got.dtype, np.floating) else error


def stages_of(row, path, feeds, work):
    """The model cut at its rounding nodes: the file, its inputs as onnxruntime finds them in the whole, what it makes of them."""
    model, seam_types = onnx.load(path), row["stages"].get("seams", [])
    onnx.save(exposed(model, seam_types), work / "whole.onnx")
    found = Oracle(row, oracle_path(row, str(work / "whole.onnx"), work))(feeds)
    stages = cut(model, seam_types, found)
    onnx.save(stages, work / "stages.onnx")
    found.update(feeds)
    return (str(work / "stages.onnx"), {v.name: found[v.name] for v in stages.graph.input},
            {v.name: found[v.name.removesuffix("_computed")] for v in stages.graph.output})


class Ours:
    """import once, one `cyb-llm run` for each set of inputs."""

    def __init__(self, program, path, work, backend=None):
        self.program, self.work, self.model = program, work, work / f"{pathlib.Path(path).stem}.model"
        self.options = ["--backend", backend] if backend else []
        self.command("import", path, "-o", str(self.model), "--json", "--force")

    def command(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
            raise RuntimeError(lines[0] if lines else f"status {done.returncode}")
        return json.loads(done.stdout)

    def __call__(self, feeds):
        words = ["run", str(self.model), "--output", str(self.work / "out"), "--force", "--json", *self.options]
        for k, (name, value) in enumerate(feeds.items()):
            np.save(self.work / f"in_{k}.npy", value)
            words += ["--input", f"{name}={self.work / f'in_{k}.npy'}"]
        return {row["name"]: np.load(row["file"]) for row in self.command(*words)["outputs"]}


class Worst:
    """The worst error so far; `wrong` says what cannot be measured."""

    def __init__(self, limit):
        self.limit, self.error, self.wrong = limit, 0.0, ""

    def compare(self, got, want):
        if set(got) != set(want):
            self.wrong = f"outputs {sorted(got)}, expected {sorted(want)}"
        for name in want if not self.wrong else ():
            error = difference(got[name], want[name])
            if isinstance(error, float):
                self.error = max(self.error, error)
            else:
                self.wrong = f"{name}: {error}"

    @property
    def good(self):
        return not self.wrong and self.error <= self.limit

    def __str__(self):
        return self.wrong or f"{self.error:.1e} (at most {self.limit:.0e})"


class Sane:
    """In place of a figure for a chaotic model."""

    def __init__(self):
        self.wrong = ""

    def compare(self, got, want):
        for name, value in want.items():
            rank = len(value["shape"] if isinstance(value, dict) else value.shape)
            if got[name].ndim != rank or not got[name].size or not np.isfinite(got[name]).all():
                self.wrong = f"{name}: {got[name].dtype}{list(got[name].shape)}, not finite or of another rank"

    @property
    def good(self):
        return not self.wrong

    def __str__(self):
        return self.wrong or "finite"


def feeds_of(args, row, chunk):
    return {name: make_input(args.models, kind, rest, chunk) for name, (kind, *rest) in row["inputs"].items()}


def run_whole(args, row, path, work):
    """The check of the whole model, and samples of what onnxruntime gives."""
    golden = GOLDEN / "expected" / f"{row['name']}.json"
    check, wanted = Sane() if "chaotic" in row else Worst(row["tolerance"]), []
    ours = Ours(args.program, path, work, args.backend)
    oracle = None if args.committed else Oracle(row, oracle_path(row, path, work))
    stored = json.loads(golden.read_text()) if args.committed else []
    states = [{}, {}]  # what the last chunk left, ours and theirs
    for chunk in range(row.get("chunks", 1)):
        feeds = feeds_of(args, row, chunk)
        got = ours({**feeds, **states[0]})
        want = oracle({**feeds, **states[1]}) if oracle else stored[chunk]
        check.compare(got, want)
        for k, out in enumerate((got, want)):
            states[k] = {to: out[of] for to, of in row.get("carry", {}).items() if not isinstance(out[of], dict)}
        if oracle:
            wanted.append({name: sampled(value) for name, value in want.items()})
    if args.write:
        golden.write_text("[" + ",\n".join(json.dumps(w) for w in wanted) + "]\n")
    return check


def run_stages(args, row, path, work):
    check = Worst(row["stages"]["tolerance"])
    for chunk in range(row.get("chunks", 1)):
        stages, feeds, want = stages_of(row, path, feeds_of(args, row, chunk), work)
        check.compare(Ours(args.program, stages, work, args.backend)(feeds), want)
    return check


def shake(args, row):
    """How far onnxruntime gets from itself: a text for each of five draws."""
    with tempfile.TemporaryDirectory(prefix="onnx_shake_") as root:
        work = pathlib.Path(root)
        path = oracle_path(row, prepared(row, args.models, work), work)
        feeds, texts = feeds_of(args, row, 0), []
        still = Oracle(row, path)(feeds)
        for seed in range(5):
            model = onnx.load(path)
            shaken(model, args.shake, seed)
            onnx.save(model, work / "shaken.onnx")
            check = Worst(row["tolerance"])
            check.compare(Oracle(row, str(work / "shaken.onnx"))(feeds), still)
            texts.append(check.wrong or f"{check.error:.1e}")
        return "; ".join(texts)


def run_model(args, row):
    """name of the check -> check; None for one that needs onnxruntime."""
    with tempfile.TemporaryDirectory(prefix="onnx_real_") as root:
        work = pathlib.Path(root)
        path = prepared(row, args.models, work)
        checks = {"whole": run_whole(args, row, path, work)}
        if "stages" in row:
            checks["stages"] = None if args.committed else run_stages(args, row, path, work)
        return checks


def inputs_text(row):
    """What goes in, for people."""
    if "texts" in row:
        return "; ".join(f"“{text}”" for text in row["texts"])
    texts = []
    for name, (kind, *rest) in row["inputs"].items():
        if kind in ("photo", "voice", "uniform", "integers"):
            texts.append(f"`{name}` {'ids' if kind == 'integers' else kind} {'×'.join(map(str, rest[0]))}")
    return ", ".join(texts) + (f", {row['chunks']} chunks" if row.get("chunks", 1) > 1 else "")


def table(rows, results):
    """The figures for docs/onnx.md."""
    lines = ["| model | inputs | error | at most | between roundings | at most |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = []
        for name, limit in (("whole", row.get("tolerance")), ("stages", row.get("stages", {}).get("tolerance"))):
            check = results[row["name"]].get(name)
            cells += [f"{check.error:.0e}", f"{limit:.0e}"] if isinstance(check, Worst) else ["chaotic" if check else "", ""]
        lines.append(f"| {row['name']} | {inputs_text(row)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def replace_table(path, text, start, stop):
    old = path.read_text()
    begin, end = old.index(start) + len(start), old.index(stop)
    path.write_text(f"{old[:begin]}\n{text}\n{old[end:]}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="the cyb-llm to check")
    parser.add_argument("--shake", type=float, metavar="R", help="onnxruntime against itself with its f32 weights moved by R of their size")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path(fetch_models.default_dir()).parent / "onnx")
    parser.add_argument("--only", default="")
    parser.add_argument("--backend")
    parser.add_argument("--table", type=pathlib.Path, help="put the figures into this file")
    parser.add_argument("--write", action="store_true", help="write the goldens of onnxruntime's outputs")
    parser.add_argument("--committed", action="store_true", help="compare with the committed goldens")
    args = parser.parse_args()
    if (args.program is None) == (args.shake is None):
        parser.error("one of --program and --shake")
    if args.shake is not None and onnxruntime is None:
        parser.error("--shake needs onnxruntime")
    args.program = os.path.abspath(args.program or "")
    args.committed = args.committed or onnxruntime is None
    if args.committed and (args.write or args.table):
        parser.error("--write and --table need onnxruntime")
    return args


def main():
    args = parse()
    warnings.simplefilter("ignore")
    every = [json.loads(line) for line in (GOLDEN / "models.jsonl").read_text().splitlines()]
    rows = [row for row in every if re.search(args.only, row["name"])]
    if args.shake is not None:
        for row in rows:
            print(row["name"], shake(args, row), flush=True)
        return 0
    failed, left, results = 0, [], {}
    for row in rows:
        try:
            results[row["name"]] = checks = run_model(args, row)
            good = all(check is None or check.good for check in checks.values())
            text = ", ".join(f"{name} {check or 'needs onnxruntime'}" for name, check in checks.items())
            left += [row["name"] for check in checks.values() if check is None]
        except (RuntimeError, fetch_models.FetchError) as error:
            good, text = False, str(error)
        failed += not good
        print("ok  " if good else "FAIL", row["name"], text, flush=True)
    if args.table and not failed and rows == every:
        replace_table(args.table, table(rows, results), START, END)
    peer = "the committed goldens" if args.committed else f"onnxruntime {onnxruntime.__version__}"
    print(f"{len(rows) - failed} passed, {failed} failed, against {peer}" + (f"; not compared between roundings: {' '.join(left)}" if left else ""))
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
