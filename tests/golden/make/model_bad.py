#!/usr/bin/env python3
"""Writes tests/golden/model/bad: one small `.model` per way to be refused, and expected.json.

An own writer of the format, independent of the program's: the text is put together by hand, so that
each file differs from a valid one in one place. Needs Python 3 only.
"""
import json
import os
import struct
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model", "bad")
FORMATS = {"card": "md", "config": "toml", "program": "tri", "graph": "hex", "tensors": "toml",
           "vocab": "toml", "chat": "toml", "eval": "toml", "pad": "pad", "weights": "tensors"}
CONFIG = """model_type = "none"
parameters = 40

[architecture]
vocab_size = 3

[tokenizer]
type = "bpe"
"""
VOCAB = '[tokens]\n0 = "a"\n1 = "b"\n2 = "ab"\n\n[merges]\n0 = ["a", "b"]\n'
ZERO_HASH = "blake3:" + "0" * 64


def entry(name, shape, encoding, offset, size, extra=""):
    return f'["{name}"]\nshape = {shape}\nencoding = "{encoding}"\noffset = {offset}\nsize = {size}\n{extra}'


class File:
    def __init__(self):
        self.head = '[cyb]\ntypes = ["model"]\nname = "bad"\nformat_version = 3\n'
        self.parts = {"card": "# bad\n", "config": CONFIG, "program": "",
                      "tensors": entry("w", "[2, 4]", "f32", 0, 32) + "\n" +
                      entry("m", "[1, 32]", "q8", 64, 34), "vocab": VOCAB, "eval": "", "pad": " \n"}
        self.order = None        # of the bodies, default: that of [[files]]
        self.listing = None      # names in [[files]]
        self.weights = bytearray(98)
        self.size_line = None
        self.extra_files = ""
        self.tail = b""

    def bytes(self):
        names = self.listing or list(self.parts) + ["weights"]
        size = f"size = {len(self.weights)}\n" if self.size_line is None else self.size_line
        head = self.head
        for name in names:
            head += f'\n[[files]]\nname = "{name}"\nformat = "{FORMATS.get(name, "x")}"\n'
            if name == "weights":
                head += size
        out = head.encode() + self.extra_files.encode() + b"\n"
        for name in self.order or list(self.parts) + ["weights"]:
            out += f"~~~{name}\n".encode()
            if name == "weights":
                out += bytes(self.weights)
            else:
                body = self.parts.get(name, "")
                out += body if isinstance(body, bytes) else body.encode()
        return out + self.tail

    def tensor(self, text):
        self.parts["tensors"] = text
        return self


CASES = []


def case(name, text, prefix=False):
    """Decorator: the function changes a valid File; `text` is the message without the path."""
    def add(change):
        file = File()
        result = change(file)
        data = result if isinstance(result, bytes) else file.bytes()
        CASES.append((name, data, text, prefix))
    return add


def replace(part, old, new):
    def change(f):
        assert old in f.parts[part], (part, old)
        f.parts[part] = f.parts[part].replace(old, new, 1)
    return change


def head(old, new):
    def change(f):
        assert old in f.head, old
        f.head = f.head.replace(old, new, 1)
    return change


def tensors(*entries):
    def change(f):
        f.parts["tensors"] = "\n".join(entries)
    return change


W = entry("w", "[2, 4]", "f32", 0, 32)
M = entry("m", "[1, 32]", "q8", 64, 34)

case("F01-text", 'not a .model file: no "~~~" line in the first 15 bytes')(lambda f: b"just some text\n")
case("F01-binary", 'not a .model file: no "~~~" line in the first 4096 bytes')(
    lambda f: b"GGUF\x03\x00\x00\x00" + bytes(8192) + b"\n~~~weights\n")
case("F01-empty", 'not a .model file: no "~~~" line in the first 0 bytes')(lambda f: b"")
case("F02-config", "config: TOML error at line 2: expected a value")(replace("config", "parameters = 40", "parameters = = 40"))
case("F02-frontmatter", "frontmatter: TOML error at line 3: expected a value")(head('name = "bad"', "name = bad"))
case("F02-date", "config: TOML error at line 1: dates and times are not allowed")(
    replace("config", 'model_type = "none"', "model_type = 1979-05-27"))
case("F02-tensors", "tensors: TOML error at line 3: expected a string")(replace("tensors", '"f32"', "f32"))
case("F02-tensors-key", 'tensors: TOML error at line 6: tensor "w" has no offset')(replace("tensors", "offset = 0\n", ""))
case("F02-vocab", "vocab: TOML error at line 3: string is not closed")(replace("vocab", '"b"\n', '"b\n'))
case("F02-vocab-escape", "vocab: TOML error at line 2: string escape is not a Unicode scalar value")(
    replace("vocab", '"a"', '"\\ud800"'))
