#!/usr/bin/env python3
"""Write tests/golden/ops/onnx_*.safetensors: the ONNX project's own node cases, as inputs, attributes and outputs of our ops.

Made with onnx 1.23.2 (onnx.backend.test.case.node), whose expected outputs come from numpy. One node per case; cases with
sequences, strings, types that ours lack or more than 3,000 elements are left out and counted. Two runs give equal bytes.
"""
import collections
import os
import sys
import warnings

sys.path = [os.path.dirname(os.path.abspath(__file__))] + [p for p in sys.path if p]
warnings.filterwarnings("ignore")

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.backend.test.case.node import collect_testcases

from ops_file import File

DTYPES = {"float32": 0, "float16": 1, "int8": 3, "uint8": 4, "bool": 5, "int32": 18, "int64": 19, "float64": 39, "int16": 40,
          "uint16": 41, "uint32": 42, "uint64": 43}
MOST = 3000
# Expected values that were typed with four decimals: onnx's ReferenceEvaluator computes them again.
TYPED = {"test_averagepool_2d_ceil_last_window_starts_on_pad", "test_gridsample_bicubic", "test_roialign_aligned_false",
         "test_roialign_aligned_true"}


def tag(onnx_type):
    return DTYPES[str(np.dtype(helper.tensor_dtype_to_np_dtype(onnx_type)))]


def f32_bytes(values):
    return list(np.asarray(values, np.float32).tobytes())


class Node:
    """One node: attributes with defaults, inputs by position (None: absent)."""

    def __init__(self, node, values, opset):
        self.op, self.opset = node.op_type, opset
        self.a = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.x = [values.get(n) if n else None for n in node.input]

    def get(self, name, default=None):
        v = self.a.get(name, default)
        return v.decode() if isinstance(v, bytes) else v

    def i(self, k):
        return self.x[k] if k < len(self.x) else None

    def spatial(self):
        return self.x[0].ndim - 2


def auto_pad(n):
    return {"NOTSET": 0, "SAME_UPPER": 1, "SAME_LOWER": 2, "VALID": 3}[n.get("auto_pad", "NOTSET")]


def conv_attrs(n):
    return {"strides": n.get("strides", []), "dilations": n.get("dilations", []), "pads": n.get("pads", []),
            "groups": n.get("group", 1), "auto_pad": auto_pad(n)}


def pool_attrs(n, last):
    return {"kernel": n.get("kernel_shape"), "strides": n.get("strides", []), "dilations": n.get("dilations", []),
            "pads": n.get("pads", []), "auto_pad": auto_pad(n), "ceil": n.get("ceil_mode", 0), **last}


PLAIN = {"Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Neg": "Neg", "Abs": "Abs", "Erf": "Erf", "Sin": "Sin", "Cos": "Cos",
         "Softplus": "Softplus", "Round": "Round", "Pow": "Pow", "Where": "Where", "Reciprocal": "Reciprocal", "Floor": "Floor",
         "Ceil": "Ceil", "Sign": "Sign", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan", "Sinh": "Sinh",
         "Cosh": "Cosh", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Not": "Not", "BitwiseNot": "BitwiseNot",
         "IsNaN": "IsNan", "HardSwish": "HardSwish", "Mish": "Mish", "Softsign": "Softsign", "BitwiseAnd": "BitwiseAnd",
         "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor", "And": "And", "Or": "Or", "Xor": "Xor", "Max": "Max", "Min": "Min",
         "Clip": "Clip", "Identity": "Identity", "Size": "Size", "Expand": "ExpandTo", "Tile": "Tile", "NonZero": "NonZero",
         "Range": "Range", "Slice": "SliceBy", "MatMul": "BatchMatmul", "MatMulInteger": "MatmulInteger",
         "QLinearMatMul": "QLinearMatmul", "DynamicQuantizeLinear": "DynamicQuantizeLinear", "Det": "Det", "Sigmoid": "Sigmoid",
         "Tanh": "Tanh", "Relu": "Relu", "Add": "Add", "Sub": "Sub", "Mul": "Mul", "Div": "Div"}
COMPARE = {"Equal": 0, "Less": 2, "LessOrEqual": 3, "Greater": 4, "GreaterOrEqual": 5}
REDUCE = {"ReduceSum": 0, "ReduceMean": 1, "ReduceMax": 2, "ReduceMin": 3, "ReduceProd": 4, "ReduceL1": 5, "ReduceL2": 6,
          "ReduceLogSum": 7, "ReduceLogSumExp": 8, "ReduceSumSquare": 9}
