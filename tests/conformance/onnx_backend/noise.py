"""What is done to a model so that two programs can be compared: random operators become zeros, i8 weights become u8."""
import numpy as np
import onnx
from onnx import helper, numpy_helper


def silence(graph):
    """RandomNormalLike and RandomUniformLike become their input minus itself, in sub-graphs too."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                silence(attribute.g)
        if node.op_type in ("RandomNormalLike", "RandomUniformLike"):
            node.CopyFrom(helper.make_node("Sub", [node.input[0], node.input[0]], list(node.output)))


def without_noise(path):
    """The same for a file, in place."""
    model = onnx.load(path)
    silence(model.graph)
    onnx.save(model, path)


# Inputs that are i8 weights, with their zero points: operator -> [(weight, zero point)].
WEIGHTS = {"MatMulInteger": [(1, 3)], "ConvInteger": [(1, 3)], "DynamicQuantizeLSTM": [(1, 9), (2, 11)]}


def unsigned_weights(model):
    """The same products with u8 weights: some processors' kernels of u8 by i8 saturate in between, those of u8 by u8 do not."""
    stored = {t.name: t for t in model.graph.initializer}
    made = set()

    def shifted(name, array):
        if name not in made:
            made.add(name)
            model.graph.initializer.append(numpy_helper.from_array((array.astype(np.int16) + 128).astype(np.uint8), name))
        return name

    for node in model.graph.node:
        for weight, zero in WEIGHTS.get(node.op_type, []):
            tensor = stored.get(node.input[weight]) if len(node.input) > weight else None
            if tensor is None or tensor.data_type != onnx.TensorProto.INT8:
                continue
            while len(node.input) <= zero:
                node.input.append("")
            point = numpy_helper.to_array(stored[node.input[zero]]) if node.input[zero] else np.zeros((), np.int8)
            node.input[zero] = shifted(f"{node.input[zero] or 'none'}_u8", point)
            node.input[weight] = shifted(f"{tensor.name}_u8", numpy_helper.to_array(tensor))
