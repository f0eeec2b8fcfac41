// The page against the mock: what it shows, sends and keeps. usage: node --test mock_test.mjs, with DIST the folder that Vite built.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { accessible, answered, ask, lastAnswer, launch, open, screenshot } from "./browser.mjs";
import { hostile, numerics, startMock } from "./mock.mjs";

const dist = process.env.DIST;
assert.ok(dist, "DIST is the folder of the built page");
let browser, mock;
before(async () => {
  browser = await launch();
  mock = await startMock(dist);
});
after(async () => {
  await browser?.close();
  mock?.close();
});
const sent = () => mock.log.bodies.at(-1);
const count = () => mock.log.bodies.length;

test("the model line, a streamed answer, its recipe", async () => {
  const { page, closed } = await open(browser, mock.url);
  await page.getByRole("heading", { name: "smollm2-135m-instruct" }).waitFor();
  assert.match(await page.getByRole("list", { name: "The model" }).innerText(), /curated\s+backend cpu\s+context 8192/);
  await accessible(page, "the empty page");
  await ask(page, "long");
  await page.getByText("word3 word4").waitFor();
  assert.equal(await page.getByRole("button", { name: "Stop" }).count(), 1);
  assert.ok(!(await lastAnswer(page).innerText()).includes("word399"), "shown while it grows");
  assert.equal(await page.getByRole("log").getAttribute("aria-busy"), "true");
  await answered(page);
  assert.ok((await lastAnswer(page).innerText()).includes("word399"));
  assert.equal(await page.getByRole("log").getAttribute("aria-busy"), "false");
  assert.deepEqual(sent().messages, [{ role: "user", content: "long" }]);
  assert.equal(sent().stream, true);
  assert.ok(!("logprobs" in sent()) && !("temperature" in sent()), "what is the model's own is not sent");
  await page.getByRole("button", { name: "Recipe" }).click();
  const recipe = await page.locator(".recipe").innerText();
  for (const part of [String(sent().seed), "blake3:abab", "curated", "cpu (AVX2), kv f16", "temperature 0"]) assert.ok(recipe.includes(part), `${part} in ${recipe}`);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy recipe" }).click();
  await page.getByText("Copied").first().waitFor({ state: "attached" });
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  assert.equal(copied.seed, sent().seed);
  assert.equal(copied.backend, "cpu");
  assert.equal(copied.numerics, numerics);
  const hash = page.getByRole("button", { name: "Request hash" });
  assert.match(copied.request_hash, /^blake3:[0-9a-f]{64}$/);
  assert.ok((await hash.innerText()).endsWith(copied.request_hash.slice(7, 17)));
  await hash.click();
  await page.getByText("Copied").first().waitFor({ state: "attached" });
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), copied.request_hash);
  assert.match(await lastAnswer(page).innerText(), /smollm2-135m-instruct · 400 tokens/);
  assert.equal(sent().model, "smollm2-135m-instruct");
  await closed();
});

test("stop by key and by button; what was said stays and is sent on", async () => {
  const { page, closed } = await open(browser, mock.url);
  for (const how of ["Escape", "button"]) {
    await ask(page, `long ${how}`);
    await lastAnswer(page).getByText("word5").waitFor();
    if (how === "Escape") await page.keyboard.press("Escape");
    else await page.getByRole("button", { name: "Stop" }).click();
    await answered(page);
    const text = await lastAnswer(page).innerText();
    assert.ok(text.includes("word5") && !text.includes("word399") && text.includes("stopped"), text);
    assert.ok(mock.log.closed, "the server sees that nobody reads");
  }
  const messages = sent().messages;
  assert.deepEqual(messages.map((one) => one.role), ["user", "assistant", "user"]);
  assert.ok(messages[1].content.startsWith("word0 word1"));
  await closed();
});

