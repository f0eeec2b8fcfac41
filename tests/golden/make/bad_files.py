#!/usr/bin/env python3
"""Write the damaged, hostile and odd-but-valid files of tests/golden/bad (Python's standard library only).

bad/gguf/*.gguf, bad/safetensors/*.safetensors and bad/EXPECT.json, which says for each file what must happen and why.
With --check the safetensors verdicts are compared with those of the `safetensors` package.
"""
import argparse
import json
import os
import shutil
import struct
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bad")
U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}
T_F32, T_F16, T_Q4_0, T_Q8_0, T_Q4_K, T_I8 = 0, 1, 2, 8, 12, 24
BLOCK = {T_F32: (1, 4), T_F16: (1, 2), T_Q4_0: (32, 18), T_Q8_0: (32, 34), T_Q4_K: (256, 144), T_I8: (1, 1)}
EXPECT = {}


def note(path, case, expect, why, stage, mentions=None):
    """expect: refuse, ok, or either (exact or refused, never something else)."""
    row = {"case": case, "expect": expect, "stage": stage, "why": why}
    if mentions:
        row["mentions"] = mentions
    EXPECT[path] = row


# ---------------------------------------------------------------- GGUF

def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        element, items = v
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, i) for i in items)
    return struct.pack(PACK[kind], v)


def kv(key, kind, v):
    return text(key) + struct.pack("<I", kind) + value(kind, v)


def info(name, dims, kind, offset, n_dims=None):
    return text(name) + struct.pack("<I", len(dims) if n_dims is None else n_dims) + b"".join(
        struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)


def head(n_tensors, n_kv, version=3, magic=b"GGUF"):
    return magic + struct.pack("<IQQ", version, n_tensors, n_kv)


def pad(raw, alignment=32):
    return raw + b"\0" * (-len(raw) % alignment)


def assemble(pairs, infos, data=b"", n_kv=None, n_tensors=None, version=3):
    raw = head(len(infos) if n_tensors is None else n_tensors, len(pairs) if n_kv is None else n_kv, version)
    return pad(raw + b"".join(pairs) + b"".join(infos)) + data


def model_keys(arch="llama", blocks=1, **changed):
    """Metadata of the smallest whole model: hidden 32, one head, ffn 32."""
    keys = {"general.architecture": (STR, arch), f"{arch}.block_count": (U32, blocks), f"{arch}.context_length": (U32, 64),
            f"{arch}.embedding_length": (U32, 32), f"{arch}.feed_forward_length": (U32, 32),
            f"{arch}.attention.head_count": (U32, 1), f"{arch}.attention.head_count_kv": (U32, 1),
            f"{arch}.attention.layer_norm_rms_epsilon": (F32, 1e-5), f"{arch}.rope.freq_base": (F32, 10000.0)}
    keys.update(BPE_KEYS)
    for key, v in changed.items():
        key = key.replace("__", ".")
        if v is None:
            keys.pop(key)
        else:
            keys[key] = v
    return [kv(k, *v) for k, v in keys.items()]


BPE_TOKENS = ["a", "b", "c", "ab", "abc", "\u0120", "<|end|>", "d"]
BPE_KEYS = {"tokenizer.ggml.model": (STR, "gpt2"), "tokenizer.ggml.pre": (STR, "gpt-2"),
            "tokenizer.ggml.tokens": (ARR, (STR, BPE_TOKENS)), "tokenizer.ggml.token_type": (ARR, (I32, [1, 1, 1, 1, 1, 1, 3, 1])),
            "tokenizer.ggml.merges": (ARR, (STR, ["a b", "ab c"])), "tokenizer.ggml.eos_token_id": (U32, 6),
            "tokenizer.ggml.bos_token_id": (U32, 6), "tokenizer.ggml.add_bos_token": (BOOL, 0)}


