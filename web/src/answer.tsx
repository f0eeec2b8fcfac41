/** One answer: reasoning folded apart, text or tokens, tool calls, error, recipe, what can be done with it. */
import { useEffect, useState } from "preact/hooks";

import { Markdown } from "./markdown";
import { Button, CopyButton, Icon } from "./parts";
import { again, showAnswer } from "./state";
import { Legend, Tokens } from "./tokens";
import type { Answer, Failure, ToolCall, Turn } from "./types";

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

export function FailureCard({ failure, retry }: { failure: Failure; retry?: () => void }) {
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
    </div>
  );
}

/** What the answer was made with, as a request's fields and the server's names of the bits. */
function recipeText(answer: Answer): string {
  const { settings, ...made } = answer.recipe;
  const given = Object.entries(settings).filter(([name, value]) => value !== null && value !== "" && name !== "seed");
  return JSON.stringify({ ...made, ...Object.fromEntries(given) }, null, 2);
}

function RecipeCard({ answer, last }: { answer: Answer; last: boolean }) {
  const { seed, model_id: id, path, backend, settings } = answer.recipe;
  const rows: [string, string | number | null | undefined][] = [
    ["seed", seed],
    ["model", id],
    ["path", path],
    ["backend", backend],
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
      </div>
    </div>
  );
}

function speed(answer: Answer): string {
  const { usage, firstMs, totalMs } = answer;
  if (!usage || firstMs === undefined || totalMs === undefined) return "";
  const seconds = (totalMs - firstMs) / 1000;
  const rate = usage.answer > 1 && seconds > 0.05 ? ` · ${((usage.answer - 1) / seconds).toFixed(1)} tokens/s` : "";
  return `${count(usage.answer)} tokens${rate}`;
}

const kEnds: Record<string, string> = {
  length: "ended at the limit of tokens",
  stopped: "stopped",
  error: "not complete",
  content_filter: "filtered",
};

interface Props {
  turn: Turn;
  number: number; // of the turn
  last: boolean;
  live: boolean; // it grows
  busy: boolean; // some answer grows
  showTokens: boolean;
}

function Body({ answer, number, last, live, busy, showTokens }: Props & { answer: Answer }) {
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
      {live && answer.text === "" && answer.reasoning === "" && (
        <div class="waiting" role="img" aria-label="Waiting for the first token">
          <span />
          <span />
          <span />
        </div>
      )}
    </>
  );
}

function Footer({ turn, number, last, busy, answer }: Props & { answer: Answer }) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [turn.shown]);
  const same = answer.repeats ? turn.answers[answer.repeats - 1]?.text === answer.text : false;
  const words = [speed(answer), kEnds[answer.finish ?? ""], same && `same text as answer ${answer.repeats}`].filter(Boolean);
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
        <span class="muted">{words.join(" · ")}</span>
      </div>
      {open && <RecipeCard answer={answer} last={last && !busy} />}
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
