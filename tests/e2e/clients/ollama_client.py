#!/usr/bin/env python3
"""The `ollama` package against a running `cyb-llm serve`. usage: ollama_client.py --program build/release/cyb-llm MODEL"""
import json
import urllib.request

import ollama
from served import raises, run

MESSAGES = [{"role": "user", "content": "Name a colour."}]
OPTIONS = {"seed": 7, "temperature": 0.8, "num_predict": 12}


def check_chat(address):
    client = ollama.Client(host=address)
    whole = client.chat(model="served", messages=MESSAGES, options=OPTIONS)
    assert whole.message.content and whole.done and whole.done_reason in ("stop", "length"), whole
    assert whole.eval_count <= 12 and whole.prompt_eval_count > 0 and whole.total_duration >= whole.eval_duration > 0, whole
    pieces = list(client.chat(model="served:latest", messages=MESSAGES, options=OPTIONS, stream=True))
    assert "".join(p.message.content for p in pieces) == whole.message.content
    assert [p.done for p in pieces] == [False] * (len(pieces) - 1) + [True] and pieces[-1].eval_count == whole.eval_count
    probed = client.chat(model="served", messages=MESSAGES, options=OPTIONS, logprobs=True, top_logprobs=2)
    assert len(probed.logprobs) == probed.eval_count and all(len(t.top_logprobs) == 2 for t in probed.logprobs)


def check_generate(address):
    client = ollama.Client(host=address)
    whole = client.generate(model="served", prompt="Name a colour.", options=OPTIONS)
    assert whole.response == client.chat(model="served", messages=MESSAGES, options=OPTIONS).message.content
    pieces = list(client.generate(model="served", prompt="Name a colour.", options=OPTIONS, stream=True))
    assert "".join(p.response for p in pieces) == whole.response
    raw = client.generate(model="served", prompt="Once upon a time", raw=True, options=OPTIONS)
    assert raw.response and raw.prompt_eval_count < whole.prompt_eval_count
    assert client.generate(model="served", prompt="").done_reason == "load"


def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city.

    Args:
        city: Its name
        days: How many
    """
    return f"Sun in {city} for {days} days."


def chat_of(address, body):
    """The message that the chat route of OpenAI's API answers with."""
    request = urllib.request.Request(address + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]


def check_tools(address):
    """Tools as a chat has them: the same words and calls, whole and in lines; a call is answered, and its result reaches the model."""
    client = ollama.Client(host=address)
    ask = [{"role": "user", "content": 'What is the weather in Rome? Answer with {"name": "get_weather", "arguments": {"city": "Rome"}}'}]
    called = None
    for seed in range(1, 9):
        options = {"seed": seed, "temperature": 0.2, "num_predict": 48}
        whole = client.chat(model="served", messages=ask, tools=[get_weather], options=options).message
        tools = [ollama._utils.convert_function_to_tool(get_weather).model_dump(exclude_none=True)]
        chat = chat_of(address, {"messages": ask, "tools": tools, "seed": seed, "temperature": 0.2, "max_tokens": 48})
        calls = [(c.function.name, dict(c.function.arguments)) for c in whole.tool_calls or []]
        said = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in chat.get("tool_calls", [])]
        assert (whole.content, calls) == (chat["content"] or "", said), (whole, chat)
        lines = list(client.chat(model="served", messages=ask, tools=[get_weather], options=options, stream=True))
        streamed = [c for line in lines for c in line.message.tool_calls or []]
        assert streamed == list(whole.tool_calls or []) and "".join(line.message.content for line in lines) == whole.content
        called = called or whole if calls else called
    if called is None:
        print("   (the model called nothing; a call of ours instead)")
        called = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}]}
    after = ask + [called, {"role": "tool", "tool_name": "get_weather", "content": "Sun."}]
    first = client.chat(model="served", messages=ask, options=OPTIONS)
    second = client.chat(model="served", messages=after, options=OPTIONS)
    assert second.prompt_eval_count > first.prompt_eval_count + 10 and second.message.content, second
    caught = raises(ollama.ResponseError, lambda: client.chat(model="served", messages=ask, tools=[{"type": "function", "function": {"name": "a b"}}]),
                    status_code=400)
    assert "tools[0].function.name" in caught.error, caught.error


def check_models(address):
    client = ollama.Client(host=address)
    assert [m.model for m in client.list().models] == ["served"]
    assert client.ps().models[0].context_length == 512
    shown = client.show("served")
    assert shown.capabilities[:2] == ["completion", "tools"] and shown.template and shown.modelinfo["general.parameter_count"] > 0, shown


def check_errors(address):
    client = ollama.Client(host=address)
    error = ollama.ResponseError
    raises(error, lambda: client.chat(model="other", messages=MESSAGES), status_code=404)
    caught = raises(error, lambda: client.chat(model="served", messages=MESSAGES, options={"num_ctx": 100000}), status_code=400)
    assert "options.num_ctx" in caught.error
    assert client.chat(model="served", messages=MESSAGES, options={"num_predict": 2}, keep_alive="5m").done
    caught = raises(error, lambda: client.chat(model="served", messages=MESSAGES, keep_alive="long"), status_code=400)
    assert "keep_alive" in caught.error
    raises(error, lambda: list(client.generate(model="served", prompt="a " * 2000, stream=True)), status_code=400)
    raises(error, lambda: client.embed(model="served", input="a"), status_code=501)
    raises(error, lambda: client.embeddings(model="served", prompt="a"), status_code=501)


if __name__ == "__main__":
    run(__doc__, [check_chat, check_generate, check_tools, check_models, check_errors])
    print("ok ollama")