def spm_keys(byte_tokens):
    tokens = ["<unk>", "<s>", "</s>", *byte_tokens, "\u2581", "a", "b", "ab"]
    types = [2, 3, 3] + [6] * len(byte_tokens) + [1] * 4
    scores = [0.0] * (3 + len(byte_tokens)) + [-1.0, -2.0, -3.0, -0.5]
    return {"tokenizer__ggml__model": (STR, "llama"), "tokenizer__ggml__pre": (STR, "default"),
            "tokenizer__ggml__tokens": (ARR, (STR, tokens)), "tokenizer__ggml__token_type": (ARR, (I32, types)),
            "tokenizer__ggml__scores": (ARR, (F32, scores)), "tokenizer__ggml__merges": None,
            "tokenizer__ggml__bos_token_id": (U32, 1), "tokenizer__ggml__eos_token_id": (U32, 2),
            "tokenizer__ggml__unknown_token_id": (U32, 0)}, len(tokens)


def n_bytes(dims, kind):
    size, width = BLOCK[kind]
    n = 1
    for d in dims:
        n *= d
    return n // size * width


def model_tensors(vocab=len(BPE_TOKENS), extra=()):
    """(infos, data) of the whole model: norms are ones, matrices small and regular, so that logits are finite."""
    q8 = T_Q8_0
    shapes = [("token_embd.weight", (32, vocab), q8), ("output_norm.weight", (32,), T_F32), ("blk.0.attn_norm.weight", (32,), T_F32)]
    shapes += [(f"blk.0.attn_{x}.weight", (32, 32), q8) for x in ("q", "k", "v", "output")]
    shapes += [("blk.0.ffn_norm.weight", (32,), T_F32)] + [(f"blk.0.ffn_{x}.weight", (32, 32), q8) for x in ("gate", "up", "down")]
    infos, data = [], b""
    for index, (name, dims, kind) in enumerate([*shapes, *extra]):
        infos.append(info(name, dims, kind, len(data)))
        size = n_bytes(dims, kind)
        if kind == T_F32:
            raw = struct.pack("<f", 1.0) * (size // 4)
        else:
            raw = b"".join(b"\x00\x24" + bytes((i * 7 + j * 3 + index) % 16 for j in range(32)) for i in range(size // 34))
        data = pad(data + raw)
    return infos, data


def gguf(name, raw, case, why, expect="refuse", stage="header", mentions=None):
    with open(os.path.join(OUT, "gguf", name + ".gguf"), "wb") as f:
        f.write(raw)
    note(f"gguf/{name}.gguf", case, expect, why, stage, mentions)


ARCH = kv("general.architecture", STR, "llama")


def one(dims, kind=T_F32, offset=0, data=b"\0" * 256, name="t", n_dims=None):
    return assemble([ARCH], [info(name, dims, kind, offset, n_dims)], data)


def gguf_sizes():
    """G01: products and sums that wrap."""
    big = 1 << 63
    gguf("g01-product-wraps-to-0", one([1 << 32, 1 << 32]), "G01", "2^32 x 2^32 elements: the product wraps to 0")
    gguf("g01-product-wraps-to-32", one([32, (1 << 59) + 1]), "G01", "32 x (2^59+1) elements wrap to 32, which would fit the file")
    gguf("g01-product-wraps-3d", one([1 << 31, 1 << 31, 4]), "G01", "three dimensions whose product wraps to 0")
    gguf("g01-bytes-wrap", one([(1 << 62) + 8]), "G01", "2^62+8 f32: the elements fit u64, the bytes wrap to 32")
    gguf("g01-q8-too-big", one([1152, (1 << 42) + 1], T_Q8_0), "G01", "1152 x (2^42+1) in Q8_0: 5.38e15 bytes, no wrap, past the end")
    gguf("g01-padding-wraps", one([(1 << 64) - 1], T_I8), "G01", "2^64-1 bytes: rounding up to the alignment wraps to 0")
    gguf("g01-negative-dimension", one([(1 << 64) - 32]), "G01", "a dimension that is negative as i64")
    two = [info("a", [1 << 61], T_F32, 0), info("b", [1 << 61], T_F32, big)]
    gguf("g01-sum-wraps", assemble([ARCH], two, b"\0" * 256), "G01", "two tensors of 2^63 bytes: the sum is 2^64")
    two = [info("a", [(1 << 62) - 1], T_F32, 0), info("b", [64], T_F32, (1 << 64) - 32)]
    gguf("g01-offset-wraps", assemble([ARCH], two, b"\0" * 256), "G01", "offset 2^64-32 plus size wraps below the file's end")
    gguf("g01-offset-past-end", one([8], offset=1 << 40), "G01", "offset past the end of the file")
    gguf("g01-tensor-past-end", one([65]), "G01", "260 bytes of tensor, 256 bytes of data")
    gguf("g01-offset-unaligned", one([8], offset=4), "G01", "the offset is no multiple of the alignment")
    two = [info("a", [32], T_F32, 0), info("b", [32], T_F32, 64)]
    gguf("g01-overlap", assemble([ARCH], two, b"\0" * 256), "G01", "two tensors share bytes")
    gguf("g01-row-not-whole-blocks", one([33, 2], T_Q8_0), "G01", "a row of 33 values in blocks of 32")
    gguf("g01-unknown-type", one([32], 200), "G01", "tensor type 200 does not exist", mentions="t")
    gguf("g01-removed-type", one([32], 4), "G01", "tensor type 4 was removed from the format", mentions="t")


def gguf_dims():
    """G03: the number of dimensions indexes a fixed array in careless readers."""
    for n in (5, 20):
        gguf(f"g03-n-dims-{n}", one([1] * n), "G03", f"{n} dimensions, the format has at most 4")
    gguf("g03-n-dims-max", one([32], n_dims=0xFFFFFFFF), "G03", "0xFFFFFFFF dimensions")
    gguf("g03-n-dims-0", one([]), "G03", "no dimension: a scalar (one element) or refused", "either")
    gguf("g03-dimension-0", one([0, 4]), "G03", "a dimension of size 0: empty or refused", "either")


def gguf_counts():
    """G05: sizes that are checked against the bytes that remain before anything is allocated."""
    gguf("g05-string-length", head(0, 1) + struct.pack("<Q", 3) + b"key" + struct.pack("<IQ", STR, 1 << 63) + b"x", "G05", "a string of 2^63 bytes")
    gguf("g05-string-length-max", head(0, 1) + struct.pack("<Q", 3) + b"key" + struct.pack("<IQ", STR, (1 << 64) - 1) + b"x", "G05", "a string of 2^64-1 bytes: length + 1 wraps")
    gguf("g05-key-length", head(0, 1) + struct.pack("<Q", 1 << 63) + b"k", "G05", "a key of 2^63 bytes")
    array = struct.pack("<Q", 3) + b"key" + struct.pack("<I", ARR)
    gguf("g05-array-count", head(0, 1) + array + struct.pack("<IQ", U32, 1 << 61) + b"\0" * 64, "G05", "an array of 2^61 u32")
    gguf("g05-array-count-wraps", head(0, 1) + array + struct.pack("<IQ", U64, (1 << 61) + 1) + b"\0" * 64, "G05", "2^61+1 u64: the bytes wrap to 8")
    gguf("g05-array-of-strings-count", head(0, 1) + array + struct.pack("<IQ", STR, 1 << 40) + text("a"), "G05", "an array of 2^40 strings in 9 bytes")
    gguf("g05-array-nested-deep", head(0, 1) + array + b"".join(struct.pack("<IQ", ARR, 1) for _ in range(5000)) + struct.pack("<IQ", U8, 0), "G05", "5000 arrays in one another: recursion")
    gguf("g05-array-bad-element", head(0, 1) + array + struct.pack("<IQ", 99, 1) + b"\0" * 8, "G05", "array element of unknown type 99")
    gguf("g05-n-kv", head(0, 1 << 40) + ARCH, "G05", "2^40 keys in a file of one")
    gguf("g05-n-tensors", head(1 << 40, 1) + ARCH + info("t", [1], T_F32, 0), "G05", "2^40 tensors in a file of one")
    gguf("g05-n-kv-max", head(0, (1 << 64) - 1) + ARCH, "G05", "2^64-1 keys")
    gguf("g05-bad-value-type", head(0, 1) + struct.pack("<Q", 3) + b"key" + struct.pack("<I", 13) + b"\0" * 16, "G05", "value type 13 does not exist")
    gguf("g05-empty", b"", "G05", "an empty file")
    gguf("g05-magic-only", b"GGUF", "G05", "four bytes")
    gguf("g05-bad-magic", head(0, 1, magic=b"GGML") + ARCH, "G05", "another magic")
    for version in (0, 1, 4, 0x03000000):
        gguf(f"g05-version-{version:x}", head(0, 1, version) + ARCH, "G05", f"version {version:#x}" + (" (3 in big-endian)" if version > 9 else ""))
    whole = assemble(model_keys(), *model_tensors())
    start = whole.index(b"blk.0.attn_q")
    for label, cut in (("in-header", 20), ("in-key", 40), ("in-tokens", whole.index(b"<|end|>") + 3), ("in-infos", start + 5), ("in-data", len(whole) - 64)):
        gguf(f"g05-truncated-{label}", whole[:cut], "G05", f"a whole model cut {label.replace('-', ' ')}")
    alignment = {"0": (U32, 0), "3": (U32, 3), "huge": (U32, 1 << 31), "text": (STR, "32"), "u64": (U64, (1 << 64) - 1)}
    for label, v in alignment.items():
        gguf(f"g05-alignment-{label}", assemble([ARCH, kv("general.alignment", *v)], [info("t", [8], T_F32, 0)], b"\0" * 64), "G05",
             f"general.alignment is {v[1]!r}", mentions="general.alignment")
    gguf("g05-duplicate-key", assemble([ARCH, ARCH], [], b""), "G05", "the same key twice", mentions="general.architecture")
    gguf("g05-bool-2", assemble([ARCH, text("flag") + struct.pack("<IB", BOOL, 2)], [], b""), "G05", "a bool of value 2", "either")


def gguf_keys():
    """G07: the empty key, and known keys of another type or an absurd value."""
    gguf("g07-empty-key", assemble([ARCH, kv("", U32, 1)], []), "G07", "a key of length 0")
    infos, data = model_tensors()

    def model(name, why, mentions, expect="refuse", **changed):
        gguf("g07-" + name, assemble(model_keys(**changed), infos, data), "G07", why, expect, "import", mentions)

    model("block-count-text", "block_count is a string", "llama.block_count", llama__block_count=(STR, "1"))
    model("block-count-float", "block_count is a float", "llama.block_count", llama__block_count=(F32, 1.0))
    model("block-count-0", "block_count is 0", "llama.block_count", llama__block_count=(U32, 0))
    model("block-count-huge", "block_count is 2^32-1: more layers than the file has", None, llama__block_count=(U32, 0xFFFFFFFF))
    model("block-count-missing", "block_count is missing", "llama.block_count", llama__block_count=None)
    model("context-negative", "context_length is a negative i32", "llama.context_length", llama__context_length=(I32, -1))
    model("context-0", "context_length is 0", "llama.context_length", llama__context_length=(U32, 0))
    model("context-u64-max", "context_length is 2^64-1", "llama.context_length", llama__context_length=(U64, (1 << 64) - 1))
    model("embedding-0", "embedding_length is 0", "llama.embedding_length", llama__embedding_length=(U32, 0))
    model("embedding-other", "embedding_length does not fit the tensors", None, llama__embedding_length=(U32, 64))
    model("heads-0", "head_count is 0: a division by zero", "llama.attention.head_count", llama__attention__head_count=(U32, 0))
    model("heads-do-not-divide", "head_count 3 does not divide 32", "head_count", llama__attention__head_count=(U32, 3))
    model("kv-heads-more", "more kv heads than heads", "head_count_kv", llama__attention__head_count_kv=(U32, 2))
    model("heads-array-short", "head_count is an array shorter than the layers", "llama.attention.head_count", llama__attention__head_count=(ARR, (U32, [])))
    model("eps-nan", "epsilon is NaN", "llama.attention.layer_norm_rms_epsilon", llama__attention__layer_norm_rms_epsilon=(F32, float("nan")))
    model("eps-negative", "epsilon is negative", "llama.attention.layer_norm_rms_epsilon", llama__attention__layer_norm_rms_epsilon=(F32, -1.0))
    model("rope-base-0", "rope.freq_base is 0", "llama.rope.freq_base", llama__rope__freq_base=(F32, 0.0))
    model("rope-scaling-unknown", "an unknown rope scaling changes the mathematics", "llama.rope.scaling.type", llama__rope__scaling__type=(STR, "spiral"))
    model("architecture-unknown", "an unknown architecture", "quasar", general__architecture=(STR, "quasar"))
    model("architecture-number", "general.architecture is a number", "general.architecture", general__architecture=(U32, 1))
    model("architecture-missing", "general.architecture is missing", "general.architecture", general__architecture=None)
    model("tokens-not-strings", "the token list is an array of u32", "tokenizer.ggml.tokens", tokenizer__ggml__tokens=(ARR, (U32, list(range(8)))))
    model("tokens-short", "fewer tokens than rows with a type for each row", "tokenizer.ggml.token_type", tokenizer__ggml__tokens=(ARR, (STR, BPE_TOKENS[:7])))
    model("types-out-of-range", "token type 77", "tokenizer.ggml.token_type", tokenizer__ggml__token_type=(ARR, (I32, [1, 1, 77, 1, 1, 1, 3, 1])))
    model("tokens-duplicate", "the same token text twice", "tokenizer.ggml.tokens", "either", tokenizer__ggml__tokens=(ARR, (STR, [*BPE_TOKENS[:7], "a"])))
    model("merge-without-space", "a merge that is no pair", "tokenizer.ggml.merges", tokenizer__ggml__merges=(ARR, (STR, ["a b", "abc"])))
    model("merge-unknown-part", "a merge of a part that is no token", "tokenizer.ggml.merges", "either", tokenizer__ggml__merges=(ARR, (STR, ["a z"])))
    model("eos-out-of-range", "eos_token_id past the vocabulary", "tokenizer.ggml.eos_token_id", tokenizer__ggml__eos_token_id=(U32, 8))
    model("pre-unknown", "an unknown pre-tokenizer", "tokenizer.ggml.pre", tokenizer__ggml__pre=(STR, "fancy"))
    model("tokenizer-unknown", "an unknown tokenizer model", "tokenizer.ggml.model", tokenizer__ggml__model=(STR, "oracle"))


def gguf_bytes():
    """G09: the text of byte tokens; strtol-like parsing accepts far too much."""
    good = [f"<0x{i:02X}>" for i in range(256)]
    for label, bad in (("negative", "<0x-1>"), ("not-hex", "<0xZZ>"), ("empty", "<0x>"), ("three-digits", "<0x100>"),
                       ("one-digit", "<0xA>"), ("space", "<0x 1>"), ("plus", "<0x+1>"), ("unclosed", "<0x10"), ("duplicate", "<0x00>")):
        byte_tokens = [*good[:0x10], bad, *good[0x11:]]
        keys, n = spm_keys(byte_tokens)
        gguf("g09-byte-" + label, assemble(model_keys(**keys), *model_tensors(n)), "G09", f"a byte token {bad!r} in the place of <0x10>",
             stage="import", mentions=bad)
    keys, n = spm_keys(good[:255])
    gguf("g09-byte-255", assemble(model_keys(**keys), *model_tensors(n)), "G09", "255 byte tokens: <0xFF> is missing", stage="import", mentions="<0xFF>")
    keys, n = spm_keys(good)
    gguf("ok-spm", assemble(model_keys(**keys), *model_tensors(n)), "G09", "the same model with all 256 byte tokens", "ok", "import")


def gguf_names():
    """G11: names longer than a fixed array, and names that are no names."""
    base, data = model_tensors()
    long = "blk.0." + "n" * 65529
    for n in (63, 64, 65, 65535):
        gguf(f"{'ok' if n < 65 else 'g11'}-name-{n}", one([8], name=long[:n]), "G11",
             f"a tensor name of {n} bytes: found under exactly this name" + ("" if n < 65 else ", or refused"), "ok" if n < 65 else "either")
    pair = [info("x" * 64 + "a", [8], T_F32, 0), info("x" * 64 + "b", [8], T_F32, 32)]
    gguf("g11-same-first-64", assemble([ARCH], pair, b"\0" * 64), "G11", "two names equal in their first 64 bytes: two tensors, or refused", "either")
    for label, name in (("nul", b"t\0u"), ("dotdot", b"../t"), ("invalid-utf8", b"t\xff\xfe"), ("empty", b""), ("overlong-utf8", b"t\xc0\xaf"), ("surrogate", b"t\xed\xa0\x80")):
        expect = "either" if label == "dotdot" else "refuse"
        gguf(f"g11-name-{label}", one([8], name=name), "G11", f"tensor name {name!r}", expect)
        if name:
            gguf(f"g11-key-{label}", assemble([ARCH, kv(name, U32, 1)], []), "G11", f"key {name!r}", expect)
    gguf("g11-key-65537", assemble([ARCH, kv("k" * 65537, U32, 1)], []), "G11", "a key over the limit of 64 KiB")
    twice = [info("t", [8], T_F32, 0), info("t", [8], T_F32, 32)]
    gguf("g11-duplicate-tensor", assemble([ARCH], twice, b"\0" * 64), "G11", "the same tensor name twice", mentions="t")
    extra = [("blk.0.surprise.weight", (32,), T_F32)]
    gguf("g11-unknown-tensor", assemble(model_keys(), *model_tensors(extra=extra)), "G11", "a whole model with one tensor more that nobody knows: never dropped silently",
         stage="import", mentions="blk.0.surprise.weight")
    gguf("g11-missing-tensor", assemble(model_keys(), base[:-1], data), "G11", "a whole model without blk.0.ffn_down.weight", stage="import", mentions="blk.0.ffn_down.weight")
    short = ("blk.0.attn_q.weight", (32, 16), T_Q8_0)
    infos, raw = model_tensors()
    infos[3] = info(short[0], short[1], short[2], int.from_bytes(infos[3][-8:], "little"))
    gguf("g11-wrong-shape", assemble(model_keys(), infos, raw), "G11", "attn_q is 32 x 16 where 32 x 32 belongs", stage="import", mentions="blk.0.attn_q.weight")


def gguf_ok():
    infos, data = model_tensors()
    gguf("ok-minimal", assemble(model_keys(), infos, data), "-", "the smallest whole model: imports and runs", "ok", "import")
    gguf("ok-version-2", assemble(model_keys(), infos, data, version=2), "-", "the same as version 2", "ok", "import")
    gguf("ok-no-tensors", assemble([ARCH], []), "-", "a header without tensors", "ok")
    many = [kv(f"extra.{i}", kind, v) for i, (kind, v) in enumerate([
        (U8, 255), (I8, -128), (U16, 65535), (I16, -1), (U32, 1), (I32, -1), (F32, 1.5), (BOOL, 1), (STR, "h\u00e9 \u6f22"), (U64, (1 << 64) - 1),
        (I64, -(1 << 63)), (F64, 2.5), (ARR, (STR, ["a", "", "b"])), (ARR, (F64, [1.0])), (ARR, (BOOL, [0, 1])), (ARR, (U8, []))])]
    gguf("ok-all-value-types", assemble([ARCH, *many], [info("t", [8], T_F32, 0)], b"\0" * 32), "-", "every value type, arrays, empty strings", "ok")
    aligned = [ARCH, kv("general.alignment", U32, 64)]
    raw = pad(head(2, 2) + b"".join(aligned) + info("a", [8], T_F32, 0) + info("b", [8], T_F32, 64), 64) + b"\0" * 96
    gguf("ok-alignment-64", raw, "-", "another alignment", "ok")


# ---------------------------------------------------------------- safetensors

def st(name, raw, case, why, expect="refuse", mentions=None):
    with open(os.path.join(OUT, "safetensors", name + ".safetensors"), "wb") as f:
        f.write(raw)
    note(f"safetensors/{name}.safetensors", case, expect, why, "header", mentions)


def st_raw(header, data=b""):
    raw = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(raw)) + raw + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def st_files():
    good = json.dumps({"a": entry("F32", [2, 2], 0, 16)})
    whole = st_raw(good, b"\0" * 16)
    for label, n in (("0", 0), ("1", 1), ("max", (1 << 64) - 1), ("max-minus-3", (1 << 64) - 4), ("file-size-minus-7", len(whole) - 7), ("over-100-mb", 100_000_001), ("2e63", 1 << 63)):
        st(f"s01-length-{label}", struct.pack("<Q", n) + whole[8:], "S01", f"a header length of {n}")
    for n in (0, 7, 8):
        st(f"s01-file-{n}-bytes", whole[:n], "S01", f"a file of {n} bytes")
    st("s01-truncated-header", whole[:-20], "S01", "the header is cut")
    two = lambda a, b: json.dumps({"a": entry("F32", [25], *a), "b": entry("F32", [25], *b)})  # noqa: E731
    st("s03-overlap", st_raw(two((0, 100), (50, 150)), b"\0" * 150), "S03", "a=[0,100) and b=[50,150) overlap", mentions="b")
    st("s03-same-range", st_raw(two((0, 100), (0, 100)), b"\0" * 100), "S03", "two tensors on the same bytes")
    st("s03-hole", st_raw(two((0, 100), (104, 204)), b"\0" * 204), "S03", "four bytes that nobody owns between two tensors")
    st("s03-hole-at-start", st_raw(two((4, 104), (104, 204)), b"\0" * 204), "S03", "four bytes that nobody owns before the first tensor")
    st("s03-trailing", st_raw(good, b"\0" * 20), "S03", "four bytes after the last tensor")
    st("s03-data-cut", st_raw(good, b"\0" * 12), "S03", "the data ends before the tensor does")
    twice = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    st("s03-duplicate-name", st_raw(twice, b"\0" * 8), "S03", "the same name twice: the last would win", mentions="a")
    inner = '{"a":{"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,4]}}'
    st("s03-duplicate-inner-key", st_raw(inner, b"\0" * 4), "S03", "the key dtype twice")
    unordered = json.dumps({"b": entry("F32", [25], 100, 200), "a": entry("F32", [25], 0, 100)})
    st("ok-unordered", st_raw(unordered, b"\0" * 200), "S03", "names in another order than their bytes", "ok")
    bad = {
        "size-mismatch": (entry("F32", [2, 2], 0, 12), "12 bytes for four f32"),
        "begin-after-end": (entry("F32", [0], 8, 4), "the range is backwards"),
        "negative-offset": (entry("F32", [2], -8, 0), "a negative offset"),
        "float-offset": (entry("F32", [2], 0.0, 8.0), "offsets that are floats"),
        "offset-2e64": (entry("F32", [2], 0, 1 << 64), "an offset that does not fit u64"),
        "one-offset": ({"dtype": "F32", "shape": [2], "data_offsets": [8]}, "one offset"),
        "three-offsets": ({"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]}, "three offsets"),
        "shape-wraps": (entry("F32", [1 << 32, 1 << 32], 0, 0), "the product of the shape wraps to 0"),
        "shape-bytes-wrap": (entry("F32", [(1 << 62) + 2], 0, 8), "the bytes of the shape wrap to 8"),
        "shape-negative": (entry("F32", [-2], 0, 8), "a negative dimension"),
        "shape-text": ({"dtype": "F32", "shape": "2", "data_offsets": [0, 8]}, "the shape is a string"),
        "unknown-dtype": (entry("F31", [2], 0, 8), "an unknown dtype"),
        "no-dtype": ({"shape": [2], "data_offsets": [0, 8]}, "no dtype"),
        "no-shape": ({"dtype": "F32", "data_offsets": [0, 8]}, "no shape"),
        "entry-number": (7, "an entry that is a number"),
    }
    for label, (row, why) in bad.items():
        st("s03-" + label, st_raw(json.dumps({"t": row}), b"\0" * 8), "S03", why)
    st("s03-not-json", st_raw("{not json}      "), "S03", "the header is no JSON")
    st("s03-array", st_raw("[]      "), "S03", "the header is an array")
    st("s03-leading-space", st_raw(" " * 8 + good, b"\0" * 16), "S03", "the format says that the header begins with {; its own reader accepts spaces", "either")
    st("s03-after-json", st_raw(good + "x", b"\0" * 16), "S03", "a letter after the JSON")
    st("s03-metadata-number", st_raw(json.dumps({"__metadata__": {"a": 1}})), "S03", "metadata that is no text")
    st("s03-deep", st_raw('{"a":' + "[" * 30000 + "]" * 30000 + "}"), "S03", "30,000 arrays in one another: recursion")
    st("s03-invalid-utf8", st_raw(b'{"\xff":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', b"\0" * 8), "S03", "a name that is no UTF-8")
    st("ok-simple", whole, "S03", "one tensor", "ok")
    st("ok-spaces-at-end", st_raw(good + " " * 13, b"\0" * 16), "S03", "spaces after the JSON, as writers pad", "ok")
    st("ok-metadata-only", st_raw(json.dumps({"__metadata__": {"format": "pt"}})), "S03", "no tensor at all", "ok")
    st("ok-scalar-and-empty", st_raw(json.dumps({"e": entry("F32", [0, 5], 0, 0), "s": entry("F32", [], 0, 4)}), b"\0" * 4), "S03", "an empty tensor and a scalar", "ok")
    kinds = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}
    rows, at = {}, 0
    for kind, width in sorted(kinds.items(), key=lambda k: -k[1]):
        rows[kind.lower()] = entry(kind, [1], at, at + width)
        at += width
    st("ok-all-dtypes", st_raw(json.dumps(rows), b"\0" * at), "S03", "every plain dtype", "ok")
    st("ok-unicode-name", st_raw(json.dumps({"d\u00e9j\u00e0.\u6f22": entry("F32", [1], 0, 4)}, ensure_ascii=False), b"\0" * 4), "S03", "a name beyond ASCII", "ok")


def check_with_package():
    """Our verdicts beside those of the safetensors package; a difference is a stricter rule of ours and is listed."""
    from safetensors import safe_open
    for path, row in EXPECT.items():
        if path.startswith("safetensors/"):
            try:
                with safe_open(os.path.join(OUT, path), "np") as f:
                    f.keys()
                verdict = "ok"
            except Exception as error:
                verdict = f"refuse ({error})"
            if row["expect"] != "either" and verdict.split()[0] != row["expect"]:
                print(f"{path}: we {row['expect']}, the package: {verdict}")


def add_answers():
    """What the program answers to each file that it refuses: code, exit code and message, read and found right once (bad_answers.json)."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_answers.json"), encoding="utf-8") as f:
        answers = json.load(f)
    for path, row in EXPECT.items():
        row.update(answers.get(path, {}))
        if row["expect"] == "refuse" and "code" not in row:
            raise SystemExit(f"bad_answers.json lacks {path}")
    unknown = set(answers) - set(EXPECT)
    if unknown:
        raise SystemExit(f"bad_answers.json knows files that are not made: {sorted(unknown)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the safetensors verdicts with the safetensors package")
    args = parser.parse_args()
    for kind in ("gguf", "safetensors"):
        shutil.rmtree(os.path.join(OUT, kind), ignore_errors=True)
        os.makedirs(os.path.join(OUT, kind))
    for make in (gguf_ok, gguf_sizes, gguf_dims, gguf_counts, gguf_keys, gguf_bytes, gguf_names, st_files):
        make()
    add_answers()
    with open(os.path.join(OUT, "EXPECT.json"), "w", encoding="utf-8") as f:
        json.dump(dict(sorted(EXPECT.items())), f, indent=1)
        f.write("\n")
    big = [p for p in EXPECT if os.path.getsize(os.path.join(OUT, p)) > 66 << 10]
    total = sum(os.path.getsize(os.path.join(OUT, p)) for p in EXPECT)
    print(f"{len(EXPECT)} files, {total} bytes; over 66 KiB: {big}")
    if args.check:
        check_with_package()
    return 1 if big else 0


if __name__ == "__main__":
    sys.exit(main())
