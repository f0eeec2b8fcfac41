/** The server's API, as docs/http-api.md describes it. Nothing else is ever asked. */
import { loadKey } from "./storage";
import type { Failure, Likely, Loading, ModelInfo, ModelState, Settings, Token, ToolCall } from "./types";

export class ApiFailure extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** One step of an answer. */
export interface Piece {
  text?: string;
  reasoning?: string;
  tools?: (Partial<ToolCall> & { index: number })[];
  tokens?: Token[];
  finish?: string;
  recipe?: Record<string, unknown>; // `cyb_llm`
  fingerprint?: string;
  loading?: Loading; // the model is not there yet
  usage?: { prompt: number; answer: number; reused: number };
}

const kMostEventCharacters = 4_000_000;

function headers(): Record<string, string> {
  const key = loadKey();
  return key === "" ? {} : { Authorization: `Bearer ${key}` };
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure({ message: "The server cannot be reached. Is it still running?", code: "unreachable" });
  }
  if (response.ok) return response;
  const requestId = response.headers.get("X-Request-Id") ?? undefined;
  const failure: Failure = { message: `The server answered ${response.status}.`, code: "http_error", status: response.status, requestId };
  try {
    Object.assign(failure, errorOf(((await response.json()) as { error?: unknown }).error));
  } catch {
    // No JSON: the status says it.
  }
  throw new ApiFailure(failure);
}

function errorOf(error: unknown): Partial<Failure> {
  const from = (error ?? {}) as { message?: unknown; code?: unknown; param?: unknown };
  const out: Partial<Failure> = {};
  if (typeof from.message === "string") out.message = from.message;
  if (typeof from.code === "string") out.code = from.code;
  if (typeof from.param === "string") out.param = from.param;
  return out;
}

const kStates: ModelState[] = ["unloaded", "loading", "loaded", "unloading"];

function modelOf(value: unknown): ModelInfo | null {
  const from = (value ?? {}) as Record<string, unknown>;
  if (typeof from.id !== "string" || from.id === "") return null;
  const text = (name: string) => (typeof from[name] === "string" ? (from[name] as string) : undefined);
  const size = (name: string) => (typeof from[name] === "number" && (from[name] as number) > 0 ? (from[name] as number) : undefined);
  return {
    id: from.id,
    state: kStates.find((state) => state === from.state) ?? "loaded",
    size_bytes: size("size_bytes"),
    memory_bytes: size("memory_bytes"),
    model_id: text("model_id"),
    path: text("path"),
    backend: text("backend"),
    context_tokens: size("context_tokens"),
  };
}

export async function fetchModels(): Promise<ModelInfo[]> {
  const body = (await (await ask("/v1/models", { headers: headers() })).json()) as { data?: unknown[] };
  const models = (Array.isArray(body.data) ? body.data : []).map(modelOf).filter((model) => model !== null);
  if (models.length === 0) throw new ApiFailure({ message: "The server names no model.", code: "no_model" });
  return models;
}

/** Answers once the model is loaded. */
export async function askForModel(name: string, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify({ model: name });
  await ask("/v1/models/load", { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body, signal });
}

/** What decides the answer: what is the model's own is left out. */
export function requestFields(messages: Message[], settings: Settings, seed: number, tokens: boolean): Record<string, unknown> {
  const body: Record<string, unknown> = { messages, seed };
  for (const name of ["temperature", "top_p", "top_k", "min_p", "max_tokens"] as const) {
    if (settings[name] !== null) body[name] = settings[name];
  }
  if (tokens) Object.assign(body, { logprobs: true, top_logprobs: 6 });
  return body;
}

/** The same as a request for a stream. */
export function requestBody(model: string, fields: Record<string, unknown>): string {
  return JSON.stringify({ model, ...fields, stream: true, stream_options: { include_usage: true } });
}

const wholeText = new TextDecoder("utf-8", { fatal: true });

interface TokenEntry {
  token?: unknown;
  logprob?: unknown;
  bytes?: unknown;
}

