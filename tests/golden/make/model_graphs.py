#!/usr/bin/env python3
"""Writes tests/golden/model/graph: one sample graph in both forms, and one file per G code.

An own encoder of the CYIR layout (docs/ir.md), independent of the program's. Needs Python 3 only.
"""
import json
import os
import struct

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model", "graph")
DTYPES = {"f32": 0, "f16": 1, "bf16": 2, "q8": 6, "i32": 18}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def text(value):
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def names(values):
    return struct.pack("<I", len(values)) + b"".join(text(v) for v in values)


def node(number, tag, payload, inputs, outputs, hint=255):
    return (struct.pack("<IHBB", number, tag, hint, 0) + struct.pack("<I", len(payload)) + payload +
            names(inputs) + names(outputs))


def graph(symbols, inputs, outputs, nodes, magic=b"CYIR", version=1):
    out = magic + struct.pack("<HHIIII", version, 0, len(symbols), len(inputs), len(outputs), len(nodes))
    out += b"".join(text(s) for s in symbols)
    for name, dtype, dims in inputs:
        raw = [d if isinstance(d, int) else -1 if d == "?" else -(symbols.index(d) + 2) for d in dims]
        out += text(name) + struct.pack("<BI", dtype if isinstance(dtype, int) else DTYPES[dtype], len(raw))
        out += b"".join(struct.pack("<q", d) for d in raw)
    out += b"".join(text(o) for o in outputs) + b"".join(nodes)
    return out + struct.pack("<I", crc32c(out))


def to_hex(data):
    digits = data.hex()
    return "".join(digits[i:i + 128] + "\n" for i in range(0, len(digits), 128))


u32, f32 = (lambda v: struct.pack("<I", v)), (lambda v: struct.pack("<f", v))
IDS = ("ids", "i32", ["B", "S"])
X = ("x", "f32", ["B", "S", 4])
BSP = ["B", "S", "P"]
SAMPLE = graph(
    ["B", "S", "P", "img", "T"],
    [IDS, ("pos", "i32", ["S"]), ("mask", 5, ["B", 1, 1, "T"]), ("free", "f16", ["img", "?", 3])],
    ["y", "k", "c"],
    [node(0, 120, b"", ["ids", "model.embed.weight"], ["h0"]),
     node(1, 40, f32(1e-5), ["h0", "model.norm.weight"], ["n0"], hint=2),
     node(2, 0, b"", ["n0", "w", ""], ["m0"]),
     node(7, 6, struct.pack("<I4q", 4, 0, -1, 2, 4), ["m0"], ["r0"]),
     node(8, 7, struct.pack("<I4I", 4, 0, 2, 1, 3), ["r0"], ["q0"]),
     node(9, 26, u32(4) + u32(4) + f32(1e4) + b"\x00", ["q0", "pos"], ["qr"]),
     node(10, 23, u32(0) + u32(0), ["qr", "q0"], ["k", "v"]),
     node(11, 20, u32(2) + u32(2) + u32(4) + b"\x01" + f32(0.5) + f32(0.1) + u32(0), ["qr", "k", "v", "mask"], ["y"]),
     node(12, 289, b"\x00" + struct.pack("<Iq", 1, 2) + u32(8) + f32(1.5) + f32(-2), [], ["c"])])
