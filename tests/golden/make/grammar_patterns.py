#!/usr/bin/env python3
"""Golden tables of patterns and Lark grammars.

../grammar/regex.json: random regular expressions and texts with re.fullmatch's verdict (Python, re.ASCII).
../grammar/lark.json: grammars and texts with the verdict of lark 1.2.2's Earley parser, lexer dynamic_complete."""
import json
import os
import random
import re

import lark

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "grammar")
ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", "[a-c0-2]", "\\d", "\\w", "\\s", "\\D", "\\.", "\\x61", "é", "[^\\W_]", "\\u00e9", "[\\]a-]", "\\n"]
TIMES = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "{0,20}"]


def pattern(rng, depth):
    parts = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(5)
        if kind < 3 or depth == 0:
            parts.append(rng.choice(ATOMS) + rng.choice(TIMES))
        else:
            inner = "|".join(pattern(rng, depth - 1) for _ in range(rng.randrange(1, 4)))
            parts.append(rng.choice(["(", "(?:", "(?P<n%d>" % rng.randrange(10**6)]) + inner + ")" + rng.choice(TIMES))
    return "".join(parts)


def text(rng):
    return "".join(rng.choice("aabbc012. -\né_]x") for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, 6, 9])))


def regexes():
    rng, out = random.Random(4), []
    while len(out) < 400:
        p = pattern(rng, 2)
        compiled = re.compile(p, re.ASCII)
        texts = {text(rng) for _ in range(60)}
        fits = [t for t in sorted(texts) if compiled.fullmatch(t)]
        other = [t for t in sorted(texts) if not compiled.fullmatch(t)]
        out.append([p, fits[:8], other[:8]])
    return out


CALC = """?start: sum
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub   // a comment
?product: atom
    | product "*" atom  -> mul
?atom: NUMBER           -> number
     | "-" atom         -> neg
     | "(" sum ")"

%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
JSON = """?start: value
?value: object
      | array
      | string
      | SIGNED_NUMBER      -> number
      | "true"             -> true
      | "false"            -> false
      | "null"             -> null
array  : "[" [value ("," value)*] "]"
object : "{" [pair ("," pair)*] "}"
pair   : string ":" value
string : ESCAPED_STRING
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
"""
WORDS = """start: (A ~ 2..3 | "x"i [B])+ _END
A: "a".."f"
B: /b+[0-9]?/i | "\\\\" | "\\u00e9"
_END: ";" | "!" ~ 2
"""
SQL = """start: "SELECT"i _list "FROM"i CNAME [where] ";"
_list: CNAME ("," CNAME)* | "*"
where: "WHERE"i cond (("AND" | "OR") cond)*
cond: CNAME OP (INT | ESCAPED_STRING)
OP: "=" | "<" | ">" | "<="
%import common.CNAME
%import common.INT
%import common.ESCAPED_STRING
%import common.WS
%ignore WS
%ignore /--[^\\n]*/
"""
LARK = [
    (CALC, ["1", "1+2", "1 + 2*(3-4)", "-1.5e3 *2", "((1))", "", "1+", "(1", "1 2", "+1", " 1 +  2", "1\n", "1--1", "*"]),
    (JSON, ["{}", "[]", '{"a": [1, -2.5, "x\\"y", true, null]}', '[1,]', "{a:1}", '{"a" 1}', "[\n1 ,\t2]", '"s"', "", "[[[]]]", "{\"a\":{}}", "tru"]),
    (WORDS, ["aa;", "abc;", "a;", "abcd;", "aax;", "Xb!!", "xB1;", "x\\;", "xé!!", "xbb12;", "aa!", "xx;", ";", "abcdef;"]),
    (SQL, ["SELECT a FROM t;", "select * from t ;", "SELECT a,b FROM t WHERE a=1 AND b<\"x\";", "SELECT FROM t;", "SELECT a FROM t WHERE;",
           "SELECT a -- c\nFROM t;", "SELECT a FROM t WHERE a = 1 OR b <= 2;", "SELECT a FROM t"]),
]


def larks():
    out, rng = [], random.Random(9)
    for source, texts in LARK:
        parser = lark.Lark(source, parser="earley", lexer="dynamic_complete")
        more = set()
        for base in texts:
            for _ in range(6):
                data = list(base)
                at = rng.randrange(len(data) + 1)
                data[at:at + rng.randrange(2)] = rng.choice(list('()+-*1 2"a;,xb[]{}\n'))
                more.add("".join(data))
        rows = []
        for t in texts + sorted(more - set(texts)):
            try:
                parser.parse(t)
                rows.append([t, True])
            except lark.exceptions.LarkError:
                rows.append([t, False])
        out.append({"grammar": source, "texts": rows})
    return out


def write(name, rows):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")


write("regex.json", regexes())
write("lark.json", larks())
