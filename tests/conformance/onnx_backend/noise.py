"""What is done to a model so that two programs can be compared: random operators become zeros, i8 weights become u8, and what rounds
to integers becomes an input."""
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


def shaken(model, relative, seed):
    """f32 weights of more than 16 values (fewer may be sizes), each times 1 + `relative` or 1 - `relative`: what another order of sums would do."""
    rng = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor)
        if values.size > 16:
            moved = values.astype(np.float64) * (1 + relative * rng.choice((-1.0, 1.0), values.shape))
            tensor.CopyFrom(numpy_helper.from_array(moved.astype(np.float32), tensor.name))


# Operators that turn a difference in the last bit into one of a whole step.
ROUNDING = ("DynamicQuantizeLinear", "QuantizeLinear", "Round")


def names_of(values):
    return [v.name for v in values]


def rounding_nodes(model):
    stored = set(names_of(model.graph.initializer))
    return [n for n in model.graph.node if n.op_type in ROUNDING and n.input[0] not in stored]


def seams(model, seam_types):
    """What a cut is made of: tensors that rounding nodes read, tensors that they write, tensors that nodes of `seam_types` write."""
    nodes = rounding_nodes(model)
    return (list(dict.fromkeys(n.input[0] for n in nodes)), [name for n in nodes for name in n.output if name],
            [name for n in model.graph.node if n.op_type in seam_types for name in n.output if name])


def exposed(model, seam_types):
    """A copy whose outputs are also all tensors of a cut."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for name in sum(seams(model, seam_types), []):
        if name not in names_of(out.graph.output):
            out.graph.output.append(onnx.ValueInfoProto(name=name))
    return out


def cut(model, seam_types, values):
    """A copy that takes what rounding nodes write (`values`: name -> array) as inputs and gives what they read as outputs: each
    stretch between two roundings begins with equal numbers, so that a difference is an error and no rounding that went the other way.
    What nodes of `seam_types` write is both, the output under NAME_computed."""
    out = exposed(model, seam_types)
    _, written, sewn = seams(model, seam_types)
    nodes = [n for n in out.graph.node if not set(n.output) & set(written)]
    used = {name for n in nodes for name in n.input}
    for node in nodes:
        for k, name in enumerate(node.output):
            node.output[k] = f"{name}_computed" if name in sewn else name
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    kept = [onnx.ValueInfoProto(name=f"{v.name}_computed") if v.name in sewn else v for v in out.graph.output if v.name not in written]
    del out.graph.output[:]
    out.graph.output.extend(kept)
    for name in written + sewn:
        if name in used:
            kind = helper.np_dtype_to_tensor_dtype(values[name].dtype)
            out.graph.input.append(helper.make_tensor_value_info(name, kind, values[name].shape))
    return out
