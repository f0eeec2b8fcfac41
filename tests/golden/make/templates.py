#!/usr/bin/env python3
"""Render chat templates and small template constructs with jinja2 and write what comes out.

For each tests/golden/template/NAME.jinja: NAME.cases.json; and constructs.cases.json for the language itself.
Made with jinja2 3.1.6, set up as transformers 5.24.0 does (utils/chat_template_utils.py); with --check the same
cases also run through transformers' own compile function. The README beside the files says how to read them.
"""
import argparse
import json
import os
import sys
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "template")
CLOCK = datetime(2026, 7, 26, 15, 4, 5)  # what strftime_now sees


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks assistant text; renders to its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


class Dict:
    """What templates see as `dict`: callable, and nothing else of the real class."""

    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


class Namespace(jinja2.utils.Namespace):
    """namespace() without attributes that begin with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(
                f"Chat templates cannot store underscore-prefixed attributes on a namespace, but got {name!r}. "
                "Please rename the attribute.")


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = CLOCK.strftime
    env.globals["dict"] = Dict()
    env.globals["namespace"] = Namespace
    return env


def outcome(render, variables):
    """{"expected": text}, or the error that rendering ends with."""
    try:
        return {"expected": render(**json.loads(json.dumps(variables)))}
    except Exception as error:  # the class and text of whatever it is are the golden
        row = {"error": str(error), "error_type": type(error).__name__}
        if getattr(error, "lineno", None):
            row["line"] = error.lineno
        return row


def case(name, source, variables, head=None):
    def render(**kw):
        return environment().from_string(source).render(**kw)
    return {"name": name, **(head or {}), "vars": variables, **outcome(render, variables)}


# ---------------------------------------------------------------- conversations

def msg(role, content, **kw):
    return {"role": role, "content": content, **kw}


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather at a place <now> & \"soon\"",
     "parameters": {"type": "object", "properties": {"place": {"type": "string", "description": "city, e.g. Zürich"},
                                                      "days": {"type": "integer", "minimum": 1}}, "required": ["place"]}}},
    {"type": "function", "function": {"name": "noop", "description": "does nothing", "parameters": {"type": "object", "properties": {}}}},
]
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "東京", "days": 2, "x": 1.5, "y": None, "z": True}}}

CHATS = {
    "user": [msg("user", "Hello!")],
    "system_user": [msg("system", "You are terse."), msg("user", "Hello!")],
    "multi_turn": [msg("user", "Hi"), msg("assistant", "Hello, how can I help?"), msg("user", "Tell me a joke."), msg("assistant", "No."), msg("user", "Please?")],
    "system_multi_turn": [msg("system", "Be kind."), msg("user", "Hi"), msg("assistant", "Hello"), msg("user", "Bye")],
    "assistant_last": [msg("user", "Count to three."), msg("assistant", "One, two,")],
    "empty_content": [msg("user", "")],
    "empty_system": [msg("system", ""), msg("user", "x")],
    "spaces": [msg("system", "  padded  "), msg("user", "\n  leading and trailing \t\n"), msg("assistant", "  reply \n\n"), msg("user", " again ")],
    "unicode": [msg("system", "Réponds en français. 日本語も可。"), msg("user", "Grüße 👋🏽 — „Привет“ 안녕 \u00a0x\u2003")],
    "markup_in_content": [msg("user", "<|im_end|> </s> {{ 7*7 }} {% if x %} <end_of_turn> & < > \" ' \\n")],
    "newlines": [msg("user", "a\nb\r\nc\n\n\nd")],
    "long": [msg("user", "word " * 200 + "end")],
    "two_systems": [msg("system", "A"), msg("user", "B"), msg("system", "C")],
    "two_systems_first": [msg("system", "A"), msg("system", "B"), msg("user", "C")],
    "two_users": [msg("user", "A"), msg("user", "B")],
    "assistant_first": [msg("assistant", "A"), msg("user", "B")],
    "system_only": [msg("system", "alone")],
    "unknown_role": [msg("user", "A"), msg("critic", "B")],
    "thinking_inline": [msg("user", "2+2?"), msg("assistant", "<think>\nadd them\n</think>\n\n4"), msg("user", "3+3?")],
    "thinking_field": [msg("user", "2+2?"), msg("assistant", "4", reasoning_content="\nadd them\n"), msg("user", "3+3?"), msg("assistant", "6", reasoning_content="again")],
    "thinking_last": [msg("user", "2+2?"), msg("assistant", "<think>\nadd\n</think>\n\n4")],
    "tool_call": [msg("user", "Weather?"), msg("assistant", "", tool_calls=[CALL]), msg("tool", "{\"temp\": 21}", tool_call_id="call00001"), msg("assistant", "21 degrees."), msg("user", "Thanks")],
    "tool_call_text": [msg("system", "S"), msg("user", "Weather?"), msg("assistant", "Let me look.", tool_calls=[CALL, CALL]), msg("tool", "a", tool_call_id="call00001"), msg("tool", "b", tool_call_id="call00001")],
    "content_parts": [msg("user", [{"type": "text", "text": " What is this? "}, {"type": "image"}, {"type": "text", "text": "And that?"}])],
    "system_parts": [msg("system", [{"type": "text", "text": "Be brief."}]), msg("user", [{"type": "text", "text": "Hi"}])],
}

MODELS = {
    "smollm2": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"},
    "qwen2.5-coder": {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"},
    "qwen3": {"eos_token": "<|im_end|>"},
    "llama2": {"bos_token": "<s>", "eos_token": "</s>"},
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
    "llama3.1": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "mistral": {"bos_token": "<s>", "eos_token": "</s>"},
    "mistral-nemo": {"bos_token": "<s>", "eos_token": "</s>"},
    "gemma3": {"bos_token": "<bos>", "eos_token": "<end_of_turn>"},
}


def model_cases(name, source):
    rows = []
    for chat, messages in CHATS.items():
        for prompt in (True, False):
            variables = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": prompt, **MODELS[name]}
            rows.append(case(f"{chat}{'+prompt' if prompt else ''}", source, variables))
    for chat in ("user", "system_user", "tool_call", "tool_call_text"):
        variables = {"messages": CHATS[chat], "tools": TOOLS, "documents": None, "add_generation_prompt": True, **MODELS[name]}
        rows.append(case(f"{chat}+tools", source, variables))
        rows.append(case(f"{chat}+no_tools_list", source, {**variables, "tools": []}))
    for extra in ({"enable_thinking": False}, {"enable_thinking": True}, {"date_string": "1 Jan 2027"}):
        variables = {"messages": CHATS["system_multi_turn"], "tools": None, "documents": None, "add_generation_prompt": True, **MODELS[name], **extra}
        key, value = next(iter(extra.items()))
        rows.append(case(f"{key}={value}", source, variables))
    return rows


# ---------------------------------------------------------------- the language

ABC = {"messages": [msg("system", "S"), msg("user", "A"), msg("user", "B"), msg("assistant", "C")]}
L5 = {"xs": [1, 2, 3, 4, 5]}
D = {"d": {"b": 1, "a": 2, "c": [1, {"k": "v"}]}}
S = {"s": "  Hello, World  "}

HTML = {"h": "<a href=\"x\">&'</a>", "t": " a  &lt;b&gt; <i>two</i> &amp;amp; &copy &notit; &#x41;&#65 &#0;&#150; <!-- c > -->z < &bogus; &#xZ; &AMP", "q": {"a b": "c/d&e", "é": [1]},
        "ns": [0, 1, 999, 1000, 1048576, 1e10, -5.5, 123456789012345, 1e24, 1e30], "w": "The goof-ball -- said: use the -b option--now, re-re-run  \n\n supercalifragilistic é-ü-x",
        "deep": {"zeta": ["word " * 9, {"b": list(range(30)), "a": "it's \"q\"\nline two is a long one that has to be wrapped, and on and on it goes"}], "alpha": None, "m": {"k": [[1, 2]]}}}

CONSTRUCTS = [
    # C01: slices with steps, reverse loops and namespaces
    ("slice_reverse", "{% for m in messages[::-1] %}{{ m.content }}{% endfor %}", ABC),
    ("last_user_index", "{% set ns = namespace(i=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.i = loop.index0 %}{% endif %}{% endfor %}{{ ns.i }}", ABC),
    ("last_user_reverse", "{% set ns = namespace(found=false, i=0) %}{% for m in messages[::-1] %}{% if not ns.found and m.role == 'user' %}{% set ns.found = true %}{% set ns.i = (messages|length - 1) - loop.index0 %}{% endif %}{% endfor %}{{ ns.i }}", ABC),
    ("slices", "{{ xs[1:] }}|{{ xs[:-1] }}|{{ xs[1:4:2] }}|{{ xs[::-2] }}|{{ xs[-2:] }}|{{ xs[10:] }}|{{ xs[:] }}|{{ xs[3:1:-1] }}", L5),
    ("slice_string", "{{ s[2:7] }}|{{ s[::-1] }}|{{ s[:-1] }}|{{ 'añ漢😀'[1:3] }}", S),
    ("slice_step_zero", "{{ xs[::0] }}", L5),
    ("index", "{{ xs[0] }}{{ xs[-1] }}|{{ d['b'] }}{{ d.a }}|{{ d.c[1].k }}|{{ xs[9] }}|{{ d.nope }}|{{ 'abc'[1] }}", {**L5, **D}),
    # constants that jinja2 works out beforehand: what cannot be sliced is undefined there
    ("fold_filter", "{{ 5[1:]|default('D') }}|{{ {}[1:]|length }}|{{ [5[1:]]|length }}|{{ 'abc'[1:]|upper }}", {}), ("fold_in", "{{ 1 in 5[1:] }}|{{ true[:2] ~ 'x' }}", {}),
    ("fold_fails", "{% set x = 5[1:] %}{{ x }}", {}), ("fold_map", "{{ 5[1:]|map('upper')|list }}", {}), ("fold_if", "{% if 5[1:] is defined %}a{% else %}b{% endif %}", {}),
    ("generator_in_dict", "{{ xs|unique in {} }}", L5), ("empty_times_many", "{{ '' * 9007199254740993 }}|{{ [] * 4000000000 }}", {}),
    ("macro_in_macro", "{% macro o(a) %}{% macro i(b) %}{{ kwargs }}{% endmacro %}{{ a }}{% endmacro %}{{ o(1, zz=2) }}", {}),
    # filters beside the usual ones
    ("forceescape", "{{ h|forceescape }}|{{ h|e|forceescape }}|{{ h|safe|forceescape }}", HTML), ("striptags", "{{ h|striptags }}|{{ t|striptags }}", HTML),
    ("urlencode", "{{ 'a b/c?é&=~'|urlencode }}|{{ q|urlencode }}|{{ [['k', 'v w'], ['/', 1]]|urlencode }}|{{ 5|urlencode }}|{{ none|urlencode }}|{{ xs|urlencode }}", {**HTML, "xs": []}),
    ("urlencode_pairs", "{{ [[1, 2, 3]]|urlencode }}", {}), ("xmlattr", "{{ q|xmlattr }}|{{ {'x': '<\"&'}|xmlattr(false) }}|{{ {'n': none}|xmlattr }}", HTML),
    ("xmlattr_key", "{{ {'a=b': 1}|xmlattr }}", {}), ("filesizeformat", "{% for n in ns %}{{ n|filesizeformat }};{{ n|filesizeformat(true) }}|{% endfor %}{{ '2e6'|filesizeformat }}", HTML),
    ("wordwrap", "{{ w|wordwrap(9) }}|{{ w|wordwrap(6, false) }}|{{ w|wordwrap(12, true, '/') }}|{{ w|wordwrap(7, break_on_hyphens=false) }}|{{ w|wordwrap }}", HTML),
    ("wordwrap_width", "{{ 'a'|wordwrap(0) }}", {}), ("pprint", "{{ deep|pprint }}|{{ 'x'|pprint }}|{{ w|pprint }}|{{ (1,)|pprint }}", HTML),
    ("expandtabs", "{{ 'a\\tbc\\t\\nd\\té\\tf'.expandtabs() }}|{{ '\\ta'.expandtabs(3) }}|{{ 'a\\tb'.expandtabs(tabsize=0) }}", {}),
    # white space control
    ("trim_blocks", "a\n{% if true %}\nb\n{% endif %}\nc\n", {}),
    ("lstrip_blocks", "x\n   {% if true %}y{% endif %}\n   {{ 1 }}\n  z {% if true %}w{% endif %}", {}),
    ("minus", "a  \n {%- if true -%}  \n b \n {%- endif -%} \n c", {}),
    ("minus_expr", "a \n {{- 1 -}} \n b {{ 2 }} \n c", {}),
    ("plus", "a\n   {%+ if true %}b{% endif +%}\nc", {}),
    ("minus_comment", "a  {#- gone -#}  b\n{# line #}\nc{# x #}\n", {}),
    ("final_newline", "a\n", {}), ("two_final_newlines", "a\n\n", {}), ("crlf", "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc", {}),
    ("expr_newline_kept", "{{ 1 }}\n{{ 2 }}\n", {}),
    ("tab_lstrip", "\t{% set x = 1 %}\n\t {{ x }}", {}),
    ("raw", "{% raw %}{{ not }} {% if %}{% endraw %}{{ 1 }}", {}),
    ("raw_minus", "a {%- raw -%}  {{ x }}  {%- endraw -%} b", {}),
    # loops
    ("loop_vars", "{% for x in xs %}{{ loop.index }},{{ loop.index0 }},{{ loop.revindex }},{{ loop.revindex0 }},{{ loop.first }},{{ loop.last }},{{ loop.length }},{{ loop.depth }};{% endfor %}", {"xs": ["a", "b"]}),
    ("loop_prev_next", "{% for x in xs %}{{ loop.previtem if not loop.first else '-' }}{{ x }}{{ loop.nextitem if not loop.last else '-' }} {% endfor %}", L5),
    ("loop_cycle_changed", "{% for x in [1,1,2,2,1] %}{{ loop.cycle('a','b') }}{{ loop.changed(x) }} {% endfor %}", {}),
    ("loop_else", "{% for x in [] %}{{ x }}{% else %}none{% endfor %}{% for x in [1] %}{{ x }}{% else %}none{% endfor %}", {}),
    ("loop_filter", "{% for x in xs if x is odd %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}", L5),
    ("loop_unpack", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for a, b in [[1,2],[3,4]] %}{{ a+b }} {% endfor %}", D),
    ("loop_dict", "{% for k in d %}{{ k }}{% endfor %}", D),
    ("loop_string", "{% for c in 'añ漢' %}[{{ c }}]{% endfor %}", {}),
    ("loop_scope", "{% set x = 1 %}{% for i in [1,2] %}{% set x = i + 10 %}{{ x }} {% endfor %}{{ x }}", {}),
    ("loop_break", "{% for x in xs %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}", L5),
    ("loop_continue", "{% for x in xs %}{% if x % 2 == 0 %}{% continue %}{% endif %}{{ x }}{% endfor %}", L5),
    ("loop_nested", "{% for a in [1,2] %}{% set outer = loop %}{% for b in 'xy' %}{{ outer.index }}{{ b }}{{ loop.index }} {% endfor %}{% endfor %}", {}),
    ("loop_recursive", "{% for n in t recursive %}[{{ n.v }}{% if n.c %}{{ loop(n.c) }}{% endif %}{{ loop.depth0 }}]{% endfor %}", {"t": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3}]}]}),
    ("range", "{% for i in range(3) %}{{ i }}{% endfor %}|{{ range(1, 10, 3) | list }}|{{ range(5, 0, -2) | list }}|{{ range(0) | list }}", {}),
    # conditions and expressions
    ("if_elif", "{% for x in [0,1,2] %}{% if x == 0 %}zero{% elif x == 1 %}one{% else %}many{% endif %} {% endfor %}", {}),
    ("inline_if", "{{ 'a' if x else 'b' }}{{ 'c' if not x }}{{ ('d' if x) ~ '!' }}", {"x": False}),
    ("truth", "{% for x in [0, 1, '', 'a', [], [0], {}, none, true, 0.0] %}{{ 'T' if x else 'F' }}{% endfor %}{{ 'T' if nope else 'F' }}", {}),
    ("and_or", "{{ 1 and 2 }}|{{ 0 or 'x' }}|{{ not 0 }}|{{ none or false }}|{{ 1 and 0 or 3 }}|{{ '' and nope.y }}", {}),
    ("compare", "{{ 1 < 2 < 3 }}|{{ 1 < 2 > 5 }}|{{ 1 == 1.0 }}|{{ 'a' < 'b' }}|{{ [1,2] == [1,2] }}|{{ none == false }}|{{ 1 != '1' }}", {}),
    ("arithmetic", "{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 2 ** 10 }}|{{ 2 ** -1 }}|{{ 7 / 2 }}|{{ 6 / 2 }}|{{ 1 + 2.5 }}|{{ -2 ** 2 }}|{{ 10 - 2 - 3 }}|{{ 2 ** 3 ** 2 }}", {}),
    ("big_int", "{{ 9007199254740993 }}|{{ 2 ** 62 }}|{{ 1000000 * 1000000 }}", {}),
    ("float_text", "{{ 1.0 }}|{{ 0.1 }}|{{ 1e20 }}|{{ 1.5e-7 }}|{{ 100000000000000000.0 }}|{{ 3.0 * 2 }}|{{ 1/3 }}", {}),
    ("concat", "{{ 1 ~ 'a' ~ none ~ true ~ [1] ~ 2.5 }}|{{ 'a' + 'b' }}|{{ [1] + [2] }}|{{ 'ab' * 3 }}|{{ [0] * 2 }}", {}),
    ("precedence", "{{ 1 + 2 * 3 }}|{{ (1 + 2) * 3 }}|{{ not 1 == 2 }}|{{ 'a' ~ 1 ~ 2 * 3 }}|{{ -1 | abs }}|{{ 'x' in 'xy' and not 'z' in 'xy' }}|{{ 5 - 3 | float }}", {}),
    ("in", "{{ 'a' in 'abc' }}|{{ 2 in xs }}|{{ 'b' in d }}|{{ 9 not in xs }}|{{ '' in 'x' }}|{{ 'k' in d.c[1] }}", {**L5, **D}),
    ("literals", "{{ [1, 'a', none, true, 2.5] }}|{{ {'a': 1, \"b\": [2]} }}|{{ (1, 2) }}|{{ (1,) }}|{{ () }}|{{ true }}{{ True }}{{ None }}{{ none }}{{ False }}", {}),
    ("string_escapes", "{{ 'a\\nb\\tc\\\\d\\'e' }}|{{ \"q\\\"q\" }}|{{ '\\u00e9\\x41' }}|{{ ['a\\nb', \"it's\"] }}", {}),
    ("adjacent_braces", "{ {{ '}' }} } {{ '{{' }}{{ {'a': {'b': 1}}['a']['b'] }}", {}),
    ("undefined", "[{{ nope }}][{{ nope | default('d') }}][{{ nope is defined }}][{{ d.x }}][{{ (d.b is defined) if d.x is defined else 'no' }}]", D),
    ("concat_before_plus", "{{ 'a' ~ 1 + 'b' }}", {}), ("concat_before_plus_error", "{{ 'a' ~ 1 + 2 }}", {}), ("test_takes_if_as_argument", "{{ d.b is defined if d.b else 'no' }}", D),
    ("undefined_attr", "{{ nope.x }}", {}), ("undefined_call", "{{ nope() }}", {}), ("undefined_add", "{{ 'a' + nope }}", {}), ("none_attr", "{{ x.y }}|", {"x": None}),
    ("type_error", "{{ 'a' + 1 }}", {}), ("division_by_zero", "{{ 1 / 0 }}", {}),
    # set, namespace, macro, call, filter
    ("set_multi", "{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set t = (1, 2) %}{% set x, y = t %}{{ x + y }}", {}),
    ("set_block", "{% set x %}a{{ 1 + 1 }}b{% endset %}[{{ x }}]{% set y | upper %}abc{% endset %}{{ y }}", {}),
    ("set_if_scope", "{% if true %}{% set x = 5 %}{% endif %}{{ x }}", {}),
    ("namespace", "{% set ns = namespace(a=1, b='x') %}{% for i in [1,2,3] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}", {}),
    ("namespace_underscore", "{% set ns = namespace(_a=1) %}{{ ns._a }}", {}),
    ("macro", "{% macro m(a, b='B', c=none) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(a='x', c=3) }}{{ m() }}", {}),
    ("macro_varargs", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}", {}),
    ("macro_scope", "{% set g = 'G' %}{% macro m(x) %}{{ g }}{{ x }}{% set g = 'L' %}{{ g }}{% endmacro %}{{ m(1) }}{{ g }}", {}),
    ("macro_recursive", "{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}", {}),
    ("call_block", "{% macro box(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call box('x') %}in{{ 1 }}{% endcall %}", {}),
    ("call_block_args", "{% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each([1,2]) %}<{{ v }}>{% endcall %}", {}),
    ("filter_block", "{% filter upper %}abc{{ 'd' }}{% endfilter %}{% filter replace('a','o') | trim %} banana {% endfilter %}", {}),
    ("with", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}", {}),
    ("generation", "a{% generation %}b{{ 1 }}{% endgeneration %}c", {}),
    ("do_missing", "{% do xs.append(1) %}", L5), ("append_refused", "{{ xs.append(1) }}", L5), ("dunder_refused", "{{ ''.__class__ }}", {}), ("format_map", "{{ '{0}-{a}'.format(1, a=2) }}", {}),
    ("unknown_tag", "line\n{% frobnicate %}", {}), ("unknown_filter", "a\nb {{ 1 | frobnicate }}", {}), ("unknown_test", "{{ 1 is frobnicated }}", {}),
    ("unclosed_if", "a\n{% if true %}b", {}), ("unclosed_expr", "a {{ 1 ", {}), ("stray_end", "{% endif %}", {}), ("bad_expr", "x\n\n{{ 1 + }}", {}),
    ("raise", "a{{ raise_exception('roles must alternate: ' ~ 1) }}b", {}),
    ("raise_untaken", "{% if false %}{{ raise_exception('no') }}{% endif %}ok", {}),
    ("strftime_now", "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %y %%') }}", {}),
    ("dict_joiner", "{{ dict(a=1, b='x') }}{% set j = joiner(', ') %}{% for x in [1,2,3] %}{{ j() }}{{ x }}{% endfor %}{% set c = cycler('a','b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}", {}),
    # filters
    ("f_text", "[{{ s | trim }}][{{ s | upper }}][{{ s | lower }}][{{ s | title }}][{{ 'hello wORLD' | capitalize }}][{{ s | length }}][{{ s | replace('l', 'L') }}][{{ s | replace('l', 'L', 1) }}][{{ 'xxaxx' | trim('x') }}]", S),
    ("f_default", "{{ none | default('d') }}|{{ '' | default('d') }}|{{ '' | default('d', true) }}|{{ nope | d('e') }}|{{ nope | default }}|{{ 0 | default(5, boolean=true) }}", {}),
    ("f_join", "{{ xs | join }}|{{ xs | join(', ') }}|{{ ['a', none, true] | join('-') }}|{{ [{'n': 1}, {'n': 2}] | join('+', attribute='n') }}", L5),
    ("f_first_last", "{{ xs | first }}{{ xs | last }}|{{ 'abc' | first }}{{ 'abc' | last }}|[{{ [] | first }}]", L5),
    ("f_list", "{{ 'añ' | list }}|{{ d | list }}|{{ xs | reverse | list }}|{{ 'abc' | reverse }}|{{ [3,1,2] | sort }}|{{ ['b','A','c'] | sort }}|{{ ['b','A'] | sort(case_sensitive=true) }}|{{ [1,2] | sort(reverse=true) }}", {**L5, **D}),
    ("f_unique_minmax", "{{ [1,2,1,3] | unique | list }}|{{ ['a','A','b'] | unique | list }}|{{ [3,1,2] | min }}|{{ [3,1,2] | max }}|{{ [1,2,3] | sum }}|{{ [{'v': 2}, {'v': 5}] | sum(attribute='v') }}", {}),
    ("f_select", "{{ xs | select('odd') | list }}|{{ xs | reject('odd') | list }}|{{ [0, 1, '', 'a'] | select | list }}|{{ xs | select('greaterthan', 3) | list }}|{{ xs | select('in', [1, 5]) | list }}", L5),
    ("f_selectattr", "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(',') }}|{{ messages | rejectattr('role', 'eq', 'user') | list | length }}|{{ messages | selectattr('nope') | list }}|{{ messages | selectattr('content', 'defined') | list | length }}", ABC),
    ("f_map", "{{ xs | map('string') | list }}|{{ ['a','b'] | map('upper') | join }}|{{ messages | map(attribute='role') | unique | join(' ') }}|{{ [{'a': 1}, {}] | map(attribute='a', default=0) | list }}|{{ ['x'] | map('replace', 'x', 'y') | list }}", {**L5, **ABC}),
    ("f_numbers", "{{ '42' | int }}|{{ 'x' | int }}|{{ 'x' | int(7) }}|{{ '3.7' | int }}|{{ 3.99 | int }}|{{ '2.50' | float }}|{{ 2.675 | round(2) }}|{{ 2.5 | round }}|{{ 3.2 | round(method='ceil') }}|{{ 7 | round }}|{{ -3 | abs }}|{{ '0x1f' | int(base=16) }}", {}),
    ("f_string_escape", "{{ '<a href=\"x\">&\\'' | e }}|{{ '<b>' | escape }}|{{ '<i>' | safe }}|{{ 5 | string ~ '!' }}", {}),
    ("f_tojson", "{{ d | tojson }}|{{ 'é\"<>&\\'\\n\\u2028' | tojson }}|{{ [1, 2.5, 1e20, none, true, 'x'] | tojson }}|{{ 'é' | tojson(ensure_ascii=true) }}", D),
    ("f_tojson_indent", "{{ d | tojson(indent=2) }}|{{ [] | tojson(indent=2) }}|{{ {} | tojson(indent=4) }}|{{ d | tojson(sort_keys=true, separators=(',', ':')) }}", D),
    ("f_dict", "{{ d | items | list }}|{{ d | dictsort }}|{{ d | dictsort(by='key', reverse=true) | map('first') | list }}|{{ {'b': 1} | length }}|{{ d.keys() | list }}|{{ d.values() | list | length }}", D),
    ("f_indent_wrap", "{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(1, blank=true) }}|{{ 'x' | center(5) }}|", {}),
    ("f_batch_slice", "{{ xs | batch(2) | list }}|{{ xs | batch(2, 0) | list }}|{{ xs | slice(2) | list }}|{{ 'a b c' | wordcount }}|{{ 'abcdefghij' | truncate(6) }}", L5),
    ("f_groupby", "{% for role, items in messages | groupby('role') %}{{ role }}:{{ items | length }} {% endfor %}", ABC),
    ("f_attr", "{{ d | attr('a') }}|{{ '%s-%d' | format('x', 3) }}|{{ 'a,b' | replace(',', ';') | upper | lower }}", D),
    ("f_none_text", "{{ none }}|{{ true | string }}|{{ [none, false] | string }}|{{ {'a': none} }}|{{ none | string | length }}", {}),
    # tests
    ("t_types", "{% for x in [1, 1.5, 'a', [1], {'a': 1}, none, true] %}{{ x is number }},{{ x is string }},{{ x is mapping }},{{ x is sequence }},{{ x is iterable }},{{ x is none }},{{ x is boolean }},{{ x is integer }},{{ x is float }};{% endfor %}", {}),
    ("t_values", "{{ 3 is odd }}{{ 3 is even }}{{ 6 is divisibleby(3) }}{{ 6 is divisibleby 4 }}|{{ true is true }}{{ 1 is true }}{{ false is false }}|{{ 'a' is lower }}{{ 'A' is upper }}|{{ 1 is eq 1 }}{{ 2 is gt(1) }}{{ 1 is lt 1 }}{{ 1 is ne 2 }}{{ 2 is ge 2 }}{{ 1 is in [1] }}", {}),
    ("t_defined", "{{ x is defined }}{{ x is undefined }}{{ y is defined }}{{ y is not defined }}{{ y is none }}{{ x is not none }}{{ range is callable }}{{ 1 is sameas 1 }}{{ 'upper' is filter }}{{ 'odd' is test }}", {"x": 1}),
    ("t_precedence", "{{ not x is defined }}|{{ x is defined and y }}|{{ (x or y) is defined }}|{{ 1 + 1 is eq 2 }}|{{ 'a' ~ 'b' is string }}", {"y": 0}),
    # methods
    ("m_string", "{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ s.upper() }}|{{ s.lower() }}|{{ 'a-b-c'.split('-') }}|{{ ' a  b '.split() }}|{{ 'a-b-c'.split('-', 1) }}|{{ 'a-b-c'.rsplit('-', 1) }}|{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x','c')) }}|{{ 'aXbX'.replace('X', '-') }}|{{ 'xxaxx'.strip('x') }}", S),
    ("m_string2", "{{ 'hello world'.title() }}|{{ 'hello'.capitalize() }}|{{ 'abcabc'.find('c') }}{{ 'abc'.find('z') }}|{{ 'abca'.count('a') }}|{{ '-'.join(['a','b']) }}|{{ '12'.isdigit() }}{{ 'ab'.isalpha() }}{{ 'a1'.isalnum() }}{{ ' '.isspace() }}|{{ 'a\\nb\\r\\nc'.splitlines() }}|{{ '7'.zfill(3) }}|{{ 'ß'.upper() }}|{{ 'abc'.index('b') }}|{{ 'a=b=c'.partition('=') }}|{{ 'prefix_x'.removeprefix('prefix_') }}", S),
    ("m_dict", "{{ d.get('a') }}|{{ d.get('x') }}|{{ d.get('x', 'dflt') }}|{{ d.items() | list }}|{{ d.keys() | list }}|{% for k, v in d | dictsort %}{{ k }}{{ v }} {% endfor %}", D),
    ("m_list", "{{ xs.index(3) }}|{{ xs.count(1) }}|{{ [1] + xs[1:] }}|{{ xs | length }}", L5),
    ("m_key_named_items", "{{ d.items is callable }}|{{ d['items'] }}|{{ d.get('items') }}|{{ d.items() | list }}", {"d": {"items": [1]}}),
    ("unicode_names", "{{ 'Ünï' | upper }}|{{ 'ΑΣ' | lower }}|{{ '漢字' | length }}|{{ '👨‍👩‍👧' | length }}|{{ 'é' == 'e\u0301' }}|{{ '\u00a0x\u2003' | trim | length }}", {}),
    ("comment_multiline", "a{# one\ntwo {{ x }} {% if %}\n#}b", {}),
    ("many_messages", "{% for m in messages %}{{ loop.index0 % 2 }}{% endfor %}", {"messages": [msg("user", "x")] * 300}),
    ("generator_unused_error", "{% set q = 5|map('upper') %}{% set r = [1, 'a']|map('abs') %}{{ r|first }}", {}),
    ("generator_used_error", "{% set r = [1, 'a']|map('abs') %}{{ r|list }}", {}),
    ("generator_lazy_batch", "{% set q = missing|batch('') %}ok", {}),
    ("generator_lazy_select", "{% set q = [1]|select('nosuch') %}{{ 1 in [2, 1]|map('abs') }}", {}),
    ("test_filter_of_number", "{{ 2 is filter }}{{ none is test }}{{ 'upper' is filter }}{{ 'odd' is test }}", {}),
    ("test_filter_of_list", "{{ [] is filter }}", {}),
    ("for_in_recursive_name", "{% for i in recursive %}x{% else %}none{% endfor %}", {}),
    ("for_target_comma", "{% for a, in [[1]] %}{{ a }}{% endfor %}", {}),
    ("empty_subscript", "{{ [1][] }}{{ {(): 3}[] }}", {}),
    ("macro_text", "{% macro m(a) %}{{ caller }}{% endmacro %}{{ m }}{% call m(1) %}{% endcall %}", {}),
    ("namespace_text", "{{ namespace(a='x', b=[1]) }}", {}),
    ("caller_among_kwargs", "{% macro m(a) %}{{ kwargs }}{% endmacro %}{% call m() %}{% endcall %}", {}),
    ("caller_unused", "{% macro m(a) %}x{% endmacro %}{% call m() %}{% endcall %}", {}),
    ("slice_of_constant", "{{ 5[:] }}{{ none[1:] }}{{ 2[:-2] }}{{ {}[:] }}|", {}),
    ("slice_among_constants", "{{ not (0)[:1] }}{{ [5[:]] }}|", {}),
    ("class_of_undefined", "{% for i in nothing.__class__ %}x{% endfor %}|", {}),
    ("slice_of_constant_in_if", "{% if 5[:] %}x{% endif %}", {}),
    ("sort_undefined_keys", "{{ ['b', 'A']|sort(attribute='k') }}{{ [none, none]|sort }}", {}),
    ("sort_mixed_keys", "{{ [{'k': 1}, {}]|sort(attribute='k') }}", {}),
    ("sort_several", "{{ [{'a': 2, 'b': 'x'}, {'a': 1, 'b': 'Y'}, {'a': 1, 'b': 'x'}]|sort(attribute='a,b')|map(attribute='b')|join }}", {}),
    ("sort_reverse_text", "{{ [2, 1]|sort('k') }}", {}),
    ("slice_of_number", "{% set n = 5 %}{{ n[:] }}", {}),
]


def write(name, rows):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) for r in rows) + "\n]\n")
    failed = sum("error" in r for r in rows)
    print(f"{name}: {len(rows)} cases, {failed} of them end in an error")


def check_with_transformers(pairs):
    """The same cases through transformers' own compile function; differences are listed."""
    from transformers.utils import chat_template_utils
    bad = 0
    for source, row in pairs:
        if "strftime_now" in source:
            continue
        got = outcome(lambda **kw: chat_template_utils._compile_jinja_template(source).render(**kw), row["vars"])
        if got != {k: v for k, v in row.items() if k in ("expected", "error", "error_type", "line")}:
            bad += 1
            print(f"differs from transformers: {row['name']}: {got}")
    print(f"{len(pairs)} cases through transformers, {bad} differ")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="also compare with transformers' own environment")
    args = parser.parse_args()
    pairs = []
    for name in MODELS:
        with open(os.path.join(OUT, name + ".jinja"), encoding="utf-8", newline="") as f:
            source = f.read()
        rows = model_cases(name, source)
        write(name + ".cases.json", rows)
        pairs += [(source, r) for r in rows]
    rows = [case(name, source, variables, {"template": source}) for name, source, variables in CONSTRUCTS]
    if len({r["name"] for r in rows}) != len(rows):
        raise SystemExit("templates: two constructs have the same name")
    write("constructs.cases.json", rows)
    pairs += [(r["template"], r) for r in rows]
    return 1 if args.check and check_with_transformers(pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
