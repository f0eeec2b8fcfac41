/**
 * Conversations in localStorage, nowhere else: at most kMostChats and kMostCharacters, the oldest go first. The key to the server is in
 * sessionStorage and ends with the tab. Where the browser gives no storage the page works and forgets.
 */
import type { Answer, Asked, Chat, Settings, Turn } from "./types";

const kChats = "cyb-llm.chats.1";
const kSettings = "cyb-llm.settings.1";
const kTheme = "cyb-llm.theme";
const kTokens = "cyb-llm.tokens";
const kModel = "cyb-llm.model";
const kKey = "cyb-llm.key";
export const kMostChats = 50;
export const kMostCharacters = 2_000_000;
const kMostRecipeCharacters = 20_000;

function read(storage: () => Storage, name: string): string | null {
  try {
    return storage().getItem(name);
  } catch {
    return null;
  }
}

function write(storage: () => Storage, name: string, value: string | null): boolean {
  try {
    if (value === null) storage().removeItem(name);
    else storage().setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

const local = () => localStorage;
const session = () => sessionStorage;

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const object = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

export const kNoSettings: Settings = {
  system: "",
  temperature: null,
  top_p: null,
  top_k: null,
  min_p: null,
  seed: null,
  max_tokens: null,
};

function settingsOf(value: unknown): Settings {
  const from = object(value);
  return {
    system: text(from.system),
    temperature: number(from.temperature),
    top_p: number(from.top_p),
    top_k: number(from.top_k),
    min_p: number(from.min_p),
    seed: number(from.seed),
    max_tokens: number(from.max_tokens),
  };
}

function traceOf(value: unknown): [string, number][] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.map((one) => [text(list(one)[0]), number(list(one)[1]) ?? -9999]);
}

function madeOf(value: unknown): Record<string, unknown> | undefined {
  const from = object(value);
  return Object.keys(from).length > 0 && JSON.stringify(from).length <= kMostRecipeCharacters ? from : undefined;
}

function askedOf(value: unknown): Asked | undefined {
  const from = object(value);
  if (!Array.isArray(from.history)) return undefined;
  const history = from.history.map((at) => Math.max(0, Math.trunc(number(at) ?? 0)));
  return { model: text(from.model), history, logprobs: from.logprobs === true };
}

function answerOf(value: unknown): Answer {
  const from = object(value);
  const recipe = object(from.recipe);
  const usage = object(from.usage);
  const error = object(from.error);
  const given = (name: string) => text(recipe[name]) || undefined;
  return {
    text: text(from.text),
    reasoning: text(from.reasoning),
    tools: list(from.tools).map((call) => {
      const c = object(call);
      return { id: text(c.id), name: text(c.name), arguments: text(c.arguments) };
    }),
    recipe: {
      seed: number(recipe.seed) ?? 0,
      model_id: given("model_id"),
      path: given("path"),
      backend: given("backend"),
      request_hash: given("request_hash"),
      made: madeOf(recipe.made),
      settings: settingsOf(recipe.settings),
    },
    trace: traceOf(from.trace),
    asked: askedOf(from.asked),
    fingerprint: text(from.fingerprint) || undefined,
    finish: text(from.finish) || "stopped",
    usage: from.usage
      ? { prompt: number(usage.prompt) ?? 0, answer: number(usage.answer) ?? 0, reused: number(usage.reused) ?? 0 }
      : undefined,
    firstMs: number(from.firstMs) ?? undefined,
    totalMs: number(from.totalMs) ?? undefined,
    error: from.error
      ? {
          message: text(error.message),
          code: text(error.code),
          status: number(error.status) ?? undefined,
          param: text(error.param) || undefined,
          requestId: text(error.requestId) || undefined,
        }
      : undefined,
    repeats: number(from.repeats) ?? undefined,
  };
}

function turnOf(value: unknown): Turn {
  const from = object(value);
  const answers = list(from.answers).map(answerOf);
  const shown = number(from.shown) ?? 0;
  return { question: text(from.question), answers, shown: Math.min(Math.max(0, Math.trunc(shown)), answers.length - 1) };
}

function chatOf(value: unknown): Chat {
  const from = object(value);
  return {
    id: text(from.id),
    title: text(from.title),
    updated: number(from.updated) ?? 0,
    turns: list(from.turns)
      .map(turnOf)
      .filter((turn) => turn.answers.length > 0),
  };
}

/** The newest first. */
export function loadChats(): Chat[] {
  try {
    const chats = list(JSON.parse(read(local, kChats) ?? "[]")).map(chatOf);
    return chats.filter((chat) => chat.id !== "" && chat.turns.length > 0).sort((a, b) => b.updated - a.updated);
  } catch {
    return [];
  }
}

const withoutTokens = (name: string, value: unknown) => (name === "tokens" ? undefined : value);

function storeChats(chats: Chat[]): void {
  const kept = chats.slice(0, kMostChats).map((chat) => JSON.stringify(chat, withoutTokens));
  let size = kept.reduce((sum, chat) => sum + chat.length + 1, 2);
  while (kept.length > 0) {
    if (size <= kMostCharacters && write(local, kChats, `[${kept.join(",")}]`)) return;
    size -= (kept.pop() ?? "").length + 1;
  }
  write(local, kChats, null);
}

/** Puts one conversation in, beside those that other tabs have stored meanwhile. */
export function saveChat(chat: Chat): Chat[] {
  storeChats([chat, ...loadChats().filter((other) => other.id !== chat.id)]);
  return loadChats();
}

export function deleteChat(id: string): Chat[] {
  storeChats(loadChats().filter((other) => other.id !== id));
  return loadChats();
}

export function deleteAllChats(): void {
  write(local, kChats, null);
}

export function loadSettings(): Settings {
  try {
    return settingsOf(JSON.parse(read(local, kSettings) ?? "{}"));
  } catch {
    return kNoSettings;
  }
}

export const saveSettings = (settings: Settings) => void write(local, kSettings, JSON.stringify(settings));

export type Theme = "system" | "light" | "dark";

export function loadTheme(): Theme {
  const theme = read(local, kTheme);
  return theme === "light" || theme === "dark" ? theme : "system";
}

export const saveTheme = (theme: Theme) => void write(local, kTheme, theme === "system" ? null : theme);
export const loadTokensShown = () => read(local, kTokens) === "on";
export const saveTokensShown = (on: boolean) => void write(local, kTokens, on ? "on" : null);
export const loadModelName = () => read(local, kModel) ?? "";
export const saveModelName = (name: string) => void write(local, kModel, name);
export const loadKey = () => read(session, kKey) ?? "";
export const saveKey = (key: string) => void write(session, kKey, key === "" ? null : key);
