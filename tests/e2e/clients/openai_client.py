#!/usr/bin/env python3
"""The `openai` package against a running `cyb-llm serve`: chat, stream, completions, logprobs, n, tools, schemas, errors as the package's typed
exceptions; the Responses API. usage: openai_client.py --program build/release/cyb-llm MODEL  (a model with a chat template)"""
import concurrent.futures
import json
from typing import Literal

import openai
import pydantic
from served import KEY, raises, run


def expect(error, status, code, call):
    assert raises(error, call, status_code=status, code=code).request_id.startswith("req-")


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


TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.", "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
                   "required": ["city", "days"], "additionalProperties": False}}}]


def check_call(call):
    arguments = json.loads(call.function.arguments)
    assert call.type == "function" and call.id and call.function.name == "get_weather", call
    assert arguments["city"] in ("Paris", "Rome") and 1 <= arguments["days"] <= 9, arguments


def check_tools(client):
    ask = dict(model="served", messages=[{"role": "user", "content": "What is the weather in Rome for 3 days?"}], tools=TOOLS,
               tool_choice="required", parallel_tool_calls=False, max_tokens=128, seed=3)
    choice = client.chat.completions.create(**ask).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None, choice
    call, = choice.message.tool_calls
    check_call(call)
    name, arguments, reason = "", "", None
    for chunk in client.chat.completions.create(**ask, stream=True):
        for part in chunk.choices:
            reason = part.finish_reason or reason
            for piece in part.delta.tool_calls or []:
                name += piece.function.name or ""
                arguments += piece.function.arguments or ""
    assert (name, arguments, reason) == ("get_weather", call.function.arguments, "tool_calls"), (name, arguments, reason)
    with client.chat.completions.stream(**ask) as stream:
        final = stream.get_final_completion().choices[0]
    check_call(final.message.tool_calls[0])
    answer = client.chat.completions.create(
        model="served", tools=TOOLS, tool_choice="none", max_tokens=24, seed=3,
        messages=ask["messages"] + [choice.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "Sun."}])
    assert answer.choices[0].message.tool_calls is None and answer.choices[0].message.content


class City(pydantic.BaseModel):
    name: Literal["Paris", "Rome"]
    capital: bool


def check_structured(client):
    ask = dict(model="served", messages=[{"role": "user", "content": "Describe Rome."}], max_tokens=96, seed=5)
    parsed = client.chat.completions.parse(**ask, response_format=City).choices[0]
    assert parsed.finish_reason == "stop" and isinstance(parsed.message.parsed, City), parsed
    text = client.chat.completions.create(**ask, extra_body={"regex": "(yes|no)!"}).choices[0].message.content
    assert text in ("yes!", "no!"), text
    expect(openai.BadRequestError, 400, "invalid_value", lambda: client.chat.completions.create(
        **ask, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}))


def check_errors(client):
    messages = [{"role": "user", "content": "Hi"}]
    chat = client.chat.completions.create
    assert [m.id for m in client.models.list()] == ["served"] and client.models.retrieve("served").id == "served"
    expect(openai.NotFoundError, 404, "model_not_found", lambda: chat(model="other", messages=messages))
    expect(openai.BadRequestError, 400, "context_length_exceeded",
           lambda: chat(model="served", messages=[{"role": "user", "content": "word " * 2000}]))
    expect(openai.BadRequestError, 400, "invalid_value", lambda: chat(
        model="served", messages=messages, tools=[{"type": "function", "function": {"name": "a name", "parameters": {}}}]))
    expect(openai.BadRequestError, 400, "unsupported_parameter", lambda: chat(
        model="served", messages=messages, modalities=["audio"]))
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


