#!/usr/bin/env python3
"""Compare `cyb-llm quantize` with llama.cpp's quantizers: error of the weights and perplexity, encoding by encoding.

For each model (a GGUF file) the weights are decoded to f32 by the `gguf` package and written as one f32 GGUF: the source
of both. Ours: `cyb-llm quantize SOURCE --to ENC`. Theirs: ggml's quantizer (ggml_quantize_chunk of libggml-base, which is
what llama-quantize calls, no importance matrix), asked for the same encoding for each tensor, so both files hold the same
number of bits. Both are run by cyb-llm, so that only the weights differ. `relative` is the root mean square of the error
over that of the values, of all tensors that were encoded. Exit code 1 if one of our figures is worse than theirs by more
than --slack (perplexity, in per cent; the error has none).

Weights that were quantised before lie on a grid: an encoder can find it again, and the figures of that encoding and of
finer ones say little. --noise adds normal noise of that part of each tensor's root mean square to the source. The
quantisation error of a small model is one draw: where the perplexity rises by a fifth, another --seed moves it by several
per cent for either side, so look at several before judging.
"""
import argparse
import ctypes
import glob
import json
import os
import re
import sys
import tempfile

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

from cyb_tools import ToolError, cache_dir, find_model, find_program, machine, main_guard, program_logits, run_json, say

ENCODINGS = ["q2k", "q3k", "q4", "q4k", "q4_1", "q5_0", "q5k", "q5_1", "q6k", "q8"]
TYPES = {"f32": Q.F32, "f16": Q.F16, "q8": Q.Q8_0, "q4": Q.Q4_0, "q4_1": Q.Q4_1, "q5_0": Q.Q5_0, "q5_1": Q.Q5_1,
         "q2k": Q.Q2_K, "q3k": Q.Q3_K, "q4k": Q.Q4_K, "q5k": Q.Q5_K, "q6k": Q.Q6_K}  # fmt: skip