function likelyOf(entry: TokenEntry): Likely {
  const logprob = typeof entry.logprob === "number" ? entry.logprob : -9999;
  if (Array.isArray(entry.bytes)) {
    try {
      return { text: wholeText.decode(Uint8Array.from(entry.bytes as number[])), logprob };
    } catch {
      const hex = (entry.bytes as number[]).map((byte) => byte.toString(16).padStart(2, "0"));
      return { text: `⟨${hex.join(" ")}⟩`, logprob, bytes: entry.bytes as number[] };
    }
  }
  return { text: String(entry.token ?? ""), logprob };
}

interface Chunk {
  error?: unknown;
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    logprobs?: { content?: (TokenEntry & { top_logprobs?: TokenEntry[] })[] } | null;
    finish_reason?: string | null;
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens?: number } } | null;
  system_fingerprint?: unknown;
  cyb_llm?: Record<string, unknown>;
}

function pieceOf(chunk: Chunk): Piece {
  const piece: Piece = {};
  const choice = chunk.choices?.[0];
  if (choice?.delta?.content) piece.text = choice.delta.content;
  if (choice?.delta?.reasoning_content) piece.reasoning = choice.delta.reasoning_content;
  if (choice?.delta?.tool_calls) {
    piece.tools = choice.delta.tool_calls.map((call, at) => ({
      index: call.index ?? at,
      id: call.id,
      name: call.function?.name,
      arguments: call.function?.arguments,
    }));
  }
  if (choice?.logprobs?.content) {
    piece.tokens = choice.logprobs.content.map((entry) => ({
      ...likelyOf(entry),
      top: (entry.top_logprobs ?? []).map((rival) => likelyOf(rival)),
    }));
  }
  if (choice?.finish_reason) piece.finish = choice.finish_reason;
  if (chunk.cyb_llm) piece.recipe = chunk.cyb_llm;
  if (typeof chunk.system_fingerprint === "string") piece.fingerprint = chunk.system_fingerprint;
  if (chunk.usage) {
    piece.usage = {
      prompt: chunk.usage.prompt_tokens,
      answer: chunk.usage.completion_tokens,
      reused: chunk.usage.prompt_tokens_details?.cached_tokens ?? 0,
    };
  }
  return piece;
}

/** Server-sent events, wherever the network cuts them: payloads, and comments with their colon. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let waiting = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      waiting += decoder.decode(value, { stream: !done });
      for (let end = waiting.indexOf("\n\n"); end >= 0; end = waiting.indexOf("\n\n")) {
        const event = waiting.slice(0, end);
        waiting = waiting.slice(end + 2);
        if (event.startsWith("data:")) yield event.slice(5).trimStart();
        else if (event.startsWith(":")) yield event;
      }
      if (done || waiting.length > kMostEventCharacters) return;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** The answer, piece by piece. Throws ApiFailure, or AbortError where `signal` says so. */
export async function* streamChat(body: string, signal: AbortSignal): AsyncGenerator<Piece> {
  const response = await ask("/v1/chat/completions", {
    method: "POST",
    headers: { ...headers(), "Content-Type": "application/json" },
    body,
    signal,
  });
  const requestId = response.headers.get("X-Request-Id") ?? undefined;
  const cut: Failure = { message: "The connection ended in the middle of the answer.", code: "stream_cut", requestId };
  if (response.body === null) throw new ApiFailure(cut);
  try {
    for await (const event of events(response.body)) {
      if (event === "[DONE]") return;
      if (event.startsWith(":")) {
        const loading = /^: loading (.{1,600}) (\d{1,3}) %$/.exec(event);
        if (loading) yield { loading: { name: loading[1]!, percent: Math.min(100, Number(loading[2])) } };
        continue;
      }
      const chunk = JSON.parse(event) as Chunk;
      if (chunk.error) throw new ApiFailure({ ...cut, code: "stream_error", ...errorOf(chunk.error) });
      yield pieceOf(chunk);
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiFailure) throw error;
    throw new ApiFailure(cut);
  }
  if (signal.aborted) throw new DOMException("", "AbortError");
  throw new ApiFailure(cut);
}
