// The npm package `openai` against a running server. usage: node openai_client.mjs ADDRESS
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "a key for this test alone", maxRetries: 0 });
const ask = { model: "served", messages: [{ role: "user", content: "Name a colour." }], max_tokens: 12, seed: 7, temperature: 0.8 };

const whole = await client.chat.completions.create(ask);
const text = whole.choices[0].message.content;
assert.ok(text && whole.usage.completion_tokens <= 12);

let streamed = "", usage = null;
for await (const chunk of await client.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } })) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(streamed, text);
assert.equal(usage.total_tokens, whole.usage.total_tokens);

const several = await client.chat.completions.create({ ...ask, n: 3 });
assert.deepEqual(several.choices.map((choice) => choice.index), [0, 1, 2]);
const probed = await client.chat.completions.create({ ...ask, logprobs: true, top_logprobs: 2 });
assert.equal(probed.choices[0].logprobs.content.length, probed.usage.completion_tokens);
console.log("ok chat");

const question = { model: "served", input: "Name a colour.", max_output_tokens: 12, temperature: 0.8, seed: 7 };
const response = await client.responses.create(question);
assert.equal(response.output_text, text);
let spoken = "", last = null;
for await (const event of await client.responses.create({ ...question, stream: true })) {
  if (event.type === "response.output_text.delta") spoken += event.delta;
  last = event;
}
assert.equal(spoken, text);
assert.equal(last.type, `response.${response.status}`);
console.log("ok responses");

const refused = async (type, status, code, call) => {
  await assert.rejects(call, (error) => error instanceof type && error.status === status && error.code === code);
};
await refused(OpenAI.NotFoundError, 404, "model_not_found", () => client.chat.completions.create({ ...ask, model: "other" }));
await refused(OpenAI.BadRequestError, 400, "context_length_exceeded", () =>
  client.chat.completions.create({ ...ask, messages: [{ role: "user", content: "word ".repeat(2000) }] }));
await refused(OpenAI.BadRequestError, 400, "unknown_parameter", () => client.chat.completions.create({ ...ask, frobnicate: 1 }));
await refused(OpenAI.InternalServerError, 501, "embeddings_not_built", () => client.embeddings.create({ model: "served", input: "a" }));
console.log("ok errors");
