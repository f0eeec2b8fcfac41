#!/usr/bin/env python3
"""LlamaIndex's OpenAILike against a running `cyb-llm serve`. usage: llamaindex_client.py --program build/release/cyb-llm MODEL"""
import openai
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from served import KEY, raises, run

ASK = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Name a colour.")]


def model(address, **options):
    more = {"seed": 7, **options.pop("additional_kwargs", {})}
    return OpenAILike(**{**dict(model="served", api_base=address + "/v1", api_key=KEY, is_chat_model=True, context_window=512, max_tokens=12,
                                temperature=0.8, max_retries=0, additional_kwargs=more), **options})


def check_chat(address):
    whole = model(address).chat(ASK)
    assert whole.message.content and whole.raw.usage.completion_tokens <= 12
    assert "".join(c.delta or "" for c in model(address).stream_chat(ASK)) == whole.message.content
    assert len(model(address, additional_kwargs={"n": 3}).chat(ASK).raw.choices) == 3
    probed = model(address, logprobs=True, top_logprobs=2).chat(ASK)
    assert len(probed.logprobs) == probed.raw.usage.completion_tokens, probed.logprobs


def check_complete(address):
    plain = model(address, is_chat_model=False, temperature=0.0)
    whole = plain.complete("Once upon a time")
    assert whole.text and "".join(c.delta for c in plain.stream_complete("Once upon a time")) == whole.text


def check_errors(address):
    raises(openai.NotFoundError, lambda: model(address, model="other").chat(ASK), code="model_not_found")
    raises(openai.BadRequestError, lambda: model(address).chat([ChatMessage(role="user", content="word " * 2000)]), code="context_length_exceeded")
    raises(openai.InternalServerError, lambda: openai.OpenAI(base_url=address + "/v1", api_key=KEY, max_retries=0).embeddings.create(
        model="served", input="a"), code="embeddings_not_built")


if __name__ == "__main__":
    run(__doc__, [check_chat, check_complete, check_errors])
    print("ok llama-index-llms-openai-like")
