/** The page's state and what changes it. One answer runs at a time; its pieces are gathered and shown some 25 times a second. */
import { useEffect, useState } from "preact/hooks";

import { ApiFailure, askForModel, fetchModels, requestBody, requestFields, streamChat, type Message, type Piece } from "./api";
import * as storage from "./storage";
import type { Answer, Asked, Chat, Failure, Loading, ModelInfo, Settings, Turn } from "./types";

export interface State {
  chats: Chat[]; // stored ones, the newest first
  chat: Chat; // the one that is open; stored once it has a turn
  running: Answer | null;
  settings: Settings;
  showTokens: boolean;
  theme: storage.Theme;
  models: ModelInfo[];
  model: ModelInfo | null; // the one that is asked
  modelFailure: Failure | null;
  loading: Loading | null;
  loadFailure: { name: string; failure: Failure } | null;
  replayHash: string | null; // the replay is open, with this in its field
  needsKey: boolean;
  status: string; // for screen readers
}

const kShowEveryMs = 40;
const kSettleMs = 400; // arrow keys pass by other models
const kMostAnswerCharacters = 2_000_000;

function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(3)), (part) => part.toString(36)).join("");
}

const emptyChat = (): Chat => ({ id: newId(), title: "", updated: 0, turns: [] });

let state: State = {
  chats: storage.loadChats(),
  chat: emptyChat(),
  running: null,
  settings: storage.loadSettings(),
  showTokens: storage.loadTokensShown(),
  theme: storage.loadTheme(),
  models: [],
  model: null,
  modelFailure: null,
  loading: null,
  loadFailure: null,
  replayHash: null,
  needsKey: false,
  status: "",
};
const listeners = new Set<() => void>();
let abort: AbortController | null = null;
let loadAbort: AbortController | null = null;
const deleted = new Set<string>(); // an answer that still runs must not bring its conversation back

function update(change: Partial<State>): void {
  state = { ...state, ...change };
  for (const listener of listeners) listener();
}

