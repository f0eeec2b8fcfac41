#!/usr/bin/env python3
"""Make the small tokenizers of tests/golden/tokenizer and what the `tokenizers` package does with them.

For each NAME: NAME.json (Hugging Face tokenizer.json), NAME.ids.json (texts and ids) and, where GGUF can say the same,
NAME.vocab.gguf. Made with tokenizers 0.23.3, sentencepiece 0.2.3, gguf 0.19.0. The vocabularies are trained on
tests/golden/text/own_text.txt. The README beside the files says what each is for.
"""
import argparse
import io
import json
import os
import random
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
OUT = os.path.join(GOLDEN, "tokenizer")
CORPUS = os.path.join(GOLDEN, "text", "own_text.txt")

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")


def special(text, **kw):
    return AddedToken(text, special=True, normalized=False, **kw)


def plain(text, **kw):
    return AddedToken(text, special=False, **{"normalized": False, **kw})


def first_with(bos):
    """Post-processor that puts one token in front when special tokens are asked for."""
    text, index = bos
    return processors.TemplateProcessing(single=f"{text} $A", pair=f"{text} $A {text}:1 $B:1",
                                         special_tokens=[(text, index)])


# ---------------------------------------------------------------- byte-level BPE

def byte_level(pre, normalizer=None, vocab_size=1200, specials=()):
    """A byte-level BPE trained on the corpus; the 256 byte letters are always in."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer, tok.decoder = pre, decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tok.train([CORPUS], trainer)
    return tok


def make_gpt2():
    tok = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_special_tokens([special("<|endoftext|>")])
    return tok


def make_smollm():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<file_sep>"]
    return byte_level(pre, specials=[special(n) for n in names])


def split_regex(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def make_qwen2():
    tok = byte_level(split_regex(QWEN2), normalizers.NFC())
    tok.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tok.add_special_tokens([special(n) for n in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    tok.add_tokens([plain(n) for n in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    return tok


def make_llama3():
    """ignore_merges: some whole words of the vocabulary cannot be reached by merging and are found all the same."""
    tok = byte_level(split_regex(LLAMA3))
    data = json.loads(tok.to_str())
    vocab = data["model"]["vocab"]
    for word in ("\u0120unreachable", "lighthouse", "\u0120\u00c3\u00a9t\u00c3\u00a9", "3333", "777"):
        vocab.setdefault(word, len(vocab))
    data["model"]["ignore_merges"] = True
    tok = Tokenizer.from_str(json.dumps(data))
    names = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    tok.add_special_tokens([special(n) for n in names])
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        first_with(("<|begin_of_text|>", tok.token_to_id("<|begin_of_text|>")))])
    return tok


def make_added():
    """Every flag that an added token can have, on the smollm pipeline."""
    tok = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.Lowercase(), vocab_size=600)
    tok.add_special_tokens([special("<left>", lstrip=True), special("<right>", rstrip=True),
                            special("<both>", lstrip=True, rstrip=True), special("<|plain|>")])
    tok.add_tokens([plain("word", single_word=True), plain("Upper"), plain("norm", normalized=True),
                    plain("<|longer|>"), plain("<|longer|>>"), plain("é"), plain("  ")])
    return tok


# ---------------------------------------------------------------- SentencePiece BPE

def train_sentencepiece(**kw):
    model = io.BytesIO()
    with open(CORPUS, encoding="utf-8") as f:
        lines = f.read().splitlines()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="bpe", byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,
        character_coverage=0.995, num_threads=1, minloglevel=2, hard_vocab_limit=True, **kw)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def pieces(sp):
    return [(sp.id_to_piece(i), sp.get_score(i)) for i in range(sp.get_piece_size())]


def merges_of(vocab, banned=()):
    """All ways to build each piece from two others, best score first, as transformers' converter makes them."""
    index = {piece: i for i, (piece, _) in enumerate(vocab)}
    rows = []
    for piece, score in vocab:
        if piece in banned:
            continue
        local = [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in index and piece[k:] in index]
        local = [(a, b) for a, b in local if a not in banned and b not in banned]
        rows += [(a, b, score) for a, b in sorted(local, key=lambda p: (index[p[0]], index[p[1]]))]
    return [(a, b) for a, b, _ in sorted(rows, key=lambda r: (r[2], len(r[0]), len(r[1])), reverse=True)]


def spm_tokenizer(vocab, merges):
    model = models.BPE(vocab={p: i for i, (p, _) in enumerate(vocab)}, merges=merges, unk_token="<unk>",
                       fuse_unk=True, byte_fallback=True)
    return Tokenizer(model)