SAMPLE_TOML = '''version = 1
symbols = ["B", "S", "P", "img", "T"]
outputs = ["y", "k", "c"]

[[inputs]]
name = "ids"
dtype = "i32"
shape = ["B", "S"]

[[inputs]]
name = "pos"
dtype = "i32"
shape = ["S"]

[[inputs]]
name = "mask"
dtype = "bool"
shape = ["B", 1, 1, "T"]

[[inputs]]
name = "free"
dtype = "f16"
shape = ["img", "?", 3]

[[nodes]]
id = 0
op = "TokenEmbed"
in = ["ids", "model.embed.weight"]
out = ["h0"]
attrs = {}

[[nodes]]
id = 1
op = "RmsNorm"
hint = 2
in = ["h0", "model.norm.weight"]
out = ["n0"]
attrs = {eps = 1e-05}

[[nodes]]
id = 2
op = "Matmul"
in = ["n0", "w", ""]
out = ["m0"]
attrs = {}

[[nodes]]
id = 7
op = "Reshape"
in = ["m0"]
out = ["r0"]
attrs = {shape = [0, -1, 2, 4]}

[[nodes]]
id = 8
op = "Permute"
in = ["r0"]
out = ["q0"]
attrs = {dims = [0, 2, 1, 3]}

[[nodes]]
id = 9
op = "Rope"
in = ["q0", "pos"]
out = ["qr"]
attrs = {head_dim = 4, rope_dim = 4, base = 10000.0, style = 0}

[[nodes]]
id = 10
op = "KvCache"
in = ["qr", "q0"]
out = ["k", "v"]
attrs = {layer = 0, window = 0}

[[nodes]]
id = 11
op = "Sdpa"
in = ["qr", "k", "v", "mask"]
out = ["y"]
attrs = {num_heads = 2, kv_heads = 2, head_dim = 4, causal = 1, scale = 0.5, softcap = 0.1, window = 0}

[[nodes]]
id = 12
op = "Constant"
in = []
out = ["c"]
attrs = {dtype = 0, shape = [2], bytes = "0000c03f000000c0"}
'''