SCATTER = {"none": 0, "add": 1, "mul": 2, "max": 3, "min": 4}


def constant(values, dtype=np.int64):
    return np.asarray(values, dtype)


def lower_layout(n):
    op, x = n.op, n.x
    if op == "Shape":
        return "Shape", {"start": n.get("start", 0), "end": n.get("end", 2**31 - 1)}, x
    if op == "Reshape":
        return "ReshapeTo", {"allow_zero": n.get("allowzero", 0)}, x
    if op == "Flatten":
        return "Flatten", {"axis": n.get("axis", 1)}, x
    if op in ("Squeeze", "Unsqueeze"):
        axes = n.i(1) if n.opset >= 13 else (constant(n.get("axes")) if n.get("axes") else None)
        return op, {}, [x[0]] if axes is None else [x[0], axes]
    if op == "Split":
        return "SplitBy", {"axis": n.get("axis", 0), "n": n.n_outputs}, x
    if op == "Pad":
        modes = {"constant": 0, "reflect": 1, "edge": 2, "wrap": 3}
        return "PadBy", {"mode": modes[n.get("mode", "constant")]}, x
    if op in ("GatherElements", "Gather"):
        return op, {"axis": n.get("axis", 0)}, x
    if op == "GatherND":
        return "GatherNd", {"batch_dims": n.get("batch_dims", 0)}, x
    if op in ("ScatterElements", "Scatter"):
        return "ScatterElements", {"axis": n.get("axis", 0), "reduction": SCATTER[n.get("reduction", "none")]}, x
    if op == "ScatterND":
        return "ScatterNd", {"reduction": SCATTER[n.get("reduction", "none")]}, x
    if op == "TensorScatter":
        return op, {"axis": n.get("axis", -2), "circular": int(n.get("mode", "linear") == "circular")}, x
    if op == "OneHot":
        return op, {"axis": n.get("axis", -1)}, x
    if op == "ConstantOfShape":
        value = numpy_helper.to_array(n.a["value"]) if "value" in n.a else np.zeros(1, np.float32)
        return op, {"dtype": DTYPES[str(value.dtype)], "value": list(value.tobytes())}, x
    if op == "DepthToSpace":
        return op, {"block": n.get("blocksize"), "mode": int(n.get("mode", "DCR") == "CRD")}, x
    if op == "SpaceToDepth":
        return op, {"block": n.get("blocksize"), "mode": int(n.get("mode", "DCR") == "CRD")}, x
    if op == "Unique":
        return op, {"has_axis": int("axis" in n.a), "axis": n.get("axis", 0), "sorted": n.get("sorted", 1)}, x
    if op == "ReverseSequence":
        return op, {"batch_axis": n.get("batch_axis", 1), "time_axis": n.get("time_axis", 0)}, x
    if op == "EyeLike":
        return op, {"dtype": tag(n.get("dtype")) if "dtype" in n.a else DTYPES[str(x[0].dtype)], "k": n.get("k", 0)}, x
    if op == "Trilu":
        return op, {"upper": n.get("upper", 1)}, x
    if op == "Compress":
        return op, {"has_axis": int("axis" in n.a), "axis": n.get("axis", 0)}, x
    if op == "CenterCropPad":
        return op, {"axes": n.get("axes", [])}, x
    if op == "Col2Im":
        r = len(x[1])
        return op, {"dilations": n.get("dilations", [1] * r), "pads": n.get("pads", [0] * 2 * r), "strides": n.get("strides", [1] * r)}, x
    if op == "Transpose":
        return op, {"perm": n.get("perm", list(range(x[0].ndim))[::-1])}, x
    if op == "Concat":
        return op, {"axis": n.get("axis")}, x
    if op == "Cast":
        return op, {"dtype": tag(n.get("to"))}, x
    if op == "BitCast":
        return op, {"dtype": tag(n.get("to"))}, x
    return None


