#!/usr/bin/env python3
"""LangChain's ChatOpenAI against a running `cyb-llm serve`. usage: langchain_client.py --program build/release/cyb-llm MODEL"""
import openai
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from served import KEY, raises, run

ASK = [("system", "Be brief."), ("human", "Name a colour.")]


def model(address, **options):
    return ChatOpenAI(**{**dict(base_url=address + "/v1", api_key=KEY, model="served", max_tokens=12, seed=7, temperature=0.8, max_retries=0),
                         **options})


def check_chat(address):
    whole = model(address).invoke(ASK)
    assert whole.content and whole.usage_metadata["output_tokens"] <= 12, whole
    assert "".join(c.content for c in model(address).stream(ASK)) == whole.content
    usage = [c.usage_metadata for c in model(address, stream_usage=True).stream(ASK) if c.usage_metadata]
    assert usage and usage[-1]["output_tokens"] == whole.usage_metadata["output_tokens"]
    assert len(model(address).batch([ASK] * 4)) == 4
    several = model(address, n=3).generate([model(address)._convert_input(ASK).to_messages()])
    assert len(several.generations[0]) == 3


def check_logprobs(address):
    probed = model(address, logprobs=True, top_logprobs=2).invoke(ASK)
    content = probed.response_metadata["logprobs"]["content"]
    assert len(content) == probed.usage_metadata["output_tokens"] and len(content[0]["top_logprobs"]) == 2


def check_responses(address):
    spoken = model(address, use_responses_api=True, seed=None, model_kwargs={}, extra_body={"seed": 7})
    assert spoken.invoke(ASK).text == model(address).invoke(ASK).content
    assert "".join(c.text for c in spoken.stream(ASK)) == model(address).invoke(ASK).content


def check_errors(address):
    raises(openai.NotFoundError, lambda: model(address, model="other").invoke(ASK), code="model_not_found")
    raises(openai.BadRequestError, lambda: model(address).invoke("word " * 2000), code="context_length_exceeded")
    embeddings = OpenAIEmbeddings(base_url=address + "/v1", api_key=KEY, model="served", max_retries=0, check_embedding_ctx_length=False)
    raises(openai.InternalServerError, lambda: embeddings.embed_query("a"), code="embeddings_not_built")


if __name__ == "__main__":
    run(__doc__, [check_chat, check_logprobs, check_responses, check_errors])
    print("ok langchain-openai")
