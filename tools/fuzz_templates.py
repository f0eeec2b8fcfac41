#!/usr/bin/env python3
"""Random chat templates, rendered by `cyb-llm render` and by jinja2 as transformers sets it up: the same bytes, or an
error of both. Prints what differs, made smaller by leaving out what does not matter.

usage: fuzz_templates.py [--program P] [--seconds N] [--seed S]
Exit code 1 if anything differs."""
import argparse
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from transformers.utils import chat_template_utils

VARIABLES = {
    "n": 7, "z": 0, "neg": -13, "f": 2.5, "big": 9007199254740993, "s": "Hello, World", "u": "né \u00df \U0001F600 x\n y", "e": "",
    "t": True, "fa": False, "no": None, "l": [3, 1, 2, 1], "ls": ["b", "A", "c"], "el": [], "d": {"a": 1, "b": "two", "c": None},
    "ed": {}, "ld": [{"k": 1, "v": "x", "g": "p"}, {"k": 2, "v": "y", "g": "q"}, {"k": 3, "v": "X", "g": "p"}],
    "nest": {"x": {"y": [1, {"z": "deep"}]}}, "html": "<a href=\"x\">&'</a>", "sp": "  pad\t\n", "num": "42", "fl": [1.5, -0.0, 1e16, 1e-7],
    "tags": "a &lt;b&gt; <i class='x'>two</i>  &amp;amp; &copy &notit; &#x41;&#65 &#0;&#150; <!-- c > -->z < &bogus; &#xZ; &AMP",
    "wrap": "The goof-ball -- said: use the -b option--now, non-\tstop re-re-run (a-b)  \n\n  supercalifragilistic é-ü-x \U0001F600---y x_y-2-z",
    "deep": {"zeta": ["word " * 9, {"b": list(range(30)), "a": "it's \"q\"\nline two is a long one that has to be wrapped, and on and on it goes"}], "alpha": None, "m": {"k": [[1, 2], [3]]}},
    "query": {"a b": "c/d&e", "é": [1], "n": None}, "pairs": [["k", "v w"], ["x", 1]], "sizes": [0, 1, 999, 1000, 1048576, 1e10, -5.5, 123456789012345],
}
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"q": 1}}}]}]
NAMES = list(VARIABLES) + ["messages", "undef", "bos_token", "add_generation_prompt"]
STRINGS = ["", "a", "Hello", "l", "o, ", "%s-%d", "x y", "é", "\\n", "A1", "  b ", "key", "{}"]
FILTERS = ["upper", "lower", "trim", "length", "count", "first", "last", "join", "join(', ')", "list", "string", "int", "float", "abs", "sort", "reverse",
           "unique", "sum", "min", "max", "tojson", "tojson(indent=2)", "default('D')", "default('D', true)", "d(1)", "title", "capitalize", "items",
           "dictsort", "replace('l', 'L')", "replace('l', 'L', 1)", "map('upper')", "map(attribute='k')", "map(attribute='zz', default=0)", "select", "reject",
           "select('odd')", "selectattr('k', 'gt', 1)", "rejectattr('g', 'equalto', 'p')", "selectattr('v')", "groupby('g')", "batch(2)", "batch(2, '-')",
           "slice(2)", "indent", "indent(2, true)", "round", "round(1)", "round(0, 'floor')", "escape", "e", "safe", "wordcount", "center(9)", "attr('a')",
           "sort(reverse=true)", "sort(attribute='k')", "sum(attribute='k')", "format(1, 2)", "truncate(5)", "striptags", "urlencode", "pprint", "random_no",
           "map('string')", "map('length')", "xmlattr", "filesizeformat", "forceescape", "wordwrap(4)",
           "wordwrap(9)", "wordwrap", "wordwrap(7, false)", "wordwrap(11, true, '|')", "wordwrap(6, break_on_hyphens=false)", "wordwrap(8, false, '/', false)",
           "filesizeformat(true)", "xmlattr(false)", "map('filesizeformat')", "map('urlencode')"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "iterable", "sequence", "callable",
         "odd", "even", "divisibleby(3)", "lower", "upper", "sameas(none)", "eq(1)", "ne(1)", "gt(1)", "in([1, 2])", "equalto('a')", "escaped", "filter"]
METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "strip('H')", "split()", "split(',')", "split('o', 1)", "rsplit(' ', 1)", "splitlines()",
           "replace('l', 'L')", "startswith('H')", "endswith('d')", "startswith(('a', 'H'))", "title()", "capitalize()", "count('l')", "find('o')", "index('l')",
           "join(['a', 'b'])", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()", "islower()", "zfill(4)", "ljust(9, '.')", "rjust(9)", "center(9)",
           "swapcase()", "casefold()", "partition(',')", "rpartition(',')", "removeprefix('He')", "removesuffix('ld')", "format(1, a=2)", "items()", "keys()",
           "values()", "get('a')", "get('zz', 3)", "copy()", "append(1)", "pop()", "index(1)", "count(1)", "a", "b.c", "x.y", "k", "role", "__class__", "expandtabs(2)", "expandtabs()", "expandtabs(tabsize=0)",
           "encode()", "translate({})", "nosuch()"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = list(NAMES)

    def pick(self, items):
        return self.r.choice(items)

    def literal(self):
        k = self.r.randrange(9)
        if k < 3:
            return str(self.pick([0, 1, 2, 3, 5, 10, -1, 255]))
        if k == 3:
            return self.pick(["1.5", "0.1", "2.0", "1e3", "1_000"])
        if k < 7:
            return self.pick(["'%s'", '"%s"']) % self.pick(STRINGS)
        return self.pick(["true", "false", "none", "True", "None", "[]", "{}", "()", "[1, 'a']", "{'k': 1, 2: [3]}", "(1, 2)", "(1,)", "'a' 'b'"])

    def expr(self, depth):
        if depth <= 0 or self.r.random() < 0.15:
            return self.pick(self.names) if self.r.random() < 0.6 else self.literal()
        k = self.r.randrange(14)
        sub = lambda: self.expr(depth - 1)
        if k < 2:
            return f"{sub()} {self.pick(BINARY)} {sub()}"
        if k == 2:
            return f"({sub()})"
        if k == 3:
            return self.pick(["not ", "-", "+"]) + sub()
        if k < 6:
            return f"{self.atom(depth)}|{self.pick(FILTERS)}"
        if k == 6:
            return f"{self.atom(depth)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if k < 9:
            return f"{self.atom(depth)}.{self.pick(METHODS)}"
        if k == 9:
            index = self.pick(["0", "-1", "1", "'a'", "'k'", "9", "1:", ":2", "::-1", "1:3", "-2:", "::2", "5:1:-2", self.expr(0)])
            return f"{self.atom(depth)}[{index}]"
        if k == 10:
            return f"{sub()} if {sub()}" + (f" else {sub()}" if self.r.random() < 0.7 else "")
        if k == 11:
            return "[" + ", ".join(sub() for _ in range(self.r.randrange(4))) + "]"
        if k == 12:
            return "{" + ", ".join(f"'{self.pick(['a', 'b', 'k'])}': {sub()}" for _ in range(self.r.randrange(3))) + "}"
        return self.pick(["range(3)", "range(1, 9, 3)", "range(n)", "dict(a=1, b=n)", "namespace(a=1)", "cycler('a', 'b').next()", "joiner('|')()", "lipsum",
                          "[3, 1]|sort|join", "messages[0].role", "messages[-1]['tool_calls'][0].function", "messages|length", f"range({self.expr(0)})|list"])

    def atom(self, depth):
        k = self.r.random()
        return self.pick(self.names) if k < 0.7 else self.literal() if k < 0.8 else f"({self.expr(depth - 1)})"

    def text(self):
        return self.pick(["a", " ", "\n", "x\n", "  ", "\n  ", "é", "<b>", "{", "}", "# x", "\n\n", "\t", "%"])

    def tag(self, inside):
        return "{%" + self.pick(["", "", "-", "+"]) + " " + inside + " " + self.pick(["", "", "-", "+"]) + "%}"

    def block(self, depth):
        return "".join(self.node(depth) for _ in range(self.r.randrange(1, 4)))

    def node(self, depth):
        k = self.r.randrange(20)
        if k < 5:
            return self.text()
        if k < 11 or depth <= 0:
            return "{{" + self.pick(["", "-"]) + " " + self.expr(3) + " " + self.pick(["", "-"]) + "}}"
        inner = lambda: self.block(depth - 1)
        if k == 11:
            out = self.tag("if " + self.expr(2)) + inner()
            if self.r.random() < 0.4:
                out += self.tag("elif " + self.expr(2)) + inner()
            if self.r.random() < 0.5:
                out += self.tag("else") + inner()
            return out + self.tag("endif")
        if k < 14:
            names, target = self.names, self.pick(["i", "m", "k, v", "i"])
            source = self.pick(["l", "ls", "ld", "range(3)", "d.items()", "messages", "el", "s", self.expr(1)])
            condition = self.pick(["", "", "", " if " + self.expr(1), " recursive"])
            self.names = names + target.split(", ") + ["loop.index", "loop.index0", "loop.first", "loop.last", "loop.length", "loop.revindex", "loop.previtem",
                                                      "loop.nextitem", "loop.cycle('a', 'b')", "loop.changed(n)", "loop.depth"]
            body = inner()
            if self.r.random() < 0.15:
                body += self.tag("if loop.index > 1") + self.tag(self.pick(["break", "continue"])) + self.tag("endif") + inner()
            self.names = names
            tail = self.tag("else") + inner() if self.r.random() < 0.2 else ""
            return self.tag(f"for {target} in {source}{condition}") + body + tail + self.tag("endfor")
        if k < 16:
            name = self.pick(["q", "w", "n", "s", "q, w"])
            out = self.tag(f"set {name} = {self.expr(2)}")
            self.names = self.names + name.split(", ")
            return out
        if k == 16:
            self.names = self.names + ["q"]
            return self.tag("set q" + self.pick(["", " | upper", " | trim"])) + inner() + self.tag("endset")
        if k == 17:
            return self.tag("set ns = namespace(c=0)") + self.tag("for i in l") + self.tag(f"set ns.c = ns.c + {self.expr(1)}") + self.tag("endfor") + "{{ ns.c }}"
        if k == 18:
            call = self.pick(["{{ mac(1) }}", "{{ mac(n, b=s) }}", "{{ mac() }}", "{% call mac(2) %}in{% endcall %}", "{{ mac(1, 2, 3) }}", "{{ mac(zz=1) }}", "{{ mac }}"])
            body = self.pick(["", "{{ caller() if caller }}", "{{ varargs }}", "{{ kwargs }}", "{{ a }}{{ b }}"])
            return self.tag("macro mac(a, b='B')") + body + inner() + self.tag("endmacro") + call
        return self.pick(["{# note #}", "{#- note -#}", "{% raw %}{{ x }}{% endraw %}", "{% filter upper %}" + inner() + "{% endfilter %}",
                          "{% with q = " + self.expr(1) + " %}" + inner() + "{% endwith %}", "{% generation %}" + inner() + "{% endgeneration %}",
                          "{{ raise_exception('stop') if " + self.expr(1) + " }}", "{% do l %}", "{{ strftime_now('%Y') }}"])