def check_responses(client):
    ask = dict(model="served", input="Name a colour.", max_output_tokens=12, temperature=0.8, extra_body={"seed": 7})
    whole = client.responses.create(**ask)
    assert whole.output_text and whole.status in ("completed", "incomplete") and whole.usage.output_tokens <= 12, whole
    chat = client.chat.completions.create(model="served", messages=[{"role": "user", "content": "Name a colour."}], max_tokens=12, seed=7,
                                          temperature=0.8)
    assert whole.output_text == chat.choices[0].message.content
    events = list(client.responses.create(**ask, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text
    assert events[0].type == "response.created" and events[-1].type == f"response.{whole.status}"
    assert events[-1].response.output_text == whole.output_text and events[-1].response.usage == whole.usage
    with client.responses.stream(**{**ask, "max_output_tokens": 400}) as stream:  # the package's own state machine
        final = stream.get_final_response() if any(e.type == "response.completed" for e in stream) else None
    assert final is None or final.output_text
    probed = client.responses.create(**ask, top_logprobs=2, include=["message.output_text.logprobs"])
    assert len(probed.output[0].content[0].logprobs) == probed.usage.output_tokens
    assert all(len(t.top_logprobs) == 2 for t in probed.output[0].content[0].logprobs)
    again = client.responses.create(model="served", instructions="Be brief.", max_output_tokens=4, input=[
        {"role": "user", "content": "Name a colour."}, *whole.output, {"role": "user", "content": [{"type": "input_text", "text": "Another."}]}])
    assert again.usage.input_tokens > whole.usage.input_tokens and again.instructions == "Be brief."
    expect(openai.BadRequestError, 400, "unsupported_parameter", lambda: client.responses.create(**ask, store=True))
    expect(openai.BadRequestError, 400, "unsupported_parameter", lambda: client.responses.create(**ask, previous_response_id=whole.id))
    expect(openai.NotFoundError, 404, "model_not_found", lambda: client.responses.create(model="other", input="Hi"))


FLAT = [{"type": "function", **TOOLS[0]["function"]}]


def check_response_tools(client):
    """Calls through the Responses API: the arguments are those of the same chat, whole, as events and through the package's own state machine."""
    text = "What is the weather in Rome for 3 days?"
    chat = client.chat.completions.create(model="served", messages=[{"role": "user", "content": text}], tools=TOOLS, tool_choice="required",
                                          parallel_tool_calls=False, max_tokens=128, seed=3).choices[0].message.tool_calls[0]
    ask = dict(model="served", input=[{"role": "user", "content": text}], tools=FLAT, tool_choice="required", parallel_tool_calls=False,
               max_output_tokens=128, extra_body={"seed": 3})
    whole = client.responses.create(**ask)
    call, = whole.output
    assert (call.type, call.name, call.status) == ("function_call", "get_weather", "completed") and call.call_id, call
    assert call.arguments == chat.function.arguments, (call.arguments, chat.function.arguments)
    assert whole.tools[0].name == "get_weather" and whole.tool_choice == "required" and whole.parallel_tool_calls is False
    events = list(client.responses.create(**ask, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for i, e in enumerate(events) if i == 0 or events[i - 1].type != e.type]
    assert kinds == ["response.created", "response.in_progress", "response.output_item.added", "response.function_call_arguments.delta",
                     "response.function_call_arguments.done", "response.output_item.done", "response.completed"], kinds
    assert "".join(e.delta for e in events if e.type == kinds[3]) == call.arguments
    done = next(e for e in events if e.type == kinds[5]).item
    assert done.arguments == call.arguments and done == events[-1].response.output[0]
    with client.responses.stream(**ask) as stream:
        assert stream.get_final_response().output[0].arguments == call.arguments
    for choice in ({"type": "function", "name": "get_weather"}, {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}):
        assert client.responses.create(**{**ask, "tool_choice": choice}).output[0].type == "function_call"
    again = client.responses.create(**{**ask, "tool_choice": "none", "max_output_tokens": 24, "input": ask["input"] + [
        *whole.output, {"type": "function_call_output", "call_id": call.call_id, "output": "Sun."}]})
    assert again.output_text and all(item.type == "message" for item in again.output), again
    parsed = client.responses.parse(model="served", input="Describe Rome.", text_format=City, max_output_tokens=96)
    assert isinstance(parsed.output_parsed, City), parsed
    error = raises(openai.BadRequestError, lambda: client.responses.create(**{**ask, "tools": [{"type": "web_search"}]}), code="unsupported_parameter")
    assert "web_search" in str(error)


def with_client(check):
    def checked(address):
        check(openai.OpenAI(base_url=address + "/v1", api_key=KEY, max_retries=0))
    checked.__name__ = check.__name__
    return checked


if __name__ == "__main__":
    run(__doc__, [with_client(c) for c in (check_chat, check_completions, check_tools, check_structured, check_responses, check_response_tools, check_errors, check_load)])
    print(f"ok openai {openai.__version__}")