case("F02-dots", "config: TOML error at line 9: nested more than 16 levels deep")(
    lambda f: f.parts.update(config=CONFIG + "[" + "a." * 200 + "a]\n"))
case("F02-nested", "config: TOML error at line 1: nested more than 16 levels deep")(
    lambda f: f.parts.update(config="x = " + "[" * 200 + "]" * 200 + "\n"))
case("F03-types", 'frontmatter: types ["adapter"] does not contain "model"')(head('["model"]', '["adapter"]'))
case("F03-missing", 'frontmatter: types [] does not contain "model"')(head('types = ["model"]\n', ""))
case("F04-version", "format_version 2 is not supported (reader: 3)")(head("format_version = 3", "format_version = 2"))
case("F04-missing", "format_version is missing: encoding names are ambiguous; re-import, or pass "
     "--legacy-encodings=ieee|fixed")(head("format_version = 3\n", ""))
case("F05-cr-config", "config: CR at byte 19")(replace("config", "\n", "\r\n"))
case("F05-cr-frontmatter", "frontmatter: CR at byte 5")(head("[cyb]\n", "[cyb]\r\n"))
case("F05-bom-vocab", "vocab: BOM at byte 0")(replace("vocab", "[tokens]", "\ufeff[tokens]"))
case("F05-utf8-tensors", "tensors: invalid UTF-8 at byte 2")(
    lambda f: f.parts.update(tensors=f.parts["tensors"].encode().replace(b'"w"', b'"\xff"')))
case("F05-utf8-card", "card: invalid UTF-8 at byte 4")(lambda f: f.parts.update(card=b"good\xc3(\n"))


@case("F07-order", 'unexpected part "vocab": [[files]] expects "tensors"')
def _(f):
    f.order = ["card", "config", "program", "vocab", "tensors", "eval", "pad", "weights"]


@case("F07-unlisted", 'unexpected part "notes": [[files]] expects "eval"')
def _(f):
    f.order = ["card", "config", "program", "tensors", "vocab", "notes", "eval", "pad", "weights"]


@case("F07-pad-not-last", 'unexpected part "eval": [[files]] expects "weights"')
def _(f):
    f.listing = f.order = ["card", "config", "program", "tensors", "vocab", "pad", "eval", "weights"]


case("F07-bad-line", 'unexpected part "": [[files]] expects "config"')(replace("card", "# bad\n", "# bad\n~~~\nx\n~~~\n"))


@case("F08-unknown-binary", 'part "blob": unknown binary part')
def _(f):
    f.extra_files = '\n[[files]]\nname = "blob"\nformat = "x"\nsize = 4\n'


@case("F08-before-text", 'part "weights": binary part before text part "eval"')
def _(f):
    f.listing = ["card", "config", "program", "tensors", "vocab", "weights", "eval"]


@case("F09-part", 'duplicate part "config"')
def _(f):
    f.listing = ["card", "config", "config", "tensors", "vocab", "eval", "weights"]


@case("F09-part-body", 'duplicate part "card"')
def _(f):
    f.order = ["card", "card", "config", "program", "tensors", "vocab", "eval", "pad", "weights"]


case("F09-key", 'duplicate key "model_type"')(replace("config", "parameters", 'model_type = "x"\nparameters'))
case("F09-tensor", 'duplicate key "w"')(tensors(W, entry("w", "[1, 32]", "q8", 64, 34)))
case("F09-tensor-key", 'duplicate key "size"')(tensors(entry("w", "[2, 4]", "f32", 0, 32, "size = 32\n"), M))
case("F09-token", 'duplicate key "1"')(replace("vocab", "2 =", "1 ="))
case("F09-section", 'duplicate key "tokens"')(replace("vocab", "[merges]", "[tokens]"))
for missing in ("config", "tensors"):
    case(f"F10-{missing}", f'missing part "{missing}"')(lambda f: f.parts.pop(missing) and None)


@case("F10-weights", 'missing part "weights"')
def _(f):
    f.order = ["card", "config", "program", "tensors", "vocab", "eval", "pad"]


case("F11-truncated", "truncated: weights need 98 bytes, file has 97")(lambda f: f.bytes()[:-1])
case("F11-huge", "truncated: weights need 9223372036854775807 bytes, file has 98")(
    lambda f: setattr(f, "size_line", "size = 9223372036854775807\n"))
