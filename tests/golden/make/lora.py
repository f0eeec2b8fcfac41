#!/usr/bin/env python3
"""LoRA adapters for tiny models and what PEFT computes with them (tests/golden/lora).

usage: LLAMA_CPP=/path/to/llama.cpp lora.py [--write]   (needs torch, transformers, peft, gguf)

Made with peft 0.21.2, torch 2.15.0 and transformers 5.24.0, f32, eager attention. Bases: those of tests/golden/tiny and, for
the gguf_ ones, of tests/golden/gguf_tiny. A and B are functions of their names (tools/rebuild_tiny.py), rounded to the dtype
that the adapter is stored in.

NAME/: the adapter as PEFT saves it (adapter_config.json, adapter_model.safetensors); golden.safetensors: in.input_ids [1, 12],
out.logits f32 [1, 12, V] of the model with the adapter, out.plain without it, and where head and embedding are apart
out.merged, of the model that merge_and_unload() makes. gguf_NAME/adapter.gguf: the same adapter by llama.cpp's
convert_lora_to_gguf.py (gguf_gpt2: turned, which must be refused; square.gguf has its square matrices alone). llama3_sum/: the logits of llama3 (0.7) and llama3_b (-0.3) together, by add_weighted_adapter ("cat").
Without --write the committed files are compared with new ones.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf_tiny
import peft
import rebuild_tiny
import tiny
import torch
from safetensors.torch import load_file, save_file

OUT = Path(__file__).parent.parent / "lora"
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
GPT2 = ["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"]
# base, LoraConfig, dtype of the file
ADAPTERS = {
    "llama3": ("llama3", dict(r=4, lora_alpha=8, target_modules=LINEAR + ["lm_head", "embed_tokens"], rank_pattern={"q_proj": 6, r"layers\.1\.mlp\.down_proj": 2},
                              alpha_pattern={"k_proj": 3, "model.layers.0.mlp.up_proj": 5}), torch.float32),
    "llama3_b": ("llama3", dict(r=3, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"]), torch.float32),
    "qwen2": ("qwen2", dict(r=5, lora_alpha=7, use_rslora=True, target_modules=LINEAR), torch.bfloat16),
    "gemma2": ("gemma2", dict(r=4, lora_alpha=4, target_modules=LINEAR + ["lm_head", "embed_tokens"]), torch.float32),
    "phi3": ("phi3", dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]), torch.float16),
    "gpt2": ("gpt2", dict(r=4, lora_alpha=8, fan_in_fan_out=True, target_modules=GPT2 + ["wte"]), torch.float32),
    "gguf_llama": ("llama", dict(r=4, lora_alpha=8, target_modules=LINEAR + ["lm_head", "embed_tokens"]), torch.float32),
    "gguf_gpt2": ("gpt2", dict(r=4, lora_alpha=8, fan_in_fan_out=True, target_modules=GPT2), torch.float32),
    "gguf_phi3": ("phi3", dict(r=4, lora_alpha=2, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]), torch.float16),
}


def base_of(name, folder):
    """The model, and for llama.cpp's converter its config."""
    base = ADAPTERS[name][0]
    if name.startswith("gguf_"):
        keys, _, model = gguf_tiny.model_of(base)
        return model, keys
    return tiny.load(base, folder), None


def values(name, shape, dtype):
    fan = 32.0 if "lora_A" in name or "embedding_A" in name else 2.0
    value = rebuild_tiny.uniform("lora:" + name, tuple(shape)) / np.float32(np.sqrt(fan))
    return torch.from_numpy(value).to(dtype).to(torch.float32)


def adapted(name, model):
    _, config, dtype = ADAPTERS[name]
    out = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **config)).eval()
    fill(out, name, dtype)
    return out


def fill(model, name, dtype, adapter="default"):
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if f".{adapter}" in key and "lora_" in key:
                plain = f"{name}:{key}".replace(f".{adapter}", "")
                parameter.copy_(values(plain, parameter.shape, dtype))


def logits(model, vocab):
    ids = torch.from_numpy(tiny.input_ids(vocab)[:1].copy())
    with torch.no_grad():
        return ids, model(input_ids=ids).logits.to(torch.float32).contiguous()


