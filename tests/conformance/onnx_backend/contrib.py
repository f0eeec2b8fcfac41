#!/usr/bin/env python3
"""Operators of com.microsoft through import and the graph, against onnxruntime with its graph optimisations off.

    contrib.py --driver BUILD/tests/onnx_driver [--only REGEX]

One node for each case, inputs from a seeded generator. Floats may differ by 1e-5, the quantised results by one step.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(3)


def f(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape):
    return RNG.integers(0, 255, shape).astype(np.uint8)


def i8(*shape):
    return RNG.integers(-60, 60, shape).astype(np.int8)


def s(value, kind=np.float32):
    return np.array(value, kind)


W = "constant"
# operator, inputs in order (None: absent, (W, array): a constant), number of outputs, attributes
CASES = [
    ("Gelu", [f(2, 9)], 1, {}),
    ("FastGelu", [f(2, 9), f(9)], 1, {}),
    ("BiasGelu", [f(2, 9), f(9)], 1, {}),
    ("QuickGelu", [f(2, 9)], 1, {"alpha": 1.5}),
    ("FusedMatMul", [f(2, 5, 4), f(2, 5, 6)], 1, {"transA": 1, "alpha": 0.5}),
    ("FusedMatMul", [f(3, 4), (W, f(6, 4))], 1, {"transB": 1}),
    ("SimplifiedLayerNormalization", [f(2, 3, 8), f(8)], 1, {"axis": -1, "epsilon": 1e-6}),
    ("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], 4, {"epsilon": 1e-5}),
    ("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8)], 4, {"epsilon": 1e-5}),
    ("EmbedLayerNormalization", [s([[1, 2, 3]], np.int32), s([[0, 1, 0]], np.int32), (W, f(9, 8)), (W, f(5, 8)), (W, f(2, 8)), (W, f(8)), (W, f(8))],
     2, {"epsilon": 1e-5}),
    ("MatMulIntegerToFloat", [u8(3, 6), i8(6, 4), s(0.1), s(0.2), s(120, np.uint8), s(3, np.int8), f(4)], 1, {}),
    ("DynamicQuantizeMatMul", [f(3, 6), i8(6, 4), s(0.2), s(3, np.int8), f(4)], 1, {}),
    ("DynamicQuantizeLSTM", [f(4, 1, 6), (W, u8(1, 6, 12)), (W, u8(1, 3, 12)), f(1, 24), None, f(1, 1, 3), f(1, 1, 3), None, (W, s([0.01])), (W, s([120], np.uint8)),
                             (W, s([0.02])), (W, s([130], np.uint8))], 1, {"hidden_size": 3}),
    ("DynamicQuantizeLSTM", [f(5, 1, 6), (W, u8(2, 6, 12)), (W, u8(2, 3, 12)), f(2, 24), None, None, None, None, (W, s([0.01, 0.02])), (W, s([120, 90], np.uint8)),
                             (W, s([0.02, 0.01])), (W, s([130, 127], np.uint8))], 1, {"hidden_size": 3, "direction": "bidirectional"}),
    ("QLinearAdd", [u8(2, 5), s(0.1), s(7, np.uint8), u8(2, 5), s(0.2), s(9, np.uint8), s(0.3), s(12, np.uint8)], 1, {}),
    ("QLinearMul", [u8(2, 5), s(0.1), s(7, np.uint8), u8(2, 5), s(0.02), s(9, np.uint8), s(0.3), s(12, np.uint8)], 1, {}),
    ("QLinearSigmoid", [u8(2, 5), s(0.05), s(120, np.uint8), s(0.004), s(3, np.uint8)], 1, {}),
    ("QLinearLeakyRelu", [u8(2, 5), s(0.05), s(120, np.uint8), s(0.04), s(60, np.uint8)], 1, {"alpha": 0.2}),
    ("QLinearGlobalAveragePool", [u8(1, 3, 4, 4), s(0.05), s(120, np.uint8), s(0.04), s(60, np.uint8)], 1, {}),
    ("QLinearConcat", [s(0.1), s(100, np.uint8), u8(2, 3), s(0.05), s(120, np.uint8), u8(2, 4), s(0.2), s(10, np.uint8)], 1, {"axis": 1}),
    ("QGemm", [u8(3, 6), s(0.1), s(120, np.uint8), i8(4, 6), s(0.2), s(0, np.int8), s([3, -4, 5, 6], np.int32)], 1, {"transB": 1}),
    ("FusedConv", [f(1, 3, 7, 7), f(4, 3, 3, 3), f(4), f(1, 4, 7, 7)], 1, {"pads": [1, 1, 1, 1], "activation": "Relu"}),
    ("FusedConv", [f(1, 3, 7, 7), f(4, 3, 3, 3), f(4)], 1, {"strides": [2, 2], "activation": "LeakyRelu", "activation_params": [0.3]}),
    ("Attention", [f(2, 5, 16), (W, f(16, 48)), f(48)], 1, {"num_heads": 2}),
    ("Attention", [f(2, 5, 16), (W, f(16, 48)), f(48), s([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)], 1, {"num_heads": 4}),
    ("Attention", [f(2, 5, 16), (W, f(16, 48)), f(48)], 1, {"num_heads": 2, "unidirectional": 1}),
    ("QAttention", [u8(1, 5, 16), i8(16, 48), f(48), s(0.02), s(0.01), None, s(128, np.uint8), s(0, np.int8)], 1, {"num_heads": 2}),
    ("MultiHeadAttention", [f(2, 5, 16), f(2, 7, 16), f(2, 7, 16)], 1, {"num_heads": 4}),
    ("MultiHeadAttention", [f(2, 5, 16), f(2, 5, 16), f(2, 5, 16), f(48), None, f(1, 2, 5, 5)], 1, {"num_heads": 2, "scale": 0.3}),
    ("RotaryEmbedding", [f(2, 3, 16), s([[0, 1, 2], [4, 5, 6]], np.int64), f(9, 4), f(9, 4)], 1, {}),
    ("RotaryEmbedding", [f(2, 2, 3, 8), s([[0, 1, 2], [4, 5, 6]], np.int64), f(9, 4), f(9, 4)], 1, {"interleaved": 1}),
]


def model_of(op, inputs, n_out, attributes):
    infos, tensors, names, feeds = [], [], [], {}
    for k, value in enumerate(inputs):
        names.append("" if value is None else f"i{k}")
        if isinstance(value, tuple):
            tensors.append(numpy_helper.from_array(value[1], names[-1]))
        elif value is not None:
            infos.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
            feeds[names[-1]] = value
    outs = [f"o{k}" if n_out <= 2 or k in (0, 3) else "" for k in range(n_out)]
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(op, names, outs, domain=domain, **attributes)
    kind = next((v.dtype for v in inputs if isinstance(v, np.ndarray) and v.ndim > 1), np.dtype(np.float32))
    quantised = op.startswith("QLinear")
    elem = helper.np_dtype_to_tensor_dtype(kind if quantised else np.dtype(np.float32))
    graph = helper.make_graph([node], op, infos, [helper.make_tensor_value_info(o, TensorProto.INT32 if o == "o1" else elem, None) for o in outs if o], tensors)
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def compare(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if np.issubdtype(want.dtype, np.integer):
        off = int(np.abs(got.astype(int) - want.astype(int)).max())
        return "" if off <= 1 else f"{off} steps"
    error = float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))
    return "" if error <= 1e-5 else f"{error:.1e}"


def run_case(driver, row):
    model, feeds = model_of(*row)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    with tempfile.TemporaryDirectory(prefix="onnx_contrib_") as root:
        folder = pathlib.Path(root)
        onnx.save(model, folder / "model.onnx")
        for k, value in enumerate(feeds.values()):
            np.save(folder / f"in_{k}.npy", value)
        done = subprocess.run([driver], input=f"{folder}\n", capture_output=True, text=True, check=False)
        answer = done.stdout.strip().split(" ", 1)[-1]
        if answer != "ok":
            return answer or f"status {done.returncode}"
        found = [compare(np.load(folder / f"out_{k}.npy"), want) for k, want in enumerate(wanted)]
    return "; ".join(text for text in found if text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    failed = 0
    for row in CASES:
        if re.search(args.only, row[0]):
            text = run_case(args.driver, row)
            failed += bool(text)
            print("FAIL" if text else "ok  ", row[0], text, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