# Weights that the test offers: w [8, 4] f32, q [8, 32] q8, h [4] f16, model.embed.weight [10, 4] f32,
# model.norm.weight [4] f32.
ADD = node(5, 1, b"", ["x", "x"], ["y"])
KV = ("kv", "f32", ["B", 2, "S", 4])
GOOD = graph(BSP, [X], ["y"], [ADD])
BAD = {
    "G01-magic": (graph(BSP, [X], ["y"], [ADD], magic=b"CYIX"), "not a CYIR v1 graph"),
    "G01-version": (graph(BSP, [X], ["y"], [ADD], version=2), "not a CYIR v1 graph"),
    "G01-empty": (b"", "not a CYIR v1 graph"),
    "G02-truncated": (GOOD[:-9], f"truncated at byte {len(GOOD) - 13}"),
    "G02-checksum": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "checksum mismatch"),
    "G02-count": (GOOD[:20] + b"\xff\xff\xff\xff" + GOOD[24:], f"truncated at byte {len(GOOD) - 4}"),
    "G02-tail": (lambda d: d + struct.pack("<I", crc32c(d)), None),
    "G03-tags": (graph(BSP, [X], ["y"], [node(1, 900, b"abc", ["x"], ["a"]), ADD, node(6, 480, b"", ["x"], ["b"])]),
                 "node 1: unknown op tag 900; node 6: unknown op tag 480"),
    "G04-length": (graph(BSP, [X], ["y"], [node(5, 1, b"\x00", ["x", "x"], ["y"])]), "node 5 (Add): bad payload: length"),
    "G04-short": (graph(BSP, [X], ["y"], [node(5, 40, b"\x00\x00", ["x", "model.norm.weight"], ["y"])]),
                  "node 5 (RmsNorm): bad payload: eps"),
    "G04-list": (graph(BSP, [X], ["y"], [node(5, 7, u32(0xFFFFFFFF), ["x"], ["y"])]), "node 5 (Permute): bad payload: dims"),
    "G04-value": (graph(BSP, [X], ["y"], [node(5, 7, u32(3) + u32(0) + u32(1) + u32(1), ["x"], ["y"])]),
                  "node 5 (Permute): bad payload: dims"),
    "G04-hint": (graph(BSP, [X], ["y"], [node(5, 1, b"", ["x", "x"], ["y"], hint=9)]), "node 5 (Add): bad payload: hint"),
    "G05-inputs": (graph(BSP, [X], ["y"], [node(5, 1, b"", ["x"], ["y"])]), "node 5 (Add): 1 inputs, needs 2"),
    "G05-absent": (graph(BSP, [X], ["y"], [node(5, 1, b"", ["", "x"], ["y"])]), "node 5 (Add): 0 inputs, needs 2"),
    "G05-outputs": (graph(BSP, [X], ["y"], [node(5, 1, b"", ["x", "x"], ["y", "z"])]), "node 5 (Add): 2 outputs, needs 1"),
    "G05-split": (graph(BSP, [X], ["y"], [node(5, 9, u32(2) + u32(2) + u32(1) + u32(3), ["x"], ["y"])]),
                  "node 5 (Split): 1 outputs, needs 2"),
    "G06-id": (graph(BSP, [X], ["y"], [ADD, node(5, 1, b"", ["x", "x"], ["z"])]), "duplicate node id 5"),
    "G07-twice": (graph(BSP, [X], ["y"], [ADD, node(6, 1, b"", ["x", "x"], ["y"])]), '"y" is produced by nodes 5 and 6'),
    "G07-input": (graph(BSP, [X], ["x"], [node(6, 1, b"", ["x", "x"], ["x"])]), '"x" is produced by node 6 and is an input'),
    "G07-weight": (graph(BSP, [X], ["y"], [node(6, 1, b"", ["x", "x"], ["q"])]), '"q" is produced by node 6 and is a weight'),
    "G07-reserved": (graph(BSP, [X], ["y"], [node(6, 1, b"", ["x", "x"], ["cyb.y"])]),
                     '"cyb.y" is produced by node 6 and is a weight'),
    "G08-unknown": (graph(BSP, [X], ["y"], [node(5, 1, b"", ["x", "model.nothing"], ["y"])]),
                    'node 5: "model.nothing" is not an input, an earlier output or a weight'),
    "G08-cycle": (graph(BSP, [X], ["y"], [node(5, 1, b"", ["x", "z"], ["y"]), node(6, 1, b"", ["y", "y"], ["z"])]),
                  'node 5: "z" is not an input, an earlier output or a weight'),
    "G09-ids": (graph(BSP, [X], ["y"], [node(5, 120, b"", ["x", "model.embed.weight"], ["y"])]),
                "node 5 (TokenEmbed): dtype f32 not allowed for input 0"),
    "G09-input": (graph(BSP, [("x", "bf16", [4])], ["x"], []), 'input "x": dtype bf16 is for weights only'),
    "G09-tag": (graph(BSP, [("x", 14, [4])], ["x"], []), 'input "x": unknown dtype tag 14'),
    "G09-mixed": (graph(BSP, [X, ("z", "f16", ["B", "S", 4])], ["y"], [node(5, 1, b"", ["x", "z"], ["y"])]),
                  "node 5 (Add): dtype f16 not allowed for input 1"),
    "G10-shape": (graph(BSP, [("x", "f32", ["B", 5])], ["y"], [node(5, 0, b"", ["x", "w"], ["y"])]),
                  "node 5 (Matmul): shape "),
    "G10-symbol": (graph(["B"], [("x", "f32", [-3])], ["x"], []), 'input "x": dimension -3 names no symbol'),
    "G10-symbol-last": (graph(["B"], [("x", "f32", [-(2**63)])], ["x"], []),
                        'input "x": dimension -9223372036854775808 names no symbol'),
    "G10-rank": (graph(BSP, [("x", "f32", [1] * 9)], ["x"], []), 'input "x": rank 9 > 8'),
    "G10-twice": (graph(["B", "B"], [("x", "f32", ["B"])], ["x"], []), 'symbol "B" is declared twice'),
    "G11-output": (graph(BSP, [X], ["y", "nothing"], [ADD]), 'output "nothing" is never produced'),
    "G12-layer": (graph(BSP, [KV], ["k"], [node(3, 23, u32(4) + u32(0), ["kv", "kv"], ["k", "v"]),
                                          node(4, 23, u32(4) + u32(0), ["kv", "kv"], ["k2", "v2"])]),
                  "node 4: duplicate state layer 4"),
}
tail = GOOD[:-4] + b"xyz"
BAD["G02-tail"] = (tail + struct.pack("<I", crc32c(tail)), "3 bytes after the last node")


def write(name, content):
    with open(os.path.join(OUT, name), "w", encoding="utf-8", newline="\n") as out:
        out.write(content)


def main():
    os.makedirs(os.path.join(OUT, "bad"), exist_ok=True)
    write("sample.hex", to_hex(SAMPLE))
    write("sample.toml", SAMPLE_TOML)
    for name, (data, _) in BAD.items():
        write(f"bad/{name}.hex", to_hex(data))
    expected = {name: {"code": name[:3], "text": "graph: " + message} for name, (_, message) in BAD.items()}
    write("bad/expected.json", json.dumps(expected, indent=1) + "\n")
    print(len(BAD), "files")


if __name__ == "__main__":
    main()