def save_adapter(model, name, folder):
    model.save_pretrained(folder, safe_serialization=True, save_embedding_layers=False)
    path = Path(folder) / "adapter_model.safetensors"
    save_file({k: v.to(ADAPTERS[name][2]).contiguous() for k, v in load_file(path).items()}, path, {"format": "pt"})
    config = json.loads((Path(folder) / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "tiny"
    config["target_modules"] = sorted(config["target_modules"])
    (Path(folder) / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    (Path(folder) / "README.md").unlink(missing_ok=True)


def to_gguf(folder, keys):
    with tempfile.TemporaryDirectory() as base:
        (Path(base) / "config.json").write_text(json.dumps(keys))
        subprocess.run([sys.executable, os.path.join(gguf_tiny.LLAMA_CPP, "convert_lora_to_gguf.py"), "--base", base, "--outtype", "f32", "--outfile",
                        str(Path(folder) / "adapter.gguf"), str(folder)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def square(folder):
    """adapter.gguf with its square matrices alone."""
    reader = gguf.GGUFReader(folder / "adapter.gguf")
    writer = gguf.GGUFWriter(folder / "square.gguf", "gpt2")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for tensor in reader.tensors:
        if ".attn_output." in tensor.name:
            writer.add_tensor(tensor.name, np.array(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(name, out):
    with tempfile.TemporaryDirectory() as folder:
        base, keys = base_of(name, folder)
        vocab = base.config.vocab_size
        tied = base.config.tie_word_embeddings
        _, plain = logits(base, vocab)
        model = adapted(name, base)
        ids, with_adapter = logits(model, vocab)
        save_adapter(model, name, out)
        golden = {"in.input_ids": ids, "out.logits": with_adapter, "out.plain": plain}
        if not tied:
            golden["out.merged"] = logits(model.merge_and_unload(), vocab)[1]
            apart = float((golden["out.merged"] - with_adapter).abs().max())
            if apart > 1e-4:
                raise RuntimeError(f"{name}: merged and side branch differ by {apart}")
        save_file(golden, str(Path(out) / "golden.safetensors"))
        if keys is not None:
            to_gguf(out, keys)
        if name == "gguf_gpt2":
            square(Path(out))
        print(f"{name}: the adapter moves logits by {float((with_adapter - plain).abs().max()):.3f} of {float(plain.abs().max()):.3f}")


def make_sum(out):
    with tempfile.TemporaryDirectory() as folder:
        base, _ = base_of("llama3", folder)
        vocab = base.config.vocab_size
        model = adapted("llama3", base)
        model.add_adapter("b", peft.LoraConfig(task_type="CAUSAL_LM", **ADAPTERS["llama3_b"][1]))
        fill(model, "llama3_b", torch.float32, "b")
        merged = {n: t.clone() for n, t in model.get_base_model().state_dict().items() if "lora_" not in n}
        model.add_weighted_adapter(["default", "b"], [0.7, -0.3], "sum", combination_type="cat")
        model.set_adapter("sum")
        ids, both = logits(model.eval(), vocab)
        with torch.no_grad():  # and by hand
            for module_name, module in model.named_modules():
                if not hasattr(module, "lora_A") or not hasattr(module, "get_delta_weight"):
                    continue
                key = module_name.removeprefix("base_model.model.") + ".base_layer.weight"
                for adapter, weight in (("default", 0.7), ("b", -0.3)):
                    if adapter in module.lora_A or adapter in module.lora_embedding_A:
                        merged[key] += weight * module.get_delta_weight(adapter)
        plain, _ = base_of("llama3", folder)
        plain.load_state_dict({n.replace(".base_layer", ""): t for n, t in merged.items()})
        apart = float((logits(plain, vocab)[1] - both).abs().max())
        if apart > 1e-4:
            raise RuntimeError(f"sum: cat and the sum of products differ by {apart}")
        Path(out).mkdir(exist_ok=True)
        save_file({"in.input_ids": ids, "out.logits": both}, str(Path(out) / "golden.safetensors"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        root = OUT if args.write else Path(scratch)
        for name in ADAPTERS:
            (root / name).mkdir(parents=True, exist_ok=True)
            make(name, root / name)
        make_sum(root / "llama3_sum")
        if args.write:
            return 0
        bad = 0
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            other = OUT / path.relative_to(root)
            if path.name == "golden.safetensors":
                a, b = load_file(path), load_file(other)
                same = a.keys() == b.keys() and all(torch.allclose(a[k].double(), b[k].double(), atol=1e-5, rtol=0) for k in a)
            else:
                same = path.read_bytes() == other.read_bytes()
            if not same:
                print(f"{other} differs")
                bad = 1
        return bad


if __name__ == "__main__":
    sys.exit(main())
