#!/usr/bin/env python3
"""The `openai` package against a running `cyb-llm serve`: chat, stream, completions, logprobs, n, errors as the package's typed
exceptions. usage: openai_client.py --program build/release/cyb-llm MODEL  (a model with a chat template)"""
import argparse
import concurrent.futures
import signal
import subprocess
import sys

import openai

KEY = "a key for this test alone"


def start(program, model):
    process = subprocess.Popen([program, "serve", model, "--port", "0", "--ctx", "512", "--name", "served", "--slots", "8"],
                               stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("listening on http://127.0.0.1:"), line
    return process, line.split()[-1]


def expect(error, status, code, call):
    try:
        call()
    except error as caught:
        assert caught.status_code == status and caught.code == code, (caught.status_code, caught.code)
        assert caught.request_id.startswith("req-"), caught.request_id
        return
    raise AssertionError(f"no {error.__name__}")


def check_chat(client):
    ask = dict(model="served", messages=[{"role": "user", "content": "Name a colour."}], max_tokens=12, seed=7, temperature=0.8)
    whole = client.chat.completions.create(**ask)
    text = whole.choices[0].message.content
    assert whole.choices[0].finish_reason in ("stop", "length") and whole.usage.completion_tokens <= 12
    assert client.chat.completions.create(**ask).choices[0].message.content == text
    streamed, usage, reason = "", None, None
    for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            streamed += choice.delta.content or ""
            reason = choice.finish_reason or reason
    assert streamed == text, (streamed, text)
    assert reason == whole.choices[0].finish_reason and usage.total_tokens == whole.usage.total_tokens
    several = client.chat.completions.create(**ask, n=4)
    assert [c.index for c in several.choices] == [0, 1, 2, 3] and several.choices[0].message.content == text
    probed = client.chat.completions.create(**ask, logprobs=True, top_logprobs=3)
    assert len(probed.choices[0].logprobs.content) == probed.usage.completion_tokens
    assert all(len(t.top_logprobs) == 3 and t.logprob <= 0 for t in probed.choices[0].logprobs.content)
    spoken = b"".join(bytes(t.bytes) for t in probed.choices[0].logprobs.content).decode(errors="replace")
    assert spoken.startswith(probed.choices[0].message.content.rstrip("\ufffd")), spoken
    stopped = client.chat.completions.create(**ask, stop=[text[1:3]]) if len(text) > 3 else None
    assert stopped is None or stopped.choices[0].message.content == text[:text.index(text[1:3])]


def check_completions(client):
    ask = dict(model="served", prompt="Once upon a time", max_tokens=8, temperature=0, logprobs=2)
    whole = client.completions.create(**ask)
    assert len(whole.choices[0].logprobs.tokens) == whole.usage.completion_tokens
    assert len(whole.choices[0].logprobs.text_offset) == whole.usage.completion_tokens
    pieces = [c.choices[0].text for c in client.completions.create(**ask, stream=True) if c.choices]
    assert "".join(pieces) == whole.choices[0].text


def check_errors(client):
    messages = [{"role": "user", "content": "Hi"}]
    chat = client.chat.completions.create
    assert [m.id for m in client.models.list()] == ["served"] and client.models.retrieve("served").id == "served"
    expect(openai.NotFoundError, 404, "model_not_found", lambda: chat(model="other", messages=messages))
    expect(openai.BadRequestError, 400, "context_length_exceeded",
           lambda: chat(model="served", messages=[{"role": "user", "content": "word " * 2000}]))
    expect(openai.BadRequestError, 400, "unsupported_parameter", lambda: chat(
        model="served", messages=messages, tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]))
    expect(openai.BadRequestError, 400, "invalid_value", lambda: chat(model="served", messages=messages, temperature=-1))
    expect(openai.BadRequestError, 400, "unknown_parameter",
           lambda: chat(model="served", messages=messages, extra_body={"frobnicate": 1}))
    expect(openai.InternalServerError, 501, "embeddings_not_built",
           lambda: client.embeddings.create(model="served", input="x"))


def check_load(client):
    """16 at once say what each says alone; half of the streams are left in the middle."""
    def ask(i, stream=False):
        return client.chat.completions.create(model="served", messages=[{"role": "user", "content": f"Count from {i}."}],
                                              max_tokens=16, seed=i + 1, temperature=1.0, stream=stream)
    alone = [ask(i).choices[0].message.content for i in range(16)]

    def leave(i):
        with ask(i, stream=True) as stream:
            next(iter(stream))
        return alone[i]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        left = [pool.submit(leave, i) for i in range(16)]
        together = list(pool.map(lambda i: ask(i).choices[0].message.content, range(16)))
        assert together == alone
        for future in left:
            future.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--program", default="build/release/cyb-llm")
    arguments = parser.parse_args()
    process, address = start(arguments.program, arguments.model)
    try:
        client = openai.OpenAI(base_url=address + "/v1", api_key=KEY, max_retries=0)
        for check in (check_chat, check_completions, check_errors, check_load):
            check(client)
            print(f"ok {check.__name__}")
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
    assert code == 0, code
    print(f"ok openai {openai.__version__}")


if __name__ == "__main__":
    sys.exit(main())
