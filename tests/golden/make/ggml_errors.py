#!/usr/bin/env python3
"""Write tests/golden/encodings/ggml_errors.json: the squared errors of ggml's own quantizers on fixed values.

The values are sums of exact multiples of 2^-20, so that a test makes the same ones: see values(). Needs the library
libggml-base of llama-cpp-python (0.3.36, ggml 0.25.3).
"""
import argparse
import ctypes
import glob
import json
import os
import sys

import numpy as np
from gguf import GGMLQuantizationType as Q
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "encodings", "ggml_errors.json")
TYPES = {"q8": Q.Q8_0, "q4": Q.Q4_0, "q4_1": Q.Q4_1, "q5_0": Q.Q5_0, "q5_1": Q.Q5_1, "q2k": Q.Q2_K, "q3k": Q.Q3_K,
         "q4k": Q.Q4_K, "q5k": Q.Q5_K, "q6k": Q.Q6_K}  # fmt: skip
N = 64 * 256


def values(kind):
    """Near normal (the sum of eight uniform numbers), heavy-tailed (its cube), or with a mean of its own a sub-block."""
    state = np.arange(1, 8 * N + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = ((state ^ (state >> np.uint64(31))) >> np.uint64(48)).astype(np.int64)  # 0..65535
    near_normal = ((uniform.reshape(N, 8).sum(axis=1) - 4 * 65535) / 2.0**20).astype(np.float32)
    if kind == "normal":
        return near_normal
    if kind == "tails":
        return near_normal * near_normal * near_normal
    return near_normal + (np.arange(N) // 32 % 7 - 3).astype(np.float32) / np.float32(16)


def library():
    import llama_cpp

    found = glob.glob(os.path.join(os.path.dirname(llama_cpp.__file__), "lib", "libggml-base.so*"))
    if not found:
        raise RuntimeError("libggml-base is not beside llama_cpp")
    lib = ctypes.CDLL(sorted(found)[0])
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    return lib


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    lib, out = library(), {}
    for kind in ("normal", "tails", "shifted"):
        x = values(kind)
        out[kind] = {"sum": float(x.astype(np.float64).sum())}
        for name, t in TYPES.items():
            n, size = GGML_QUANT_SIZES[t]
            blocks = np.zeros((N // n, size), np.uint8)
            lib.ggml_quantize_chunk(int(t), x.ctypes.data, blocks.ctypes.data, 0, N // n, n, None)
            y = dequantize(blocks, t).reshape(-1)
            out[kind][name] = float(np.square(y.astype(np.float64) - x).sum())
    with open(OUT, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
