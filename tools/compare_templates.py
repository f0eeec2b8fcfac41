#!/usr/bin/env python3
"""Renders chat templates with `cyb-llm render` and with jinja2 as transformers sets it up, on conversations that use
what templates look at, and compares byte for byte; where jinja2 fails, so must the program, with exit code 2.

usage: compare_templates.py [--program P] TEMPLATE.jinja|FOLDER...
Exit code 1 if any rendering differs."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from transformers.utils import chat_template_utils


def call(name, arguments, number):
    function = {"name": name, "arguments": arguments}
    return {"id": f"call{number:05d}", "type": "function", "function": function}


CITY = {"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string", "description": "Città"}, "unit": {"type": "string", "enum": ["c", "f"]},
    "days": {"type": "integer"},
    "opts": {"type": "object", "properties": {"deep": {"type": "array", "items": {"type": "string"}}}}}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather, \"now\" <b>&'", "parameters": CITY}},
         {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}}]
DOCUMENTS = [{"title": "T1", "text": "body one"}, {"title": "T2", "text": "b2", "doc_id": 7}]


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def result(name, number, content):
    return {"role": "tool", "name": name, "tool_call_id": f"call{number:05d}", "content": content}


CONVERSATIONS = {
    "user": [user("Hi")],
    "system": [{"role": "system", "content": "Be brief.  "}, user(" Hello\nthere \u00e9\U0001F600"), assistant("Yes."), user("More")],
    "empty": [user(""), assistant(""), user("x")],
    "null": [user("x"), assistant(None), user("y")],
    "thinking": [user("2+2?"), assistant("<think>\nhm\n</think>\n\n4", reasoning_content="because"), user("ok?")],
    "reasoning": [user("2+2?"), assistant("4", reasoning_content="because", thinking="t")],
    "tool call": [{"role": "system", "content": "S"}, user("w?"),
                  assistant("", tool_calls=[call("get_weather", {"city": "Rome", "days": 2}, 1)]),
                  result("get_weather", 1, "{\"t\": 21}"), assistant("21")],
    "two calls": [user("w?"), assistant(None, tool_calls=[call("get_weather", {"city": "Rome"}, 1), call("noop", {}, 2)]),
                  result("get_weather", 1, "21"), result("noop", 2, "done")],
    "call as text": [user("w?"), assistant("let me", tool_calls=[call("get_weather", "{\"city\": \"Rome\"}", 1)]),
                     result("get_weather", 1, "21")],
    "two users": [user("a"), user("b")],
    "parts": [user([{"type": "text", "text": "look"}, {"type": "image"}])],
    "developer": [{"role": "developer", "content": "D"}, user("u")],
    "nothing": [],
}
KEYWORDS = [{}, {"add_generation_prompt": True}, {"add_generation_prompt": True, "enable_thinking": False},
            {"tools": TOOLS, "add_generation_prompt": True}, {"tools": TOOLS, "enable_thinking": True, "custom_tools": None},
            {"documents": DOCUMENTS, "add_generation_prompt": True},
            {"add_generation_prompt": True, "reasoning_effort": "high", "thinking": True}]


def expected(compiled, messages, keywords):
    """(text, None) or (None, error)."""
    if isinstance(compiled, Exception):
        return None, compiled
    everything = {"tools": None, "documents": None, "add_generation_prompt": False, "bos_token": "<BOS>", "eos_token": "<EOS>"}
    try:
        return compiled.render(messages=messages, **{**everything, **keywords}), None
    except Exception as error:  # whatever a template can raise
        return None, error


def rendered(program, template, messages, keywords, folder):
    command = [program, "render", "--template", template, "--messages", "-", "--bos", "<BOS>", "--eos", "<EOS>"]
    for name, value in keywords.items():
        if name in ("tools", "documents"):
            path = pathlib.Path(folder, name + ".json")
            path.write_text(json.dumps(value))
            command += ["--" + name, path]
        elif name == "add_generation_prompt":
            command += ["--add-generation-prompt"]
        else:
            command += ["--template-arg", f"{name}={json.dumps(value)}"]
    return subprocess.run(command, input=json.dumps(messages).encode(), capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/cyb-llm")
    parser.add_argument("templates", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    files = [f for t in args.templates for f in (sorted(t.glob("*.jinja")) if t.is_dir() else [t])]
    total = errors = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            source = file.read_text(encoding="utf-8", newline="") if sys.version_info >= (3, 13) else file.open(encoding="utf-8", newline="").read()
            try:
                compiled = chat_template_utils._compile_jinja_template(source)
            except Exception as error:
                compiled = error
            for name, messages in CONVERSATIONS.items():
                for keywords in KEYWORDS:
                    text, error = expected(compiled, messages, keywords)
                    got = rendered(args.program, file, messages, keywords, folder)
                    total += 1
                    errors += error is not None
                    same = got.returncode == 2 if error else got.returncode == 0 and got.stdout == text.encode()
                    if not same:
                        wrong += 1
                        print(f"{file.name}, {name}, {sorted(keywords)}: exit {got.returncode} {got.stderr.decode()[:200].strip()}; "
                              f"jinja2: {error or 'another text'}")
    print(f"{len(files)} templates, {total} renderings ({errors} of them errors): {total - wrong} equal, {wrong} differ")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
