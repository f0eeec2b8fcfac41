/** What the page keeps. Everything here comes from the server or from storage: text is never markup. */

export interface Likely {
  text: string; // "⟨e2 96⟩" where the bytes are no whole text
  logprob: number;
  bytes?: number[]; // where `text` does not say them
}

export interface Token extends Likely {
  top: Likely[]; // the likeliest at this place, the chosen one may be among them
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: string; // JSON as the model wrote it, perhaps cut off
}

export interface Failure {
  message: string;
  code: string;
  status?: number;
  param?: string;
  requestId?: string;
}

/** What gives the same bits again. */
export interface Recipe {
  seed: number;
  model_id?: string;
  path?: string;
  backend?: string;
  request_hash?: string; // "blake3:..."
  made?: Record<string, unknown>; // `cyb_llm` as the server sent it, with numerics, samplers, digests
  settings: Settings;
}

/** How an answer was asked for: with its question and settings this is the request. */
export interface Asked {
  model: string; // its name then
  history: number[]; // for each turn before: which of its answers was sent
  logprobs: boolean; // asked for too
}

export interface Answer {
  text: string;
  reasoning: string;
  tools: ToolCall[];
  tokens?: Token[]; // not kept in storage: the seed gives them again
  trace?: [string, number][]; // of them, token and log-probability: kept, to compare a replay with
  recipe: Recipe;
  asked?: Asked;
  fingerprint?: string; // of model and numerics
  finish?: string; // "stop", "length", ...; "stopped" by the reader
  usage?: { prompt: number; answer: number; reused: number };
  firstMs?: number;
  totalMs?: number;
  error?: Failure;
  repeats?: number; // the number of the earlier answer whose seed it was asked with
}

export interface Turn {
  question: string;
  answers: Answer[]; // at least one
  shown: number; // index of the answer that is seen and sent on
}

export interface Chat {
  id: string;
  title: string;
  updated: number; // ms since 1970
  turns: Turn[];
}

/** `null`: the model's own. */
export interface Settings {
  system: string;
  temperature: number | null;
  top_p: number | null;
  top_k: number | null;
  min_p: number | null;
  seed: number | null; // null: a new one for each answer
  max_tokens: number | null;
}

export type ModelState = "unloaded" | "loading" | "loaded" | "unloading";

export interface ModelInfo {
  id: string;
  state: ModelState;
  size_bytes?: number; // of its file
  memory_bytes?: number; // what it takes when it is loaded
  model_id?: string;
  path?: string;
  backend?: string;
  context_tokens?: number;
}

export interface Loading {
  name: string;
  percent: number | null; // null: not known
}
