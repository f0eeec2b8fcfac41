/** Replay by request hash: finds the answer in this browser's conversations, asks again, and says what is the same. */
import { useEffect, useRef, useState } from "preact/hooks";

import { FailureCard } from "./answer";
import { Button, Icon, LoadBar } from "./parts";
import { askAgain, compare, findAnswer, firstOther, hashDigits, wholeText, whyOther, type Found, type Row } from "./replay";
import { openReplay, type State } from "./state";
import { named } from "./tokens";
import type { Answer } from "./types";

const kAround = 3; // tokens before and after the first that differs

function Rows({ rows }: { rows: Row[] }) {
  return (
    <table class="compared">
      <caption class="hidden">What is the same</caption>
      <tbody>
        {rows.map((row) => (
          <tr class={row.same === null ? "unknown" : row.same ? "same" : "other"}>
            <th scope="row">{row.name}</th>
            <td class="verdict">
              <Icon name={row.same === null ? "dash" : row.same ? "check" : "close"} />
              {row.same === null ? "not compared" : row.same ? "same" : "different"}
            </td>
            <td>{row.detail}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Side({ name, text, at }: { name: string; text: string; at: number }) {
  const letters = [...text];
  return (
    <section class="side" aria-label={name}>
      <h3>{name}</h3>
      <pre class="plain" tabIndex={0}>
        {letters.slice(0, at).join("")}
        {at < letters.length && <mark>{letters.slice(at).join("")}</mark>}
      </pre>
    </section>
  );
}

function Texts({ old, now }: { old: Answer; now: Answer }) {
  const [a, b] = [wholeText(old), wholeText(now)];
  const at = firstOther([...a], [...b], (x, y) => x === y);
  if (at < 0) return null;
  return (
    <div class="sides">
      <Side name="Stored" text={a} at={at} />
      <Side name="Now" text={b} at={at} />
    </div>
  );
}

function TokenDifference({ old, now }: { old: Answer; now: Answer }) {
  const a = old.trace ?? [];
  const b = now.trace ?? [];
  const at = a.length > 0 && b.length > 0 ? firstOther(a, b, (x, y) => x[0] === y[0] && x[1] === y[1]) : -1;
  if (at < 0) return null;
  const first = Math.max(0, at - kAround);
  const places = Array.from({ length: Math.min(Math.max(a.length, b.length), at + kAround + 1) - first }, (_, i) => first + i);
  const cell = (one: [string, number] | undefined) => (one ? [named(one[0]), String(one[1])] : ["none", ""]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Tokens around the first difference">
      <table class="tokens-compared">
        <thead>
          <tr>
            <th scope="col">token</th>
            <th scope="col">stored</th>
            <th scope="col">log-probability</th>
            <th scope="col">now</th>
            <th scope="col">log-probability</th>
          </tr>
        </thead>
        <tbody>
          {places.map((place) => (
            <tr class={place >= at ? "other" : ""}>
              <th scope="row">{place + 1}</th>
              {[...cell(a[place]), ...cell(b[place])].map((text) => (
                <td>
                  <code>{text}</code>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Result({ found, now }: { found: Found; now: Answer }) {
  const rows = compare(found.answer, now);
  const same = rows.every((row) => row.same !== false);
  const why = found.answer.recipe.request_hash !== now.recipe.request_hash ? whyOther(found.answer, now) : "";
  return (
    <>
      <p class={`outcome ${same ? "same" : "other"}`}>
        <Icon name={same ? "check" : "close"} />
        {same ? "The same answer." : "Another answer."}
      </p>
      <Rows rows={rows} />
      {why !== "" && <p class="muted why">{why}</p>}
      <Texts old={found.answer} now={now} />
      <TokenDifference old={found.answer} now={now} />
    </>
  );
}

function FoundCard({ found }: { found: Found }) {
  const { answer, chat, turn } = found;
  return (
    <dl class="found">
      <div>
        <dt>Question</dt>
        <dd>{chat.turns[turn]!.question.slice(0, 300)}</dd>
      </div>
      {turn > 0 && (
        <div>
          <dt>Conversation</dt>
          <dd>{chat.title || "Untitled"}</dd>
        </div>
      )}
      <div>
        <dt>Model</dt>
        <dd>{answer.asked?.model || answer.recipe.model_id}</dd>
      </div>
      <div>
        <dt>Seed</dt>
        <dd>{answer.recipe.seed}</dd>
      </div>
    </dl>
  );
}

export function ReplayDialog({ state, hash }: { state: State; hash: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const controller = useRef<AbortController | null>(null);
  const [text, setText] = useState(hash);
  const [result, setResult] = useState<{ found: Found; now: Answer } | null>(null);
  const [busy, setBusy] = useState(false);
  const digits = hashDigits(text);
  const found = digits ? findAnswer(state, digits) : null;
  useEffect(() => {
    dialog.current?.showModal();
    return () => controller.current?.abort();
  }, []);
  const close = () => openReplay(null);
  const change = (value: string) => {
    controller.current?.abort();
    setText(value);
    setResult(null);
  };
  const ask = async () => {
    if (!found || busy) return;
    const own = new AbortController();
    controller.current = own;
    setBusy(true);
    setResult(null);
    const now = await askAgain(state, found, own);
    setBusy(false);
    if (!own.signal.aborted) setResult({ found, now });
  };
  const wrong = text.trim() === "" ? "" : !digits ? "That is no request hash: blake3: and 64 hex digits, or at least 8 of them." : "";
  const none = digits && !found ? "No conversation of this browser has an answer to that request. The server keeps nothing." : "";
  const failed = result?.now.error;
  const outcome = busy ? "Asking again" : failed ? "The answer failed" : result ? "Compared" : "";
  return (
    <dialog class="replay" ref={dialog} aria-labelledby="replay-title" onCancel={close} onClose={close}>
      <header>
        <h2 id="replay-title">Replay by request hash</h2>
        <Button icon="close" label="Close the replay" onClick={close} />
      </header>
      <form
        class="replay-form"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <label for="replay-hash">Request hash</label>
        <input
          id="replay-hash"
          type="text"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          autofocus
          placeholder="blake3:…"
          value={text}
          aria-describedby="replay-help"
          aria-invalid={wrong !== ""}
          onInput={(event) => change(event.currentTarget.value)}
        />
        <small id="replay-help" class={wrong || none ? "wrong" : "muted"} role={wrong || none ? "status" : undefined}>
          {wrong || none || "Under each answer. It is looked for in this browser’s conversations, and asked again with its seed."}
        </small>
        {found && <FoundCard found={found} />}
        <div class="row">
          <button type="submit" class="button primary" disabled={!found || busy || state.running !== null}>
            Ask again
          </button>
          {busy && (
            <button type="button" class="button line" onClick={() => controller.current?.abort()}>
              Stop
            </button>
          )}
          {busy && <span class="muted">The model answers…</span>}
        </div>
      </form>
      {busy && state.loading && <LoadBar loading={state.loading} />}
      {failed && <FailureCard failure={failed} />}
      {result && !failed && <Result {...result} />}
      <div class="hidden" role="status">
        {outcome}
      </div>
    </dialog>
  );
}
