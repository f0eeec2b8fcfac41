"""The writer of tests/golden/ops/*.safetensors: tensors, and cases as JSON in the metadata (op, attrs by field name, inputs and
outputs as [tensor, dtype, shape] or null)."""
import json
import os
import struct

import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops")
NAMES = {"float32": ("F32", "f32"), "float16": ("F16", "f16"), "float64": ("F64", "f64"), "bool": ("BOOL", "bool"),
         "int8": ("I8", "i8"), "uint8": ("U8", "u8"), "int16": ("I16", "i16"), "uint16": ("U16", "uint16"),
         "int32": ("I32", "i32"), "uint32": ("U32", "uint32"), "int64": ("I64", "i64"), "uint64": ("U64", "uint64")}


class File:
    """One golden file: tensors and cases."""

    def __init__(self, name, keep_f64=False):
        self.name, self.tensors, self.cases, self.keep_f64 = name, {}, {}, keep_f64

    def put(self, key, value):
        if value is None:
            return None
        dtype, shape = None, None
        if isinstance(value, tuple):  # (raw bytes, dtype, logical shape)
            value, dtype, shape = value
        if hasattr(value, "detach"):  # a torch tensor
            value = value.detach().numpy()
        if value.dtype == np.float64 and dtype is None and not self.keep_f64:
            value = value.astype(np.float32)
        self.tensors[key] = np.ascontiguousarray(value).reshape(np.shape(value))
        return [key, dtype or NAMES[str(value.dtype)][1], list(shape or value.shape)]

    def case(self, name, op, attrs, inputs, outputs):
        self.cases[name] = json.dumps({
            "op": op, "attrs": attrs,
            "inputs": [self.put(f"{name}.in{i}", v) for i, v in enumerate(inputs)],
            "outputs": [self.put(f"{name}.out{i}", v) for i, v in enumerate(outputs)]})

    def write(self):
        header, offset = {"__metadata__": self.cases}, 0
        for key, value in self.tensors.items():
            header[key] = {"dtype": NAMES[str(value.dtype)][0], "shape": list(value.shape),
                           "data_offsets": [offset, offset + value.nbytes]}
            offset += value.nbytes
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(OUT, self.name + ".safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for value in self.tensors.values():
                f.write(value.tobytes())
