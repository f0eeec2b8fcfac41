/** The frame: conversations on the left, settings on the right, both drawers on a narrow window. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Composer, Turns } from "./conversation";
import icon from "./icon.svg";
import { ChatList, Notices, SettingsPanel } from "./panels";
import { Button, LoadBar } from "./parts";
import { ReplayDialog } from "./replay_dialog";
import { chooseModel, setShowTokens, setTheme, stop, useAppState, type State } from "./state";
import type { Theme } from "./storage";
import type { ModelInfo } from "./types";

type Drawer = "chats" | "settings" | null;

const kThemes: Record<Theme, { next: Theme; icon: "system" | "sun" | "moon"; label: string }> = {
  system: { next: "dark", icon: "system", label: "Colours: as the system. Switch to dark" },
  dark: { next: "light", icon: "moon", label: "Colours: dark. Switch to light" },
  light: { next: "system", icon: "sun", label: "Colours: light. Switch to the system’s" },
};

function useWide(query: string): boolean {
  const [wide, setWide] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const listener = () => setWide(media.matches);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, [query]);
  return wide;
}

const megabytes = (bytes: number | undefined) => (bytes ? `${Math.max(1, Math.round(bytes / 1e6))} MB` : undefined);
const kStates = { unloaded: "not loaded", loading: "loading", unloading: "being unloaded", loaded: undefined };

/** In the list; what is chosen has its facts below it. */
function choiceText(model: ModelInfo): string {
  const state = [kStates[model.state], model.state === "unloaded" && megabytes(model.memory_bytes ?? model.size_bytes)];
  const words = state.filter(Boolean).join(", ");
  return words === "" ? model.id : `${model.id} (${words})`;
}

function ModelChoice({ state, model }: { state: State; model: ModelInfo }) {
  return (
    <>
      <h1 class="hidden">{model.id}</h1>
      <select
        aria-label="Model"
        title={model.model_id}
        value={model.id}
        disabled={state.running !== null}
        onChange={(event) => void chooseModel(event.currentTarget.value)}
      >
        {state.models.map((one) => (
          <option value={one.id} selected={one.id === model.id}>
            {one.id === model.id ? one.id : choiceText(one)}
          </option>
        ))}
      </select>
    </>
  );
}

function ModelLine({ state }: { state: State }) {
  const { model, loading } = state;
  if (!model) return <h1 class="model">cyb-llm</h1>;
  const facts = [
    ["state", kStates[model.state]],
    ["takes", model.state === "loaded" ? undefined : megabytes(model.memory_bytes ?? model.size_bytes)],
    ["path", model.path],
    ["backend", model.backend],
    ["context", model.context_tokens?.toString()],
  ].filter(([, value]) => value);
  return (
    <div class="model">
      {state.models.length > 1 ? <ModelChoice state={state} model={model} /> : <h1 title={model.model_id}>{model.id}</h1>}
      {loading && !state.running && state.replayHash === null ? (
        <LoadBar loading={loading} />
      ) : (
        <ul aria-label="The model">
          {facts.map(([name, value]) => (
            <li>
              <span class="muted">{name}</span> {value}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface DrawerProps {
  name: string;
  side: "left" | "right";
  modal: boolean;
  close: () => void;
  children: ComponentChildren;
}

function DrawerFrame({ name, side, modal, close, children }: DrawerProps) {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (modal) frame.current?.querySelector<HTMLElement>("button")?.focus();
  }, [modal]);
  return (
    <>
      {modal && <div class="scrim" onClick={close} />}
      <div
        class={`drawer ${side} ${modal ? "modal" : ""}`}
        ref={frame}
        role={modal ? "dialog" : "complementary"}
        aria-label={name}
        aria-modal={modal || undefined}
      >
        <div class="drawer-head">
          {side === "left" && <img src={icon} alt="" width="26" height="26" />}
          <h2>{side === "left" ? "cyb-llm" : name}</h2>
          {(modal || side === "right") && <Button icon="close" label={`Close ${name.toLowerCase()}`} onClick={close} />}
        </div>
        {children}
      </div>
    </>
  );
}

export function App() {
  const state = useAppState();
  const [drawer, setDrawer] = useState<Drawer>(null);
  const wideLeft = useWide("(min-width: 52rem)");
  const wideRight = useWide("(min-width: 72rem)");
  const question = useRef<HTMLTextAreaElement>(null);
  const chatsShown = wideLeft || drawer === "chats";
  const settingsShown = drawer === "settings";
  const covered = (settingsShown && !wideRight) || (drawer === "chats" && !wideLeft);
  const opener = useRef<HTMLElement | null>(null);
  const open = (next: Drawer) => {
    opener.current = document.activeElement as HTMLElement;
    setDrawer(drawer === next ? null : next);
  };
  const close = () => {
    setDrawer(null);
    const back = opener.current;
    requestAnimationFrame(() => (back?.isConnected ? back : question.current)?.focus());
  };
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.isComposing) return;
      if (document.querySelector("dialog[open]")) return;
      if (covered) close();
      else stop();
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, [covered]);
  useEffect(() => {
    if (wideLeft) question.current?.focus();
  }, [state.chat.id]);
  const theme = kThemes[state.theme];
  return (
    <div class={`app ${chatsShown && wideLeft ? "with-left" : ""} ${settingsShown && wideRight ? "with-right" : ""}`}>
      {chatsShown && (
        <DrawerFrame name="Conversations" side="left" modal={!wideLeft} close={close}>
          <ChatList state={state} close={wideLeft ? () => undefined : close} />
        </DrawerFrame>
      )}
      <main inert={covered}>
        <header class="top">
          {!wideLeft && <Button icon="menu" label="Conversations" expanded={drawer === "chats"} onClick={() => open("chats")} />}
          <ModelLine state={state} />
          <div class="tools">
            <Button icon="tokens" label="Token probabilities" pressed={state.showTokens} onClick={() => setShowTokens(!state.showTokens)}>
              <span class="word">Tokens</span>
            </Button>
            <Button icon={theme.icon} label={theme.label} onClick={() => setTheme(theme.next)} />
            <Button icon="sliders" label="Settings" expanded={settingsShown} onClick={() => open("settings")} />
          </div>
        </header>
        <Notices state={state} />
        <Turns state={state} />
        <div class="dock">
          <Composer state={state} box={question} />
        </div>
      </main>
      {settingsShown && (
        <DrawerFrame name="Settings" side="right" modal={!wideRight} close={close}>
          <SettingsPanel state={state} />
        </DrawerFrame>
      )}
      {state.replayHash !== null && <ReplayDialog state={state} hash={state.replayHash} />}
      <div class="hidden" role="status">
        {state.status}
      </div>
    </div>
  );
}