def make_llama2():
    sp = train_sentencepiece(vocab_size=900, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    vocab = pieces(sp)
    banned = {p for i, (p, _) in enumerate(vocab) if sp.is_byte(i) or sp.is_control(i) or sp.is_unknown(i)}
    tok = spm_tokenizer(vocab, merges_of(vocab, banned))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    tok.add_special_tokens([special(n) for n in ("<unk>", "<s>", "</s>")])
    tok.post_processor = first_with(("<s>", 1))
    return tok, vocab, sp


def make_gemma():
    """The shape of Gemma's: runs of newlines, spaces and tabs and HTML tags are pieces, no space is prepended."""
    runs = ["\n" * n for n in range(1, 9)] + ["\u2581" * n for n in range(2, 17)]
    tags = ["<table>", "<td>", "</td>", "<code>", "</code>", "<b>", "</b>", "[multimodal]"] + ["\t" * n for n in range(1, 9)]
    controls = ["<start_of_turn>", "<end_of_turn>", "<unused0>", "<unused1>"]
    # Trained without the runs: sentencepiece would treat them as symbols and never merge across.
    sp = train_sentencepiece(vocab_size=900, pad_id=0, eos_id=1, bos_id=2, unk_id=3, add_dummy_prefix=False)
    trained = pieces(sp)
    heads = [(p, -1000.0) for p in ("<pad>", "<eos>", "<bos>", "<unk>")]
    fixed = heads + [(p, -1000.0) for p in controls[:2] + runs + tags + controls[2:]]
    fixed_names = {p for p, _ in fixed}
    rest = [(p, s) for i, (p, s) in enumerate(trained) if i >= 4 and p not in fixed_names]
    vocab = fixed + rest
    # As in the published file, the merges of the runs come first, longest first.
    run_merges = [(p[:-1], p[-1]) for p in sorted(runs + [t for t in tags if t[0] == "\t"], key=len, reverse=True) if len(p) > 1]
    inner = [(p[:k], p[k:]) for p in sorted(runs, key=len, reverse=True) for k in range(1, len(p)) if len(p) > 1]
    inner += [("\t" * k, "\t" * (n - k)) for n in range(8, 1, -1) for k in range(1, n)]
    banned = {p for p, _ in fixed} | {p for i, (p, _) in enumerate(trained) if sp.is_byte(i)}
    usable = {p for p, _ in rest} - banned
    merges = list(dict.fromkeys(run_merges + inner + [m for m in merges_of(vocab, banned) if m[0] + m[1] in usable]))
    tok = spm_tokenizer(vocab, merges)
    tok.normalizer = normalizers.Replace(" ", "\u2581")
    tok.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens([special(n) for n in ("<pad>", "<eos>", "<bos>", "<unk>", *controls[:2])])
    tok.add_tokens([plain(n) for n in (*runs, *tags, *controls[2:])])
    tok.post_processor = first_with(("<bos>", 2))
    return tok, vocab, {"runs": runs, "tags": tags, "controls": controls}


# ---------------------------------------------------------------- texts

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " \t\n\r", "   ", ".,;:!?'\"()[]{}<>|/\\@#$%^&*-_=+~`",
    "àâçéèêëîïôùûüÿñæœßøåÅŁżź", "абвгдежзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρσςτυφχψω", "漢字仮名交じり文灯台光海守", "ひらがなカタカナー゛゜",
    "한국어등대빛", "\u1112\u1161\u11ab\u1100\u1173\u11af", "البحريتذكر", "שלוםאור", "हिन्दीसमुद्र", "ไทยภาษา", "½¼²³①⑨Ⅷ٣५", "e\u0301a\u0308o\u0302", "😀🎉👍🏽🇫🇷❤️",
    "\u00a0\u2003\u3000\u200b\u2028\u0085", "\u0000\u0001\u0007\u001b\u007f\u00ad\ufeff\ufffd", "\U0001d400\U0001d7d8\U00020000\U000e0041", "'s'tre'll'm'd've'S'LL",
]


def random_texts(markers, count=300):
    rng = random.Random(20311)
    out = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 6)):
            letters = rng.choice(ALPHABETS)
            parts.append("".join(rng.choice(letters) for _ in range(rng.randint(1, 7))))
            if rng.random() < 0.25:
                parts.append(" ")
            if rng.random() < 0.06:
                parts.append(rng.choice(markers))
        out.append("".join(parts))
    return out


