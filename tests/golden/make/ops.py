#!/usr/bin/env python3
"""Write tests/golden/ops/*.safetensors: inputs and outputs of ops as numpy, torch, transformers, gguf and mpmath compute them.

Made with numpy 2.4.6, torch 2.15.0, transformers 5.24.0, gguf 0.19.0, mpmath 1.3.0, in f64 rounded once. The metadata
entry of a case is JSON: op, attrs by field name, inputs and outputs as [tensor, dtype, shape] or null. Seeded: two runs
give equal bytes.
"""
import json
import os
import sys

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]  # our tokenizers.py

import mpmath
import numpy as np
import torch
import torch.nn.functional as F
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward as gemma2_attention
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj_rotary
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama_rotary

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from ops_file import OUT, File

FORMATS = {"q8": (Type.Q8_0, (0,)), "q4": (Type.Q4_0, (0,)), "q4_1": (Type.Q4_1, (0, 2)), "q5_0": (Type.Q5_0, (0,)),
           "q5_1": (Type.Q5_1, (0, 2)), "q2k": (Type.Q2_K, (80, 82)), "q3k": (Type.Q3_K, (108,)),
           "q4k": (Type.Q4_K, (0, 2)), "q5k": (Type.Q5_K, (0, 2)), "q6k": (Type.Q6_K, (208,))}


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def wide(*arrays):
    return [torch.from_numpy(a.astype(np.float64)) for a in arrays]


def blocks(rng, name, rows, columns):
    """Random rows of a block format and their f32 values."""
    kind, fields = FORMATS[name]
    values, size = GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (rows, columns // values, size), dtype=np.uint8)
    for offset in fields:
        scale = (np.exp2(rng.uniform(-9, -5, raw.shape[:2])) * rng.choice([-1.0, 1.0], raw.shape[:2])).astype(np.float16)
        raw[:, :, offset:offset + 2] = scale.view(np.uint8).reshape(rows, -1, 2)
    raw = raw.reshape(rows, -1)
    return (raw, name, (rows, columns)), dequantize(raw, kind).astype(np.float32)


def matmul(rng):
    f = File("matmul")
    for m, k, n in [(1, 1, 1), (3, 7, 5), (2, 8, 3), (5, 67, 9), (1, 576, 16), (0, 16, 4)]:
        x, w = normal(rng, m, k), normal(rng, n, k)
        wx, ww = wide(x, w)
        f.case(f"f32_{m}x{k}x{n}", "Matmul", {}, [x, w], [wx @ ww.T])
    x, w, b = normal(rng, 2, 3, 33), normal(rng, 4, 33), normal(rng, 4)
    f.case("bias_rank3", "Matmul", {}, [x, w, b], [F.linear(*wide(x, w, b))])
    x, w = normal(rng, 2, 1, 3, 20), normal(rng, 4, 5, 20)
    wx, ww = wide(x, w)
    f.case("batched", "Matmul", {}, [x, w], [wx @ ww.transpose(-1, -2)])
    x, w = normal(rng, 3, 40).astype(np.float16), normal(rng, 6, 40).astype(np.float16)
    wx, ww = wide(x, w)
    f.case("f16", "Matmul", {}, [x, w], [(wx @ ww.T).numpy().astype(np.float16)])
    x, w = normal(rng, 3, 40), normal(rng, 6, 40)
    half, cut = w.astype(np.float16), (w.view(np.uint32) >> 16).astype(np.uint16)
    f.case("weight_f16", "Matmul", {}, [x, half], [wide(x)[0] @ wide(half)[0].T])
    back = (cut.astype(np.uint32) << 16).view(np.float32)
    f.case("weight_bf16", "Matmul", {}, [x, (cut.view(np.uint8), "bf16", (6, 40))], [wide(x)[0] @ wide(back)[0].T])
    for name in FORMATS:
        raw, values = blocks(rng, name, 5, 256)
        x = normal(rng, 3, 256)
        f.case(f"weight_{name}", "Matmul", {}, [x, raw], [wide(x)[0] @ wide(values)[0].T])
    f.write()


def embed(rng):
    f = File("embed")
    table = normal(rng, 7, 12)
    ids = np.array([[3, 0], [6, 6]], np.int32)
    f.case("f32", "TokenEmbed", {}, [ids, table], [table[ids]])
    for name in FORMATS:
        raw, values = blocks(rng, name, 4, 256)
        ids = np.array([3, 1], np.int32)
        f.case(f"rows_{name}", "TokenEmbed", {}, [ids, raw], [values[ids]])
        f.case(f"values_{name}", "Dequantize", {}, [(raw[0][:2], name, (2, 256))], [values[:2]])
    f.write()


def attention(rng):
    f = File("sdpa")

    def case(name, b, h, g, s, t, d, dv=None, causal=1, window=0, softcap=0.0, scale=0.0, mask=None):
        q, k, v = normal(rng, b, h, s, d), normal(rng, b, g, t, d), normal(rng, b, g, t, dv or d)
        position = np.arange(t - s, t)[:, None]
        key = np.arange(t)[None, :]
        allowed = np.ones((s, t), bool)
        if causal:
            allowed &= key <= position
        if window:
            allowed &= key > position - window
        allow = torch.from_numpy(np.broadcast_to(allowed, (b, 1, s, t)).copy())
        bias = torch.zeros(b, 1, s, t, dtype=torch.float64).masked_fill(~allow, float("-inf"))
        if mask is not None:
            full = torch.from_numpy(mask)
            bias = bias.masked_fill(~full, float("-inf")) if mask.dtype == bool else bias + full.double()
        wq, wk, wv = wide(q, k, v)
        factor = scale or d ** -0.5
        if softcap:
            module = torch.nn.Module()
            module.num_key_value_groups = h // g
            module.eval()
            y = gemma2_attention(module, wq, wk, wv, bias, scaling=factor, softcap=softcap)[0].transpose(1, 2)
        else:
            y = F.scaled_dot_product_attention(wq, wk, wv, attn_mask=bias, scale=factor, enable_gqa=True)
        y = torch.nan_to_num(y, nan=0.0)  # a row that may see nothing
        attrs = {"num_heads": h, "kv_heads": g, "head_dim": d, "causal": causal, "scale": scale, "softcap": softcap,
                 "window": window}
        f.case(name, "Sdpa", attrs, [q, k, v] + ([] if mask is None else [mask]), [y])
        return

    case("plain", 1, 2, 2, 5, 5, 8, causal=0)
    case("causal_gqa", 2, 6, 2, 5, 5, 16)
    case("causal_past", 1, 4, 1, 3, 13, 8)
    case("decode", 1, 9, 3, 1, 33, 64)
    case("window", 1, 2, 1, 9, 21, 8, window=4)
    case("softcap", 1, 4, 2, 4, 7, 16, softcap=2.5)
    case("scale", 1, 2, 2, 3, 3, 10, scale=0.7)
    case("value_width", 1, 2, 1, 4, 6, 8, dv=5)
    case("padding", 2, 2, 2, 4, 4, 8, causal=0, mask=np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool).reshape(2, 1, 1, 4))
    case("float_mask", 1, 2, 2, 3, 5, 8, causal=0, mask=normal(rng, 1, 2, 3, 5))
    case("nothing_allowed", 1, 1, 1, 2, 4, 4, causal=0, mask=np.array([[0, 0, 0, 0], [1, 0, 1, 0]], bool).reshape(1, 1, 2, 4))
    f.write()