test("edit asks again and drops what followed", async () => {
  const { page, closed } = await open(browser, mock.url);
  await ask(page, "say one");
  await answered(page);
  await ask(page, "say two");
  await answered(page);
  await page.getByRole("article", { name: "You" }).first().hover();
  await page.getByRole("button", { name: "Edit the question" }).first().click();
  const box = page.getByRole("textbox", { name: "Edit the question" });
  assert.equal(await box.inputValue(), "say one");
  await page.keyboard.press("Escape");
  assert.equal(await box.count(), 0);
  await page.getByRole("button", { name: "Edit the question" }).first().click();
  await box.fill("say three");
  await page.keyboard.press("Enter");
  await answered(page);
  assert.equal(await page.getByRole("article", { name: "Answer" }).count(), 1);
  assert.match(await lastAnswer(page).innerText(), /^three/);
  assert.deepEqual(sent().messages, [{ role: "user", content: "say three" }]);
  await closed();
});

test("regenerate keeps the earlier answers; the same seed gives the same text", async () => {
  const { page, closed } = await open(browser, mock.url);
  await ask(page, "same");
  await answered(page);
  const first = sent().seed;
  await page.getByRole("button", { name: "Regenerate" }).click();
  await answered(page);
  assert.notEqual(sent().seed, first);
  assert.match(await lastAnswer(page).innerText(), /2 \/ 2/);
  await page.getByRole("button", { name: "Earlier answer" }).click();
  assert.match(await lastAnswer(page).innerText(), new RegExp(`seed ${first}\\b`));
  await page.getByRole("button", { name: "Recipe" }).click();
  await page.getByRole("button", { name: "Same seed again" }).click();
  await answered(page);
  assert.equal(sent().seed, first);
  assert.match(await lastAnswer(page).innerText(), /same text as answer 1/);
  await ask(page, "same again");
  await answered(page);
  assert.equal(sent().messages[1].content, `seed ${first}`, "the answer that is shown is sent on");
  await closed();
});

test("settings are sent, checked and kept", async () => {
  const { page, closed } = await open(browser, mock.url);
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  const values = { Temperature: "0.7", "Top p": "0.9", "Top k": "40", "Min p": "0.05", "Max tokens": "64", Seed: "12" };
  for (const [name, value] of Object.entries(values)) await page.getByRole("spinbutton", { name }).fill(value);
  await page.getByRole("textbox", { name: "System prompt" }).fill("Be brief.");
  await page.getByRole("spinbutton", { name: "Top p" }).fill("7");
  assert.equal(await page.getByRole("spinbutton", { name: "Top p" }).getAttribute("aria-invalid"), "true");
  await ask(page, "say x");
  await answered(page);
  const { temperature, top_p, top_k, min_p, max_tokens, seed, messages } = sent();
  assert.deepEqual({ temperature, top_p, top_k, min_p, max_tokens, seed }, { temperature: 0.7, top_p: 0.9, top_k: 40, min_p: 0.05, max_tokens: 64, seed: 12 });
  assert.deepEqual(messages[0], { role: "system", content: "Be brief." });
  await accessible(page, "the settings");
  await page.reload();
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  assert.equal(await page.getByRole("spinbutton", { name: "Top k" }).inputValue(), "40");
  await page.getByRole("button", { name: "Reset" }).click();
  assert.equal(await page.getByRole("spinbutton", { name: "Top k" }).inputValue(), "");
  await closed();
});

