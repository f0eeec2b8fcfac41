/**
 * An answer as its tokens, shaded by probability. Pointer, focus or the arrow keys choose one; its rivals stand in a card below it. For
 * screen readers it is a list whose options say token and probability.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Token } from "./types";

const kEdge = 8; // pixels between the card and the window's edge
const kLevels = [0.9, 0.7, 0.5, 0.3, 0.1]; // below the last: level 5

const probability = (logprob: number) => Math.exp(Math.min(0, logprob));

function level(logprob: number): number {
  const p = probability(logprob);
  const at = kLevels.findIndex((least) => p >= least);
  return at < 0 ? kLevels.length : at;
}

export function percent(logprob: number): string {
  const p = 100 * probability(logprob);
  if (p >= 99.95) return "100 %";
  if (p >= 10) return `${p.toFixed(1)} %`;
  return p >= 0.01 ? `${p.toFixed(2)} %` : "< 0.01 %";
}

/** White space made visible. */
export function named(text: string): string {
  if (text === "") return "(empty)";
  return text.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥");
}

function Rivals({ token, number }: { token: Token; number: number }) {
  const chosen = token.top.find((one) => one.text === token.text && one.logprob === token.logprob);
  const rows = chosen ? token.top : [...token.top, token]; // a token that is none of the likeliest
  return (
    <>
      <div class="rivals-head">
        <code>{named(token.text)}</code>
        <strong>{percent(token.logprob)}</strong>
      </div>
      <table>
        <caption class="hidden">The likeliest tokens at place {number}</caption>
        <tbody>
          {rows.map((one) => (
            <tr class={one === (chosen ?? token) ? "chosen" : ""}>
              <th scope="row">
                <code>{named(one.text)}</code>
              </th>
              <td class="bar">
                <span style={{ width: `${(100 * probability(one.logprob)).toFixed(1)}%` }} />
              </td>
              <td class="number">{percent(one.logprob)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="rivals-foot">
        token {number} · log-probability {token.logprob.toFixed(4)}
      </div>
    </>
  );
}

export function Legend() {
  const names = ["≥ 90 %", "70", "50", "30", "10", "< 10 %"];
  return (
    <div class="legend" aria-hidden="true">
      <span>probability</span>
      {names.map((name, at) => (
        <span class={`token p${at}`}>{name}</span>
      ))}
    </div>
  );
}

export function Tokens({ tokens, id }: { tokens: Token[]; id: string }) {
  const [chosen, setChosen] = useState(-1);
  const box = useRef<HTMLDivElement>(null);
  const card = useRef<HTMLDivElement>(null);
  const at = Math.min(chosen, tokens.length - 1);
  const token = tokens[at];

  useLayoutEffect(() => {
    const element = box.current?.querySelector<HTMLElement>(`[data-at="${at}"]`);
    const panel = card.current;
    if (!element || !panel || !box.current) return;
    if (document.activeElement === box.current) element.scrollIntoView({ block: "nearest" });
    const place = () => {
      const rects = element.getClientRects();
      const rect = rects[rects.length - 1] ?? element.getBoundingClientRect();
      const below = rect.bottom + 6 + panel.offsetHeight < innerHeight - kEdge;
      const left = Math.min(rect.left, innerWidth - panel.offsetWidth - kEdge);
      panel.style.left = `${Math.max(kEdge, left)}px`;
      panel.style.top = `${Math.max(kEdge, below ? rect.bottom + 6 : rect.top - 6 - panel.offsetHeight)}px`;
    };
    place();
    document.addEventListener("scroll", place, { capture: true, passive: true });
    return () => document.removeEventListener("scroll", place, { capture: true });
  }, [at, token]);

  useEffect(() => {
    if (chosen < 0) return;
    const away = (event: PointerEvent) => {
      if (!box.current?.parentElement?.contains(event.target as Node)) setChosen(-1);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [chosen < 0]);

  const key = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 };
    const step = steps[event.key];
    if (step !== undefined) setChosen(Math.max(0, Math.min(tokens.length - 1, at + step)));
    else if (event.key === "Home") setChosen(0);
    else if (event.key === "End") setChosen(tokens.length - 1);
    else if (event.key === "Escape" && chosen >= 0) setChosen(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const under = (event: Event) => {
    const place = (event.target as HTMLElement).dataset.at;
    if (place !== undefined) setChosen(Number(place));
  };
  return (
    <div class="tokens-frame" onPointerLeave={() => document.activeElement !== box.current && setChosen(-1)}>
      <div
        class="tokens"
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label="Tokens of the answer. Arrow keys choose one."
        aria-activedescendant={token ? `${id}-${at}` : undefined}
        onPointerOver={under}
        onClick={under}
        onFocus={() => setChosen((old) => Math.max(0, old))}
        onBlur={() => setChosen(-1)}
        onKeyDown={key}
      >
        {tokens.map((one, place) => (
          <span
            id={`${id}-${place}`}
            data-at={place}
            class={`token p${level(one.logprob)}`}
            role="option"
            aria-selected={place === at}
            aria-label={`${named(one.text)}, ${percent(one.logprob)}`}
          >
            {one.text}
          </span>
        ))}
      </div>
      {token && (
        <div class="rivals" ref={card} role="status">
          <Rivals token={token} number={at + 1} />
        </div>
      )}
    </div>
  );
}
