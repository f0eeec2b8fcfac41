#!/usr/bin/env python3
"""Make small tokenizers of every kind and what the `tokenizers` package does with them: tests/golden/tokenizer/kinds.

NAME.json is a tokenizer.json, NAME.ids.json a list of {text, ids, ids_special, decoded?}. With --random N --out DIR it writes N more
texts and their ids to DIR instead, for a comparison that is too long to commit. Made with tokenizers 0.23.3, sentencepiece 0.2.3.
"""
import argparse
import base64
import io
import json
import os
import random
import sys
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sentencepiece
import tokenizer as golden
from sentencepiece import sentencepiece_model_pb2 as sp_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = os.path.join(golden.OUT, "kinds")
K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UP, LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UP}*{LOW}+{K}?|[^\r\n\p{{L}}\p{{N}}]?{UP}+{LOW}*{K}?|\p{{N}}{{1,3}}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CORPUS = open(golden.CORPUS, encoding="utf-8").read().splitlines()
BYTES = pre_tokenizers.ByteLevel.alphabet()
TEMPLATE = dict(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1")


def bpe(pre, normalizer=None, decoder=None, size=600, special=("<|end|>",), model=None, **trainer):
    tok = Tokenizer(model or models.BPE())
    tok.normalizer, tok.pre_tokenizer, tok.decoder = normalizer, pre, decoder
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False, **trainer))
    return tok


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(*steps, prefix=False, regex=False, **more):
    pre = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)])
    return bpe(pre, decoder=decoders.ByteLevel(), initial_alphabet=BYTES, **more)


