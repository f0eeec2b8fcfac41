#!/usr/bin/env python3
"""Write config.json, generation_config.json and tensors.json of tiny models whose shapes are decided here (tests/golden/tiny).

The weights need no file: they are a function of their names (tools/rebuild_tiny.py). Afterwards `tiny.py --write NAME...`
runs transformers on them. InternLM2 and MiMo have no class in transformers 5.24: their configs and names are those of the
classes that their checkpoints bring, and tiny.py runs them as Llama and Qwen2.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools"))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import rebuild_tiny
import torch
import transformers

SMALL = dict(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
IDS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def rope(**more):
    return dict(rope_theta=10000.0, **more)


LONG = [1.0 + 0.2 * j for j in range(6)]
CONFIGS = {
    # the families whose goldens transformers makes from its own classes
    "olmo2": lambda: transformers.Olmo2Config(**SMALL, rope_parameters=rope(rope_type="default")),
    "granite": lambda: transformers.GraniteConfig(**SMALL, embedding_multiplier=12.0, attention_multiplier=0.125, residual_multiplier=0.22,
                                                  logits_scaling=8.0, rope_parameters=rope(rope_type="default")),
    "phi4": lambda: transformers.Phi3Config(**SMALL, rope_parameters=dict(rope_theta=250000.0, rope_type="default")),
    "yi": lambda: transformers.LlamaConfig(**SMALL, rms_norm_eps=1e-5, rope_parameters=dict(rope_theta=5e6, rope_type="default")),
    # rope rules
    "llama_yarn": lambda: transformers.LlamaConfig(**SMALL, rope_parameters=rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)),
    "qwen2_yarn": lambda: transformers.Qwen2Config(**SMALL, rope_parameters=dict(
        rope_theta=1e6, rope_type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=16.0, beta_slow=2.0, mscale=0.8,
        mscale_all_dim=0.3, truncate=False)),
    "llama_dynamic": lambda: transformers.LlamaConfig(**dict(SMALL, max_position_embeddings=32), rope_parameters=rope(rope_type="dynamic", factor=8.0)),
    "phi4_mini": lambda: transformers.Phi3Config(**SMALL, original_max_position_embeddings=32, tie_word_embeddings=True, rope_parameters=rope(
        rope_type="longrope", partial_rotary_factor=0.75, short_factor=[1.0] * 6, long_factor=LONG, original_max_position_embeddings=32)),
    # other branches of classes that have a tiny model already
    "starcoder1_mha": lambda: transformers.GPTBigCodeConfig(vocab_size=256, n_embd=64, n_inner=128, n_layer=2, n_head=4, n_positions=128,
                                                            multi_query=False, **IDS),
    "smollm3_window": lambda: transformers.SmolLM3Config(**dict(SMALL, num_hidden_layers=4), use_sliding_window=True, sliding_window=8,
                                                         rope_parameters=rope(rope_type="default")),
    "phi2_gqa": lambda: transformers.PhiConfig(**SMALL, rope_parameters=rope(rope_type="linear", factor=2.0, partial_rotary_factor=0.4)),
}
# model_type, keys beside SMALL, the class that tells the shapes
RENAMED = {
    "internlm2": dict(architectures=["InternLM2ForCausalLM"], model_type="internlm2", bias=True, hidden_act="silu", rms_norm_eps=1e-5, rope_theta=1e6,
                      rope_scaling=None, tie_word_embeddings=False, attn_implementation="eager", **SMALL),
    "mimo": dict(architectures=["MiMoForCausalLM"], model_type="mimo", attention_bias=True, attention_dropout=0.0, head_dim=16, hidden_act="silu",
                 max_window_layers=2, num_nextn_predict_layers=1, rms_norm_eps=1e-5, rope_scaling=None, rope_theta=640000.0, sliding_window=128,
                 tie_word_embeddings=False, use_sliding_window=False, **SMALL),
}


def shapes_of(model):
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    return {name: ["F32", *tensor.shape] for name, tensor in sorted(model.state_dict().items()) if name not in tied}


def internlm2_shapes():
    out = {"model.tok_embeddings.weight": [256, 64], "model.norm.weight": [64], "output.weight": [256, 64]}
    for i in range(SMALL["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out |= {p + "attention.wqkv.weight": [128, 64], p + "attention.wqkv.bias": [128], p + "attention.wo.weight": [64, 64],
                p + "attention.wo.bias": [64], p + "feed_forward.w1.weight": [128, 64], p + "feed_forward.w3.weight": [128, 64],
                p + "feed_forward.w2.weight": [64, 128], p + "attention_norm.weight": [64], p + "ffn_norm.weight": [64]}
    return {name: ["F32", *shape] for name, shape in sorted(out.items())}


def mimo_shapes():
    config = transformers.Qwen2Config(**SMALL)
    out = shapes_of(transformers.Qwen2ForCausalLM(config))
    for name, shape in list(out.items()):  # the layer of multi-token prediction, which the class leaves out
        if name.startswith("model.layers.0.") and "mlp" in name:
            out[name.replace("model.layers.0.", "model.mtp_layers.0.")] = shape
    return dict(sorted(out.items()))


def write(name):
    folder = os.path.join(rebuild_tiny.TINY, name)
    os.makedirs(folder, exist_ok=True)
    if name in CONFIGS:
        config = CONFIGS[name]()
        config.architectures = [transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__]
        config.dtype = "float32"
        shapes = shapes_of(transformers.AutoModelForCausalLM.from_config(config))
        text = json.dumps(config.to_dict(), indent=2, sort_keys=True)
    else:
        shapes = internlm2_shapes() if name == "internlm2" else mimo_shapes()
        text = json.dumps(RENAMED[name], indent=2, sort_keys=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps({"_from_model_config": True, **IDS, "transformers_version": transformers.__version__}, indent=2) + "\n")
    with open(os.path.join(folder, "tensors.json"), "w", encoding="utf-8") as f:
        json.dump({"model.safetensors": shapes}, f, separators=(",", ":"))


def main():
    torch.manual_seed(0)  # only names and shapes are kept
    for name in sys.argv[1:] or [*CONFIGS, *RENAMED]:
        write(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
