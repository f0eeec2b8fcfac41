#!/usr/bin/env python3
"""Writes tests/golden/onnx/: small models by the onnx package, and what the package's ReferenceEvaluator (onnxruntime for one) computes with them.

NAME.onnx, and in NAME.json its inputs (name, dtype, shape, values), outputs, and the counts that a reader must find. Run with the packages
of tools/requirements.txt; a second run gives equal bytes.
"""
import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OUT = pathlib.Path(__file__).resolve().parents[1] / "onnx"


def value(name, array, dims=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape) if dims is None else dims)


def as_json(name, array):
    return {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "values": array.reshape(-1).tolist()}


def save(name, model, inputs):
    onnx.checker.check_model(model, full_check=True)
    if name in ("rounds", "loops"):  # the evaluator has no backward Scan
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        outputs = session.run(None, inputs)
    else:
        outputs = ReferenceEvaluator(model).run(None, inputs)
    names = [o.name for o in model.graph.output]
    (OUT / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    row = {"nodes": len(model.graph.node), "initializers": {t.name: [t.data_type, list(t.dims)] for t in model.graph.initializer},
           "inputs": [as_json(k, v) for k, v in inputs.items()], "outputs": [as_json(k, v) for k, v in zip(names, outputs)]}
    (OUT / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n")


def typed_tensors():
    """Initializers of every type, raw and in typed fields, each cast to f32 and joined."""
    kinds = [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]
    tensors, nodes, parts = [], [], []
    for i, kind in enumerate(kinds):
        array = np.array([0, 1, 1, 0] if kind is np.bool_ else [0, 1, 100, 7]).astype(kind)
        if np.issubdtype(kind, np.signedinteger) or np.issubdtype(kind, np.floating):
            array[3] = -3
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensors.append(numpy_helper.from_array(array, f"raw{i}"))
        tensors.append(helper.make_tensor(f"typed{i}", dtype, [4], array.tolist()))
        for form in ("raw", "typed"):
            nodes.append(helper.make_node("Cast", [f"{form}{i}"], [f"{form}{i}_f"], to=TensorProto.FLOAT))
            parts.append(f"{form}{i}_f")
    nodes.append(helper.make_node("Concat", parts, ["all"], axis=0))
    nodes.append(helper.make_node("Add", ["all", "x"], ["y"]))
    x = np.zeros(1, np.float32)
    graph = helper.make_graph(nodes, "typed", [value("x", x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4 * 2 * len(kinds)])], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


def mlp():
    """Symbolic batch, constant weights, a shape computed in the graph."""
    rng = np.random.default_rng(7)
    w1, b1, w2 = (rng.standard_normal(s).astype(np.float32) for s in ((6, 10), (10,), (5, 10)))
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h0"]), helper.make_node("Add", ["h0", "b1"], ["h1"]), helper.make_node("Relu", ["h1"], ["h2"]),
        helper.make_node("Gemm", ["h2", "w2"], ["h3"], transB=1, alpha=0.5), helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0), helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0), helper.make_node("Reshape", ["h3", "target"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"], axis=-1)]
    tensors = [numpy_helper.from_array(a, n) for n, a in (("w1", w1), ("b1", b1), ("w2", w2), ("zero", np.array(0, np.int64)),
                                                         ("axes", np.array([0], np.int64)), ("rest", np.array([1, 5], np.int64)))]
    x = rng.standard_normal((3, 6)).astype(np.float32)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1, 5])
    graph = helper.make_graph(nodes, "mlp", [value("x", x, ["batch", 6])], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


def functions():
    """A local function with an attribute and a default, called twice; a function that calls another and has an If with a constant condition."""
    scale = helper.make_function("local", "Scale", ["a"], ["b"], [
        helper.make_node("Constant", [], ["k"]), helper.make_node("Mul", ["a", "k"], ["b"])],
        [helper.make_opsetid("", 18)], attributes=[], attribute_protos=[helper.make_attribute("factor", 3.0)])
    reference = scale.node[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "factor", onnx.AttributeProto.FLOAT
    twice = helper.make_function("local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 18)])
    branches = []
    for op in ("Neg", "Abs"):
        graph = helper.make_graph([helper.make_node(op, ["c"], [f"{op}_out"])], op, [], [helper.make_tensor_value_info(f"{op}_out", TensorProto.FLOAT, [4])])
        branches.append(graph)
    outer = helper.make_function("local", "Outer", ["c"], ["d"], [
        helper.make_node("Constant", [], ["yes"], value=helper.make_tensor("t", TensorProto.BOOL, [], [True])),
        helper.make_node("If", ["yes"], ["e"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Twice", ["e"], ["d"], domain="local")], [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)])
    nodes = [helper.make_node("Scale", ["x"], ["u"], domain="local", factor=0.25), helper.make_node("Abs", ["u"], ["v"]), helper.make_node("Outer", ["v"], ["y"], domain="local")]
    x = np.array([1, -2, 3, 8], np.float32)
    graph = helper.make_graph(nodes, "functions", [value("x", x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=[scale, twice, outer], ir_version=8), {"x": x}


def outputs():
    """Outputs that are an input, a constant and the same value twice; an input that has a default."""
    nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Constant", [], ["k"], value_ints=[3, 4]),
             helper.make_node("Add", ["x", "bias"], ["sum"]), helper.make_node("Identity", ["sum"], ["again"])]
    x, bias = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    infos = [helper.make_tensor_value_info(n, t, [2]) for n, t in (("same", 1), ("k", 7), ("sum", 1), ("again", 1))]
    graph = helper.make_graph(nodes, "outputs", [value("x", x), value("bias", bias)], infos, [numpy_helper.from_array(bias, "bias")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), {"x": x}


def halves():
    """f16 activations with f16 weights that are too big to be constants of the graph, in ops that take them as stored and others."""
    rng = np.random.default_rng(9)
    w, b = rng.standard_normal((24, 32)).astype(np.float16), rng.standard_normal((1, 20, 32)).astype(np.float16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["s"]), helper.make_node("Mul", ["s", "b"], ["m"]),
             helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT)]
    x = rng.standard_normal((1, 20, 24)).astype(np.float16)
    graph = helper.make_graph(nodes, "halves", [value("x", x, ["n", 20, 24])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 20, 32])],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


def names():
    """Names that a graph of ours may not have, a weight of rank 6, and a mask with infinities."""
    rng = np.random.default_rng(11)
    w = rng.standard_normal((1, 2, 3, 4, 5, 6)).astype(np.float32)
    mask = np.triu(np.full((20, 20), -np.inf, np.float32), 1)
    nodes = [helper.make_node("Mul", ["model.x", "lm_head.weight"], ["model.scaled"]),
             helper.make_node("ReduceSum", ["model.scaled", "axes"], ["t0"], keepdims=0),
             helper.make_node("Add", ["t0", "mask"], ["open"]), helper.make_node("Exp", ["open"], ["cyb.result"])]
    tensors = [numpy_helper.from_array(a, n) for n, a in (("lm_head.weight", w), ("axes", np.array([0, 1, 2, 3, 4, 5], np.int64)), ("mask", mask))]
    x = rng.uniform(0, 0.01, (1, 2, 3, 4, 5, 6)).astype(np.float32)
    info = helper.make_tensor_value_info("cyb.result", TensorProto.FLOAT, [20, 20])
    graph = helper.make_graph(nodes, "names", [value("model.x", x)], [info], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"model.x": x}


def rounds():
    """A Scan backwards over axis 1 with two outputs, and a Loop of three rounds with a stacked output."""
    t = TensorProto.FLOAT
    info = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("Add", ["acc", "row"], ["next"]), helper.make_node("Identity", ["next"], ["seen"]),
                              helper.make_node("Mul", ["row", "row"], ["square"])], "body", [info("acc", t, [3]), info("row", t, [3])],
                             [info("next", t, [3]), info("seen", t, [3]), info("square", t, [3])])
    loop = helper.make_graph([helper.make_node("Cast", ["i"], ["f"], to=t), helper.make_node("Add", ["v", "f"], ["v2"]),
                              helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Neg", ["v2"], ["each"])], "loop",
                             [info("i", 7, []), info("c", 9, []), info("v", t, [3])], [info("c2", 9, []), info("v2", t, [3]), info("each", t, [3])])
    nodes = [helper.make_node("Scan", ["zero", "x"], ["last", "sums", "squares"], body=body, num_scan_inputs=1, scan_input_axes=[1],
                              scan_input_directions=[1], scan_output_axes=[0, 1], scan_output_directions=[0, 1]),
             helper.make_node("Loop", ["three", "yes", "last"], ["end", "rounds"], body=loop)]
    tensors = [numpy_helper.from_array(np.zeros(3, np.float32), "zero"), numpy_helper.from_array(np.array(3, np.int64), "three"),
               numpy_helper.from_array(np.array(True), "yes")]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    outs = [info("last", t, [3]), info("sums", t, [4, 3]), info("squares", t, [3, 4]), info("end", t, [3]), info("rounds", t, [3, 3])]
    graph = helper.make_graph(nodes, "rounds", [value("x", x)], outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


def branches_model():
    """Ifs that the run decides: values and a big weight from outside, an If in an If, branches of other lengths, an outer value as an output."""
    rng = np.random.default_rng(13)
    t, info, node = TensorProto.FLOAT, helper.make_tensor_value_info, helper.make_node
    w = rng.standard_normal((20, 20)).astype(np.float32)
    inner = [helper.make_graph([node("MatMul", ["scaled", "w"], ["deep"])], "deep", [], [info("deep", t, None)]),
             helper.make_graph([node("Neg", ["h"], ["shallow"])], "shallow", [], [info("shallow", t, None)])]
    then = helper.make_graph([
        node("Constant", [], ["two"], value_float=2.0), node("Mul", ["h", "two"], ["scaled"]), node("ReduceMax", ["x"], ["top"], keepdims=0),
        node("Greater", ["top", "limit"], ["high"]), node("If", ["high"], ["picked"], then_branch=inner[0], else_branch=inner[1]),
        node("Concat", ["picked", "picked"], ["long"], axis=0), node("Identity", ["h"], ["same"])], "then", [], [info("long", t, None), info("same", t, None)])
    other = helper.make_graph([node("Sub", ["h", "x"], ["short"]), node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones((1, 20), np.float32)))],
                              "else", [], [info("short", t, None), info("k", t, None)])
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["positive"]),
             node("If", ["positive"], ["a", "b"], then_branch=then, else_branch=other), node("Add", ["a", "bias"], ["y"]),
             node("ReduceSum", ["b"], ["z"], keepdims=0)]
    tensors = [numpy_helper.from_array(a, n) for n, a in (("w", w), ("zero", np.float32(0)), ("limit", np.float32(2.5)), ("bias", np.ones(20, np.float32)))]
    x = rng.uniform(-1, 1, (2, 20)).astype(np.float32)
    graph = helper.make_graph(nodes, "branches", [value("x", x, ["n", 20])], [info("y", t, ["m", 20]), info("z", t, [])], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), x


def branches():
    model, x = branches_model()
    return model, {"x": np.abs(x)}


def branches_deep():
    model, x = branches_model()
    return model, {"x": np.abs(x) * np.float32(3)}


def branches_else():
    model, x = branches_model()
    return model, {"x": -np.abs(x)}


def loops():
    """A Loop with a count and a condition of the run, a state that grows and values that change places; a backward Scan of a length of the run."""
    t, info, node = TensorProto.FLOAT, helper.make_tensor_value_info, helper.make_node
    body = helper.make_graph([
        node("Add", ["a", "b"], ["next"]), node("Identity", ["next"], ["b2"]), node("Identity", ["b"], ["a2"]), node("Unsqueeze", ["next", "axis"], ["lifted"]),
        node("Concat", ["all", "lifted"], ["all2"], axis=0), node("Less", ["next", "bound"], ["more"]), node("Cast", ["i"], ["f"], to=t),
        node("Mul", ["f", "x"], ["row"])], "body",
        [info("i", 7, []), info("c", 9, []), info("a", t, []), info("b", t, []), info("all", t, None)],
        [info("more", 9, []), info("a2", t, []), info("b2", t, []), info("all2", t, None), info("row", t, ["n"])])
    scan = helper.make_graph([node("Add", ["acc", "v"], ["acc2"]), node("Mul", ["acc2", "v"], ["out"])], "scan", [info("acc", t, []), info("v", t, [])],
                             [info("acc2", t, []), info("out", t, [])])
    none = helper.make_graph([node("Identity", ["c"], ["c2"]), node("Identity", ["x"], ["kept"])], "none", [info("i", 7, []), info("c", 9, [])],
                             [info("c2", 9, []), info("kept", t, ["n"])])
    nodes = [node("ReduceMax", ["x"], ["top"], keepdims=0), node("Cast", ["top"], ["count"], to=TensorProto.INT64),
             node("Loop", ["count", "", "one", "one", "first"], ["a_end", "b_end", "grown", "rows"], body=body),
             node("Scan", ["zero", "x"], ["total", "products"], body=scan, num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1]),
             node("Cast", ["zero"], ["no_rounds"], to=TensorProto.INT64), node("Less", ["top", "zero"], ["never"]),
             node("Loop", ["count", "never"], ["nothing"], body=none), node("Shape", ["nothing"], ["none_shape"]),
             node("Cast", ["none_shape"], ["empty"], to=t)]
    tensors = [numpy_helper.from_array(a, n) for n, a in (("zero", np.float32(0)), ("one", np.float32(1)), ("bound", np.float32(30)),
                                                         ("axis", np.array([0], np.int64)), ("first", np.zeros(1, np.float32)))]
    x = np.array([1, 12, -3, 2], np.float32)
    outs = [info("a_end", t, []), info("b_end", t, []), info("grown", t, ["k"]), info("rows", t, ["r", "n"]), info("total", t, []), info("products", t, ["n"]),
            info("empty", t, [2])]
    graph = helper.make_graph(nodes, "loops", [value("x", x, ["n"])], outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


def qdq_resize():
    """A linear Resize between quantisations: its values are rounded, never computed on integers."""
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
             helper.make_node("Resize", ["d", "", "", "sizes"], ["r"], mode="linear", coordinate_transformation_mode="half_pixel"),
             helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["p"]), helper.make_node("DequantizeLinear", ["p", "scale", "zero"], ["y"])]
    tensors = [numpy_helper.from_array(a, n) for n, a in (("sizes", np.array([1, 1, 1, 6], np.int64)), ("scale", np.array(1, np.float32)),
                                                         ("zero", np.array(0, np.int8)))]
    x = np.array([2, 7, 4], np.float32).reshape(1, 1, 1, 3)
    graph = helper.make_graph(nodes, "qdq_resize", [value("x", x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 6])], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), {"x": x}