def lower_math(n):
    op, x = n.op, n.x
    if op in PLAIN:
        return PLAIN[op], {}, x
    if op in COMPARE:
        return "Compare", {"kind": COMPARE[op]}, x
    if op == "IsInf":
        return op, {"positive": n.get("detect_positive", 1), "negative": n.get("detect_negative", 1)}, x
    if op in ("Elu", "Celu"):
        return op, {"alpha": n.get("alpha", 1.0)}, x
    if op == "Selu":
        return op, {"alpha": n.get("alpha", 1.67326319217681884765625), "gamma": n.get("gamma", 1.05070102214813232421875)}, x
    if op == "HardSigmoid":
        return op, {"alpha": n.get("alpha", 0.2), "beta": n.get("beta", 0.5)}, x
    if op == "LeakyRelu":
        return op, {"slope": n.get("alpha", 0.01)}, x
    if op == "ThresholdedRelu":
        return op, {"alpha": n.get("alpha", 1.0)}, x
    if op == "Shrink":
        return op, {"lambd": n.get("lambd", 0.5), "bias": n.get("bias", 0.0)}, x
    if op == "Swish":
        return op, {"alpha": n.get("alpha", 1.0)}, x
    if op == "Gelu":
        return op, {"mode": int(n.get("approximate", "none") == "tanh")}, x
    if op == "PRelu":
        return (op, {}, x) if x[1].ndim > 1 or x[1].size == 1 else None
    if op == "Mod":
        return op, {"fmod": n.get("fmod", 0)}, x
    if op == "BitShift":
        return op, {"left": int(n.get("direction") == "LEFT")}, x
    if op in REDUCE:
        axes = n.get("axes")
        return "Reduce", {"kind": REDUCE[op], "keep": n.get("keepdims", 1), "noop": n.get("noop_with_empty_axes", 0)}, \
            x if axes is None else [x[0], constant(axes)]
    if op in ("ArgMax", "ArgMin"):
        return "ArgReduce", {"kind": int(op == "ArgMin"), "axis": n.get("axis", 0), "keep": n.get("keepdims", 1),
                             "last": n.get("select_last_index", 0)}, x
    if op == "TopK":
        return "TopKBy", {"axis": n.get("axis", -1), "largest": n.get("largest", 1), "sorted": n.get("sorted", 1)}, x
    if op in ("CumSum", "CumProd"):
        return "Cumulative", {"kind": int(op == "CumProd"), "exclusive": n.get("exclusive", 0), "reverse": n.get("reverse", 0)}, x
    if op in ("Softmax", "LogSoftmax", "Hardmax") and n.opset >= 13:
        return op, {"dim": n.get("axis", -1)}, x
    if op == "Einsum":
        return op, {"equation": n.get("equation")}, x
    if op == "Gemm":
        return op, {"alpha": n.get("alpha", 1.0), "beta": n.get("beta", 1.0), "trans_a": n.get("transA", 0), "trans_b": n.get("transB", 0)}, x
    return None


def lower_nn(n):
    op, x = n.op, n.x
    if op == "BatchNormalization":
        return ("BatchNorm", {"eps": n.get("epsilon", 1e-5), "momentum": 0.9}, x) if not n.get("training_mode", 0) else None
    if op == "InstanceNormalization":
        return "InstanceNorm", {"eps": n.get("epsilon", 1e-5)}, x
    if op == "GroupNormalization" and n.opset >= 21:
        return "GroupNorm", {"num_groups": n.get("num_groups"), "eps": n.get("epsilon", 1e-5)}, x
    if op == "LayerNormalization":
        return "LayerNormFull", {"axis": n.get("axis", -1), "eps": n.get("epsilon", 1e-5)}, x
    if op == "RMSNormalization":
        return "RmsNormFrom", {"axis": n.get("axis", -1), "eps": n.get("epsilon", 1e-5)}, x
    if op == "LRN":
        return "Lrn", {"size": n.get("size"), "alpha": n.get("alpha", 1e-4), "beta": n.get("beta", 0.75), "bias": n.get("bias", 1.0)}, x
    if op == "LpNormalization":
        return "LpNorm", {"axis": n.get("axis", -1), "p": n.get("p", 2)}, x
    if op == "MeanVarianceNormalization":
        return "MeanVarianceNorm", {"axes": n.get("axes", [0, 2, 3])}, x
    if op == "Conv":
        return op, conv_attrs(n), x
    if op == "ConvInteger":
        return op, conv_attrs(n), x
    if op == "QLinearConv":
        return op, conv_attrs(n), x
    if op == "ConvTranspose":
        return op, {"strides": n.get("strides", []), "dilations": n.get("dilations", []), "pads": n.get("pads", []),
                    "output_padding": n.get("output_padding", []), "output_shape": n.get("output_shape", []),
                    "groups": n.get("group", 1), "auto_pad": auto_pad(n)}, x
    if op == "MaxPool":
        return op, pool_attrs(n, {"column_major": n.get("storage_order", 0)}), x
    if op == "AveragePool":
        return "AvgPool", pool_attrs(n, {"count_pad": n.get("count_include_pad", 0)}), x
    if op == "LpPool":
        return op, pool_attrs(n, {"p": n.get("p", 2)}), x
    if op in ("GlobalAveragePool", "GlobalMaxPool"):
        return "Reduce", {"kind": 1 if op == "GlobalAveragePool" else 2, "keep": 1, "noop": 0}, [x[0], constant(range(2, x[0].ndim))]
    if op == "MaxUnpool":
        return op, {"kernel": n.get("kernel_shape"), "strides": n.get("strides", []), "pads": n.get("pads", [])}, x
    if op == "DeformConv":
        return op, {"strides": n.get("strides", []), "dilations": n.get("dilations", []), "pads": n.get("pads", []),
                    "groups": n.get("group", 1), "offset_groups": n.get("offset_group", 1)}, x
    if op == "Attention":
        if n.get("softmax_precision") not in (None, 1):
            return None
        return op, {"q_heads": n.get("q_num_heads", 0), "kv_heads": n.get("kv_num_heads", 0), "causal": n.get("is_causal", 0),
                    "scale": n.get("scale", 0.0), "softcap": n.get("softcap", 0.0), "scores": n.get("qk_matmul_output_mode", 0),
                    "left_window": n.get("left_window_size", -1), "right_window": n.get("right_window_size", -1)}, x
    return None


