#!/usr/bin/env python3
"""Rebuild the checkpoints of the tiny random models in tests/golden/tiny (needs numpy only).

Every float tensor of a tiny model is a pure function of its name in the checkpoint: crc32(name) seeds splitmix64,
which gives exact float32 values in [-1, 1), scaled by a rule that reads the name and the shape. So no weights are
stored: only config.json, tensors.json (file -> name -> [dtype, dims...]) and golden.safetensors with the inputs
(in.*), the outputs of transformers (out.*) and its greedy ids (out.greedy).
"""
import argparse
import json
import math
import os
import shutil
import sys
import zlib

try:
    import numpy as np
except ImportError:
    sys.exit("rebuild_tiny: numpy is missing. Install it (Debian: apt-get install python3-numpy) and run again.")

TINY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "tiny")
NORM = ("norm", "ln_", "layernorm", "original0", "weight_g")
KINDS = {"F32": np.float32, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_, "U8": np.uint8}

COUNT = "num_batches_tracked"  # of BatchNorm, 0: nothing that is run reads it

# First bits and values of the recipe; checked before anything is written.
TEST_BITS = (0x32150D7B04FA760D, 0x7DA5EF3AFD472B45, 0xE0C9AE2CF2924ED1)


def bits(name, n):
    """splitmix64 output 1..n of the stream that the tensor's name seeds, u64 [n]."""
    with np.errstate(over="ignore"):
        z = np.uint64(zlib.crc32(name.encode()) << 32)
        z = z + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, shape):
    """f32 in [-1, 1): the upper 24 bits, exactly representable."""
    u = (bits(name, math.prod(shape)) >> np.uint64(40)).astype(np.float32)
    return (u * np.float32(2.0**-23) - np.float32(1)).reshape(shape)


def value(name, shape):
    """The weight of that name: gains near 1, biases small, matrices scaled by 1/sqrt(fan-in)."""
    low, u = name.lower(), uniform(name, tuple(shape))
    if low.endswith("running_var"):
        return np.float32(1) + np.float32(0.5) * u
    if low.endswith("original0") or low.endswith("weight_g"):
        return np.float32(1) + np.float32(0.25) * u
    if len(shape) <= 1 or max(shape) == math.prod(shape):
        gain = any(k in low for k in NORM) and low.endswith(("weight", "scale", "gamma"))
        return np.float32(1) + np.float32(0.25) * u if gain else np.float32(0.2) * u
    embed = any(k in low for k in ("embed", "shared.weight", "wte", "wpe"))
    fan = shape[-1] if embed else math.prod(shape[1:])
    return u * np.float32(1.7320508 / math.sqrt(fan))


def self_check():
    if tuple(int(b) for b in bits("model.embed_tokens.weight", 3)) != TEST_BITS:
        raise RuntimeError("the generator gives wrong bits on this machine")
    if value("model.embed_tokens.weight", (256, 64)).flat[0] != np.float32(-0.13179447):
        raise RuntimeError("the scaling gives a wrong value on this machine")


def write_safetensors(path, tensors):
    names = {np.dtype(kind): name for name, kind in KINDS.items()}
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": names[a.dtype], "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head)
        for a in tensors.values():
            f.write(np.ascontiguousarray(a).tobytes())


def read_safetensors(path):
    """name -> array of a small safetensors file (no bf16)."""
    with open(path, "rb") as f:
        raw = f.read()
    start = 8 + int.from_bytes(raw[:8], "little")
    out = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            data = raw[start + begin : start + end]
            out[name] = np.frombuffer(data, KINDS[entry["dtype"]]).reshape(entry["shape"])
    return out


def rebuild(name, out):
    """Writes the checkpoint folder of one tiny model: weights, config.json and, where there is one, generation_config.json."""
    source, target = os.path.join(TINY, name), os.path.join(out, name)
    os.makedirs(target, exist_ok=True)
    with open(os.path.join(source, "tensors.json"), encoding="utf-8") as f:
        files = json.load(f)
    for file, tensors in files.items():
        for tensor, (dtype, *_) in tensors.items():
            if dtype != "F32" and not tensor.endswith(COUNT):
                raise RuntimeError(f"{name}: {tensor} is {dtype}; the recipe makes F32 only")
        made = {t: value(t, shape) if dtype == "F32" else np.zeros(shape, KINDS[dtype]) for t, (dtype, *shape) in tensors.items()}
        write_safetensors(os.path.join(target, file), made)
    for file in sorted(os.listdir(source)):
        if file not in ("tensors.json", "golden.safetensors", "golden_long.safetensors"):
            shutil.copyfile(os.path.join(source, file), os.path.join(target, file))
    return target


def known():
    return sorted(n for n in os.listdir(TINY) if os.path.isfile(os.path.join(TINY, n, "tensors.json")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"models: {' '.join(known())}\nexample: rebuild_tiny.py /path/to/folder llama2 qwen3")
    parser.add_argument("out", metavar="OUT", help="folder; each model becomes a sub-folder of it")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="which models (default: all)")
    args = parser.parse_args()
    for name in args.models:
        if name not in known():
            parser.error(f"unknown model '{name}'; known: {' '.join(known())}")
    self_check()
    for name in args.models or known():
        print(rebuild(name, args.out))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        sys.exit(f"rebuild_tiny: {error}")
