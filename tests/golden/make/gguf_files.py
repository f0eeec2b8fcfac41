#!/usr/bin/env python3
"""Make tests/golden/gguf: small whole models written by the `gguf` package, as the public converter lays them out.

The weights are the functions of their Hugging Face names that tools/rebuild_tiny.py defines. For architecture llama the
rows of q and k are permuted here as llama.cpp's converter does it (reshape, swapaxes); Gemma's norms get their 1 added.
EXPECT.json says for each file and tensor, under the Hugging Face name and in Hugging Face order: [encoding, shape, crc32
of the bytes]. Rows are quantised one by one, so the bytes of a permuted row are those of the row it came from.
Made with gguf 0.19.0 and numpy.
"""
import json
import os
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tools"))

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q
from rebuild_tiny import value

OUT = os.path.join(HERE, "..", "gguf")
LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB, CONTEXT = 2, 32, 4, 2, 8, 64, 40, 64
OURS = {Q.F32: "f32", Q.F16: "f16", Q.BF16: "bf16", Q.Q8_0: "q8", Q.Q4_0: "q4", Q.Q4_1: "q4_1", Q.Q5_0: "q5_0",
        Q.Q5_1: "q5_1"}


def permute(w, heads):
    """llama.cpp's converter: half-split order to adjacent pairs."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


class Model:
    def __init__(self, name, arch, layers=LAYERS, split=0):
        self.name, self.arch, self.layers, self.expect = name, arch, layers, {}
        path = os.path.join(OUT, name + ".gguf")
        self.writer = gguf.GGUFWriter(path, arch, split_max_tensors=split)
        w = self.writer
        w.add_name("golden " + name)
        w.add_block_count(layers)
        w.add_context_length(CONTEXT)
        w.add_embedding_length(HIDDEN)
        w.add_feed_forward_length(FFN)
        w.add_head_count(HEADS)
        w.add_head_count_kv(KV_HEADS)
        w.add_layer_norm_rms_eps(1e-5)

    def add(self, theirs, ours, shape, kind=Q.F32, heads=0, offset=0.0):
        plain = value(ours, shape) + np.float32(offset)
        stored = permute(plain, heads) if heads else plain
        self.expect[ours] = [OURS[kind], list(shape), zlib.crc32(gguf.quants.quantize(plain, kind).tobytes())]
        self.writer.add_tensor(theirs, gguf.quants.quantize(stored, kind), raw_dtype=kind)

    def add_layer(self, i, kinds, bias="", permuted=False, norms=False, gemma=False):
        b, m, one = f"blk.{i}.", f"model.layers.{i}.", 1.0 if gemma else 0.0
        q, k = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
        self.add(b + "attn_norm.weight", m + "input_layernorm.weight", (HIDDEN,), offset=one)
        for letter, rows, heads in (("q", q, HEADS), ("k", k, KV_HEADS), ("v", k, 0)):
            heads = heads if permuted else 0
            self.add(f"{b}attn_{letter}.weight", f"{m}self_attn.{letter}_proj.weight", (rows, HIDDEN), kinds[0], heads)
            if letter in bias:
                self.add(f"{b}attn_{letter}.bias", f"{m}self_attn.{letter}_proj.bias", (rows,), Q.F32, heads)
            if norms and letter != "v":
                self.add(f"{b}attn_{letter}_norm.weight", f"{m}self_attn.{letter}_norm.weight", (HEAD_DIM,), offset=one)
        self.add(b + "attn_output.weight", m + "self_attn.o_proj.weight", (HIDDEN, q), kinds[1])
        if gemma:
            self.add(b + "post_attention_norm.weight", m + "post_attention_layernorm.weight", (HIDDEN,), offset=one)
            self.add(b + "ffn_norm.weight", m + "pre_feedforward_layernorm.weight", (HIDDEN,), offset=one)
            self.add(b + "post_ffw_norm.weight", m + "post_feedforward_layernorm.weight", (HIDDEN,), offset=one)
        else:
            self.add(b + "ffn_norm.weight", m + "post_attention_layernorm.weight", (HIDDEN,))
        self.add(b + "ffn_gate.weight", m + "mlp.gate_proj.weight", (FFN, HIDDEN), kinds[2])
        self.add(b + "ffn_up.weight", m + "mlp.up_proj.weight", (FFN, HIDDEN), kinds[2])
        self.add(b + "ffn_down.weight", m + "mlp.down_proj.weight", (HIDDEN, FFN), kinds[3])

    def finish(self, embedding=Q.F32, head=None, offset=0.0):
        self.add("token_embd.weight", "model.embed_tokens.weight", (VOCAB, HIDDEN), embedding)
        self.add("output_norm.weight", "model.norm.weight", (HIDDEN,), offset=offset)
        if head is not None:
            self.add("output.weight", "lm_head.weight", (VOCAB, HIDDEN), head)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return self.expect


def rope_factors():
    """Frequency factors of Llama 3 (factor 8, low 1, high 4, trained length 32), as the converter computes them."""
    f = 500000.0 ** (-np.arange(0, HEAD_DIM, 2, dtype=np.float64) / HEAD_DIM)
    wavelength = 2 * np.pi / f
    smooth = (32 / wavelength - 1) / (4 - 1)
    mid = 1 / ((1 - smooth) / 8 + smooth)
    return np.where(wavelength < 32 / 4, 1.0, np.where(wavelength > 32 / 1, 8.0, mid)).astype(np.float32)


def make_llama(name, split=0):
    m = Model(name, "llama", split=split)
    m.writer.add_vocab_size(VOCAB)
    m.writer.add_rope_dimension_count(HEAD_DIM)
    m.writer.add_rope_freq_base(500000.0)
    factors = rope_factors()
    m.expect["cyb.pos.rope_factors"] = ["f32", [HEAD_DIM // 2], zlib.crc32(factors.tobytes())]
    m.writer.add_tensor("rope_freqs.weight", factors)
    m.add_layer(0, (Q.F32, Q.Q4_0, Q.Q8_0, Q.Q5_1), bias="qkv", permuted=True)
    m.add_layer(1, (Q.Q4_1, Q.F16, Q.Q5_0, Q.F32), bias="qkv", permuted=True)
    return m.finish(Q.Q8_0, Q.F16)


def make_qwen2():
    m = Model("qwen2", "qwen2")
    m.writer.add_rope_freq_base(1000000.0)
    for i in range(LAYERS):
        m.add_layer(i, (Q.F16, Q.F16, Q.F16, Q.F16), bias="qkv")
    return m.finish(Q.F16, Q.Q8_0)


def make_qwen3():
    m = Model("qwen3", "qwen3")
    m.writer.add_rope_freq_base(1000000.0)
    m.writer.add_key_length(HEAD_DIM)
    m.writer.add_value_length(HEAD_DIM)
    for i in range(LAYERS):
        m.add_layer(i, (Q.BF16, Q.BF16, Q.BF16, Q.BF16), norms=True)
    return m.finish(Q.BF16)


def make_gemma3():
    m = Model("gemma3", "gemma3", layers=7)
    w = m.writer
    w.add_key_length(HEAD_DIM)
    w.add_value_length(HEAD_DIM)
    w.add_rope_freq_base(1000000.0)
    w.add_sliding_window(8)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(8.0)
    for i in range(7):
        m.add_layer(i, (Q.Q8_0, Q.Q8_0, Q.Q8_0, Q.Q8_0), norms=True, gemma=True)
    return m.finish(Q.Q8_0, offset=1.0)


def main():
    os.makedirs(OUT, exist_ok=True)
    expect = {"llama": make_llama("llama"), "split": make_llama("split", split=12), "qwen2": make_qwen2(),
              "qwen3": make_qwen3(), "gemma3": make_gemma3()}
    with open(os.path.join(OUT, "EXPECT.json"), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f'"{name}": {json.dumps(rows, separators=(",", ":"))}' for name, rows in expect.items()) + "\n}\n")


if __name__ == "__main__":
    main()