def rope(rng):
    f = File("rope")

    def angles(pos, freqs):
        theta = np.asarray(pos, np.float64)[..., None] * np.asarray(freqs, np.float64)
        return np.cos(theta).astype(np.float32), np.sin(theta).astype(np.float32)

    def neox(x, cos, sin):
        c, s = (torch.from_numpy(np.concatenate([a, a], -1).astype(np.float64)) for a in (cos, sin))
        c, s = (a if a.ndim == 3 else a[None] for a in (c, s))
        wx = wide(x)[0]
        return llama_rotary(wx, wx, c, s)[0].numpy()

    pos = np.array([0, 1, 7, 511, 4095, 131071], np.int32)
    x = normal(rng, 2, 3, 6, 16)
    freqs = 10000.0 ** (-2.0 * np.arange(8) / 16)
    attrs = {"head_dim": 16, "rope_dim": 16, "base": 10000.0, "style": 0}
    f.case("neox", "Rope", attrs, [x, pos], [neox(x, *angles(pos, freqs))])
    both = np.stack([pos, pos[::-1]])
    f.case("neox_per_batch", "Rope", attrs, [x, both], [neox(x, *angles(both, freqs))])
    given = (freqs / np.array([1, 1, 1, 2, 4, 8, 8, 8])).astype(np.float32)
    f.case("neox_freqs", "Rope", {**attrs, "base": 0.0}, [x, pos, given], [neox(x, *angles(pos, given))])
    part = 10000.0 ** (-2.0 * np.arange(3) / 6)
    y = x.astype(np.float64).copy()
    y[..., :6] = neox(x[..., :6], *angles(pos, part))
    f.case("neox_partial", "Rope", {**attrs, "rope_dim": 6}, [x, pos], [y])
    cos, sin = angles(pos, freqs)
    tokens_first = wide(x.transpose(0, 2, 1, 3))[0]
    y = gptj_rotary(tokens_first, torch.from_numpy(sin.astype(np.float64))[None], torch.from_numpy(cos.astype(np.float64))[None])
    f.case("gptj", "Rope", {**attrs, "style": 1}, [x, pos], [y.numpy().transpose(0, 2, 1, 3)])
    # Proportional: the frequencies of all 16 dims, those past R/2 pairs set to zero, then neox over the whole head.
    cut = 1e6 ** (-2.0 * np.arange(8) / 16)
    cut[2:] = 0.0
    f.case("proportional", "Rope", {"head_dim": 16, "rope_dim": 4, "base": 1e6, "style": 2}, [x, pos],
           [neox(x, *angles(pos, cut))])
    f.write()