ACTIVATIONS = ["relu", "tanh", "sigmoid", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu", "softsign", "softplus"]


def lower_recurrent(n):
    op, x = n.op, n.x
    if op not in ("RNN", "GRU", "LSTM"):
        return None
    direction = ["forward", "reverse", "bidirectional"].index(n.get("direction", "forward"))
    kinds = [ACTIVATIONS.index((k.decode() if isinstance(k, bytes) else k).lower()) for k in n.get("activations", [])]
    alpha, beta = list(n.get("activation_alpha", [])), list(n.get("activation_beta", []))
    pairs = []
    for _ in kinds:
        pairs += [alpha.pop(0) if alpha else 0.0, beta.pop(0) if beta else 0.0]
    attrs = {"hidden": n.get("hidden_size"), "direction": direction, "activations": kinds, "alpha_beta": f32_bytes(pairs),
             "clip": n.get("clip", 0.0), "batch_first": n.get("layout", 0)}
    if op == "GRU":
        attrs["linear_before_reset"] = n.get("linear_before_reset", 0)
    if op == "LSTM":
        attrs["input_forget"] = n.get("input_forget", 0)
    return {"RNN": "Rnn", "GRU": "Gru", "LSTM": "LstmFull"}[op], attrs, x


def lower_misc(n):
    op, x = n.op, n.x
    if op == "Resize" and n.opset >= 13:
        modes = {"nearest": 0, "linear": 1, "cubic": 2}
        places = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
        nearest = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        return op, {"mode": modes[n.get("mode", "nearest")],
                    "coordinates": places.index(n.get("coordinate_transformation_mode", "half_pixel")),
                    "nearest": nearest.index(n.get("nearest_mode", "round_prefer_floor")), "cubic_a": n.get("cubic_coeff_a", -0.75),
                    "exclude_outside": n.get("exclude_outside", 0), "extrapolation": n.get("extrapolation_value", 0.0),
                    "antialias": n.get("antialias", 0), "axes": n.get("axes", []),
                    "policy": ["stretch", "not_larger", "not_smaller"].index(n.get("keep_aspect_ratio_policy", "stretch")),
                    "fixed_scales": []}, x
    if op == "GridSample":
        modes = {"linear": 0, "bilinear": 0, "nearest": 1, "cubic": 2, "bicubic": 2}
        return op, {"mode": modes[n.get("mode", "linear")], "padding": ["zeros", "border", "reflection"].index(n.get("padding_mode", "zeros")),
                    "align_corners": n.get("align_corners", 0)}, x
    if op == "AffineGrid":
        return op, {"align_corners": n.get("align_corners", 0)}, x
    if op == "RoiAlign":
        half = n.get("coordinate_transformation_mode", "half_pixel" if n.opset >= 16 else "output_half_pixel") == "half_pixel"
        return op, {"mode": int(n.get("mode", "avg") == "max"), "out_h": n.get("output_height", 1), "out_w": n.get("output_width", 1),
                    "sampling_ratio": n.get("sampling_ratio", 0), "spatial_scale": n.get("spatial_scale", 1.0), "half_pixel": int(half)}, x
    if op == "NonMaxSuppression":
        return "NmsBy", {"center": n.get("center_point_box", 0)}, x
    if op == "QuantizeLinear":
        zero = n.i(2)
        dtype = DTYPES[str(zero.dtype)] if zero is not None else (tag(n.get("output_dtype")) if n.get("output_dtype", 0) else 4)
        return op, {"axis": n.get("axis", 1), "block": n.get("block_size", 0), "dtype": dtype}, x
    if op == "DequantizeLinear":
        return op, {"axis": n.get("axis", 1), "block": n.get("block_size", 0)}, x
    if op == "DFT":
        inputs = list(x)
        if n.opset < 20:
            inputs = [x[0], n.i(1), constant(n.get("axis", 1))]
        return "Dft", {"inverse": n.get("inverse", 0), "onesided": n.get("onesided", 0)}, inputs
    if op == "STFT":
        return "Stft", {"onesided": n.get("onesided", 1)}, x
    if op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        return "Window", {"kind": ["HannWindow", "HammingWindow", "BlackmanWindow"].index(op), "periodic": n.get("periodic", 1),
                          "dtype": tag(n.get("output_datatype", 1))}, x
    if op == "MelWeightMatrix":
        return op, {"dtype": tag(n.get("output_datatype", 1))}, x
    if op == "RotaryEmbedding":
        return op, {"rope_dim": n.get("rotary_embedding_dim", 0), "num_heads": n.get("num_heads", 0), "interleaved": n.get("interleaved", 0)}, x
    if op == "LinearAttention":
        rules = ["linear", "gated", "delta", "gated_delta"]
        return op, {"q_heads": n.get("q_num_heads"), "kv_heads": n.get("kv_num_heads"),
                    "rule": rules.index(n.get("update_rule", "gated_delta")), "scale": n.get("scale", 0.0)}, x
    if op == "CausalConvWithState":
        return "CausalConvState", {"activation": int(n.get("activation", "none") != "none")}, x
    if op == "NegativeLogLikelihoodLoss":
        return "NllLoss", {"reduction": ["none", "sum", "mean"].index(n.get("reduction", "mean")), "has_ignore": int("ignore_index" in n.a),
                           "ignore": n.get("ignore_index", 0)}, x
    if op == "TfIdfVectorizer" and "pool_int64s" in n.a:
        return "TfIdf", {"mode": ["TF", "IDF", "TFIDF"].index(n.get("mode")), "min_gram": n.get("min_gram_length"),
                         "max_gram": n.get("max_gram_length"), "max_skip": n.get("max_skip_count"), "ngram_counts": n.get("ngram_counts"),
                         "ngram_indexes": n.get("ngram_indexes"), "pool": n.get("pool_int64s"), "weights": f32_bytes(n.get("weights", []))}, x
    return None


GROUPS = {"onnx_layout": lower_layout, "onnx_math": lower_math, "onnx_nn": lower_nn, "onnx_recurrent": lower_recurrent, "onnx_misc": lower_misc}


def plain(value):
    return isinstance(value, np.ndarray) and str(value.dtype) in DTYPES and value.size <= MOST


def main():
    files = {name: File(name, keep_f64=True) for name in GROUPS}
    skipped = collections.Counter()
    with np.errstate(all="ignore"):
        cases = sorted(collect_testcases(None), key=lambda c: c.name)
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or graph.node[0].domain not in ("", "ai.onnx"):
            continue
        node = graph.node[0]
        inputs, outputs = case.data_sets[0]
        if case.name in TYPED:
            outputs = ReferenceEvaluator(case.model).run(None, dict(zip([i.name for i in graph.input], inputs)))
        values = dict(zip([i.name for i in graph.input], inputs))
        n = Node(node, values, case.model.opset_import[0].version)
        n.n_outputs = len(node.output)
        given = [v for v in n.x if v is not None]
        wanted = dict(zip([o.name for o in graph.output], outputs))
        if not all(plain(v) for v in given) or not all(plain(v) for v in outputs):
            skipped["not plain or too big"] += 1
            continue
        for name, lower in GROUPS.items():
            try:
                found = lower(n)
            except KeyError:  # a type that ours lack
                found = None
            if found is None:
                continue
            op, attrs, x = found
            while x and x[-1] is None:
                x = x[:-1]
            files[name].case(case.name, op, attrs, x, [wanted.get(o) if o else None for o in node.output])
            break
        else:
            skipped[node.op_type] += 1
    for name, file in files.items():
        file.write()
        print(name, len(file.cases))
    print("left out:", dict(skipped))


if __name__ == "__main__":
    main()
