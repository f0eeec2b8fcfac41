/** The turns of a conversation, and the box below them. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { AnswerView } from "./answer";
import { Button, Icon } from "./parts";
import { edit, send, stop, type State } from "./state";
import type { Turn } from "./types";

function EditBox({ text, done }: { text: string; done: (text: string | null) => void }) {
  const [value, setValue] = useState(text);
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    box.current?.focus();
    box.current?.setSelectionRange(text.length, text.length);
  }, []);
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") done(null);
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) done(value);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="edit">
      <textarea ref={box} rows={3} aria-label="Edit the question" value={value} onInput={(e) => setValue(e.currentTarget.value)} onKeyDown={key} />
      <div class="row">
        <button type="button" class="button primary" disabled={value.trim() === ""} onClick={() => done(value)}>
          Ask this instead
        </button>
        <button type="button" class="button" onClick={() => done(null)}>
          Cancel
        </button>
      </div>
    </div>
  );
}

function Question({ turn, number, busy }: { turn: Turn; number: number; busy: boolean }) {
  const [editing, setEditing] = useState(false);
  const frame = useRef<HTMLElement>(null);
  const done = (text: string | null) => {
    setEditing(false);
    if (text !== null && text.trim() !== "") edit(number, text);
    else requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(".question-tools button")?.focus());
  };
  return (
    <article class="question" aria-label="You" ref={frame}>
      {editing ? (
        <EditBox text={turn.question} done={done} />
      ) : (
        <>
          <div class="bubble">{turn.question}</div>
          <div class="question-tools">
            <Button icon="edit" label="Edit the question" disabled={busy} onClick={() => setEditing(true)} />
          </div>
        </>
      )}
    </article>
  );
}

const kFirst = [
  "Explain in three sentences why the sky is blue.",
  "Write a Python function that finds the longest word in a text.",
  "Give me a table of the planets with their number of moons.",
];

function Welcome({ state }: { state: State }) {
  return (
    <div class="welcome">
      <h2>What would you like to ask?</h2>
      <p>
        {state.model ? (
          <>
            <strong>{state.model.id}</strong> answers from this server. What you write stays between it and this browser.
          </>
        ) : (
          "What you write stays between this server and this browser."
        )}
      </p>
      <ul>
        {kFirst.map((text) => (
          <li>
            <button type="button" disabled={!state.model} onClick={() => send(text)}>
              {text}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function Turns({ state }: { state: State }) {
  const scroll = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const [away, setAway] = useState(false);
  const busy = state.running !== null;
  const { turns } = state.chat;
  const toEnd = () => {
    const box = scroll.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  useLayoutEffect(() => {
    stick.current = true;
    toEnd();
  }, [state.chat.id, turns.length, busy]);
  useLayoutEffect(() => {
    if (stick.current) toEnd();
  }, [turns]);
  const moved = () => {
    const box = scroll.current;
    if (!box) return;
    stick.current = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
    setAway(!stick.current);
  };
  return (
    <div class="turns-frame">
      <div class="turns" ref={scroll} onScroll={moved} role="region" aria-label="Conversation" tabIndex={0}>
        <div class="column" role="log" aria-live="polite" aria-relevant="additions" aria-busy={busy}>
          {turns.length === 0 && <Welcome state={state} />}
          {turns.map((turn, at) => {
            const last = at === turns.length - 1;
            const live = last && busy && turn.shown === turn.answers.length - 1;
            return (
              <div class="turn" key={at}>
                <Question turn={turn} number={at} busy={busy} />
                <AnswerView turns={turns} turn={turn} number={at} last={last} live={live} busy={busy} showTokens={state.showTokens} loading={live ? state.loading : null} />
              </div>
            );
          })}
        </div>
      </div>
      {away && <Button icon="down" label="To the end" class="to-end" onClick={toEnd} />}
    </div>
  );
}

function ContextMeter({ state }: { state: State }) {
  const turn = state.chat.turns[state.chat.turns.length - 1];
  const usage = turn?.answers[turn.shown]?.usage;
  const most = state.model?.context_tokens;
  if (!usage || !most) return null;
  const used = usage.prompt + usage.answer;
  return (
    <span class="context">
      <meter min={0} max={most} high={0.8 * most} optimum={0} value={used} aria-label="Context used" />
      {used} of {most} tokens of context
    </span>
  );
}

export function Composer({ state, box }: { state: State; box: RefObject<HTMLTextAreaElement | null> }) {
  const [text, setText] = useState("");
  const busy = state.running !== null;
  useLayoutEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
  }, [text]);
  const submit = () => {
    if (busy || text.trim() === "" || !state.model) return;
    send(text);
    setText("");
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      class="composer column"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div class="composer-box">
        <label class="hidden" for="question">
          Your message
        </label>
        <textarea
          id="question"
          ref={box}
          rows={1}
          maxLength={1_000_000}
          placeholder="Message the model"
          aria-describedby="keys"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={key}
        />
        {busy ? (
          <button type="button" class="send stop" aria-label="Stop" title="Stop (Escape)" onClick={stop}>
            <span class="square" />
          </button>
        ) : (
          <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled={text.trim() === "" || !state.model}>
            <Icon name="send" />
          </button>
        )}
      </div>
      <p class="hints" id="keys">
        <span class="keys">
          <kbd>Enter</kbd> sends · <kbd>Shift</kbd> <kbd>Enter</kbd> new line · <kbd>Esc</kbd> stops
        </span>
        <ContextMeter state={state} />
      </p>
    </form>
  );
}