def norms(rng):
    f = File("norm")
    for shape in [(1, 1), (3, 7), (2, 2, 64), (1, 576)]:
        x, g, b = normal(rng, *shape) * 3, normal(rng, shape[-1]), normal(rng, shape[-1])
        wx, wg, wb = wide(x, g, b)
        name = "x".join(map(str, shape))
        f.case(f"rms_{name}", "RmsNorm", {"eps": 1e-5}, [x, g], [F.rms_norm(wx, shape[-1:], wg, float(np.float32(1e-5)))])
        f.case(f"layer_{name}", "LayerNorm", {"eps": 1e-5}, [x, g, b],
               [F.layer_norm(wx, shape[-1:], wg, wb, float(np.float32(1e-5)))])
    x, b = normal(rng, 2, 9), normal(rng, 9)
    f.case("layer_bias_only", "LayerNorm", {"eps": 1e-6}, [x, None, b],
           [F.layer_norm(wide(x)[0], (9,), None, wide(b)[0], float(np.float32(1e-6)))])
    x = np.array([[1e-20, -1e-20, 0, 0], [0, 0, 0, 0], [3e18, 1, -1, 2]], np.float32)
    g = np.ones(4, np.float32)
    f.case("rms_edges", "RmsNorm", {"eps": 1e-6}, [x, g], [F.rms_norm(wide(x)[0], (4,), None, float(np.float32(1e-6)))])
    f.write()


def activations(rng):
    f = File("activation")
    edges = np.array([0.0, -0.0, 1e-40, -1e-40, 1e-30, 0.5, -0.5, 5, -5, 12, -12, 30, -30, 88, -88, 200, -200, 3e38, -3e38],
                     np.float32)
    x = np.concatenate([edges, (normal(rng, 245) * 3)]).reshape(4, -1)
    w = wide(x)[0]
    f.case("silu", "Silu", {}, [x], [F.silu(w)])
    f.case("sigmoid", "Sigmoid", {}, [x], [torch.sigmoid(w)])
    f.case("tanh", "Tanh", {}, [x], [torch.tanh(w)])
    f.case("relu", "Relu", {}, [x], [F.relu(w)])
    f.case("gelu_erf", "Gelu", {"mode": 0}, [x], [F.gelu(w)])
    f.case("gelu_tanh", "Gelu", {"mode": 1}, [x], [F.gelu(w, approximate="tanh")])
    f.case("gelu_quick", "Gelu", {"mode": 2}, [x], [w * torch.sigmoid(1.702 * w)])
    for axis in (0, 1, -1):
        y = normal(rng, 5, 9) * 4
        f.case(f"softmax_{axis}", "Softmax", {"dim": axis}, [y], [torch.softmax(wide(y)[0], axis)])
    x, wg, wu, wd = normal(rng, 2, 3, 10), normal(rng, 6, 10), normal(rng, 6, 10), normal(rng, 4, 6)
    a, g, u, d = wide(x, wg, wu, wd)
    f.case("swiglu_1", "SwiGlu", {}, [x], [F.silu(a[..., :5]) * a[..., 5:]])
    f.case("swiglu_3", "SwiGlu", {}, [x, wg, wu], [F.silu(a @ g.T) * (a @ u.T)])
    f.case("swiglu_4", "SwiGlu", {}, [x, wg, wu, wd], [(F.silu(a @ g.T) * (a @ u.T)) @ d.T])
    f.write()