def detector():
    """The head of an anchor-free detector with 4 classes: [1, 4 + 4, 16], boxes in pixels above scores that are probabilities already."""
    rng = np.random.default_rng(5)
    weight = rng.normal(0, 0.4, (8, 3, 2, 2)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "weight"], ["maps"], strides=[2, 2]), helper.make_node("Reshape", ["maps", "flat"], ["rows"]),
             helper.make_node("Split", ["rows", "parts"], ["raw", "logits"], axis=1), helper.make_node("Mul", ["raw", "stride"], ["boxes"]),
             helper.make_node("Sigmoid", ["logits"], ["scores"]), helper.make_node("Concat", ["boxes", "scores"], ["output0"], axis=1)]
    tensors = [numpy_helper.from_array(a, n) for n, a in (("weight", weight), ("flat", np.array([1, 8, 16], np.int64)),
                                                         ("parts", np.array([4, 4], np.int64)), ("stride", np.array(2, np.float32)))]
    x = rng.random((1, 3, 8, 8), dtype=np.float32)
    graph = helper.make_graph(nodes, "detector", [value("x", x)], [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 8, 16])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"task": "detect", "stride": "2", "names": "{0: 'a', 1: 'b', 2: 'c', 3: 'd'}"})
    return model, {"x": x}


def products():
    """4096 products one after the other, from a small file: a run that lasts."""
    t = TensorProto.FLOAT
    info = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("MatMul", ["v", "x"], ["v2"])], "body",
                             [info("i", 7, []), info("c", 9, []), info("v", t, ["n", "n"])], [info("c2", 9, []), info("v2", t, ["n", "n"])])
    nodes = [helper.make_node("Loop", ["rounds", "yes", "x"], ["y"], body=body)]
    tensors = [numpy_helper.from_array(np.array(4096, np.int64), "rounds"), numpy_helper.from_array(np.array(True), "yes")]
    x = np.array([[0.5, -0.25], [0.125, 0.5]], np.float32)
    graph = helper.make_graph(nodes, "products", [value("x", x, ["n", "n"])], [info("y", t, ["n", "n"])], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


def main():
    OUT.mkdir(exist_ok=True)
    for make in (typed_tensors, mlp, functions, outputs, halves, names, rounds, branches, branches_deep, branches_else, loops, qdq_resize, detector, products):
        save(make.__name__, *make())


if __name__ == "__main__":
    main()