def jinja(source):
    try:
        return chat_template_utils._compile_jinja_template(source).render(
            messages=copy.deepcopy(MESSAGES), tools=None, documents=None, add_generation_prompt=False, bos_token="<B>", eos_token="<E>", **copy.deepcopy(VARIABLES))
    except Exception as error:
        return error


class Checker:
    def __init__(self, program, folder):
        self.template = pathlib.Path(folder, "t.jinja")
        self.messages = pathlib.Path(folder, "m.json")
        self.messages.write_text(json.dumps(MESSAGES))
        self.command = [program, "render", "--template", self.template, "--messages", self.messages, "--bos", "<B>", "--eos", "<E>"]
        for name, value in VARIABLES.items():
            self.command += ["--template-arg", f"{name}={json.dumps(value)}"]

    def differs(self, source):
        """None, or what differs. A construct that the program refuses by its name counts as refused."""
        self.refused = False
        try:
            self.template.write_text(source, encoding="utf-8", newline="")
        except UnicodeEncodeError:
            return None
        want = jinja(source)
        got = subprocess.run(self.command, capture_output=True, timeout=60)
        if isinstance(want, Exception):
            return None if got.returncode == 2 else f"jinja2 {type(want).__name__}: {want}; the program exits {got.returncode}: {got.stdout[:200]!r}"
        if " at 0x" in want:  # addresses of Python's own objects
            return None
        if got.returncode == 2 and any(w in got.stderr for w in (b"not supported", b"an integer is out of range")):
            self.refused = True
            return None
        if got.returncode != 0:
            return f"jinja2 {want[:200]!r}; the program: {got.stderr.decode()[:200]}"
        return None if got.stdout == want.encode("utf-8", "surrogatepass") else f"jinja2 {want[:200]!r}; the program {got.stdout.decode(errors='replace')[:200]!r}"

    def smaller(self, source, deadline):
        """The source with whatever can go left out."""
        step = max(1, len(source) // 2)
        while step >= 1 and time.time() < deadline:
            at = 0
            while at < len(source) and time.time() < deadline:
                shorter = source[:at] + source[at + step:]
                if self.differs(shorter):
                    source = shorter
                else:
                    at += step
            step //= 2
        return source


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/cyb-llm")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    end, seed, equal, errors, refused, found = time.time() + args.seconds, args.seed, 0, 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(args.program, folder)
        while time.time() < end and len(found) < 40:
            source = Maker(seed).block(3)
            seed += 1
            if checker.differs(source) is None:
                refused += checker.refused
                equal += not checker.refused
                errors += isinstance(jinja(source), Exception)
                continue
            source = checker.smaller(source, time.time() + 5)
            found.append(source)
            print(f"seed {seed - 1}: {source!r}\n    {checker.differs(source)}", flush=True)
    print(f"{equal + refused + len(found)} templates ({errors} of them errors): {equal} equal, {refused} refused by name, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