def make_bert():
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    tok.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=700, show_progress=False,
                            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tok.post_processor = processors.TemplateProcessing(**TEMPLATE, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tok.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    return tok


def make_word_level():
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(CORPUS, trainers.WordLevelTrainer(vocab_size=500, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tok.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tok


def sentence_piece(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=600, model_type="unigram",
                                             hard_vocab_limit=False, num_threads=1, minloglevel=2, **options)
    proto = sp_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto


def make_unigram(bytes_too=False):
    proto = sentence_piece(byte_fallback=bytes_too, normalization_rule_name="nmt_nfkc")
    vocab = [(p.piece, p.score) for p in proto.pieces]
    tok = Tokenizer(models.Unigram(vocab, unk_id=proto.trainer_spec.unk_id, byte_fallback=bytes_too))
    charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tok.normalizer = normalizers.Sequence([charsmap, normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tok.decoder = decoders.Metaspace(prepend_scheme="always")
    tok.add_special_tokens(["<s>", "</s>"])
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    return tok


def make_xlm():
    tok = make_unigram()
    tok.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first", split=False)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tok


def make_clip():
    normal = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    model = models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False)
    tok = bpe(pre, normal, decoders.Sequence([decoders.ByteLevel()]), special=("<|startoftext|>", "<|endoftext|>"), model=model, initial_alphabet=BYTES,
              end_of_word_suffix="</w>")
    tok.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    return tok


def make_chars():
    """Characters, ends of words, an unknown token that is fused."""
    model = models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True)
    return bpe(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]), normalizers.NFKD(), decoders.BPEDecoder(),
               special=("<unk>",), model=model, end_of_word_suffix="</w>", limit_alphabet=60)


def make_roberta():
    tok = byte_level(prefix=True, regex=True, special=("<s>", "<pad>", "</s>", "<unk>"))
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tok


def make_frame():
    tok = byte_level(split(golden.QWEN2))
    tok.add_special_tokens(["<a>", "<b>"])
    ids = [(t, tok.token_to_id(t)) for t in ("<a>", "<b>")]
    tok.post_processor = processors.TemplateProcessing(single="<a> <b> $A <b> <a>", pair="$A $B", special_tokens=ids)
    return tok


def make_added():
    tok = golden.make_added()
    return tok


KINDS = {
    "bert": make_bert,
    "wordlevel": make_word_level,
    "unigram": make_unigram,
    "unigram_bytes": lambda: make_unigram(True),
    "xlm": make_xlm,
    "clip": make_clip,
    "chars": make_chars,
    "roberta": make_roberta,
    "frame": make_frame,
    "added": make_added,
    "o200k": lambda: byte_level(split(O200K)),
    "falcon": lambda: bpe(pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
                          pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")]), decoder=decoders.ByteLevel(), initial_alphabet=BYTES),
    "deepseek": lambda: byte_level(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), pre_tokenizers.Digits(True)),
    "tiny_aya": lambda: byte_level(split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(O200K)),
    "kimi": lambda: byte_level(split(r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
                                     + K + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")),
    "bailing": lambda: byte_level(split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}+| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")),
    "bloom": lambda: byte_level(split(r" ?[^\s.,!?…。，、।۔،]+", "removed", True)),
    "previous": lambda: byte_level(split(r"\w\b", "merged_with_previous"), split(r"\s", "merged_with_next"), split(r"[^\w]|\d", "contiguous")),
    "delimiter": lambda: byte_level(pre_tokenizers.CharDelimiterSplit("e"), pre_tokenizers.FixedLength(7), pre_tokenizers.Split(" ", "merged_with_next")),
}
JAIS2 = golden.LLAMA3.replace(r"\s+(?!\S)|\s+", "|".join(rf"\s{{{1 << n}}}(?!\S)" for n in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}")


def make_scripts():
    """XLNet's order, and a decoder with expressions."""
    tok = bpe(pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.WhitespaceSplit()]), normalizers.NFC(), special=("<unk>",),
              model=models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), continuing_subword_prefix="##", limit_alphabet=300)
    tok.decoder = decoders.Sequence([decoders.WordPiece(cleanup=False), decoders.Replace(Regex("[ao]+"), "_"), decoders.Replace("e", "E")])
    return tok


def make_ctc():
    """Letters with a word delimiter, as of speech models; ids repeat."""
    letters = sorted(set("".join(CORPUS).replace(" ", "")))[:80]
    vocab = {t: i for i, t in enumerate(["<pad>", "<unk>", "|", *letters])}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tok.normalizer = normalizers.Replace(" ", "|")
    tok.pre_tokenizer = pre_tokenizers.FixedLength(1)
    tok.decoder = decoders.CTC(pad_token="<pad>", word_delimiter_token="|", cleanup=True)
    tok.add_special_tokens(["<pad>"])
    return tok


KINDS |= {
    "scripts": make_scripts,
    "ctc": make_ctc,
    "superbpe": lambda: byte_level(split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))")),
    "jais2": lambda: byte_level(split(JAIS2)),
}
ODD = "".join(chr(c) for c in [*range(0x20), 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x200D, 0x2028, 0x202E, 0x3000, 0xFEFF, 0xFFFD])
# All that are assigned. The package's own tables are of several versions; ours follow them (tools/tokenizer_tables.py).
EVERY = [chr(c) for c in [*range(0x20, 0xD800), *range(0xE000, 0xFFFE), *range(0x10000, 0x18D09), *range(0x1D000, 0x1FBFB), *range(0x20000, 0x20100)]
         if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
EVERY += [chr(c) for c in (*range(0x2EBF0, 0x2EC00), *range(0x31350, 0x31360), *range(0x1E4D0, 0x1E4FA), *range(0x10D40, 0x10D66))]  # Unicode 15 and 16


def wild_texts(markers, count, seed):
    rng = random.Random(seed)
    emoji = ["😀", "👨‍👩‍👧‍👦", "👍🏽", "🇫🇷🇯🇵", "❤️", "🤷🏾‍♀️"]
    words = [w for line in CORPUS[:400] for w in line.split()]
    out = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 8)):
            pick = rng.random()
            if pick < 0.3:
                parts.append(rng.choice(words))
            elif pick < 0.45:
                parts.append("".join(rng.choice(EVERY) for _ in range(rng.randint(1, 5))))
            elif pick < 0.55:
                parts.append("".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(rng.randint(1, 4))))
            elif pick < 0.62:
                parts.append(rng.choice(ODD) * rng.randint(1, 3))
            elif pick < 0.7:
                parts.append(rng.choice(emoji))
            elif pick < 0.8:
                parts.append(str(rng.randint(0, 10 ** rng.randint(1, 9))))
            elif pick < 0.88:
                parts.append(rng.choice(markers))
            else:
                parts.append("".join(rng.choice("'.,!?-_/\\()[]{}<>|@#$%^&*+=~`\"") for _ in range(rng.randint(1, 4))))
            if rng.random() < 0.6:
                parts.append(" " * rng.randint(1, 2))
        out.append("".join(parts))
    return out


def rows_of(tok, texts, decode):
    rows = []
    for text in texts:
        ids = tok.encode(text, add_special_tokens=False).ids
        row = {"text": text, "ids": ids, "ids_special": tok.encode(text, add_special_tokens=True).ids}
        decoded = tok.decode(ids, skip_special_tokens=False)
        if decode and "\ufffd" not in decoded:
            row["decoded"] = decoded
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--out", default=OUT)
    parser.add_argument("--only", nargs="*", default=list(KINDS))
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for name in args.only:
        tok = KINDS[name]()
        data = json.loads(tok.to_str())
        path = os.path.join(args.out, name + ".json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        tok = Tokenizer.from_file(path)
        markers = [t["content"] for t in data["added_tokens"]]
        texts = wild_texts(markers, args.random, 7) if args.random else wild_texts(markers, 60, 3) + golden.fixed_texts(markers)
        # <0x41> in a text is no byte token here, as in sentencepiece; the package makes one of it.
        texts = [t for t in texts if len(t) < 2000 and not (name == "unigram_bytes" and "<0x" in t)]
        rows = rows_of(tok, texts, name != "added")
        with open(os.path.join(args.out, name + ".ids.json"), "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows) + "\n]\n")
        print(f"{name}: {tok.get_vocab_size(with_added_tokens=True)} tokens, {len(rows)} texts", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
