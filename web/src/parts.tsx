/** Small parts: icons, buttons. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { Loading } from "./types";

const kPaths = {
  menu: "M4 6h12M4 10h12M4 14h12",
  plus: "M10 4v12M4 10h12",
  close: "M5 5l10 10M15 5L5 15",
  send: "M10 16V4M5 9l5-5 5 5",
  copy: "M7 7V4.5A1.5 1.5 0 0 1 8.5 3h7A1.5 1.5 0 0 1 17 4.5v7a1.5 1.5 0 0 1-1.5 1.5H13M4.5 7h7A1.5 1.5 0 0 1 13 8.5v7a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 3 15.5v-7A1.5 1.5 0 0 1 4.5 7z",
  check: "M4 10.5l4 4 8-9",
  again: "M16 10a6 6 0 1 1-1.8-4.3M16 3v3.5h-3.5",
  edit: "M4 16l.8-3.5L13.5 3.8a1.6 1.6 0 0 1 2.3 0l.4.4a1.6 1.6 0 0 1 0 2.3L7.5 15.2 4 16z",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  down: "M10 4v12M5 11l5 5 5-5",
  sliders: "M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4",
  trash: "M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6",
  sun: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M4.3 15.7l1.1-1.1M14.6 5.4l1.1-1.1",
  moon: "M16.5 11.8A6.8 6.8 0 1 1 8.2 3.5a5.4 5.4 0 0 0 8.3 8.3z",
  system: "M3 4.5h14v9H3zM7.5 17h5M10 13.5V17",
  recipe: "M5.5 3h9v14h-9zM8 7h4M8 10h4M8 13h2.5",
  tokens: "M3 5h5v4H3zM10 5h7v4h-7zM3 11h7v4H3zM12 11h5v4h-5z",
  dash: "M5 10h10",
  download: "M10 3v10M5.5 9l4.5 4.5L14.5 9M4 16.5h12",
  replay: "M4 10a6 6 0 1 0 1.8-4.3M4 3v3.5h3.5M8.5 7.5v5l4-2.5z",
  tool: "M12.5 3.5a4 4 0 0 0-4 5.3L3.5 13.8a1.5 1.5 0 0 0 2.2 2.2l5-5a4 4 0 0 0 5.3-5l-2.3 2.3-2-2z",
} as const;

export type IconName = keyof typeof kPaths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={kPaths[name]} />
    </svg>
  );
}

interface ButtonProps {
  icon: IconName;
  label: string; // for screen readers and the tooltip
  onClick: () => void;
  children?: ComponentChildren;
  pressed?: boolean;
  expanded?: boolean;
  disabled?: boolean;
  class?: string;
}

export function Button({ icon, label, onClick, children, pressed, expanded, disabled, class: kind }: ButtonProps) {
  return (
    <button
      type="button"
      class={`button ${kind ?? ""}`}
      aria-label={children ? undefined : label}
      title={label}
      aria-pressed={pressed}
      aria-expanded={expanded}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
      {children}
    </button>
  );
}

export function LoadBar({ loading }: { loading: Loading }) {
  const { name, percent } = loading;
  return (
    <div class="load">
      <span>
        Loading {name}
        {percent !== null ? ` · ${percent} %` : "…"}
      </span>
      <progress aria-label={`Loading ${name}`} max={100} value={percent ?? undefined} />
    </div>
  );
}

/** Works on plain http too, where the browser has no clipboard for pages. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function CopyButton({ text, label, children }: { text: string; label: string; children?: ComponentChildren }) {
  const [done, setDone] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const click = async () => {
    setDone(await copy(text));
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setDone(false), 1500);
  };
  return (
    <>
      <Button icon={done ? "check" : "copy"} label={label} onClick={() => void click()}>
        {children}
      </Button>
      <span class="hidden" role="status">
        {done ? "Copied" : ""}
      </span>
    </>
  );
}
