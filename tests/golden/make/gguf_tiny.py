#!/usr/bin/env python3
"""Small whole models of the LlamaStyle architectures as GGUF, converted by llama.cpp's own converter, and what transformers
computes for the checkpoints they come from (tests/golden/gguf_tiny).

usage: LLAMA_CPP=/path/to/llama.cpp gguf_tiny.py [--write] [NAME...]   (needs torch, transformers, gguf)

Weights are those of tools/rebuild_tiny.py rounded to f16. NAME.gguf holds them as the converter writes them (matrices f16,
vectors f32, no tokenizer); NAME.safetensors has in.input_ids [1, 12] and out.logits [1, 12, V] in f32. Without --write the
committed files are compared with new ones. Where llama-cpp-python is installed its logits are compared too; Phi-3's window
is the one known difference (llama.cpp does not apply it), so the models with a window have 12 ids inside it.
"""
import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools"))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
LLAMA_CPP = os.environ.get("LLAMA_CPP", "")
sys.path[1:1] = [LLAMA_CPP, os.path.join(LLAMA_CPP, "gguf-py")]
import rebuild_tiny
import torch
import transformers
from safetensors.torch import save_file

OUT = Path(__file__).parent.parent / "gguf_tiny"
V = 64
BASE = dict(vocab_size=V, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
            max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GPT = dict(vocab_size=V, n_embd=32, n_inner=128, n_layer=2, n_head=2, n_positions=64, bos_token_id=1, eos_token_id=2)


def rope(**more):
    return dict(rope_theta=10000.0, **({"rope_type": "default"} | more))


SU = dict(rope_type="longrope", original_max_position_embeddings=8)
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**BASE, rope_parameters=rope()),
    "llama3": lambda: transformers.LlamaConfig(**BASE, rope_parameters=rope(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)),
    "qwen2_yarn": lambda: transformers.Qwen2Config(**BASE, rope_parameters=rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
    "gemma": lambda: transformers.GemmaConfig(**BASE, head_dim=16, rope_parameters=rope()),
    "gemma2": lambda: transformers.Gemma2Config(**BASE, head_dim=16, sliding_window=32, query_pre_attn_scalar=16, rope_parameters=rope()),
    "phi2": lambda: transformers.PhiConfig(**dict(BASE, num_key_value_heads=2, intermediate_size=128), rope_parameters=rope(partial_rotary_factor=0.5)),
    "phi3": lambda: transformers.Phi3Config(**BASE, sliding_window=32, rope_parameters=rope()),
    # 12 ids are past the original 8: the long factors hold
    "phi3_longrope": lambda: transformers.Phi3Config(**BASE, original_max_position_embeddings=8, rope_parameters=rope(
        **SU, short_factor=[1.0 + 0.1 * j for j in range(8)], long_factor=[1.0 + 0.3 * j for j in range(8)])),
    "phi4_mini": lambda: transformers.Phi3Config(**BASE, original_max_position_embeddings=8, tie_word_embeddings=True, rope_parameters=rope(
        **SU, partial_rotary_factor=0.75, short_factor=[1.0] * 6, long_factor=[1.0 + 0.3 * j for j in range(6)])),
    "starcoder": lambda: transformers.GPTBigCodeConfig(**GPT),
    "starcoder2": lambda: transformers.Starcoder2Config(**BASE, rope_parameters=rope()),
    "gpt2": lambda: transformers.GPT2Config(**GPT),
    "olmo2": lambda: transformers.Olmo2Config(**BASE, rope_parameters=rope()),
    "granite": lambda: transformers.GraniteConfig(**BASE, embedding_multiplier=12.0, attention_multiplier=0.125, residual_multiplier=0.22,
                                                  logits_scaling=8.0, rope_parameters=rope()),
    "smollm3": lambda: transformers.SmolLM3Config(**dict(BASE, num_hidden_layers=4), rope_parameters=rope()),
    "internlm2": None,
}
INTERNLM2 = dict(architectures=["InternLM2ForCausalLM"], model_type="internlm2", bias=False, hidden_act="silu", rms_norm_eps=1e-5, rope_theta=1e6,
                 rope_scaling=None, tie_word_embeddings=False, **BASE)


