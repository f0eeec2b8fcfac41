/** Asking for a stored answer again, and what of it is the same. */
import { requestBody } from "./api";
import { fieldsOf, newAnswer, read, type State } from "./state";
import type { Answer, Chat, Turn } from "./types";

export interface Found {
  chat: Chat;
  turn: number;
  answer: Answer;
}

/** "blake3:" and 64 hex digits, or at least 8 of the digits: all lower-case, without the name. */
export function hashDigits(text: string): string | null {
  const digits = text.trim().toLowerCase().replace(/^blake3:/, "");
  return /^[0-9a-f]{8,64}$/.test(digits) ? digits : null;
}

/** The newest answer of that request in the stored conversations. */
export function findAnswer(state: State, digits: string): Found | null {
  const chats = [state.chat, ...state.chats.filter((chat) => chat.id !== state.chat.id)];
  for (const chat of chats) {
    for (let turn = chat.turns.length - 1; turn >= 0; --turn) {
      const answer = chat.turns[turn]!.answers.find((one) => one.recipe.request_hash?.startsWith(`blake3:${digits}`));
      if (answer) return { chat, turn, answer };
    }
  }
  return null;
}

/** The same request to the same model; the answer is no part of the conversation. */
export async function askAgain(state: State, found: Found, controller: AbortController): Promise<Answer> {
  const { recipe, asked } = found.answer;
  const answer = newAnswer(recipe.settings, recipe.seed);
  const models = state.models.filter((model) => model.model_id === recipe.model_id || model.id === asked?.model);
  const model = models.find((one) => one.id === asked?.model) ?? models[0];
  if (!model) {
    const message = `This server does not have the model that answered${asked?.model ? `, ${asked.model}` : ""}.`;
    answer.error = { message, code: "model_not_found" };
    return answer;
  }
  await read(answer, requestBody(model.id, fieldsOf(found.chat.turns, found.turn, found.answer)), controller, () => undefined);
  return answer;
}

export interface Row {
  name: string;
  same: boolean | null; // null: not known, `detail` says why
  detail: string;
}

const short = (hash: string | undefined) => hash?.slice(7, 17) ?? "none";
const plural = (n: number, word: string) => `${n} ${word}${n === 1 ? "" : "s"}`;

/** The first place where the lists differ; -1: nowhere. */
export function firstOther<T>(a: readonly T[], b: readonly T[], equal: (x: T, y: T) => boolean): number {
  const most = Math.max(a.length, b.length);
  for (let at = 0; at < most; ++at) {
    if (at >= a.length || at >= b.length || !equal(a[at]!, b[at]!)) return at;
  }
  return -1;
}

/** All that is shown of an answer, as one text. */
export function wholeText(answer: Answer): string {
  const calls = answer.tools.map((call) => `${call.name}(${call.arguments})`);
  return [answer.reasoning, answer.text, ...calls].filter((part) => part !== "").join("\n\n");
}

function tokenRows(old: Answer, now: Answer): Row[] {
  const counts: Row = {
    name: "Tokens",
    same: old.usage && now.usage ? old.usage.answer === now.usage.answer : null,
    detail: old.usage && now.usage ? `${old.usage.answer} and ${now.usage.answer}` : "their number was not kept",
  };
  if (!old.trace || !now.trace) {
    const logs: Row = { name: "Log-probabilities", same: null, detail: "the answer was made without them" };
    if (counts.same) counts.detail = plural(now.usage!.answer, "token");
    return [counts, logs];
  }
  const token = firstOther(old.trace, now.trace, (a, b) => a[0] === b[0]);
  const log = firstOther(old.trace, now.trace, (a, b) => a[1] === b[1]);
  return [
    { name: "Tokens", same: token < 0, detail: token < 0 ? plural(now.trace.length, "token") : `other from token ${token + 1} on` },
    {
      name: "Log-probabilities",
      same: log < 0,
      detail: log < 0 ? `all ${now.trace.length}, to the last bit` : `other from token ${log + 1} on`,
    },
  ];
}

export function compare(old: Answer, now: Answer): Row[] {
  const a = wholeText(old);
  const b = wholeText(now);
  const hash = old.recipe.request_hash === now.recipe.request_hash;
  const at = firstOther([...a], [...b], (x, y) => x === y);
  const end = (old.finish ?? "") === (now.finish ?? "");
  return [
    {
      name: "Request hash",
      same: hash,
      detail: hash ? short(now.recipe.request_hash) : `${short(old.recipe.request_hash)} and ${short(now.recipe.request_hash)}`,
    },
    { name: "Text", same: at < 0, detail: at < 0 ? plural([...b].length, "character") : `other from character ${at + 1} on` },
    ...tokenRows(old, now),
    { name: "End", same: end, detail: end ? (now.finish ?? "") : `${old.finish} and ${now.finish}` },
  ];
}

/** Why another hash came out, by the first member of the recipe that differs. */
export function whyOther(old: Answer, now: Answer): string {
  const before = old.recipe.made ?? {};
  const after = now.recipe.made ?? {};
  for (const name of ["model_id", "numerics", "template", "sampler", "context_tokens"]) {
    const [was, is] = [JSON.stringify(before[name]), JSON.stringify(after[name])];
    if (was !== is) return `${name} was ${was ?? "not named"}, is ${is ?? "not named"}`;
  }
  return "";
}

// ---- a file for `cyb-llm replay`

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function tokenJson(token: { text: string; logprob: number; bytes?: number[] }) {
  const bytes = token.bytes ?? [...encoder.encode(token.text)];
  return { token: decoder.decode(Uint8Array.from(bytes)), logprob: token.logprob, bytes };
}

function messageOf(answer: Answer): Record<string, unknown> {
  const calls = answer.tools.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } }));
  return {
    role: "assistant",
    content: answer.text === "" && calls.length > 0 ? null : answer.text,
    ...(answer.reasoning !== "" && { reasoning_content: answer.reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
    refusal: null,
  };
}

/** The request and its answer, as one that was not streamed. Log-probabilities are there as long as the page holds them. */
export function savedAnswer(turns: Turn[], turn: number, answer: Answer): string {
  const { tokens, usage } = answer;
  const asked = answer.asked && { ...answer.asked, logprobs: tokens !== undefined };
  const request = { model: answer.asked?.model, ...fieldsOf(turns, turn, { ...answer, asked }) };
  const logprobs = tokens && {
    content: tokens.map((token) => ({ ...tokenJson(token), top_logprobs: token.top.map(tokenJson) })),
    refusal: null,
  };
  const response = {
    object: "chat.completion",
    model: answer.asked?.model,
    system_fingerprint: answer.fingerprint,
    choices: [{ index: 0, message: messageOf(answer), logprobs: logprobs ?? null, finish_reason: answer.finish }],
    ...(usage && {
      usage: { prompt_tokens: usage.prompt, completion_tokens: usage.answer, total_tokens: usage.prompt + usage.answer },
    }),
    cyb_llm: answer.recipe.made,
  };
  return JSON.stringify({ path: "/v1/chat/completions", request, response }, null, 1) + "\n";
}

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

