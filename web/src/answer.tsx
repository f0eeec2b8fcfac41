/** One answer: reasoning folded apart, text or tokens, tool calls, error, recipe, what can be done with it. */
import { useEffect, useState } from "preact/hooks";

import { Markdown } from "./markdown";
import { Button, CopyButton, Icon, LoadBar } from "./parts";
import { download, savedAnswer } from "./replay";
import { again, openReplay, showAnswer } from "./state";
import { Legend, Tokens } from "./tokens";
import type { Answer, Failure, Loading, ToolCall, Turn } from "./types";

const count = (n: number) => n.toLocaleString("en-US").replace(/,/g, "\u202f");

function Reasoning({ text, thinking }: { text: string; thinking: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="fold" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{thinking ? "Reasoning…" : "Reasoning"}</summary>
      <Markdown text={text} />
    </details>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function ToolCard({ call }: { call: ToolCall }) {
  return (
    <section class="tool" aria-label={`Tool call ${call.name}`}>
      <header>
        <Icon name="tool" />
        <strong>{call.name || "tool"}</strong>
        <span class="muted">{call.id}</span>
      </header>
      <pre tabIndex={0} role="region" aria-label="Arguments">
        {indented(call.arguments)}
      </pre>
    </section>
  );
}

export function FailureCard({ failure, retry, dismiss }: { failure: Failure; retry?: () => void; dismiss?: () => void }) {
  const facts = [
    ["code", failure.code],
    ["status", failure.status],
    ["field", failure.param],
    ["request", failure.requestId],
  ].filter(([, value]) => value !== undefined && value !== "");
  return (
    <div class="failure" role="alert">
      <p>{failure.message}</p>
      <p class="facts">
        {facts.map(([name, value]) => (
          <span>
            {name} <code>{value}</code>
          </span>
        ))}
      </p>
      {retry && (
        <Button icon="again" label="Try again" onClick={retry}>
          Try again
        </Button>
      )}
      {dismiss && (
        <Button icon="close" label="Dismiss" onClick={dismiss}>
          Dismiss
        </Button>
      )}
    </div>
  );
}

/** What the answer was made with, as a request's fields and the server's names of the bits. */
function recipeText(answer: Answer): string {
  const { settings, made: all, ...named } = answer.recipe;
  const made = { ...named, ...all };
  const given = Object.entries(settings).filter(([name, value]) => value !== null && value !== "" && name !== "seed");
  return JSON.stringify({ ...made, ...Object.fromEntries(given) }, null, 2);
}

/** "temperature 0.8, top_k 40": the server's samplers in their order. */
function samplerText(made: Record<string, unknown> | undefined): string | undefined {
  if (!Array.isArray(made?.sampler)) return undefined;
  const one = (sampler: unknown): string => {
    const { name, ...values } = (sampler ?? {}) as Record<string, unknown>;
    const given = Object.entries(values).map(([key, value]) => `${key === name ? "" : `${key} `}${JSON.stringify(value)}`);
    return `${String(name)} ${given.join(" ")}`;
  };
  return made.sampler.map(one).join(", ") || "none";
}

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);

function RecipeCard({ answer, last, turns, number }: Props & { answer: Answer }) {
  const { seed, model_id: id, path, backend, request_hash: hash, made, settings } = answer.recipe;
  const rows: [string, string | number | null | undefined][] = [
    ["request hash", hash],
    ["seed", seed],
    ["model", id],
    ["path", path],
    ["backend", backend],
    ["numerics", textOf(made?.numerics)],
    ["template", textOf(made?.template)],
    ["samplers", samplerText(made)],
    ["temperature", settings.temperature],
    ["top_p", settings.top_p],
    ["top_k", settings.top_k],
    ["min_p", settings.min_p],
    ["max_tokens", settings.max_tokens],
    ["system", settings.system],
  ];
  return (
    <div class="recipe">
      <dl>
        {rows
          .filter(([, value]) => value !== null && value !== undefined && value !== "")
          .map(([name, value]) => (
            <div>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <div class="row">
        <CopyButton text={recipeText(answer)} label="Copy the recipe as JSON">
          Copy recipe
        </CopyButton>
        {last && (
          <Button icon="again" label="Ask again with the same seed and settings" onClick={() => again(true)}>
            Same seed again
          </Button>
        )}
        {hash && (
          <Button icon="replay" label="Ask again apart from the conversation, and compare" onClick={() => openReplay(hash)}>
            Replay
          </Button>
        )}
        {hash && (
          <Button
            icon="download"
            label="Download request and answer, for cyb-llm replay"
            onClick={() => download(`answer-${hash.slice(7, 17)}.json`, savedAnswer(turns, number, answer))}
          >
            Download
          </Button>
        )}
      </div>
    </div>
  );
}

function speed(answer: Answer): string {
  const { usage, firstMs, totalMs } = answer;
  if (!usage || firstMs === undefined || totalMs === undefined) return "";
  const seconds = (totalMs - firstMs) / 1000;
  const rate = usage.answer > 1 && seconds > 0.05 ? ` · ${((usage.answer - 1) / seconds).toFixed(1)} tokens/s` : "";
  return `${count(usage.answer)} token${usage.answer === 1 ? "" : "s"}${rate}`;
}

const kEnds: Record<string, string> = {
  length: "ended at the limit of tokens",
  stopped: "stopped",
  error: "not complete",
  content_filter: "filtered",
};

interface Props {
  turns: Turn[];
  turn: Turn;
  number: number; // of the turn
  last: boolean;
  live: boolean; // it grows
  busy: boolean; // some answer grows
  showTokens: boolean;
  loading: Loading | null; // the model of the answer that grows
}

function Body({ answer, number, last, live, busy, showTokens, loading }: Props & { answer: Answer }) {
  if (showTokens && answer.tokens) return <Tokens tokens={answer.tokens} id={`token-${number}`} />;
  return (
    <>
      {showTokens && !live && answer.text !== "" && (
        <div class="note">
          <span>This answer was made without probabilities.</span>
          {last && !busy && (
            <Button icon="again" label="Ask again with the same seed and settings" onClick={() => again(true)}>
              Same seed again, with them
            </Button>
          )}
        </div>
      )}
      {answer.text !== "" && <Markdown text={answer.text} />}
      {live && loading && answer.text === "" && <LoadBar loading={loading} />}
      {live && !loading && answer.text === "" && answer.reasoning === "" && (
        <div class="waiting" role="img" aria-label="Waiting for the first token">
          <span />
          <span />
          <span />
        </div>
      )}
    </>
  );
}

function Footer(props: Props & { answer: Answer }) {
  const { turn, number, last, busy, answer } = props;
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [turn.shown]);
  const same = answer.repeats ? turn.answers[answer.repeats - 1]?.text === answer.text : false;
  const hash = answer.recipe.request_hash;
  const words = [answer.asked?.model, speed(answer), kEnds[answer.finish ?? ""], same && `same text as answer ${answer.repeats}`].filter(Boolean);
  return (
    <>
      <div class="answer-foot">
        {turn.answers.length > 1 && (
          <span class="pager">
            <Button icon="left" label="Earlier answer" disabled={turn.shown === 0} onClick={() => showAnswer(number, turn.shown - 1)} />
            <span>
              {turn.shown + 1} / {turn.answers.length}
            </span>
            <Button
              icon="right"
              label="Later answer"
              disabled={turn.shown === turn.answers.length - 1}
              onClick={() => showAnswer(number, turn.shown + 1)}
            />
          </span>
        )}
        {answer.text !== "" && <CopyButton text={answer.text} label="Copy the answer" />}
        {last && <Button icon="again" label="Regenerate" disabled={busy} onClick={() => again(false)} />}
        <Button icon="recipe" label="Recipe of this answer" expanded={open} onClick={() => setOpen(!open)}>
          Recipe
        </Button>
        {hash && (
          <CopyButton text={hash} label={`Copy the request hash ${hash}`}>
            <span class="hidden">Request hash</span>
            <span class="hash">{hash.slice(7, 17)}</span>
          </CopyButton>
        )}
        <span class="muted">{words.join(" · ")}</span>
      </div>
      {open && <RecipeCard {...props} last={last && !busy} />}
    </>
  );
}

export function AnswerView(props: Props) {
  const { turn, live, last, busy, showTokens } = props;
  const answer = turn.answers[turn.shown];
  if (!answer) return null;
  const empty = answer.error !== undefined && answer.text === "" && answer.tools.length === 0;
  return (
    <article class="answer" aria-label="Answer" aria-busy={live}>
      {answer.reasoning !== "" && <Reasoning text={answer.reasoning} thinking={live && answer.text === ""} />}
      {showTokens && answer.tokens && <Legend />}
      <Body {...props} answer={answer} />
      {answer.tools.map((call) => (
        <ToolCard call={call} />
      ))}
      {answer.error && <FailureCard failure={answer.error} retry={last && !busy ? () => again(false) : undefined} />}
      {!live && (!empty || turn.answers.length > 1) && <Footer {...props} answer={answer} />}
    </article>
  );
}