def weight(name, shape, gemma=False):
    value = rebuild_tiny.value(name, tuple(shape))
    if gemma and len(shape) == 1:
        value = np.round(value * 256) / 256  # the converter adds 1 in f16: exact for these
    return torch.from_numpy(value.astype(np.float16).astype(np.float32))


def internlm2():
    """Config and weights under InternLM2's names, and the Llama that they are."""
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**BASE, rms_norm_eps=1e-5, rope_parameters=dict(rope_type="default", rope_theta=1e6)))
    names = {"model.embed_tokens": "model.tok_embeddings", "lm_head": "output", "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
             "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm"}
    ours, theirs = {}, {}
    for name, tensor in llama.state_dict().items():
        new = name
        for old, other in names.items():
            new = new.replace(old, other)
        ours[name] = weight(new, tensor.shape)
        if "_proj" not in new:
            theirs[new] = ours[name]
    for i in range(BASE["num_hidden_layers"]):
        p = f"model.layers.{i}.self_attn."
        kv, d = BASE["num_key_value_heads"], 16
        q, k, v = (ours[p + f"{x}_proj.weight"].reshape(kv, -1, d, 32) for x in "qkv")
        theirs[f"model.layers.{i}.attention.wqkv.weight"] = torch.cat([q, k, v], 1).reshape(-1, 32)
    llama.load_state_dict(ours)
    return INTERNLM2, theirs, llama.eval()


def model_of(name):
    if name == "internlm2":
        return internlm2()
    config = CONFIGS[name]()
    config.architectures = [transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__]
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    state = {n: weight(n, t.shape, "gemma" in name) for n, t in model.state_dict().items() if n not in tied}
    model.load_state_dict(state, strict=False)
    model.tie_weights()
    keys = config.to_dict()
    if name == "gpt2":
        keys["n_ctx"] = keys["n_positions"]  # which the converter asks for
    return keys, state, model


def convert(name, keys, state, path):
    import gguf
    from conversion import get_model_class
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(keys, f)
        save_file({n: t.to(torch.float16).contiguous() for n, t in state.items()}, os.path.join(folder, "model.safetensors"))
        cls = get_model_class(keys["architectures"][0])

        class NoVocabulary(cls):
            model_arch = cls.model_arch

            def set_vocab(self):
                self.gguf_writer.add_tokenizer_model("none")
                self.gguf_writer.add_vocab_size(V)

        writer = NoVocabulary(Path(folder), gguf.LlamaFileType.MOSTLY_F16, path, model_name=f"tiny-{name}")
        writer.write()


def llama_cpp_logits(path, ids):
    try:
        import llama_cpp
    except ImportError:
        return None
    model = llama_cpp.Llama(str(path), n_ctx=64, logits_all=True, verbose=False, n_threads=1)
    model.eval([int(i) for i in ids])
    return np.array(model.scores[: len(ids)], np.float32)


def difference(a, b):
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    OUT.mkdir(exist_ok=True)
    ids = (rebuild_tiny.bits("input:ids", 12) >> np.uint64(33)).astype(np.int64) % (V - 3) + 3
    bad = 0
    for name in args.names or CONFIGS:
        keys, state, model = model_of(name)
        logits = model(input_ids=torch.from_numpy(ids)[None]).logits.numpy()
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / f"{name}.gguf"
            convert(name, keys, state, made)
            other = llama_cpp_logits(made, ids)
            said = "not compared with llama.cpp" if other is None else f"llama.cpp differs by {difference(other, logits[0]):.1e}"
            golden = OUT / f"{name}.safetensors"
            if args.write:
                (OUT / f"{name}.gguf").write_bytes(made.read_bytes())
                rebuild_tiny.write_safetensors(str(golden), {"in.input_ids": ids[None], "out.logits": logits})
                print(f"{name}: written, {said}")
                continue
            same = made.read_bytes() == (OUT / f"{name}.gguf").read_bytes()
            off = difference(logits, rebuild_tiny.read_safetensors(str(golden))["out.logits"])
            good = same and off < 2e-6
            bad += not good
            print(f"{name}: {'ok' if good else 'DIFFERS'} (file {'equal' if same else 'differs'}, logits {off:.1e}), {said}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