# GGUF name -> ours, for the architectures that the models here have.
NAMES = {
    "token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def library():
    """ggml's quantizers: $LIBGGML_BASE, those of tools/build_peers.py, or those of this interpreter's llama-cpp-python."""
    built = os.path.join(cache_dir("peers"), "build", "bin", "libggml-base.so")
    found = [p for p in (os.environ.get("LIBGGML_BASE"), built) if p and os.path.exists(p)]
    version = "0.3.36's ggml"
    if not found:
        import llama_cpp

        version = llama_cpp.__version__
        found = sorted(glob.glob(os.path.join(os.path.dirname(llama_cpp.__file__), "lib", "libggml-base.so*")))
    if not found:
        raise ToolError("libggml-base is not there: run tools/build_peers.py or install llama-cpp-python")
    lib = ctypes.CDLL(found[0])
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    return lib, f"llama-cpp-python {version}"


def our_name(name):
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", name)
    if not match or match[2] not in NAMES:
        return None
    return (f"model.layers.{match[1]}." if match[1] else "") + NAMES[match[2]] + ".weight"


def copy_header(reader, writer):
    """All keys of one file into another."""
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        kind = field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(key, field.contents(), kind, field.types[1])
        else:
            writer.add_key_value(key, field.contents(), kind)


def write_gguf(source, path, tensors):
    """`tensors`: name -> (type, array as GGUFWriter takes it)."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    copy_header(reader, writer)
    for name, (kind, data) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def decoded(source, noise, seed=0):
    rng, out = np.random.default_rng(seed), {}
    for tensor in gguf.GGUFReader(source).tensors:
        x = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        x = x.reshape([int(n) for n in reversed(tensor.shape)])
        if noise and x.ndim == 2:
            x = x + rng.standard_normal(x.shape, dtype=np.float32) * np.float32(noise * np.sqrt(np.mean(np.square(x))))
        out[tensor.name] = x
    return out


def quantised_by_ggml(lib, x, kind):
    values, size = GGML_QUANT_SIZES[kind]
    x = np.ascontiguousarray(x)
    raw = np.zeros((x.shape[0], x.shape[1] // values * size), np.uint8)
    lib.ggml_quantize_chunk(int(kind), x.ctypes.data, raw.ctypes.data, 0, x.shape[0], x.shape[1], None)
    return raw


def theirs(lib, source, path, weights, chosen):
    """Writes ggml's file with the encodings `chosen`; its relative error."""
    tensors, error, total = {}, 0.0, 0.0
    for name, x in weights.items():
        kind = TYPES[chosen.get(our_name(name), "f32")]
        if kind == Q.F32 or x.ndim != 2:
            tensors[name] = (Q.F32, x)
            continue
        raw = quantised_by_ggml(lib, x, kind)
        tensors[name] = (kind, raw)
        error += float(np.square(dequantize(raw, kind).astype(np.float64) - x).sum())
        total += float(np.square(x.astype(np.float64)).sum())
    write_gguf(source, path, tensors)
    return (error / total) ** 0.5


def perplexity(args, model, text):
    exact = ["--exact"] if args.exact else []
    return run_json(args.program, "perplexity", model, "--file", text, "--ctx", args.ctx, "--json", *exact)["perplexity"]


def log_probabilities(args, model, ids, folder):
    logits = np.array(program_logits(args.program, model, ids, folder, ["--exact"] if args.exact else [])).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def divergence(args, model, base, ids, folder):
    """Mean over the tokens of KL(f32 || model), in nats."""
    return float((np.exp(base) * (base - log_probabilities(args, model, ids, folder))).sum(axis=1).mean())


def relative_error(answer, weights):
    total = sum(float(np.square(x.astype(np.float64)).sum()) for n, x in weights.items() if our_name(n) and x.ndim == 2)
    error = sum(row["rmse"] ** 2 * weights_size(row["name"], weights) for row in answer["tensors"] if "rmse" in row)
    return (error / total) ** 0.5


def weights_size(name, weights):
    return next(x.size for n, x in weights.items() if our_name(n) == name)


def compare(args, lib, model, folder, text):
    source = os.path.join(folder, "source.gguf")
    weights = decoded(find_model(model), args.noise, args.seed)
    write_gguf(find_model(model), source, {n: (Q.F32, x) for n, x in weights.items()})
    rows = []
    base = perplexity(args, source, text) if text else None
    ids = run_json(args.program, "tokenize", source, "--file", text, "--json")["ids"][: args.kl_tokens] if text else []
    plain = log_probabilities(args, source, ids, folder) if ids else None
    for encoding in args.encodings:
        path, other = os.path.join(folder, "ours.model"), os.path.join(folder, "theirs.gguf")
        answer = run_json(args.program, "quantize", source, "--to", encoding, "-o", path, "--force", "--json")
        chosen = {row["name"]: row["to"] for row in answer["tensors"] if row["to"] != row["from"]}
        row = {"model": model, "encoding": encoding, "bits": 8 * answer["bytes_after"] / sum(x.size for x in weights.values()),
               "share": sum(weights_size(n, weights) for n, e in chosen.items() if e == encoding) / sum(x.size for x in weights.values()),
               "error": relative_error(answer, weights), "error_ggml": theirs(lib, source, other, weights, chosen)}  # fmt: skip
        if text:
            row |= {"perplexity": perplexity(args, path, text), "perplexity_ggml": perplexity(args, other, text), "perplexity_f32": base}
        if ids:
            row |= {"kl": divergence(args, path, plain, ids, folder), "kl_ggml": divergence(args, other, plain, ids, folder)}
        rows.append(row)
        say(json.dumps(row))
        os.remove(other)
    return rows


def table(rows):
    lines = ["| model | `--to` | of the values | bits a value | error, ours | error, ggml | perplexity f32 | ours | ggml | divergence, ours | ggml |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        words = [f"{row[k]:.4f}" if k in row else "" for k in ("perplexity_f32", "perplexity", "perplexity_ggml", "kl", "kl_ggml")]
        lines.append(f"| {row['model']} | {row['encoding']} | {row['share']:.0%} | {row['bits']:.2f} | {row['error']:.3%} | {row['error_ggml']:.3%} | "
                     + " | ".join(words) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2", "gemma3"], help="names or GGUF files")
    parser.add_argument("--program", help="cyb-llm")
    parser.add_argument("--encodings", type=lambda s: s.split(","), default=ENCODINGS)
    parser.add_argument("--text", help="file for the perplexity; without one only errors are measured")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--kl-tokens", type=int, default=512, help="tokens of the text for the divergence from f32; 0: none")
    parser.add_argument("--exact", action="store_true", help="perplexity without 8-bit activations")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0, help="of the noise: another draw of the quantisation error")
    parser.add_argument("--slack", type=float, default=0.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.program = find_program(args.program)
    lib, version = library()
    say(f"{machine()}; {version}")
    rows = []
    for model in args.models:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CYB_DATA"], os.environ["CYB_CACHE"] = os.path.join(folder, "data"), os.path.join(folder, "cache")
            rows += compare(args, lib, model, folder, args.text)
    print(json.dumps(rows, indent=1) if args.json else table(rows))
    worse = [r for r in rows if r["error"] > r["error_ggml"]
             or ("perplexity" in r and r["perplexity"] > r["perplexity_ggml"] * (1 + args.slack / 100))]  # fmt: skip
    for row in worse:
        say(f"worse than ggml: {row['model']} {row['encoding']}")
    return 1 if worse else 0


if __name__ == "__main__":
    main_guard(main)