export function useAppState(): State {
  const [, again] = useState(0);
  useEffect(() => {
    const listener = () => again((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}

// ---- the model and the key

/** What is served, and in which state. The chosen one stays where it is still there. */
export async function loadModels(): Promise<void> {
  try {
    const models = await fetchModels();
    const wanted = state.model?.id ?? storage.loadModelName();
    const model = models.find((one) => one.id === wanted) ?? models[0]!;
    update({ models, model, modelFailure: null, needsKey: false });
  } catch (error) {
    const failure = failureOf(error);
    update({ modelFailure: failure, needsKey: failure.status === 401 });
  }
}

export function setKey(key: string): Promise<void> {
  storage.saveKey(key.trim());
  return loadModels();
}

/** For the next answers. One that is not loaded is loaded now, where the server lets this page; else with the next question. */
export async function chooseModel(name: string): Promise<void> {
  const model = state.models.find((one) => one.id === name);
  if (!model) return;
  storage.saveModelName(name);
  loadAbort?.abort();
  loadAbort = null;
  update({ model, loading: null, loadFailure: null, status: `Model ${name}` });
  if (model.state === "loaded") return;
  const controller = new AbortController();
  loadAbort = controller;
  await new Promise((done) => setTimeout(done, kSettleMs));
  if (loadAbort !== controller) return;
  update({ loading: { name, percent: null }, status: `Loading ${name}` });
  try {
    await askForModel(name, controller.signal);
    if (loadAbort === controller) update({ status: `${name} is loaded` });
  } catch (error) {
    if (loadAbort === controller) update({ loadFailure: { name, failure: failureOf(error) }, status: `${name} is not loaded` });
  }
  if (loadAbort !== controller) return;
  loadAbort = null;
  update({ loading: null });
  await loadModels();
}

export function forgetLoadFailure(): void {
  update({ loadFailure: null });
}

export function openReplay(hash: string | null): void {
  update({ replayHash: hash });
}

function failureOf(error: unknown): Failure {
  if (error instanceof ApiFailure) return error.failure;
  return { message: "The page failed on this answer.", code: "page_error" };
}

// ---- conversations

export function newChat(): void {
  stop();
  update({ chat: emptyChat(), status: "New conversation" });
}

export function openChat(id: string): void {
  const chat = state.chats.find((one) => one.id === id);
  if (!chat || chat.id === state.chat.id) return;
  stop();
  update({ chat, status: `Conversation ${chat.title}` });
}

export function deleteChat(id: string): void {
  deleted.add(id);
  if (state.chat.id === id) newChat();
  update({ chats: storage.deleteChat(id), status: "Conversation deleted" });
}

export function deleteAllChats(): void {
  for (const chat of [...state.chats, state.chat]) deleted.add(chat.id);
  newChat();
  storage.deleteAllChats();
  update({ chats: [], status: "All conversations deleted" });
}

function store(chat: Chat): void {
  if (chat.turns.length === 0) return;
  update({ chats: storage.saveChat({ ...chat, updated: Date.now() }) });
}

export function showAnswer(turn: number, shown: number): void {
  const turns = state.chat.turns.map((one, at) => (at === turn ? { ...one, shown } : one));
  const chat = { ...state.chat, turns };
  update({ chat });
  if (!state.running) store(chat);
}

// ---- settings

export function setSettings(settings: Settings): void {
  storage.saveSettings(settings);
  update({ settings });
}

export function setTheme(theme: storage.Theme): void {
  storage.saveTheme(theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  update({ theme });
}

export function setShowTokens(showTokens: boolean): void {
  storage.saveTokensShown(showTokens);
  update({ showTokens });
}

// ---- answers

export function stop(): void {
  abort?.abort();
}

/** What the model reads: turns before `end` whose answer has a text, and the question of `end`. `shown`: the answer of each. */
function messagesOf(turns: Turn[], end: number, system: string, shown: number[]): Message[] {
  const out: Message[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
  turns.slice(0, end).forEach((turn, at) => {
    const text = turn.answers[shown[at] ?? turn.shown]?.text ?? "";
    if (text !== "") out.push({ role: "user", content: turn.question }, { role: "assistant", content: text });
  });
  return [...out, { role: "user", content: turns[end]?.question ?? "" }];
}

/** The request that `answer` to the turn was asked with, without what says how it is sent. */
export function fieldsOf(turns: Turn[], turn: number, answer: Answer): Record<string, unknown> {
  const { settings, seed } = answer.recipe;
  const messages = messagesOf(turns, turn, settings.system, answer.asked?.history ?? []);
  return requestFields(messages, settings, seed, answer.asked?.logprobs ?? false);
}

export function newAnswer(settings: Settings, seed: number | null): Answer {
  const free = crypto.getRandomValues(new Uint32Array(1))[0] ?? 1;
  const model = state.model;
  return {
    text: "",
    reasoning: "",
    tools: [],
    recipe: {
      seed: seed ?? settings.seed ?? free,
      model_id: model?.model_id,
      path: model?.path,
      backend: model?.backend,
      settings: { ...settings },
    },
  };
}

function addPiece(answer: Answer, piece: Piece): void {
  answer.text += piece.text ?? "";
  answer.reasoning += piece.reasoning ?? "";
  for (const part of piece.tools ?? []) {
    if (part.index < 0 || part.index > 63) continue;
    while (answer.tools.length <= part.index) answer.tools.push({ id: "", name: "", arguments: "" });
    const call = answer.tools[part.index]!;
    call.id ||= part.id ?? "";
    call.name += part.name ?? "";
    call.arguments += part.arguments ?? "";
  }
  if (piece.tokens) (answer.tokens ??= []).push(...piece.tokens);
  if (piece.finish) answer.finish = piece.finish;
  if (piece.usage) answer.usage = piece.usage;
  if (piece.fingerprint) answer.fingerprint = piece.fingerprint;
  if (piece.recipe) takeRecipe(answer, piece.recipe);
}

function takeRecipe(answer: Answer, made: Record<string, unknown>): void {
  const { recipe } = answer;
  const text = (name: string) => (typeof made[name] === "string" ? (made[name] as string) : undefined);
  recipe.made = made;
  if (typeof made.seed === "number") recipe.seed = made.seed;
  recipe.model_id = text("model_id") ?? recipe.model_id;
  recipe.path = text("path") ?? recipe.path;
  recipe.backend = text("backend") ?? recipe.backend;
  recipe.request_hash = text("request_hash");
}

/** Puts `answer` in place of the object that runs, so that views see a new one. */
function replaceAnswer(chat: Chat, turn: number, at: number, answer: Answer): Chat {
  const turns = chat.turns.map((one, i) =>
    i === turn ? { ...one, answers: one.answers.map((old, j) => (j === at ? answer : old)) } : one,
  );
  return { ...chat, turns };
}

/** Asks with `body` and fills `answer` in; never throws. */
export async function read(answer: Answer, body: string, controller: AbortController, shown: () => void): Promise<void> {
  const { signal } = controller;
  const began = performance.now();
  let next = 0;
  try {
    for await (const piece of streamChat(body, signal)) {
      if (piece.loading || state.loading?.percent != null) update({ loading: piece.loading ?? null });
      addPiece(answer, piece);
      const now = performance.now();
      if (answer.firstMs === undefined && (piece.text || piece.reasoning || piece.tools)) answer.firstMs = now - began;
      if (answer.text.length > kMostAnswerCharacters) controller.abort();
      if (now >= next) {
        next = now + kShowEveryMs;
        shown();
      }
    }
  } catch (error) {
    if (!signal.aborted) answer.error = failureOf(error);
  }
  if (state.loading?.percent != null) update({ loading: null });
  if (answer.tokens) answer.trace = answer.tokens.map((token) => [token.text, token.logprob]);
  answer.finish ??= signal.aborted ? "stopped" : "error";
  answer.totalMs = performance.now() - began;
}

const kEnds: Record<string, string> = { stopped: "Answer stopped", error: "The answer failed" };

async function run(chat: Chat, turn: number, at: number, answer: Answer): Promise<void> {
  stop();
  const controller = new AbortController();
  abort = controller;
  update({ chat, running: answer, loadFailure: null, status: "Answering" });
  const model = state.model?.id ?? "";
  answer.asked = { model, history: chat.turns.slice(0, turn).map((one) => one.shown), logprobs: state.showTokens } satisfies Asked;
  const body = requestBody(model, fieldsOf(chat.turns, turn, answer));
  const show = () => {
    const open = state.chat.id === chat.id;
    const copy = { ...answer, tools: answer.tools.map((call) => ({ ...call })), tokens: answer.tokens?.slice() };
    chat = replaceAnswer(open ? state.chat : chat, turn, at, copy);
    if (open) update({ chat });
  };
  await read(answer, body, controller, show);
  show();
  if (abort === controller) {
    abort = null;
    update({ running: null, status: kEnds[answer.finish ?? ""] ?? "Answer complete" });
  }
  if (answer.error?.status === 401) update({ needsKey: true });
  if (!deleted.has(chat.id)) store(chat);
  if (state.models.length > 1) void loadModels();
}

export function send(question: string): void {
  const text = question.trim();
  if (text === "" || state.running) return;
  const answer = newAnswer(state.settings, null);
  const title = state.chat.title || text.split("\n")[0]!.slice(0, 80);
  const turns = [...state.chat.turns, { question: text, answers: [answer], shown: 0 }];
  void run({ ...state.chat, title, turns }, turns.length - 1, 0, answer);
}

/** The question of a turn again, changed: what came after it goes. */
export function edit(turn: number, question: string): void {
  const text = question.trim();
  if (text === "" || state.running) return;
  const answer = newAnswer(state.settings, null);
  const title = turn === 0 ? text.split("\n")[0]!.slice(0, 80) : state.chat.title;
  const turns = [...state.chat.turns.slice(0, turn), { question: text, answers: [answer], shown: 0 }];
  void run({ ...state.chat, title, turns }, turn, 0, answer);
}

/** A further answer to the last turn; `repeat`: with the settings and the seed of the one that is shown. */
export function again(repeat: boolean): void {
  const at = state.chat.turns.length - 1;
  const turn = state.chat.turns[at];
  const old = turn?.answers[turn.shown];
  if (!turn || !old || state.running) return;
  const answer = repeat ? newAnswer(old.recipe.settings, old.recipe.seed) : newAnswer(state.settings, null);
  if (repeat) answer.repeats = turn.shown + 1;
  // An answer that is only an error is replaced.
  const kept = old.error && old.text === "" ? turn.answers.filter((one) => one !== old) : turn.answers;
  const answers = [...kept, answer];
  const turns = state.chat.turns.map((one, i) => (i === at ? { ...one, answers, shown: answers.length - 1 } : one));
  void run({ ...state.chat, turns }, at, answers.length - 1, answer);
}

export function start(): void {
  setTheme(state.theme);
  void loadModels();
}
