#!/usr/bin/env python3
"""Run transformers on the tiny random models and write their golden.safetensors again, or check the committed ones.

Made with torch 2.15.0 and transformers 5.24.0, one thread, f32, eager attention. The weights are rebuilt from their
names (tools/rebuild_tiny.py); config.json and tensors.json beside the goldens describe each model.
"""
import argparse
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


def input_ids(vocab):
    """i64 [2, 12] in [3, vocab): the same for every model, from the stream named input:ids."""
    raw = (rebuild_tiny.bits("input:ids", 24) >> np.uint64(33)).astype(np.int64)
    return raw.reshape(2, 12) % (vocab - 3) + 3


def outputs(name, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        rebuild_tiny.rebuild(name, folder), attn_implementation="eager", dtype=torch.float32).eval()
    ids = torch.from_numpy(input_ids(model.config.vocab_size))
    logits = model(input_ids=ids).logits.numpy()
    row = ids[:1]
    for _ in range(N_GREEDY):  # no cache: each step is a whole forward
        row = torch.cat([row, model(input_ids=row).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return {"in.input_ids": ids.numpy(), "out.greedy": row.numpy().astype(np.float32), "out.logits": logits}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the files (default: compare with the committed ones)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in rebuild_tiny.known():
            got, path = outputs(name, folder), os.path.join(rebuild_tiny.TINY, name, "golden.safetensors")
            if args.write:
                rebuild_tiny.write_safetensors(path, got)
                continue
            want = rebuild_tiny.read_safetensors(path)
            off = float(np.abs(got["out.logits"] - want["out.logits"]).max())
            good = off < 2e-6 and np.array_equal(got["out.greedy"], want["out.greedy"]) and np.array_equal(got["in.input_ids"], want["in.input_ids"])
            bad += not good
            print(f"{name}: largest difference {off:.1e} {'ok' if good else 'DIFFERS'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
