#!/usr/bin/env python3
"""Make tests/golden/encodings: models in every encoding that only imports bring, and their logits.

types.gguf has one llama of three layers whose matrices are of all IQ, TQ and MXFP4 types (random bits, scales set so that
the values are small); fp8/ is a checkpoint of 8-bit floats with scales per square, per row and per tensor. The logits
of both are those of transformers' LlamaForCausalLM on the decoded weights in f32: what `gguf` decodes, and fp8 value
times scale. With --llama the GGUF is also run by llama-cpp-python, which has to agree. Made with gguf 0.19.0,
transformers 5.24.0, torch 2.15.0, safetensors 0.8.0 and numpy 2.4.6.
"""
import argparse
import ctypes
import json
import os
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "encodings")
IDS = [3, 17, 38, 0, 5, 29, 12, 12, 31, 8, 22, 39]
VOCAB = 40
# Type -> byte offset of its f16 scale; None: a scale of another kind.
TYPES = {
    Q.IQ4_NL: 0, Q.IQ4_XS: 0, Q.IQ3_XXS: 0, Q.IQ3_S: 0, Q.IQ2_XXS: 0, Q.IQ2_XS: 0, Q.IQ2_S: 0, Q.IQ1_S: 0,
    Q.IQ1_M: None, Q.TQ1_0: 52, Q.TQ2_0: 64, Q.MXFP4: None,
}  # fmt: skip
DEVIATION = 0.06  # of decoded values


def set_scale(blocks, kind, d):
    """Every block's scale = d (MXFP4: the power of two below)."""
    bits = int(np.float16(d).view(np.uint16))
    if kind == Q.MXFP4:
        blocks[:, 0] = int(np.floor(np.log2(d))) + 128
    elif kind == Q.IQ1_M:
        words = blocks[:, 48:56].copy().view("<u2")
        for k in range(4):
            words[:, k] = (words[:, k] & 0x0FFF) | ((bits >> (4 * k)) & 15) << 12
        blocks[:, 48:56] = words.view(np.uint8)
    else:
        at = TYPES[kind]
        blocks[:, at : at + 2] = np.array([bits & 255, bits >> 8], np.uint8)


def random_matrix(rng, kind, rows, columns):
    values, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * columns // values, size), dtype=np.uint8)
    set_scale(blocks, kind, 1.0)
    set_scale(blocks, kind, DEVIATION / float(dequantize(blocks, kind).std()))
    stored = blocks.reshape(rows, -1)
    return stored, dequantize(stored, kind)


def half_split(rows, heads):
    """Rows of q or k from the adjacent pairs of llama GGUF files to the half-split order."""
    return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def logits_of(config, weights):
    model = LlamaForCausalLM(LlamaConfig(**config)).float().eval()
    missing = model.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in weights.items()}, strict=False)
    if missing.unexpected_keys or [k for k in missing.missing_keys if k != "lm_head.weight"]:
        raise RuntimeError(str(missing))
    model.tie_weights()
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits[0].numpy()


def base_config(hidden, ffn, layers, heads, kv, head_dim):
    return dict(vocab_size=VOCAB, hidden_size=hidden, intermediate_size=ffn, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv, head_dim=head_dim, max_position_embeddings=64,
                rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True, attn_implementation="eager")  # fmt: skip


