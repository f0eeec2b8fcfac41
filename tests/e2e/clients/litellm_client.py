#!/usr/bin/env python3
"""The `litellm` package against a running `cyb-llm serve`. usage: litellm_client.py --program build/release/cyb-llm MODEL"""
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
import litellm
from served import KEY, raises, run

MESSAGES = [{"role": "user", "content": "Name a colour."}]


def ask(address, **options):
    return litellm.completion(**{**dict(model="openai/served", api_base=address + "/v1", api_key=KEY, messages=MESSAGES, max_tokens=12, seed=7,
                                        temperature=0.8, num_retries=0, max_retries=0), **options})


def check_chat(address):
    whole = ask(address)
    text = whole.choices[0].message.content
    assert text and whole.usage.completion_tokens <= 12
    assert "".join(c.choices[0].delta.content or "" for c in ask(address, stream=True)) == text
    assert len(ask(address, n=3).choices) == 3
    probed = ask(address, logprobs=True, top_logprobs=2)
    assert len(probed.choices[0].logprobs.content) == probed.usage.completion_tokens


def check_ollama(address):
    # litellm says no Content-Type there, and a server that a web page could reach does not guess.
    options = dict(model="ollama_chat/served", api_base=address, extra_headers={"Content-Type": "application/json"})
    assert ask(address, **options).choices[0].message.content == ask(address).choices[0].message.content
    streamed = "".join(c.choices[0].delta.content or "" for c in ask(address, stream=True, **options))
    assert streamed == ask(address).choices[0].message.content


def check_errors(address):
    raises(litellm.NotFoundError, lambda: ask(address, model="openai/other"), status_code=404)
    raises(litellm.ContextWindowExceededError, lambda: ask(address, messages=[{"role": "user", "content": "word " * 2000}]), status_code=400)
    raises(litellm.BadRequestError, lambda: ask(address, extra_body={"frobnicate": 1}), status_code=400)
    raises(litellm.APIError, lambda: litellm.embedding(model="openai/served", input=["a"], api_base=address + "/v1", api_key=KEY, num_retries=0,
                                                       max_retries=0), status_code=501)


if __name__ == "__main__":
    run(__doc__, [check_chat, check_ollama, check_errors])
    print("ok litellm")
