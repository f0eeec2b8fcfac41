#!/usr/bin/env python3
"""Write tests/golden/blocks/<format>.bin: raw weight blocks and their values as the `gguf` package decodes them.

Made with gguf 0.19.0, numpy 2.4.6 and ml_dtypes (fp8). The layout of the files is in tests/golden/blocks/README.md.
The generator is seeded: two runs give equal bytes.
"""
import argparse
import os
import struct
import sys

import ml_dtypes
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blocks")

# name -> (GGUF type, byte offsets of the f16 fields of a block: scale and, where there is one, minimum)
FORMATS = {
    "q8": (Type.Q8_0, (0,)),
    "q4": (Type.Q4_0, (0,)),
    "q4_1": (Type.Q4_1, (0, 2)),
    "q5_0": (Type.Q5_0, (0,)),
    "q5_1": (Type.Q5_1, (0, 2)),
    "q2k": (Type.Q2_K, (80, 82)),
    "q3k": (Type.Q3_K, (108,)),
    "q4k": (Type.Q4_K, (0, 2)),
    "q5k": (Type.Q5_K, (0, 2)),
    "q6k": (Type.Q6_K, (208,)),
    "iq4nl": (Type.IQ4_NL, (0,)),
    "iq4xs": (Type.IQ4_XS, (0,)),
    "iq3xxs": (Type.IQ3_XXS, (0,)),
    "iq3s": (Type.IQ3_S, (0,)),
    "iq2xxs": (Type.IQ2_XXS, (0,)),
    "iq2xs": (Type.IQ2_XS, (0,)),
    "iq2s": (Type.IQ2_S, (0,)),
    "iq1s": (Type.IQ1_S, (0,)),
    "iq1m": (Type.IQ1_M, ()),  # its scale is spread over four words: scattered()
    "tq1_0": (Type.TQ1_0, (52,)),
    "tq2_0": (Type.TQ2_0, (64,)),
    "mxfp4": (Type.MXFP4, ()),  # its scale is one byte
}
N_BLOCKS = 64
# Edge cases of a half: zeros, smallest and largest denormal, smallest normal, ones, largest finite, and their negatives.
HALF_EDGES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF]


def halves(rng, n):
    """n finite halves as their bits: random sign, magnitude 2^-12 to 2^0."""
    exponents = rng.uniform(-12, 0, n)
    values = (np.exp2(exponents) * rng.choice([-1.0, 1.0], n)).astype(np.float16)
    return values.view(np.uint16)


def block_format(name, rng):
    kind, fields = FORMATS[name]
    _, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (N_BLOCKS, size), dtype=np.uint8)
    blocks[12:14] = 0x00  # extreme quants: all bits clear, all bits set, sign bits, alternating bits
    blocks[14:16] = 0xFF
    blocks[16] = 0x80
    blocks[17] = 0x7F
    blocks[18] = 0x55
    blocks[19] = 0xAA
    for k, offset in enumerate(fields):
        scales = halves(rng, N_BLOCKS)
        edges = np.roll(np.array(HALF_EDGES, np.uint16), 5 * k)
        scales[: len(edges)] = edges
        blocks[:, offset : offset + 2] = scales.astype("<u2").view(np.uint8).reshape(N_BLOCKS, 2)
    return blocks, kind


def scattered(blocks, rng):
    """The f16 scale of iq1m: its nibbles are the upper ones of the words at 48, 50, 52, 54."""
    scales = halves(rng, N_BLOCKS)
    scales[: len(HALF_EDGES)] = HALF_EDGES
    words = blocks[:, 48:56].copy().view("<u2")
    for k in range(4):
        words[:, k] = (words[:, k] & 0x0FFF) | ((scales >> (4 * k)) & 15) << 12
    blocks[:, 48:56] = words.view(np.uint8)


def fp8_values(name):
    """All codes of an 8-bit float but its NaNs and infinities, through ml_dtypes."""
    kind = {"fp8e4m3": ml_dtypes.float8_e4m3fn, "fp8e5m2": ml_dtypes.float8_e5m2}[name]
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(kind).astype(np.float32)
    keep = np.isfinite(values)
    return codes[keep].reshape(-1, 1), values[keep]


def half_like(rng, inf_bits, edges):
    """Two-byte floats, one a block: the edges, the infinities, then random bits without NaN."""
    bits = rng.integers(0, 1 << 16, 4096, dtype=np.uint16)
    bits = bits[(bits & 0x7FFF) < inf_bits]
    head = np.array(edges + [inf_bits, inf_bits | 0x8000], np.uint16)
    return np.concatenate([head, bits])[:2048].astype("<u2").view(np.uint8).reshape(-1, 2)


def write(name, blocks, values):
    n, size = blocks.shape
    if values.size % n:
        raise RuntimeError(f"{name}: {values.size} values in {n} blocks")
    with open(os.path.join(OUT, name + ".bin"), "wb") as f:
        f.write(struct.pack("<III", n, size, values.size // n))
        f.write(blocks.tobytes())
        f.write(np.ascontiguousarray(values, "<f4").tobytes())


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    os.makedirs(OUT, exist_ok=True)
    for index, name in enumerate(FORMATS):
        blocks, kind = block_format(name, np.random.default_rng(1000 + index))
        if name == "iq1m":
            scattered(blocks, np.random.default_rng(3000))
        if name == "mxfp4":  # every exponent that leaves all values finite
            blocks[:, 0] = np.linspace(0, 252, N_BLOCKS).astype(np.uint8)
        values = dequantize(blocks, kind)
        if not np.isfinite(values).all():
            raise RuntimeError(f"{name}: a value is not finite")
        write(name, blocks, values)
    for name, kind, inf_bits, seed in (("f16", Type.F16, 0x7C00, 2000), ("bf16", Type.BF16, 0x7F80, 2001)):
        edges = HALF_EDGES if name == "f16" else [0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F]
        blocks = half_like(np.random.default_rng(seed), inf_bits, edges)
        data = blocks.view(np.float16) if name == "f16" else blocks
        write(name, blocks, dequantize(data, kind))
    for name in ("fp8e4m3", "fp8e5m2"):
        write(name, *fp8_values(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