def layout(rng):
    f = File("layout")
    x, y = normal(rng, 2, 3, 4), normal(rng, 3, 1)
    for name, op in [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)]:
        f.case(f"{name}_bc", name, {}, [x, y], [op(x, y)])
        f.case(f"{name}_bc_left", name, {}, [y, x], [op(y, x)])
    a, b = rng.integers(-99, 99, (3, 4), dtype=np.int32), np.array([7, -3, 2, -1], np.int32)
    big = np.array([2**31 - 1, -2**31, 5, -7], np.int32)
    for name, op in [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)]:
        f.case(f"{name}_i32_wrap", name, {}, [big, b], [op(big, b)])
    f.case("Div_i32", "Div", {}, [a, b], [np.trunc(a / b).astype(np.int32)])
    f.case("transpose", "Transpose", {"perm": []}, [x], [x.swapaxes(-1, -2)])
    f.case("transpose_perm", "Transpose", {"perm": [2, 0, 1]}, [x], [x.transpose(2, 0, 1)])
    f.case("permute", "Permute", {"dims": [1, 0, 2]}, [x], [x.transpose(1, 0, 2)])
    f.case("reshape", "Reshape", {"shape": [0, -1, 2]}, [x], [x.reshape(2, 6, 2)])
    f.case("concat", "Concat", {"axis": -2}, [x, x[:, :1], x[:, 1:]], [np.concatenate([x, x[:, :1], x[:, 1:]], 1)])
    f.case("split", "Split", {"axis": 2, "sizes": [1, 3]}, [x], [x[..., :1], x[..., 1:]])
    index = np.array([[2, 0], [1, 1]], np.int32)
    f.case("gather", "Gather", {"axis": 1}, [x, index], [np.take(x, index, 1)])
    ties = np.array([[1, 3, 3, 2], [5, 5, 5, 5], [-2, -1, -3, -1]], np.float32)
    f.case("argmax", "Argmax", {"dim": 1}, [ties], [ties.argmax(1).astype(np.int32)])
    f.case("argmax_0", "Argmax", {"dim": 0}, [ties], [ties.argmax(0).astype(np.int32)])
    values = np.array([0.0, -0.0, 1.5, -2.7, 65504, 65520, 1e-7, 6e-8, 2.9e-8, 1.00048828125, 1.0014648, 3e38], np.float32)
    with np.errstate(over="ignore"):
        f.case("cast_f16", "Cast", {"dtype": 1}, [values], [values.astype(np.float16)])
    f.case("cast_i32", "Cast", {"dtype": 18}, [values[:7]], [np.trunc(values[:7]).astype(np.int32)])
    f.case("cast_bool", "Cast", {"dtype": 5}, [values], [values != 0])
    f.case("cast_f32", "Cast", {"dtype": 0}, [big], [big.astype(np.float32)])
    f.write()


def math(rng):
    """x and the exact value rounded to f64, per function."""
    mpmath.mp.prec = 300
    f = File("math")
    scale = lambda low, high, n: (np.exp2(rng.uniform(low, high, n)) * rng.choice([-1.0, 1.0], n)).astype(np.float32)
    edges = np.array([0.0, 1e-45, -1e-45, 1.17549435e-38, 0.5, -0.5, 1.0, -1.0, 3.1415927, 1.5707964, 0.70710677, 88.72283,
                      88.7228394, -87.33655, -103.97208, -104.0, 9.010913, 3.9192059], np.float32)
    signed = np.concatenate([edges, scale(-30, 7, 480)])
    periodic = np.concatenate([edges, scale(-20, 7, 240), scale(7, 127, 240)])
    positive = np.abs(np.concatenate([edges[1:], scale(-149, 127, 240), (1 + scale(-20, -2, 240)).astype(np.float32)]))
    table = {"exp": (mpmath.exp, signed), "log": (mpmath.log, positive), "tanh": (mpmath.tanh, signed),
             "erf": (mpmath.erf, signed), "sigmoid": (lambda v: 1 / (1 + mpmath.exp(-v)), signed),
             "sin": (mpmath.sin, periodic), "cos": (mpmath.cos, periodic)}
    for name, (function, x) in table.items():
        f.tensors[f"{name}.x"] = x
        f.tensors[f"{name}.y"] = np.array([float(function(mpmath.mpf(float(v)))) for v in x], np.float64)
    f.write()


def main():
    os.makedirs(OUT, exist_ok=True)
    for k, make in enumerate([matmul, embed, attention, rope, norms, activations, layout, math]):
        make(np.random.default_rng(1000 + k))


if __name__ == "__main__":
    main()