def make_types():
    """Five typed matrices a layer; those with rows that are no multiple of 256 are Q8_0."""
    hidden, ffn, layers, heads, kv, head_dim = 256, 32, 3, 2, 1, 32
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(os.path.join(OUT, "types.gguf"), "llama")
    writer.add_name("golden types")
    writer.add_block_count(layers)
    writer.add_context_length(64)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    writer.add_tokenizer_model("none")
    weights, kinds = {}, list(TYPES)

    def plain(theirs, ours, shape, kind=Q.Q8_0, around=0.0):
        data = (rng.normal(around, DEVIATION, shape)).astype(np.float32)
        stored = data if kind == Q.F32 else gguf.quants.quantize(data, kind)
        writer.add_tensor(theirs, stored, raw_dtype=kind)
        weights[ours] = data if kind == Q.F32 else dequantize(stored, kind)

    plain("token_embd.weight", "model.embed_tokens.weight", (VOCAB, hidden))
    n = 0
    for i in range(layers):
        b, m = f"blk.{i}.", f"model.layers.{i}."
        plain(b + "attn_norm.weight", m + "input_layernorm.weight", (hidden,), Q.F32, 1.0)
        for theirs, ours, rows, n_heads in (("attn_q", "self_attn.q_proj", heads * head_dim, heads),
                                            ("attn_k", "self_attn.k_proj", kv * head_dim, kv),
                                            ("attn_v", "self_attn.v_proj", kv * head_dim, 0),
                                            ("ffn_gate", "mlp.gate_proj", ffn, 0), ("ffn_up", "mlp.up_proj", ffn, 0)):  # fmt: skip
            kind = kinds[n % len(kinds)]
            n += 1
            stored, values = random_matrix(rng, kind, rows, hidden)
            writer.add_tensor(b + theirs + ".weight", stored, raw_dtype=kind)
            weights[m + ours + ".weight"] = half_split(values, n_heads) if n_heads else values
        plain(b + "attn_output.weight", m + "self_attn.o_proj.weight", (hidden, heads * head_dim))
        plain(b + "ffn_norm.weight", m + "post_attention_layernorm.weight", (hidden,), Q.F32, 1.0)
        plain(b + "ffn_down.weight", m + "mlp.down_proj.weight", (hidden, ffn))
    plain("output_norm.weight", "model.norm.weight", (hidden,), Q.F32, 1.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    logits = logits_of(base_config(hidden, ffn, layers, heads, kv, head_dim), weights)
    np.save(os.path.join(OUT, "types.npy"), logits)
    return logits


def fp8(rng, shape, kind, scheme):
    """Codes, scale and decoded values of a matrix with one scale a square, a row or in all."""
    data = torch.from_numpy(rng.normal(0, DEVIATION, shape).astype(np.float32))
    top = torch.finfo(kind).max
    rows, columns = shape
    if scheme == "square":
        scale = torch.zeros((rows + 127) // 128, (columns + 127) // 128)
        for i in range(scale.shape[0]):
            for j in range(scale.shape[1]):
                scale[i, j] = data[128 * i : 128 * i + 128, 128 * j : 128 * j + 128].abs().max() / top
        wide = scale.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :columns]
    elif scheme == "row":
        scale = data.abs().amax(1, keepdim=True) / top
        wide = scale
    else:
        scale = data.abs().max() / top
        wide = scale
    codes = (data / wide).to(kind)
    return codes, scale, (codes.float() * wide).numpy()


def make_fp8():
    hidden, ffn, layers, heads, kv, head_dim = 136, 144, 1, 4, 2, 34
    rng = np.random.default_rng(8)
    folder = os.path.join(OUT, "fp8")
    os.makedirs(folder, exist_ok=True)
    config = base_config(hidden, ffn, layers, heads, kv, head_dim)
    stored, weights = {}, {}

    def plain(name, shape, around=0.0):
        data = torch.from_numpy(rng.normal(around, DEVIATION, shape).astype(np.float32)).bfloat16()
        stored[name], weights[name] = data, data.float().numpy()

    def scaled(name, shape, kind, scheme, suffix):
        codes, scale, values = fp8(rng, shape, kind, scheme)
        stored[name + ".weight"], stored[name + suffix] = codes, scale
        weights[name + ".weight"] = values

    plain("model.embed_tokens.weight", (VOCAB, hidden))
    m, e4, e5 = "model.layers.0.", torch.float8_e4m3fn, torch.float8_e5m2
    plain(m + "input_layernorm.weight", (hidden,), 1.0)
    scaled(m + "self_attn.q_proj", (heads * head_dim, hidden), e4, "square", ".weight_scale_inv")
    scaled(m + "self_attn.k_proj", (kv * head_dim, hidden), e4, "row", ".weight_scale")
    scaled(m + "self_attn.v_proj", (kv * head_dim, hidden), e5, "all", ".weight_scale")
    scaled(m + "self_attn.o_proj", (hidden, heads * head_dim), e5, "square", ".weight_scale_inv")
    plain(m + "post_attention_layernorm.weight", (hidden,), 1.0)
    scaled(m + "mlp.gate_proj", (ffn, hidden), e4, "all", ".weight_scale")
    scaled(m + "mlp.up_proj", (ffn, hidden), e4, "square", ".weight_scale_inv")
    scaled(m + "mlp.down_proj", (hidden, ffn), e4, "row", ".weight_scale")
    stored[m + "mlp.up_proj.input_scale"] = torch.tensor(0.5)
    plain("model.norm.weight", (hidden,), 1.0)
    save_file(stored, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    written = dict(config, model_type="llama", architectures=["LlamaForCausalLM"], hidden_act="silu", torch_dtype="bfloat16",
                   quantization_config={"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                        "weight_block_size": [128, 128]})  # fmt: skip
    del written["attn_implementation"]
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(written, f, indent=1)
        f.write("\n")
    np.save(os.path.join(OUT, "fp8.npy"), logits_of(config, weights))


def check_llama(expected):
    """llama.cpp's logits of types.gguf; its products round activations, so only roughly equal."""
    import llama_cpp as c

    c.llama_backend_init()
    model = c.llama_model_load_from_file(os.path.join(OUT, "types.gguf").encode(), c.llama_model_default_params())
    if not model:
        raise RuntimeError("llama.cpp does not load types.gguf")
    params = c.llama_context_default_params()
    params.n_ctx = 64
    context = c.llama_init_from_model(model, params)
    batch = c.llama_batch_init(len(IDS), 0, 1)
    batch.n_tokens = len(IDS)
    for i, token in enumerate(IDS):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
    if c.llama_decode(context, batch):
        raise RuntimeError("llama_decode failed")
    rows = c.llama_get_logits(context)
    got = np.ctypeslib.as_array(ctypes.cast(rows, ctypes.POINTER(ctypes.c_float)), (len(IDS), VOCAB))
    error = float(np.abs(got - expected).max() / np.abs(expected).max())
    print(f"llama.cpp: largest difference {error:.2e} of the largest logit")
    if error > 0.05:
        raise RuntimeError("llama.cpp disagrees")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", action="store_true", help="run types.gguf by llama-cpp-python too")
    args = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    logits = make_types()
    make_fp8()
    if args.llama:
        check_llama(logits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