test("tokens: shades, rivals by pointer and by keys", async () => {
  const { page, closed } = await open(browser, mock.url);
  await ask(page, "say before");
  await answered(page);
  await page.getByRole("button", { name: "Tokens" }).click();
  await page.getByText("made without probabilities").waitFor();
  await page.getByRole("button", { name: "Same seed again, with them" }).click();
  await answered(page);
  assert.equal(sent().logprobs, true);
  await ask(page, "say The sky is blue because short waves of light are scattered more.");
  await answered(page);
  const list = page.getByRole("listbox").last();
  assert.match(await list.getByRole("option").nth(5).getAttribute("class"), /\bp5\b/);
  assert.match(await list.getByRole("option").nth(0).getAttribute("class"), /\bp0\b/);
  await list.getByRole("option").nth(5).hover();
  const card = page.locator(".rivals");
  assert.match(await card.innerText(), /␣the\s+57\.6 %/);
  assert.match(await card.innerText(), /log-probability -3\.2189/);
  const box = await card.boundingBox();
  assert.ok(box.y >= 0 && box.y + box.height <= 780, "the card is inside the window");
  await screenshot(page, "tokens");
  await accessible(page, "the tokens");
  await page.mouse.move(2, 2);
  await list.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  const chosen = await list.getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${chosen}`).getAttribute("aria-label"), "␣scattered, 42.0 %");
  assert.match(await card.innerText(), /␣scattered\s+42\.0 %/);
  await page.keyboard.press("Escape");
  assert.equal(await card.count(), 0);
  await closed();
});

test("hostile answers stay text", async () => {
  const { page, closed } = await open(browser, mock.url);
  await ask(page, "hostile");
  await answered(page);
  const answer = lastAnswer(page).locator(".markdown");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await answer.locator("script, img, iframe, b, [onerror], [style]").count(), 0);
  const links = await answer.locator("a").evaluateAll((all) => all.map((a) => [a.href, a.rel, a.target]));
  assert.deepEqual(links.map(([href]) => href), ["https://example.org/a?b=1", "https://example.net/bare", "https://example.org/"]);
  assert.ok(links.every(([, rel, target]) => rel.includes("noopener") && target === "_blank"));
  const text = await answer.innerText();
  for (const part of ["<script>window.hacked = 1</script>", "<iframe src=", "[picture: a picture]"]) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.ok(hostile.includes("](javascript:") && hostile.includes("](data:"));
  await closed();
});

test("reasoning is folded apart, tool calls are cards", async () => {
  const { page, closed } = await open(browser, mock.url);
  await ask(page, "reason");
  await answered(page);
  assert.ok(!(await lastAnswer(page).innerText()).includes("about it."));
  await lastAnswer(page).getByText("Reasoning").click();
  await lastAnswer(page).getByText("about it.").waitFor();
  await ask(page, "tool");
  await answered(page);
  const card = page.getByRole("region", { name: "Tool call get_weather" });
  assert.match(await card.innerText(), /"city": "Paris",\s+"days": 3/);
  assert.equal(sent().messages.length, 3);
  assert.ok(!JSON.stringify(sent()).includes("about it."), "reasoning is not sent back");
  await accessible(page, "reasoning and tools");
  await closed();
});

test("errors have their code and request id, and can be tried again", async () => {
  const { page, closed } = await open(browser, mock.url);
  const alert = page.getByRole("alert");
  await ask(page, "refuse");
  await answered(page);
  assert.match(await alert.innerText(), /'top_p' must be above 0\.\s+code invalid_value\s*status 400\s*field top_p\s*request req-mock/);
  const before = count();
  await page.getByRole("button", { name: "Try again" }).click();
  await answered(page);
  assert.equal(count(), before + 1);
  assert.equal(await page.getByText("/ 2").count(), 0, "an answer that is only an error is replaced");
  await ask(page, "fail in the middle");
  await answered(page);
  assert.match(await lastAnswer(page).innerText(), /^An[\s\S]*The model failed on this answer\.\s+code internal_error\s*request req-stream/);
  await ask(page, "cut");
  await answered(page);
  assert.match(await lastAnswer(page).innerText(), /stream_cut/);
  await accessible(page, "errors");
  await closed();
});

test("a key is asked for and kept for the tab alone", async () => {
  const keyed = await startMock(dist, { key: "a-key-of-sixteen" });
  const { page, closed } = await open(browser, keyed.url);
  const field = page.getByLabel("This server needs an API key");
  await field.fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("invalid_api_key").waitFor();
  await accessible(page, "the key's field");
  await field.fill("a-key-of-sixteen");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "smollm2-135m-instruct" }).waitFor();
  assert.equal(await field.count(), 0);
  await ask(page, "say yes");
  await answered(page);
  assert.match(await lastAnswer(page).innerText(), /^yes/);
  const kept = await page.evaluate(() => [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })]);
  assert.ok(!kept[0].includes("sixteen") && kept[1].includes("a-key-of-sixteen"));
  await closed();
  keyed.close();
});

test("conversations are kept here, bounded, and can be deleted", async () => {
  const { page, closed } = await open(browser, mock.url);
  await ask(page, "say first");
  await answered(page);
  await page.getByRole("button", { name: "New conversation" }).click();
  await ask(page, "say second");
  await answered(page);
  await page.reload();
  assert.equal(await page.locator(".chats li").count(), 2);
  await page.getByRole("button", { name: "say first", exact: true }).click();
  assert.match(await lastAnswer(page).innerText(), /^first/);
  await page.getByRole("button", { name: "Delete say first" }).click();
  assert.equal(await page.locator(".chats li").count(), 1);
  await page.evaluate(() => {
    const turn = { question: "q", shown: 0, answers: [{ text: "x".repeat(90_000), finish: "stop", recipe: { seed: 1 } }] };
    const chats = Array.from({ length: 60 }, (_, i) => ({ id: `c${i}`, title: `old ${i}`, updated: i + 1, turns: i < 30 ? [] : [turn] }));
    localStorage.setItem("cyb-llm.chats.1", JSON.stringify([...chats, "junk", { id: 7 }, null]));
  });
  await page.reload();
  await ask(page, "say bounded");
  await answered(page);
  const [size, number] = await page.evaluate(() => {
    const text = localStorage.getItem("cyb-llm.chats.1");
    return [text.length, JSON.parse(text).length];
  });
  assert.ok(size <= 2_000_000 && number > 15 && number < 30, `${size} characters, ${number} conversations`);
  await page.getByRole("button", { name: "Delete all", exact: true }).click();
  await page.getByRole("button", { name: /^Delete all \d+/ }).click();
  assert.equal(await page.evaluate(() => localStorage.getItem("cyb-llm.chats.1")), null);
  await page.evaluate(() => localStorage.setItem("cyb-llm.chats.1", "{not json"));
  await page.reload();
  await page.getByRole("heading", { name: "What would you like to ask?" }).waitFor();
  await closed();
});

test("keys alone are enough", async () => {
  const { page, closed } = await open(browser, mock.url);
  await page.keyboard.type("say one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  assert.equal(await page.getByRole("textbox", { name: "Your message" }).inputValue(), "say one\ntwo");
  await page.keyboard.press("Enter");
  await answered(page);
  assert.equal(sent().messages[0].content, "say one\ntwo");
  const names = [];
  await page.evaluate(() => document.activeElement.blur());
  for (let i = 0; i < 18; ++i) {
    await page.keyboard.press("Tab");
    names.push(await page.evaluate(() => {
      const it = document.activeElement;
      return it.getAttribute("aria-label") ?? it.innerText.trim() ?? "";
    }));
  }
  const order = ["New conversation", "say one", "Replay by hash", "Delete all", "Tokens", "Settings", "Conversation", "Edit the question", "Copy the answer", "Regenerate", "Recipe", "Request hash"];
  const places = order.map((name) => names.findIndex((seen) => seen.startsWith(name)));
  assert.ok(places.every((at) => at >= 0), `${names.join(" | ")}`);
  assert.deepEqual(places, [...places].sort((a, b) => a - b), `${names.join(" | ")}`);
  await closed();
});

test("dark by the system and by the switch", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, closed } = await open(browser, mock.url, { colorScheme });
    const dark = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor === "rgb(20, 21, 23)");
    assert.equal(await dark(), colorScheme === "dark");
    await ask(page, "rich: What is gravity?");
    await answered(page);
    await screenshot(page, colorScheme);
    await accessible(page, colorScheme);
    await page.getByRole("button", { name: /Switch to dark/ }).click();
    assert.equal(await dark(), true);
    await page.reload();
    assert.equal(await dark(), true, "kept");
    await page.getByRole("button", { name: /Switch to light/ }).click();
    assert.equal(await dark(), false);
    await closed();
  }
});

test("a phone of 360 pixels", async () => {
  const { page, closed } = await open(browser, mock.url, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= 360 && document.querySelector("main").scrollWidth <= 360);
  await screenshot(page, "phone_empty");
  await ask(page, `rich: ${"wide".repeat(40)}`);
  await answered(page);
  assert.ok(await fits(), "nothing is wider than the window");
  await screenshot(page, "phone");
  await accessible(page, "the phone");
  await page.getByRole("button", { name: "Conversations" }).tap();
  assert.equal(await page.getByRole("dialog", { name: "Conversations" }).count(), 1);
  assert.equal(await page.evaluate(() => document.querySelector("main").inert), true);
  await accessible(page, "the list on the phone");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await page.getByRole("button", { name: "Settings" }).tap();
  await screenshot(page, "phone_settings");
  await accessible(page, "the settings on the phone");
  await page.getByRole("button", { name: "Close settings" }).tap();
  await page.getByRole("button", { name: "Tokens" }).tap();
  await ask(page, "say a few words for the phone");
  await answered(page);
  await page.getByRole("option").nth(3).tap();
  const box = await page.locator(".rivals").boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 360 && (await fits()));
  await screenshot(page, "phone_tokens");
  await closed();
});

test("models are switched: progress of a load, which model answered, what a server says", async () => {
  const many = await startMock(dist, { models: 3 });
  const { page, closed } = await open(browser, many.url);
  const choice = page.getByRole("combobox", { name: "Model" });
  const facts = page.getByRole("list", { name: "The model" });
  const bar = page.getByRole("progressbar");
  await choice.waitFor();
  assert.deepEqual(await choice.locator("option").allInnerTexts(), [
    "smollm2-135m-instruct",
    "larger-7b-instruct (not loaded, 4838 MB)",
    "far-too-large (not loaded, 9558 MB)",
  ]);
  await ask(page, "say first");
  await answered(page);

  // Keys alone.
  many.log.loadMs = 2500;
  await choice.focus();
  await page.keyboard.press("ArrowDown");
  await bar.waitFor();
  assert.equal(await bar.getAttribute("aria-label"), "Loading larger-7b-instruct");
  assert.equal(await bar.getAttribute("value"), null, "how far it is nobody says");
  await screenshot(page, "model_loading");
  await accessible(page, "a load");
  await facts.getByText("curated").waitFor();
  assert.equal(await bar.count(), 0);
  assert.equal(await choice.inputValue(), "larger-7b-instruct");
  await ask(page, "say second");
  await answered(page);
  assert.equal(many.log.bodies.at(-1).model, "larger-7b-instruct");
  const feet = await page.locator(".answer-foot .muted").allInnerTexts();
  assert.match(feet[0], /^smollm2-135m-instruct/);
  assert.match(feet[1], /^larger-7b-instruct/);
  await page.reload();
  await choice.waitFor();
  assert.equal(await choice.inputValue(), "larger-7b-instruct", "kept");

  many.log.loadMs = 300;
  await choice.selectOption("far-too-large");
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /far-too-large could not be loaded\. The model does not fit[\s\S]*code model_too_large\s*status 507/);
  await screenshot(page, "model_too_large");
  await accessible(page, "a load that failed");
  await page.getByRole("button", { name: "Dismiss" }).click();
  assert.equal(await page.getByRole("alert").count(), 0);

  // A key that may not load: the question does, and the stream says how far it is.
  many.log.states = {};
  many.log.loadError = "admin";
  many.log.loadMs = 6000;
  await page.reload();
  await choice.selectOption("smollm2-135m-instruct");
  await choice.selectOption("larger-7b-instruct");
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /Only an admin’s key may load models[\s\S]*larger-7b-instruct is loaded with your next question\.\s+code admin_key_required/);
  await ask(page, "say third");
  await lastAnswer(page).getByText("Loading larger-7b-instruct · 57 %").waitFor();
  assert.equal(await bar.getAttribute("value"), "57");
  await screenshot(page, "model_loading_answer");
  await accessible(page, "a load within an answer");
  assert.equal(await page.getByRole("alert").count(), 0);
  await answered(page);
  assert.match(await lastAnswer(page).innerText(), /^third/);
  assert.equal(await bar.count(), 0);
  await closed();
  many.close();
});

test("an answer is replayed by its hash", async () => {
  const own = await startMock(dist);
  const { page, closed } = await open(browser, own.url);
  await page.getByRole("button", { name: "Tokens" }).click();
  await ask(page, "say The sky is blue.");
  await answered(page);
  await page.getByRole("button", { name: "Tokens" }).click();
  await ask(page, "say Without probabilities.");
  await answered(page);
  const asked = own.log.bodies.at(-1);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const copy = async (at) => {
    await page.getByRole("button", { name: "Request hash" }).nth(at).click();
    await page.getByText("Copied").first().waitFor({ state: "attached" });
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const [first, second] = [await copy(0), await copy(1)];
  assert.notEqual(first, second);

  // Keys alone, after a reload: what is stored is enough.
  await page.reload();
  await page.getByRole("button", { name: "Replay by hash" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Replay by request hash" });
  const field = dialog.getByRole("textbox", { name: "Request hash" });
  assert.ok(await field.evaluate((element) => element === document.activeElement), "the field has the focus");
  const again = dialog.getByRole("button", { name: "Ask again" });
  await page.keyboard.type("no hash");
  await dialog.getByText("That is no request hash").waitFor();
  await field.fill("0123456789");
  await dialog.getByText("No conversation of this browser has an answer").waitFor();
  assert.ok(await again.isDisabled());
  await accessible(page, "a hash that is not known");
  await field.fill(second);
  assert.match(await dialog.innerText(), /Question\s+say Without probabilities\./);
  await page.keyboard.press("Enter");
  await dialog.getByText("The same answer.").waitFor();
  const rows = () => dialog.locator(".compared tr").allInnerTexts();
  const words = async () => (await rows()).map((row) => row.replace(/\s+/g, " "));
  assert.deepEqual(await words(), [
    `Request hash same ${second.slice(7, 17)}`,
    "Text same 22 characters",
    "Tokens same 2 tokens",
    "Log-probabilities not compared the answer was made without them",
    "End same stop",
  ]);
  assert.deepEqual(own.log.bodies.at(-1), asked, "the same request");
  await field.fill(first.slice(7, 19));
  await page.keyboard.press("Enter");
  await dialog.getByText("The same answer.").waitFor();
  assert.equal((await words())[3], "Log-probabilities same all 4, to the last bit");
  assert.equal(own.log.bodies.at(-1).logprobs, true);
  assert.equal(own.log.bodies.at(-1).messages.length, 1);
  await screenshot(page, "replay_same");
  await accessible(page, "the same answer");

  own.log.drift = true;
  own.log.numerics = numerics + ", exact";
  await page.keyboard.press("Enter");
  await dialog.getByText("Another answer.").waitFor();
  const other = await words();
  assert.match(other[0], /^Request hash different [0-9a-f]{10} and [0-9a-f]{10}$/);
  assert.equal(other[1], "Text different other from character 17 on");
  assert.equal(other[2], "Tokens different other from token 5 on");
  assert.match(await dialog.innerText(), /numerics was "curated, cpu \(AVX2\), kv f16", is "curated, cpu \(AVX2\), kv f16, exact"/);
  assert.equal(await dialog.getByRole("region", { name: "Stored" }).innerText(), "Stored\nThe sky is blue.");
  assert.equal(await dialog.locator("mark").innerText(), " And more.");
  assert.match(await dialog.getByRole("region", { name: "Tokens around the first difference" }).innerText(), /5\s+none\s+␣And/);
  await screenshot(page, "replay_other");
  await accessible(page, "another answer");
  await page.keyboard.press("Escape");
  assert.equal(await dialog.count(), 0);
  assert.equal(await page.locator(".chats li").count(), 1, "nothing was added");
  await closed();
  own.close();
});

test("a replay of an earlier turn sends what was sent then; a download is what cyb-llm replay reads", async () => {
  const { page, closed } = await open(browser, mock.url);
  await page.getByRole("button", { name: "Tokens" }).click();
  await ask(page, "same");
  await answered(page);
  await ask(page, "say with the first");
  await answered(page);
  const asked = sent();
  await page.getByRole("button", { name: "Recipe" }).last().click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  assert.match(file.suggestedFilename(), /^answer-[0-9a-f]{10}\.json$/);
  const saved = JSON.parse(readFileSync(await file.path(), "utf8"));
  const { stream, stream_options, ...fields } = asked;
  assert.deepEqual(saved.request, fields);
  assert.equal(saved.path, "/v1/chat/completions");
  assert.equal(saved.response.object, "chat.completion");
  assert.deepEqual(saved.response.choices[0].message, { role: "assistant", content: "with the first", refusal: null });
  assert.deepEqual(saved.response.usage, { prompt_tokens: 31, completion_tokens: 3, total_tokens: 34 });
  assert.equal(saved.response.choices[0].logprobs.content[1].token, " the");
  assert.deepEqual(saved.response.choices[0].logprobs.content[1].bytes, [32, 116, 104, 101]);
  assert.equal(saved.response.choices[0].logprobs.content[1].top_logprobs.length, 4);
  assert.equal(saved.response.cyb_llm.request_hash, await page.locator(".recipe dd").first().innerText());
  // What was shown then is sent, whatever is shown now.
  await page.evaluate(() => {
    const chats = JSON.parse(localStorage.getItem("cyb-llm.chats.1"));
    const [turn] = chats[0].turns;
    turn.answers.push({ ...turn.answers[0], text: "another" });
    turn.shown = 1;
    localStorage.setItem("cyb-llm.chats.1", JSON.stringify(chats));
  });
  await page.reload();
  await page.getByRole("button", { name: "same", exact: true }).click();
  await page.getByText("another").waitFor();
  await page.getByRole("button", { name: "Recipe" }).last().click();
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Replay by request hash" });
  await dialog.getByRole("button", { name: "Ask again" }).click();
  await dialog.getByText("The same answer.").waitFor();
  assert.deepEqual(sent(), asked);
  await page.getByRole("button", { name: "Close the replay" }).click();
  assert.equal(await dialog.count(), 0);
  await closed();
});

test("models and replay on a phone, in the dark", async () => {
  const many = await startMock(dist, { models: 2 });
  const { page, closed } = await open(browser, many.url, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2, colorScheme: "dark" });
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= 360 && document.querySelector("main").scrollWidth <= 360);
  many.log.loadMs = 2000;
  await page.getByRole("combobox", { name: "Model" }).selectOption("larger-7b-instruct");
  await page.getByRole("progressbar").waitFor();
  assert.ok(await fits());
  await screenshot(page, "phone_model_loading");
  await page.getByRole("list", { name: "The model" }).getByText("curated").waitFor();
  await page.getByRole("button", { name: "Tokens" }).tap();
  await ask(page, "say Seven words are enough for this answer.");
  await answered(page);
  assert.ok(await fits());
  await page.getByRole("button", { name: "Recipe" }).tap();
  assert.ok(await fits());
  await screenshot(page, "phone_recipe");
  await accessible(page, "the recipe on the phone");
  await page.getByRole("button", { name: "Replay", exact: true }).tap();
  const dialog = page.getByRole("dialog", { name: "Replay by request hash" });
  many.log.drift = true;
  await dialog.getByRole("button", { name: "Ask again" }).tap();
  await dialog.getByText("Another answer.").waitFor();
  assert.ok(await dialog.evaluate((element) => element.scrollWidth <= element.clientWidth), "the dialog does not scroll sideways");
  await screenshot(page, "phone_replay");
  await accessible(page, "the replay on the phone");
  await closed();
  many.close();
});
