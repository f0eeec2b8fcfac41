// A server that speaks what the page needs and says what a test wants: the last question chooses the answer. It gives out the page from
// the folder that Vite built, with the same policy as src/server/routes/page.cpp.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

export const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const bytes = (text) => [...Buffer.from(text)];

export const hostile = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">

[a link](javascript:window.hacked=3) and [data](data:text/html,<script>window.hacked=4</script>) and [good](https://example.org/a?b=1)
and ![a picture](https://example.org/spy.png) and <a href="javascript:window.hacked=5">raw</a> and https://example.net/bare

\`\`\`html
<script>window.hacked = 6</script>
\`\`\`

| a <b>b</b> | c |
|:--|--:|
| <iframe src="https://example.org"></iframe> | 1 |
`;

export const rich = `Gravity is the **attraction between masses**. Newton wrote it as

> F = G · m₁ · m₂ / r²

| body | gravity in m/s² | weight of 70 kg |
|:--|--:|--:|
| Earth | 9.81 | 687 N |
| Moon | 1.62 | 113 N |
| Jupiter | 24.79 | 1 735 N |

In Python:

\`\`\`python
G = 6.674e-11  # m³ kg⁻¹ s⁻²

def force(m1: float, m2: float, r: float) -> float:
    """The force between two masses, in newtons."""
    return G * m1 * m2 / r**2

print(f"{force(5.972e24, 70, 6.371e6):.1f} N")
\`\`\`

1. Doubling one mass doubles the force.
2. Doubling the distance leaves a *quarter* of it.
`;

/** Words as tokens, with made-up rivals. */
function tokensOf(text) {
  const words = text.match(/\s?[^\s]+|\s/g) ?? [];
  return words.map((word, at) => {
    const p = [0.97, 0.82, 0.6, 0.42, 0.2, 0.04, 0.99][at % 7];
    const rivals = [[word, p], [" the", (1 - p) * 0.6], [" a", (1 - p) * 0.2], ["\n", (1 - p) * 0.1]].sort((a, b) => b[1] - a[1]);
    const entry = ([token, q]) => ({ token, logprob: Math.log(q), bytes: bytes(token) });
    return { ...entry([word, p]), top_logprobs: rivals.map(entry) };
  });
}

function answerTo(question) {
  if (question.startsWith("say ")) return question.slice(4);
  if (question.startsWith("hostile")) return hostile;
  if (question.startsWith("rich")) return rich;
  if (question.startsWith("long")) return Array.from({ length: 400 }, (_, i) => `word${i}`).join(" ");
  return "An answer of seven words, more or less.";
}

const kIds = { "smollm2-135m-instruct": "blake3:" + "ab".repeat(32), "larger-7b-instruct": "blake3:" + "cd".repeat(32), "far-too-large": "blake3:" + "ef".repeat(32) };
export const numerics = "curated, cpu (AVX2), kv f16";

/** Of what decides the answer, as the server has it: not of what is only shown. */
function hashOf(body, log) {
  const { stream, stream_options, logprobs, top_logprobs, model, ...deciding } = body;
  return "blake3:" + createHash("sha256").update(JSON.stringify([deciding, kIds[model], log.numerics])).digest("hex");
}

function recipeOf(body, log) {
  return {
    seed: body.seed,
    model_id: kIds[body.model],
    path: "curated",
    backend: "cpu",
    request_hash: hashOf(body, log),
    numerics: log.numerics,
    kv: "f16",
    context_tokens: 8192,
    template: "blake3:" + "12".repeat(32),
    sampler: [{ name: "temperature", temperature: body.temperature ?? 0 }, ...(body.top_k ? [{ name: "top_k", top_k: body.top_k }] : [])],
  };
}

/** What the server says of its models: the first is loaded. */
function modelsOf(log) {
  return Object.entries(kIds)
    .slice(0, log.models)
    .map(([id, model_id], at) => {
      const state = at === 0 ? "loaded" : (log.states[id] ?? "unloaded");
      const known = state === "loaded" ? { path: "curated", backend: "cpu", context_tokens: 8192 } : { path: null, backend: null, context_tokens: 0 };
      return { id, object: "model", state, model_id: state === "loaded" ? model_id : null, size_bytes: 94e6 * (1 + 40 * at), memory_bytes: 118e6 * (1 + 40 * at), ...known };
    });
}

const error = (message, code, param = null) => JSON.stringify({ error: { message, type: "invalid_request_error", param, code } });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function stream(response, body, log) {
  const question = body.messages.at(-1).content;
  const send = (choice, more = {}) =>
    response.write(`data: ${JSON.stringify({ id: "chatcmpl-1", system_fingerprint: "fp_0123456789abcdef", choices: choice ? [{ index: 0, finish_reason: null, ...choice }] : [], ...more })}\n\n`);
  response.writeHead(200, { "Content-Type": "text/event-stream", "X-Request-Id": "req-stream" });
  response.on("close", () => (log.closed = !response.writableEnded));
  if (modelsOf(log).find((one) => one.id === body.model)?.state === "unloaded") {
    for (const percent of [12, 57, 100]) {
      response.write(`: loading ${body.model} ${percent} %\n\n`);
      await pause(log.loadMs / 3);
    }
    log.states[body.model] = "loaded";
  }
  send({ delta: { role: "assistant", content: "" } });
  if (question.startsWith("reason")) {
    for (const part of ["First I **think** ", "about it."]) send({ delta: { reasoning_content: part } });
  }
  if (question.startsWith("tool")) {
    send({ delta: { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city": "Par' } }] } });
    send({ delta: { tool_calls: [{ index: 0, function: { arguments: 'is", "days": 3}' } }] } });
    send({ delta: {}, finish_reason: "tool_calls" });
  }
  const text = question.startsWith("tool") ? "" : question.startsWith("same") ? `seed ${body.seed}` : answerTo(question) + (log.drift ? " And more." : "");
  const tokens = tokensOf(text);
  for (const token of tokens) {
    if (response.destroyed) return;
    send({ delta: { content: token.token }, logprobs: body.logprobs ? { content: [token] } : null });
    if (question.startsWith("long")) await pause(15);
    if (question.startsWith("cut")) {
      await pause(100); // until the head is out
      return response.destroy();
    }
    if (question.startsWith("fail")) {
      response.write(`data: ${error("The model failed on this answer.", "internal_error")}\n\n`);
      return response.end();
    }
  }
  send({ delta: {}, finish_reason: "stop" }, { cyb_llm: recipeOf(body, log) });
  send(null, { usage: { prompt_tokens: 31, completion_tokens: tokens.length, prompt_tokens_details: { cached_tokens: 0 } } });
  response.end("data: [DONE]\n\n");
}

/**
 * `models`: how many there are. In `log`: `loadMs`, how long a load takes; `loadError`, what it says; `drift`, answers are others than before;
 * `numerics`, as the recipe names them.
 * @returns {Promise<{url: string, log: object, close: () => void}>}
 */
export function startMock(dist, { key = "", models = 1 } = {}) {
  const log = { bodies: [], closed: false, models, states: {}, loadMs: 600, loadError: null, drift: false, numerics };
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    const json = (status, text) => response.writeHead(status, { "Content-Type": "application/json", "X-Request-Id": "req-mock" }).end(text);
    if (path.startsWith("/v1/") && key !== "" && request.headers.authorization !== `Bearer ${key}`) {
      return json(401, error("A valid API key is needed: Authorization: Bearer KEY.", "invalid_api_key"));
    }
    if (path === "/v1/models") {
      return json(200, JSON.stringify({ object: "list", data: modelsOf(log) }));
    }
    if (path === "/v1/models/load") {
      let text = "";
      request.on("data", (part) => (text += part));
      request.on("end", async () => {
        const { model } = JSON.parse(text);
        if (log.loadError === "admin") return json(403, error("This needs a key of --admin-key-file.", "admin_key_required"));
        log.states[model] = "loading";
        await pause(log.loadMs);
        log.states[model] = model === "far-too-large" ? "unloaded" : "loaded";
        if (model === "far-too-large") {
          return json(507, error("The model does not fit into the memory that models may take: it takes 9.6 GB, 8.0 GB are allowed.", "model_too_large", "model"));
        }
        json(200, JSON.stringify(modelsOf(log).find((one) => one.id === model)));
      });
      return;
    }
    if (path === "/v1/chat/completions") {
      let text = "";
      request.on("data", (part) => (text += part));
      request.on("end", () => {
        const body = JSON.parse(text);
        log.bodies.push(body);
        if (body.messages.at(-1).content.startsWith("refuse")) return json(400, error("'top_p' must be above 0.", "invalid_value", "top_p"));
        void stream(response, body, log);
      });
      return;
    }
    const name = path === "/" ? "index.html" : normalize(path).slice(1);
    try {
      const body = readFileSync(join(dist, name));
      response.writeHead(200, { "Content-Type": types[extname(name)], "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff" }).end(body);
    } catch {
      json(404, error("There is nothing at this path.", "not_found"));
    }
  });
  return new Promise((done) => {
    server.listen(0, "127.0.0.1", () => {
      const close = () => {
        server.closeAllConnections();
        server.close();
      };
      done({ url: `http://127.0.0.1:${server.address().port}`, log, close });
    });
  });
}
