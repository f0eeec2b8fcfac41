/** What stands beside the conversation: the list of conversations, the settings, the field for the key. */
import { useState } from "preact/hooks";

import { FailureCard } from "./answer";
import { Button } from "./parts";
import { deleteAllChats, deleteChat, forgetLoadFailure, loadModels, newChat, openChat, openReplay, setKey, setSettings, type State } from "./state";
import { kMostChats, kNoSettings } from "./storage";
import type { Failure, Settings } from "./types";

export function ChatList({ state, close }: { state: State; close: () => void }) {
  const [asking, setAsking] = useState(false);
  const open = (action: () => void) => {
    action();
    close();
  };
  return (
    <>
      <Button icon="plus" label="New conversation" class="wide" onClick={() => open(newChat)}>
        New conversation
      </Button>
      {state.chats.length === 0 && <p class="muted pad">Conversations are kept in this browser alone, the last {kMostChats}.</p>}
      <ul class="chats">
        {state.chats.map((chat) => (
          <li key={chat.id} class={chat.id === state.chat.id ? "current" : ""}>
            <button
              type="button"
              class="chat-name"
              aria-current={chat.id === state.chat.id ? "page" : undefined}
              title={chat.title}
              onClick={() => open(() => openChat(chat.id))}
            >
              {chat.title || "Untitled"}
            </button>
            <Button icon="trash" label={`Delete ${chat.title}`} onClick={() => deleteChat(chat.id)} />
          </li>
        ))}
      </ul>
      <div class="clear">
        <Button icon="replay" label="Replay an answer by its request hash" onClick={() => open(() => openReplay(""))}>
          Replay by hash
        </Button>
        {state.chats.length > 0 &&
          (asking ? (
            <div class="row" role="group" aria-label="Delete all conversations?">
              <button
                type="button"
                class="button danger"
                onClick={() => {
                  setAsking(false);
                  deleteAllChats();
                }}
              >
                Delete all {state.chats.length}
              </button>
              <button type="button" class="button" onClick={() => setAsking(false)}>
                Keep
              </button>
            </div>
          ) : (
            <Button icon="trash" label="Delete all conversations" onClick={() => setAsking(true)}>
              Delete all
            </Button>
          ))}
      </div>
    </>
  );
}

type NumberName = Exclude<keyof Settings, "system">;

const kFields: { name: NumberName; label: string; help: string; min: number; max: number; step: number | "any" }[] = [
  { name: "temperature", label: "Temperature", help: "0: always the likeliest token", min: 0, max: 100, step: "any" },
  { name: "top_p", label: "Top p", help: "Fewest tokens that reach this probability", min: 0.0001, max: 1, step: "any" },
  { name: "top_k", label: "Top k", help: "The k likeliest; 0: off", min: 0, max: 2147483647, step: 1 },
  { name: "min_p", label: "Min p", help: "Share of the likeliest token's probability", min: 0, max: 0.9999, step: "any" },
  { name: "max_tokens", label: "Max tokens", help: "Where an answer ends at the latest", min: 1, max: 2147483647, step: 1 },
  { name: "seed", label: "Seed", help: "Empty: a new one for each answer", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
];

function NumberField({ field, settings }: { field: (typeof kFields)[number]; settings: Settings }) {
  const value = settings[field.name];
  const [wrong, setWrong] = useState("");
  const input = (element: HTMLInputElement) => {
    const ok = element.validity.valid;
    setWrong(ok ? "" : element.validationMessage || "Not a number in range");
    if (ok) setSettings({ ...settings, [field.name]: element.value === "" ? null : Number(element.value) });
  };
  const id = `setting-${field.name}`;
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      <input
        id={id}
        type="number"
        inputMode={field.step === 1 ? "numeric" : "decimal"}
        min={field.min}
        max={field.max}
        step={field.step}
        placeholder={field.name === "seed" ? "new" : field.name === "max_tokens" ? "none" : "model’s"}
        value={value ?? ""}
        aria-describedby={`${id}-help`}
        aria-invalid={wrong !== ""}
        onInput={(event) => input(event.currentTarget)}
      />
      <small id={`${id}-help`} class={wrong ? "wrong" : ""}>
        {wrong || field.help}
      </small>
    </div>
  );
}

export function SettingsPanel({ state }: { state: State }) {
  const { settings } = state;
  const changed = JSON.stringify(settings) !== JSON.stringify(kNoSettings);
  const [round, setRound] = useState(0); // new fields, so that a wrong text in one goes too
  return (
    <div class="settings">
      <div class="field tall">
        <label for="setting-system">System prompt</label>
        <textarea
          id="setting-system"
          rows={5}
          maxLength={100_000}
          placeholder="How the model should answer"
          value={settings.system}
          onInput={(event) => setSettings({ ...settings, system: event.currentTarget.value })}
        />
      </div>
      {kFields.map((field) => (
        <NumberField key={`${field.name}-${round}`} field={field} settings={settings} />
      ))}
      <p class="muted">For the next answers. What is empty is the model’s own.</p>
      <button
        type="button"
        class="button"
        disabled={!changed}
        onClick={() => {
          setSettings(kNoSettings);
          setRound(round + 1);
        }}
      >
        Reset
      </button>
    </div>
  );
}

function KeyForm() {
  const [key, setKeyText] = useState("");
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        void setKey(key);
      }}
    >
      <label for="key">This server needs an API key</label>
      <div class="row">
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={key}
          onInput={(event) => setKeyText(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={key.trim() === ""}>
          Use it
        </button>
      </div>
      <small class="muted">Kept until this tab is closed.</small>
    </form>
  );
}

function loadWords(name: string, failure: Failure): string {
  if (failure.code === "admin_key_required") {
    return `Only an admin’s key may load models before they are asked. ${name} is loaded with your next question.`;
  }
  return `${name} could not be loaded. ${failure.message}`;
}

export function Notices({ state }: { state: State }) {
  const failure = state.modelFailure;
  const wrongKey = failure?.status !== 401 ? failure : null;
  const { loadFailure } = state;
  if (!failure && !state.needsKey && !loadFailure) return null;
  return (
    <div class="notices">
      <div class="column">
        {state.needsKey && <KeyForm />}
        {state.needsKey && failure && <FailureCard failure={failure} />}
        {wrongKey && <FailureCard failure={wrongKey} retry={() => void loadModels()} />}
        {loadFailure && (
          <FailureCard
            failure={{ ...loadFailure.failure, message: loadWords(loadFailure.name, loadFailure.failure) }}
            dismiss={forgetLoadFailure}
          />
        )}
      </div>
    </div>
  );
}
