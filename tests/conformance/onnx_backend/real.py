#!/usr/bin/env python3
"""Runs real ONNX models through `cyb-llm import` and `cyb-llm run` and compares with onnxruntime (graph optimisations off).

    real.py --program BUILD/cyb-llm [--models FOLDER] [--only REGEX] [--write]

The models are the lines of tests/golden/onnx/models.jsonl: where the file comes from (packages, size and sha256), its inputs, the
tolerance. Metric: max|a - b| / max(1, max|b|) as in docs/ir.md. Where onnxruntime is not installed, the committed samples of
tests/golden/onnx/expected/ stand in for it (--write makes them). Random operators become zeros in both.
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
from noise import silence, unsigned_weights  # noqa: E402

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


class Ours:
    """import once, one `cyb-llm run` for each set of inputs."""

    def __init__(self, program, path, work):
        self.program, self.work, self.model = program, work, work / "imported.model"
        self.command("import", path, "-o", str(self.model), "--json")

    def command(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
        return json.loads(done.stdout)

    def __call__(self, feeds):
        words = ["run", str(self.model), "--output", str(self.work / "out"), "--force", "--json"]
        for k, (name, value) in enumerate(feeds.items()):
            np.save(self.work / f"in_{k}.npy", value)
            words += ["--input", f"{name}={self.work / f'in_{k}.npy'}"]
        return {row["name"]: np.load(row["file"]) for row in self.command(*words)["outputs"]}


def run_model(args, row):
    golden = GOLDEN / "expected" / f"{row['name']}.json"
    stored = json.loads(golden.read_text()) if golden.exists() else []
    worst, wanted = 0.0, []
    with tempfile.TemporaryDirectory(prefix="onnx_real_") as root:
        work = pathlib.Path(root)
        path = prepared(row, args.models, work)
        ours = Ours(args.program, path, work)
        oracle = Oracle(row, oracle_path(row, path, work)) if onnxruntime else None
        states = [{}, {}]  # what the last chunk left, ours and theirs
        for chunk in range(row.get("chunks", 1)):
            feeds = {name: make_input(args.models, kind, rest, chunk) for name, (kind, *rest) in row["inputs"].items()}
            got = ours({**feeds, **states[0]})
            want = oracle({**feeds, **states[1]}) if oracle else stored[chunk]
            if set(got) != set(want):
                return False, f"outputs {sorted(got)}, expected {sorted(want)}"
            for name in want:
                error = difference(got[name], want[name])
                if not isinstance(error, float):
                    return False, f"{name}: {error}"
                worst = max(worst, error)
            for k, out in enumerate((got, want)):
                states[k] = {to: out[of] for to, of in row.get("carry", {}).items() if not isinstance(out[of], dict)}
            if oracle:
                wanted.append({name: sampled(value) for name, value in want.items()})
    if args.write and wanted:
        golden.write_text("[" + ",\n".join(json.dumps(w) for w in wanted) + "]\n")
    return worst <= row["tolerance"], f"{worst:.1e} (at most {row['tolerance']:.0e})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path(fetch_models.default_dir()).parent / "onnx")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true", help="write the goldens of onnxruntime's outputs")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in (GOLDEN / "models.jsonl").read_text().splitlines()]
    rows = [row for row in rows if re.search(args.only, row["name"])]
    failed = 0
    for row in rows:
        try:
            good, text = run_model(args, row)
        except (RuntimeError, fetch_models.FetchError) as error:
            good, text = False, str(error)
        failed += not good
        print("ok  " if good else "FAIL", row["name"], text, flush=True)
    print(f"{len(rows) - failed} passed, {failed} failed, against {'onnxruntime ' + onnxruntime.__version__ if onnxruntime else 'the committed goldens'}")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