case("F12-tail", "3 bytes after the end of weights")(lambda f: setattr(f, "tail", b"abc"))
case("F13-size", "weights: size is missing")(lambda f: setattr(f, "size_line", ""))
case("F13-negative", "weights: size is -1")(lambda f: setattr(f, "size_line", "size = -1\n"))

case("F20-rank", 'tensor "w": shape [1, 1, 1, 1, 1, 8]: rank > 5')(tensors(entry("w", "[1, 1, 1, 1, 1, 8]", "f32", 0, 32), M))
case("F20-negative", 'tensor "w": shape [-2, 4]: negative dimension')(tensors(entry("w", "[-2, 4]", "f32", 0, 32), M))
case("F20-overflow", 'tensor "w": shape [4294967296, 4294967296]: overflow')(
    tensors(entry("w", "[4294967296, 4294967296]", "f32", 0, 0), M))
case("F20-byte-overflow", 'tensor "w": shape [2147483648, 2147483648]: overflow')(
    tensors(entry("w", "[2147483648, 2147483648]", "f32", 0, 0), M))
case("F21-encoding", 'tensor "w": unknown encoding "q9"')(tensors(entry("w", "[2, 4]", "q9", 0, 32), M))
case("F22-block", 'tensor "m": last dimension 33 is not a multiple of 32 (q8)')(tensors(W, entry("m", "[1, 33]", "q8", 64, 34)))
for old in ("u32", "u16"):
    case(f"F23-{old}", f'tensor "w": encoding "{old}" is ambiguous in this format version')(
        tensors(entry("w", "[2, 4]", old, 0, 32), M))
case("F24-size", 'tensor "w": f32 [2, 4] needs 32 bytes, index says 28')(tensors(entry("w", "[2, 4]", "f32", 0, 28), M))
case("F25-range", 'tensor "m": bytes 128..162 exceed weights size 98')(tensors(W, entry("m", "[1, 32]", "q8", 128, 34)))
case("F25-wrap", 'tensor "m": bytes 9223372036854775744..9223372036854775778 exceed weights size 98')(
    tensors(W, entry("m", "[1, 32]", "q8", 9223372036854775744, 34)))
case("F26-overlap", 'tensors "w" and "m" overlap at byte 64')(
    tensors(entry("w", "[5, 4]", "f32", 0, 80), entry("m", "[1, 32]", "q8", 64, 34)))
case("F26-same", 'tensors "v" and "w" overlap at byte 0')(tensors(W, entry("v", "[1, 4]", "f32", 0, 16)))
case("F27-alignment", 'tensor "m": offset 32 is not a multiple of 64')(tensors(W, entry("m", "[1, 32]", "q8", 32, 34)))
case("F28-missing", 'tensor "m": ternary needs "m.scale" f32 [1] or [2]')(tensors(W, entry("m", "[2, 32]", "ternary", 64, 16)))
case("F28-shape", 'tensor "m": ternary needs "m.scale" f32 [1] or [1]')(
    tensors(entry("m.scale", "[2, 4]", "f32", 0, 32), entry("m", "[1, 32]", "ternary", 64, 8)))
case("F29-rank", 'tensor "m": encoding q8 needs rank >= 2')(tensors(W, entry("m", "[32]", "q8", 64, 34)))


@case("F30-ternary", 'tensor "m": invalid ternary code at byte 5')
def _(f):
    f.parts["tensors"] = entry("m.scale", "[1]", "f32", 0, 4) + "\n" + entry("m", "[1, 32]", "ternary", 64, 8)
    f.parts["config"] = CONFIG.replace("40", "32")
    f.weights[64 + 5] = 0b00110000


case("F31-missing", "config: model_type: missing")(replace("config", 'model_type = "none"\n', ""))
case("F31-type", "config: parameters: wrong type, want integer")(replace("config", "40", '"40"'))
case("F31-range", "config: architecture.vocab_size: out of range: must be > 0")(replace("config", "vocab_size = 3", "vocab_size = 0"))
case("F31-float", "config: architecture.rms_norm_eps: out of range: must be in (0, 1)")(
    replace("config", "vocab_size", "rms_norm_eps = 0.0\nvocab_size"))
case("F31-word", 'config: tokenizer.type: out of range: "BPE" is unknown')(replace("config", '"bpe"', '"BPE"'))
case("F31-heads", "config: architecture.num_key_value_heads: out of range: 6 heads are not a multiple of 4 kv heads")(
    replace("config", "vocab_size", "num_attention_heads = 6\nnum_key_value_heads = 4\nvocab_size"))
