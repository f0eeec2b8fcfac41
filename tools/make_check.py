#!/usr/bin/env python3
"""Goldens of a model for `cyb-llm check MODEL --against FILE`, made by transformers from the original checkpoint.

usage: make_check.py FOLDER [-o FOLDER/check_goldens.json] [--gguf FILE] [--texts N] [--seed S] [--no-logits]

FOLDER is a Hugging Face folder. --gguf takes weights and tokenizer from a GGUF file inside of FOLDER instead, as transformers dequantises
them. The file holds N texts with their ids and what the ids decode to, renderings of conversations, the stop ids of generation_config.json,
logits of some prompts (the 64 largest of a position and 64 others) and greedy answers. Texts come from a seed: the same each time."""
import argparse
import json
import pathlib
import random
import sys

import torch
import transformers

SCRIPTS = [(97, 122), (65, 90), (48, 57), (32, 47), (0xA1, 0x17F), (0x370, 0x3FF), (0x400, 0x45F), (0x5D0, 0x5EA), (0x620, 0x64A), (0x905, 0x939), (0xE01, 0xE30),
           (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2190, 0x22FF), (0x3041, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F), (0x300, 0x36F), (0xFF01, 0xFF5E),
           (1, 31), (0x20000, 0x2A6DF), (0x1D400, 0x1D7FF), (0xE000, 0xE0FF), (0x1F1E6, 0x1F1FF)]
WORDS = ["the", "quick", " brown", "Fox", "'s", "12", "345", "6789", ".", ", ", "\n", "\n\n", "  ", "\t", "_", "é", "über", "x=1;", "=>", "http", "e\u0301", "½", "（"]
FIXED = ["", " ", "Hello, world!", "3333+777", "1234567", "0001", "4 ½ months", "a  b   c    d", "\n\n\n", "漢字とかな交じり文", "👨‍👩‍👧‍👦 👍🏽 🇩🇪", "def f(x):\n    return x ** 2\n",
         "it's I'm WE'VE don’t", "http://example.com/a?b=c&d=%20#e", "<code>x</code>", " " * 27, "A" * 200, "\u00a0\u2003\u3000"]
PROMPTS = ["The capital of France is", "def fibonacci(n):\n    ", "1, 2, 3, 4,"]


def message(role, content):
    return {"role": role, "content": content}


TOOL = {"type": "function", "function": {"name": "weather", "description": "Weather of a city", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
TALKS = [[message("user", "Hi")], [message("system", "Be brief."), message("user", "What is 2 + 2?")], [message("user", "One"), message("assistant", "Two"), message("user", "Three")],
         [message("system", ""), message("user", ""), message("assistant", ""), message("user", "  spaces \n")], [message("user", "né 漢字 😀 <|im_end|></s><eos>")],
         [message("user", "a"), message("user", "b")]]


def make_texts(n, seed, specials):
    r = random.Random(seed)
    out = list(FIXED) + [f"a {s} b{s}c" for s in specials[:40]]
    while len(out) < n:
        text = ""
        for _ in range(r.randrange(1, 9)):
            kind = r.randrange(10)
            if kind < 4:
                first, last = r.choice(SCRIPTS)
                text += "".join(chr(r.randint(first, last)) for _ in range(r.randrange(1, 7)))
            elif kind < 9 or not specials:
                text += "".join(r.choice(WORDS) for _ in range(r.randrange(1, 5)))
            else:
                text += r.choice(specials)
        out.append(text)
    return out[:n]


def make_renderings(tokenizer):
    if not tokenizer.chat_template:
        return []
    out = []
    for talk in TALKS:
        for prompt in (True, False):
            out.append({"messages": talk, "add_generation_prompt": prompt})
    out.append({"messages": TALKS[0], "tools": [TOOL], "add_generation_prompt": True})
    for one in out:
        try:
            one["text"] = tokenizer.apply_chat_template(one["messages"], tools=one.get("tools"), tokenize=False, add_generation_prompt=one["add_generation_prompt"])
        except Exception as error:  # the template's own refusal is part of the golden
            one["error"] = str(error)
    return out


def some_ids(tokenizer, model, text):
    if tokenizer is not None:
        return tokenizer(text)["input_ids"]
    return [(7 + 13 * i + len(text)) % model.config.vocab_size for i in range(8)]


def make_logits(model, tokenizer):
    out, greedy = [], []
    with torch.no_grad():
        for prompt in PROMPTS:
            ids = some_ids(tokenizer, model, prompt)
            logits = model(torch.tensor([ids])).logits[0].double()
            rows = []
            for position in (len(ids) - 1, len(ids) // 2):
                row = logits[position]
                top = row.topk(min(64, len(row))).indices.tolist()
                others = list(range(0, len(row), max(1, len(row) // 64)))
                keep = sorted(set(top) | set(others))
                rows.append({"position": position, "ids": keep, "values": [row[i].item() for i in keep], "logsumexp": row.logsumexp(0).item()})
            out.append({"ids": ids, "rows": rows})
            answer = list(ids)
            for _ in range(12):
                answer.append(int(model(torch.tensor([answer])).logits[0, -1].argmax()))
            greedy.append({"prompt": ids, "ids": answer[len(ids):]})
    return out, greedy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-o", "--output")
    parser.add_argument("--gguf")
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-logits", action="store_true")
    args = parser.parse_args()
    folder = pathlib.Path(args.folder)
    more = {"gguf_file": args.gguf} if args.gguf else {}
    out = {"format": 1, "made_with": {"transformers": transformers.__version__, "torch": torch.__version__}, "source": args.gguf or folder.name}
    tokenizer = None
    if args.gguf or any((folder / name).exists() for name in ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")):
        # tokenizer.json as it is: some classes put steps of their own in the place of the file's.
        as_written = not args.gguf and (folder / "tokenizer.json").exists()
        kind = transformers.PreTrainedTokenizerFast if as_written else transformers.AutoTokenizer
        tokenizer = kind.from_pretrained(folder, **more)
        specials = [t for t in tokenizer.get_added_vocab() if t]
        texts = make_texts(args.texts, args.seed, specials)
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        out.update(texts=texts, ids=ids, decoded=[tokenizer.decode(i, clean_up_tokenization_spaces=False) for i in ids], renderings=make_renderings(tokenizer))
    if not args.no_logits:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **more).eval()
        out["logits"], out["greedy"] = make_logits(model, tokenizer)
        out["block_weights"] = bool(args.gguf)
    config = folder / "generation_config.json"
    if config.exists():
        eos = json.loads(config.read_text()).get("eos_token_id")
        out["stop_ids"] = eos if isinstance(eos, list) else [] if eos is None else [eos]
    path = pathlib.Path(args.output) if args.output else folder / "check_goldens.json"
    path.write_text(json.dumps(out, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path}: {len(out.get('texts', []))} texts, {len(out.get('renderings', []))} renderings, {len(out.get('logits', []))} prompts with logits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
