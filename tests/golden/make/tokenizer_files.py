#!/usr/bin/env python3
"""Make small sentencepiece models and tiktoken rank files and what their own packages do with them: tests/golden/tokenizer/files.

NAME.model or NAME.tiktoken and NAME.ids.json, a list of {text, ids, decoded?}. With --random N --out DIR it writes N more texts to DIR
instead; --real FILE... compares given files (a rank file is named after its encoding). Made with sentencepiece 0.2.3, tiktoken 0.12.0.
"""
import argparse
import base64
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sentencepiece
import tokenizer as golden
import tokenizer_kinds as kinds
from sentencepiece import sentencepiece_model_pb2 as sp_pb2

OUT = os.path.join(golden.OUT, "files")
R50K = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
LLAMA3_SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
                   "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|image|>"]
LLAMA3_SPECIALS += [f"<|reserved_special_token_{2 + i}|>" for i in range(256 - len(LLAMA3_SPECIALS))]
# name: expression, fixed ids or the tokens that follow the ranks
ENCODINGS = {
    "r50k_base": (R50K, {"<|endoftext|>": 50256}),
    "p50k_base": (R50K, {"<|endoftext|>": 50256}),
    "cl100k_base": (CL100K, {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
    "o200k_base": (kinds.O200K, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    "qwen": (golden.QWEN2, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]),
    "llama3": (golden.LLAMA3, LLAMA3_SPECIALS),
}
USER = ["<code>", "  ", "\t\t", "[x]", "▁the▁"]
# name: options of the trainer
SENTENCEPIECE = {
    "unigram": dict(model_type="unigram", normalization_rule_name="nmt_nfkc", user_defined_symbols=USER),
    "unigram_bytes": dict(model_type="unigram", byte_fallback=True, normalization_rule_tsv="own"),
    "unigram_plain": dict(model_type="unigram", normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False),
    "bpe": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False),
    "bpe_user": dict(model_type="bpe", normalization_rule_tsv="own", user_defined_symbols=USER),
    "bpe_runs": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False, add_dummy_prefix=False,
                     user_defined_symbols=["<code>", "▁▁", "▁▁▁", "\n\n"]),
}

# A small character map: the whole of NFKC in every model would be 240 kB each.
RULES = {chr(0xFF21 + i): chr(0x61 + i) for i in range(26)} | {chr(0x41 + i): chr(0x61 + i) for i in range(26)} | {
    "\u3000": " ", "\u00a0": " ", "\t": " ", "\u00bd": "1/2", "\ufb01": "fi", "e\u0301": "\u00e9", "\uff76\uff9e": "\u30ac", "\uff76": "\u30ab", "\u200b": "",
    "\u2026": " ... ", "12": "twelve", "123": "onetwothree"}


def sp_model(options):
    model = io.BytesIO()
    if options.get("normalization_rule_tsv"):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".tsv", delete=False) as f:
            f.writelines(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n" for a, b in RULES.items())
        options = {**options, "normalization_rule_tsv": f.name}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(kinds.CORPUS), model_writer=model, vocab_size=600, hard_vocab_limit=False, num_threads=1,
                                             minloglevel=2, **options)
    proto = sp_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    proto.trainer_spec.ClearField("input")
    proto.normalizer_spec.ClearField("normalization_rule_tsv")  # the path of a file that is gone
    return proto.SerializeToString()


def rank_file():
    """The byte-level BPE of the corpus as ranks: 256 bytes, then the merges in their order."""
    tok = kinds.byte_level(kinds.split(golden.QWEN2), size=900, special=())
    alphabet = {c: b for b, c in zip(bytes_in_order(), chars_in_order())}
    texts = sorted(tok.get_vocab().items(), key=lambda item: item[1])
    tokens = [bytes(alphabet[c] for c in text) for text, _ in texts]
    tokens = sorted((t for t in tokens if len(t) == 1)) + [t for t in tokens if len(t) > 1]
    return "".join(f"{base64.b64encode(t).decode()} {rank}\n" for rank, t in enumerate(tokens)).encode()


def bytes_in_order():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return keep + [b for b in range(256) if b not in keep]


def chars_in_order():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) for b in keep] + [chr(0x100 + i) for i in range(256 - len(keep))]


def tiktoken_of(name, data):
    import tiktoken
    ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in data.splitlines() if line)}
    pattern, specials = ENCODINGS[name]
    if isinstance(specials, list):
        specials = {text: len(ranks) + i for i, text in enumerate(specials)}
    return tiktoken.Encoding(name=name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)


def rows_of(name, data, texts, is_ranks):
    rows = []
    if is_ranks:
        import unicodedata
        enc = tiktoken_of(name, data)
        for text in texts:
            if name == "qwen":  # its tokenizer class normalises first
                text = unicodedata.normalize("NFC", text)
            ids = enc.encode(text, allowed_special="all", disallowed_special=())
            rows.append({"text": text, "ids": ids, "decoded": enc.decode(ids)})
        return rows
    sp = sentencepiece.SentencePieceProcessor(model_proto=data)
    for text in texts:
        ids = sp.encode(text)
        row = {"text": text, "ids": ids}
        decoded = sp.decode(ids)
        if sp.unk_id() not in ids and "\ufffd" not in decoded:
            row["decoded"] = decoded
        rows.append(row)
    return rows


def write(folder, name, ending, data, rows, copy=True):
    if copy:
        with open(os.path.join(folder, name + ending), "wb") as f:
            f.write(data)
    with open(os.path.join(folder, name + ".ids.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows) + "\n]\n")
    print(f"{name}: {len(rows)} texts", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--out", default=OUT)
    parser.add_argument("--real", nargs="*", default=[])
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)

    def texts(markers):
        found = kinds.wild_texts(markers, args.random, 11) if args.random else kinds.wild_texts(markers, 60, 5) + golden.fixed_texts(markers)
        return [t for t in found if len(t) < 2000 and "\0" not in t]

    for path in args.real:
        with open(path, "rb") as f:
            data = f.read()
        name, ending = os.path.splitext(os.path.basename(path))
        if ending == ".tiktoken":
            write(args.out, name, ending, data, rows_of(name, data, texts(["<|endoftext|>"]), True))
        else:
            write(args.out, name, ".model", data, rows_of(name, data, texts(["</s>"]), False))
    if args.real:
        return 0
    for name, options in SENTENCEPIECE.items():
        data = sp_model(options)
        write(args.out, name, ".model", data, rows_of(name, data, texts(["<s>", "<unk>", "<0x41>", *USER]), False))
    ranks = rank_file()
    for name in ("cl100k_base", "o200k_base", "qwen", "llama3"):
        specials = [s for s in list(ENCODINGS[name][1])[:2]]
        # One rank file serves all encodings; it is written once.
        write(args.out, name, ".tiktoken", ranks, rows_of(name, ranks, texts(specials), True), copy=name == "cl100k_base" or bool(args.random))
    return 0


if __name__ == "__main__":
    sys.exit(main())