case("F31-name", "frontmatter: cyb.name: missing")(head('name = "bad"\n', ""))
case("F31-name-path", "frontmatter: cyb.name: out of range: 1 to 128 of A-Z a-z 0-9 . _ -")(head('"bad"', '"../bad"'))
case("F31-id", 'frontmatter: cyb.id.model: wrong type, want "blake3:" and 64 hex digits')(
    lambda f: setattr(f, "head", f.head + '[cyb.id]\nmodel = "blake3:00"\n'))

EMBED = entry("model.embed_tokens.weight", "[2, 4]", "f32", 0, 32)


@case("F32-head", 'model_type none: missing tensor "lm_head.weight"')
def _(f):
    f.parts["tensors"] = EMBED + "\n" + M
    f.parts["config"] = CONFIG.replace("vocab_size = 3", "hidden_size = 4\nvocab_size = 2")


@case("F33-embedding", 'tensor "model.embed_tokens.weight": shape [2, 4], config implies [3, 4]')
def _(f):
    f.parts["tensors"] = EMBED + "\n" + M
    f.parts["config"] = CONFIG.replace("vocab_size = 3", "hidden_size = 4\nvocab_size = 3")


case("F34-hole", "vocab: hole at id 2")(replace("vocab", "2 =", "3 ="))
case("F34-count", "vocab: 2 tokens, config says 3")(replace("vocab", '2 = "ab"\n', ""))
case("F34-merge", "vocab: merge 0 names an unknown token")(replace("vocab", '["a", "b"]', '["b", "a"]'))
case("F34-merge-hole", "vocab: hole at merge 0")(replace("vocab", "0 = [", "1 = ["))
case("F34-special", "vocab: special id 3, which is no token")(
    lambda f: f.parts.update(vocab=VOCAB + "\n[special]\nids = [3]\n"))
case("F34-scores", "vocab: hole at id 1 of scores")(
    lambda f: f.parts.update(vocab=VOCAB + "\n[scores]\n0 = -1.5\n2 = 0\n"))
case("F34-type", "vocab: type of id 7, which is no token")(lambda f: f.parts.update(vocab=VOCAB + "\n[types]\n7 = 1\n"))
case("F34-id-limit", "vocab: TOML error at line 4: key 4194304 exceeds the limit of 4194303")(
    replace("vocab", "2 =", "4194304 ="))
case("F35-parameters", "config: parameters = 41, index sums to 40")(replace("config", "40", "41"))
case("F40-id", "model id mismatch: expected " + ZERO_HASH + ", computed blake3:", True)(
    lambda f: setattr(f, "head", f.head + f'[cyb.id]\nmodel = "{ZERO_HASH}"\n'))
case("F40-text", "model id mismatch: expected " + ZERO_HASH + ", computed blake3:", True)(
    lambda f: setattr(f, "head", f.head + f'[cyb.id]\nmodel = "{ZERO_HASH}"\nweights = "{ZERO_HASH}"\n'))
case("F41-hash", 'tensor "m": hash mismatch')(tensors(W, entry("m", "[1, 32]", "q8", 64, 34, f'hash = "{ZERO_HASH}"\n')))


@case("F42-float", 'tensor "w": non-finite value at element 6')
def _(f):
    f.weights[24:28] = struct.pack("<f", float("nan"))


@case("F42-scale", 'tensor "m": non-finite value at element 0')
def _(f):
    f.weights[64:66] = b"\x00\x7c"


@case("F50-frontmatter", "sharded .model files are not supported in format 3")
def _(f):
    f.extra_files = '\n[[shards]]\nname = "a"\n'


case("F50-tensor", "sharded .model files are not supported in format 3")(
    tensors(entry("w", "[2, 4]", "f32", 0, 32, 'shard = "a"\n'), M))


def main():
    os.makedirs(OUT, exist_ok=True)
    expected = {}
    for name, data, text, prefix in CASES:
        assert name not in expected, name
        with open(os.path.join(OUT, name + ".model"), "wb") as out:
            out.write(data)
        expected[name] = {"code": name[:3] if name != "F34-id-limit" else "F02", "text": text, "prefix": prefix}
    with open(os.path.join(OUT, "..", "good.model"), "wb") as out:
        out.write(File().bytes())
    with open(os.path.join(OUT, "expected.json"), "w", encoding="utf-8") as out:
        json.dump(expected, out, indent=1, ensure_ascii=True)
        out.write("\n")
    print(len(CASES), "files")


if __name__ == "__main__":
    sys.exit(main())
