#!/usr/bin/env python3
"""Make what transformers' tokenizer classes do with vocab.json and merges.txt alone: tests/golden/tokenizer/merges.

One byte-level BPE (vocab.json, merges.txt), and for each class NAME.json: {files: {name: content}, cases: [{text, ids}]}, where
`files` stand beside the two. Made with transformers 5.24.0, tokenizers 0.23.3.
"""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tokenizer as golden
import tokenizer_kinds as kinds
import transformers

OUT = os.path.join(golden.OUT, "merges")


def flags(text, special, **kw):
    return {"content": text, "lstrip": False, "normalized": not special, "rstrip": False, "single_word": False, "special": special, **kw}


def rows(size):
    """name -> class, the files beside vocab.json and merges.txt."""
    spaces = {" " * n: size + 8 - n for n in range(8, 1, -1)} | {"\t" * n: size + 15 - n for n in range(8, 1, -1)}
    return {
        "gpt2_bare": ("GPT2Tokenizer", {"config.json": {"model_type": "gpt2"}}),
        "gpt2_space": ("GPT2Tokenizer", {"tokenizer_config.json": {
            "tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True, "add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>",
            "unk_token": {"__type": "AddedToken", **flags("<unk>", True)}, "pad_token": None}, "special_tokens_map.json": {"additional_special_tokens": ["<|a|>", "<|b|>"]}}),
        "qwen2": ("Qwen2Tokenizer", {"tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "bos_token": None,
            "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
            "added_tokens_decoder": {str(size): flags("<|im_start|>", True), str(size + 1): flags("<|im_end|>", True),
                                     str(size + 2): flags("<tool_call>", False), str(size + 3): flags("<wide>", False, lstrip=True, rstrip=True)}}}),
        "codegen": ("CodeGenTokenizer", {"tokenizer_config.json": {"tokenizer_class": "CodeGenTokenizer", "eos_token": "<|endoftext|>"},
                                         "added_tokens.json": spaces}),
    }  # fmt: skip


def main():
    os.makedirs(OUT, exist_ok=True)
    tok = kinds.byte_level(kinds.split(golden.QWEN2), size=640, special=("<|endoftext|>",))
    with tempfile.TemporaryDirectory() as folder:
        tok.model.save(folder)
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(os.path.join(folder, name), os.path.join(OUT, name))
    size = tok.get_vocab_size()
    for name, (kind, files) in rows(size).items():
        with tempfile.TemporaryDirectory() as folder:
            for part in ("vocab.json", "merges.txt"):
                shutil.copy(os.path.join(OUT, part), folder)
            for part, content in files.items():
                with open(os.path.join(folder, part), "w", encoding="utf-8") as f:
                    json.dump(content, f)
            made = getattr(transformers, kind).from_pretrained(folder)
            markers = [t.content for t in made.added_tokens_decoder.values()]
            texts = [t for t in kinds.wild_texts(markers, 60, 5) + golden.fixed_texts(markers) if len(t) < 1200 and "\0" not in t]
            cases = [{"text": t, "ids": made(t, add_special_tokens=False)["input_ids"]} for t in texts]
            added = {str(i): t.content for i, t in made.added_tokens_decoder.items()}
            with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as f:
                f.write(json.dumps({"files": files, "added": added, "eos": made.eos_token_id, "bos": made.bos_token_id})[:-1] + ', "cases": [\n')
                f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")
            print(name, len(cases), added)
    return 0


if __name__ == "__main__":
    sys.exit(main())