def fixed_texts(markers):
    m = markers[0]
    digits = ["3333+777", "1234567", "0001", "7", "12", "123 456", "3.14159", "1,234,567.89", "٣٤٥ १२३ ４５６", "½ ² Ⅷ ①", "v1.0.0-rc2"]
    t03 = ["<s>G", "<|im_start|>user", "a</s> b", "</s>b", "</s> b", "</s>  b", "a <s>b</s> c", " <s>", "<s> ", "<s></s>"]
    t05 = ["a  b and    c", " " * 27, "<code>x</code>", "<code> x </code>", "  <code>", "x   <td>  y</td>\n\n\nz", "\t\ta\t", " \n \n", "a\u2581b", "\u2581\u2581", "\n" * 20, " " * 40]
    t07 = ["A" * 2048, "_" * 2048, " " * 2048, "漢" * 2048, "^" * 2048]
    t09 = ["4 ½ months", "（", "ﬁ", "e\u0301", "\u00e9", "\u1112\u1161\u11ab", "한", "\u212b \u2126", "q\u0323\u0307", "n\u0303o", "\u0344"]
    words = ["", "Hello", "Hello, world!", "Hello world", " Hello", "  Hello  ", "hello\nworld", "hello\r\nworld\r\n\r\n", "\n", "\r\n", "\r", "\n\n \n", "\t\tx",
             "I'm, you're, they've, we'll, he'd, it's, don't", "I'M YOU'RE IT'S", "''s ''''ll", "lighthouse", " lighthouse", " unreachable", " été", "été",
             "The lighthouse had not been lit for nineteen years.", "def f(x):\n    return x ** 2  # square\n", "<html><body>&amp;</body></html>", "a_b__c___d", "C:\\path\\to",
             "user@example.org", "e-mail: x+y=z; 50%", "...", "!!!", "?!?!", "-----", "=====>", "\"quoted\" 'single'", "a" * 40, "ab" * 40]
    scripts = ["Größe Straße ẞ", "naïve café", "Привет, мир!", "Γειά σου Κόσμε", "灯台は動かないが、光は海を渡っていく。", "守灯的人记下每一天的天气。", "등대는 말이 없지만", "البحر يتذكر كل السفن",
               "שלום עולם", "समुद्र हर शाम", "ภาษาไทย", "ქართული", "Tiếng Việt", "İstanbul ıI", "Ǆ ǅ ǆ", "ʰ ˢ ª º", "ـــ", "ᚠᛇᚻ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "𠀀𠀁", "A\u0300\u0301\u0302", "\u0e33", "\u0903\u0300"]
    emoji = ["😀", "👨‍👩‍👧‍👦", "👍🏽", "🇫🇷🇯🇵", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "a😀b 😀 c", "🤷🏾‍♀️!", "☃️ ☕"]
    odd = ["\u0000", "a\u0000b", "\u0001\u0002\u0003", "\u001b[0m", "\u007f", "\u0085x", "\u00a0x\u00a0", "\u2003em\u2003", "\u3000全角\u3000", "\u200bzero\u200b", "\u2028line\u2029para",
           "\ufeffbom", "\ufffd", "\u00ad", "\u200d\u200c", "\u202eRTL\u202c", "\U0010fffd", "\ue000private", "x \u000b y \u000c z", "a\u0301\u0301b", "\u180e", "‘’“”—–…", "€£¥₿", "∑∫√≠≤", "→⇒", "㍿㎏"]
    marked = [m, m + m, f"a{m}b", f"a {m} b", f" {m} ", f"{m}\n", f"\n{m}", m[:-1], m[1:], f"x{m[:3]}{m}", f"{m}'s", f"1{m}2"]
    marked += [f"Hi {x} there{x}" for x in markers]
    marked += ["<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n",
               "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "[INST] Hi [/INST]", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>",
               "<0x41>", "<0x0A>x", "<unk>", "<pad>", "<think>\n\n</think>\n\n", "sword word words word_ word", "Upper upper UPPER", "norm NORM Norm", "<|longer|>>x<|longer|>", "a <left> b <right> c <both> d"]
    return digits + t03 + t05 + t07 + t09 + words + scripts + emoji + odd + marked


def ids_file(tok, markers):
    rows = []
    for text in fixed_texts(markers) + random_texts(markers):
        tok.encode_special_tokens = False
        ids = tok.encode(text, add_special_tokens=False).ids
        row = {"text": text, "ids": ids, "ids_special": tok.encode(text, add_special_tokens=True).ids,
               "decoded": tok.decode(ids, skip_special_tokens=False)}
        tok.encode_special_tokens = True
        inert = tok.encode(text, add_special_tokens=False).ids
        if inert != ids:
            row["ids_plain"] = inert
        rows.append(row)
    tok.encode_special_tokens = False
    return rows


# ---------------------------------------------------------------- files

def write_gguf(name, arch, model, pre, tokens, types, **extra):
    writer = gguf.GGUFWriter(os.path.join(OUT, name + ".vocab.gguf"), arch)
    writer.add_name("golden " + name)
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if "scores" in extra:
        writer.add_token_scores(extra["scores"])
    if "merges" in extra:
        writer.add_token_merges(extra["merges"])
    for key, value in extra.get("ids", {}).items():
        getattr(writer, f"add_{key}_token_id")(value)
    writer.add_add_bos_token(extra.get("add_bos", False))
    writer.add_add_eos_token(False)
    if "space_prefix" in extra:
        writer.add_add_space_prefix(extra["space_prefix"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def gguf_bpe(name, arch, pre, tok, ids, add_bos=False):
    data = json.loads(tok.to_str())
    added = {a["id"]: a["special"] for a in data["added_tokens"]}
    tokens = [tok.id_to_token(i) for i in range(tok.get_vocab_size(with_added_tokens=True))]
    types = [(3 if added[i] else 4) if i in added else 1 for i in range(len(tokens))]
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    write_gguf(name, arch, "gpt2", pre, tokens, types, merges=merges, add_bos=add_bos,
               ids={k: tok.token_to_id(v) for k, v in ids.items()})


def save(name, tok, markers):
    with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(json.loads(tok.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    again = Tokenizer.from_file(os.path.join(OUT, name + ".json"))  # what is tested is what is committed
    rows = ids_file(again, markers)
    with open(os.path.join(OUT, name + ".ids.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows) + "\n]\n")
    print(f"{name}: {again.get_vocab_size(with_added_tokens=True)} tokens, {len(rows)} texts")


def compare_with_sentencepiece(tok, sp, markers):
    """Texts on which the converted tokenizer and sentencepiece itself disagree (none is expected without markers)."""
    differ = 0
    for text in fixed_texts(markers) + random_texts(markers):
        if any(m in text for m in ("<s>", "</s>", "<unk>")) or "\u0000" in text or not text:
            continue
        differ += tok.encode(text, add_special_tokens=False).ids != sp.encode(text)
    return differ


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    os.makedirs(OUT, exist_ok=True)
    tok = make_gpt2()
    save("gpt2", tok, ["<|endoftext|>"])
    gguf_bpe("gpt2", "gpt2", "gpt-2", tok, {"bos": "<|endoftext|>", "eos": "<|endoftext|>"})
    tok = make_smollm()
    save("smollm", tok, ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>"])
    gguf_bpe("smollm", "llama", "smollm", tok, {"bos": "<|im_start|>", "eos": "<|im_end|>", "unk": "<|endoftext|>", "pad": "<|im_end|>"})
    tok = make_qwen2()
    save("qwen2", tok, ["<|im_start|>", "<|im_end|>", "<tool_call>", "<think>", "</think>"])
    gguf_bpe("qwen2", "qwen2", "qwen2", tok, {"bos": "<|endoftext|>", "eos": "<|im_end|>", "pad": "<|endoftext|>"})
    tok = make_llama3()
    save("llama3", tok, ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>"])
    gguf_bpe("llama3", "llama", "llama-bpe", tok, {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"}, add_bos=True)
    save("added", make_added(), ["<left>", "<right>", "<both>", "<|plain|>", "word", "Upper", "norm", "<|longer|>", "é"])
    tok, vocab, sp = make_llama2()
    save("llama2", tok, ["<s>", "</s>", "<unk>"])
    types = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(len(vocab))]
    write_gguf("llama2", "llama", "llama", "default", [p for p, _ in vocab], types, scores=[s for _, s in vocab],
               ids={"bos": 1, "eos": 2, "unk": 0}, add_bos=True)
    print(f"llama2: {compare_with_sentencepiece(tok, sp, ['<s>'])} texts differ from sentencepiece")
    tok, vocab, kinds = make_gemma()
    save("gemma", tok, ["<start_of_turn>", "<end_of_turn>", "<code>", "[multimodal]", "<unused0>"])
    user = set(kinds["runs"]) | set(kinds["tags"])
    control = {"<pad>", "<eos>", "<bos>", "<unk>", *kinds["controls"]}
    types = [3 if p in control else 4 if p in user else 6 if len(p) == 6 and p[:3] == "<0x" else 1 for p, _ in vocab]
    write_gguf("gemma", "gemma3", "llama", "default", [p.replace("\u2581", " ") if t == 4 else p for (p, _), t in zip(vocab, types)],
               types, scores=[s for _, s in vocab], ids={"bos": 2, "eos": 1, "unk": 3, "pad": 0}, add_bos=True, space_prefix=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
