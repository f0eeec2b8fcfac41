#!/usr/bin/env python3
"""Run transformers on the tiny random models and write their goldens again, or check the committed ones.

Made with torch 2.15.0 and transformers 5.24.0, one thread, f32, eager attention. The weights are rebuilt from their
names (tools/rebuild_tiny.py); config.json and tensors.json beside the goldens describe each model.

golden.safetensors: 2 prompts of 12 ids, the logits of all positions, 8 greedy ids (every step a whole forward).
golden_long.safetensors (models with a window, a rope rule or learned positions): one text past each model's window and original context. in.lengths, out.logits: the last row of
a whole forward of so many ids. out.greedy, out.cached: 12 greedy ids after in.n_prompt ids, by generate() with its cache,
and the logits that it chose them from.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools"))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import rebuild_tiny
import torch
import transformers

N_GREEDY = 8
N_CACHED = 12


def input_ids(vocab):
    """i64 [2, 12] in [3, vocab): the same for every model, from the stream named input:ids."""
    raw = (rebuild_tiny.bits("input:ids", 24) >> np.uint64(33)).astype(np.int64)
    return raw.reshape(2, 12) % (vocab - 3) + 3


def long_ids(vocab, n):
    raw = (rebuild_tiny.bits("input:long", n) >> np.uint64(33)).astype(np.int64)
    return raw % (vocab - 3) + 3


def from_weights(cls, config, weights):
    model = cls(config)
    missing, unexpected = model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in weights.items()}, strict=False)
    if missing or unexpected:
        raise RuntimeError(f"{missing} missing, {unexpected} unexpected")
    return model


def internlm2(config, weights):
    """Llama with InternLM2's names; rows of wqkv are, for each KV head, its queries, its key, its value."""
    d, kv = config["hidden_size"] // config["num_attention_heads"], config["num_key_value_heads"]
    names = {"model.tok_embeddings": "model.embed_tokens", "output": "lm_head", "model.norm": "model.norm"}
    parts = {"attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attention.wo": "self_attn.o_proj",
             "feed_forward.w1": "mlp.gate_proj", "feed_forward.w3": "mlp.up_proj", "feed_forward.w2": "mlp.down_proj"}
    out = {}
    for name, a in weights.items():
        stem, kind = name.rsplit(".", 1)
        if stem in names:
            out[f"{names[stem]}.{kind}"] = a
            continue
        layer, part = stem.split(".", 3)[:3], stem.split(".", 3)[3]
        if part != "attention.wqkv":
            out[f"{'.'.join(layer)}.{parts[part]}.{kind}"] = a
            continue
        groups = a.reshape(kv, -1, d, *a.shape[1:])
        for which, rows in (("q", groups[:, :-2]), ("k", groups[:, -2]), ("v", groups[:, -1])):
            out[f"{'.'.join(layer)}.self_attn.{which}_proj.{kind}"] = rows.reshape(-1, *a.shape[1:])
    keys = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
            "max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id", "pad_token_id")
    llama = transformers.LlamaConfig(**{k: config[k] for k in keys}, attention_bias=config["bias"],
                                     rope_parameters=dict(rope_type="default", rope_theta=config["rope_theta"]))
    return from_weights(transformers.LlamaForCausalLM, llama, out)


def mimo(config, weights):
    """Qwen2 without the layers of multi-token prediction."""
    other = ("architectures", "model_type", "attention_bias", "num_nextn_predict_layers", "rope_theta", "rope_scaling", "head_dim")
    qwen2 = transformers.Qwen2Config(**{k: v for k, v in config.items() if k not in other},
                                     rope_parameters=dict(rope_type="default", rope_theta=config["rope_theta"]))
    return from_weights(transformers.Qwen2ForCausalLM, qwen2, {n: a for n, a in weights.items() if ".mtp_layers." not in n})


def load(name, folder):
    path = rebuild_tiny.rebuild(name, folder)
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    renamed = {"internlm2": internlm2, "mimo": mimo}.get(config["model_type"])
    if renamed is None:
        return transformers.AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager", dtype=torch.float32).eval()
    model = renamed(config, rebuild_tiny.read_safetensors(os.path.join(path, "model.safetensors"))).eval()
    model.set_attn_implementation("eager")
    return model


def outputs(name, folder):
    model = load(name, folder)
    ids = torch.from_numpy(input_ids(model.config.vocab_size))
    logits = model(input_ids=ids).logits.numpy()
    row = ids[:1]
    for _ in range(N_GREEDY):  # no cache: each step is a whole forward
        row = torch.cat([row, model(input_ids=row).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return {"in.input_ids": ids.numpy(), "out.greedy": row.numpy().astype(np.float32), "out.logits": logits}


def long_plan(model):
    """Lengths of whole forwards, and ids of the prompt of the cached run."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    original = rope.get("original_max_position_embeddings") if rope.get("rope_type") != "dynamic" else config.max_position_embeddings
    window = getattr(config, "sliding_window", None)
    if rope.get("rope_type") == "dynamic":
        return [20, 32, 33, 100, 256], 26
    if original in (32,):
        return [20, 32, 33, 128], 26
    return [window or 16, (window or 16) + 1, 70, 128], 50


def has_long(name):
    """Models with a window, a rope rule or learned positions."""
    with open(os.path.join(rebuild_tiny.TINY, name, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    rope = config.get("rope_parameters") or {}
    kinds = [rope, *(v for v in rope.values() if isinstance(v, dict))]
    scaled = any(k.get("rope_type", "default") != "default" for k in kinds)
    return scaled or bool(config.get("sliding_window")) or config["model_type"] == "gpt2"


def long_outputs(name, folder):
    lengths, n_prompt = long_plan(load(name, folder))
    ids = torch.from_numpy(long_ids(256, lengths[-1]))
    rows = []
    for n in lengths:  # a new model for each: dynamic rope keeps the longest length that it has seen
        rows.append(load(name, folder)(input_ids=ids[None, :n], use_cache=False).logits[0, -1].numpy())
    done = load(name, folder).generate(ids[None, :n_prompt], attention_mask=torch.ones(1, n_prompt, dtype=torch.long), do_sample=False,
                                       max_new_tokens=N_CACHED, min_new_tokens=N_CACHED, eos_token_id=None, use_cache=True,
                                       output_logits=True, return_dict_in_generate=True)
    greedy = done.sequences[0, n_prompt:]
    cached = torch.stack([x[0] for x in done.logits])
    return {"in.input_ids": ids.numpy(), "in.lengths": np.array(lengths, np.int64), "in.n_prompt": np.array([n_prompt], np.int64),
            "out.greedy": greedy.numpy().astype(np.float32), "out.cached": cached.numpy(), "out.logits": np.stack(rows)}


def check(got, want):
    off = max(float(np.abs(got[k] - want[k]).max()) for k in got if k in ("out.logits", "out.cached"))
    same = all(np.array_equal(got[k], want[k]) for k in got if k not in ("out.logits", "out.cached"))
    return off, off < 2e-6 and same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the files (default: compare with the committed ones)")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="which models (default: all)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models or rebuild_tiny.known():
            for file, make in (("golden.safetensors", outputs), ("golden_long.safetensors", long_outputs)):
                if make is long_outputs and not has_long(name):
                    continue
                got, path = make(name, folder), os.path.join(rebuild_tiny.TINY, name, file)
                if args.write:
                    rebuild_tiny.write_safetensors(path, got)
                    continue
                off, good = check(got, rebuild_tiny.read_safetensors(path))
                bad += not good
                print(f"{name} {file}: largest difference {off:.1e} {'ok' if good else 'DIFFERS'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
