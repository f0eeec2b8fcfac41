// The page inside the program, with a real model. usage: PROGRAM=.../cyb-llm MODEL=model.gguf node --test real_test.mjs
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

import { accessible, answered, ask, lastAnswer, launch, open, screenshot } from "./browser.mjs";

const { PROGRAM, MODEL } = process.env;
assert.ok(PROGRAM && MODEL, "PROGRAM and MODEL name the program and a model");
const children = [];
const folder = mkdtempSync(join(tmpdir(), "cyb-page-"));
let browser, url;

function serve(...more) {
  const child = spawn(PROGRAM, ["serve", MODEL, "--port", "0", "--slots", "2", "--ctx", "1024", ...more], { stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  return new Promise((done, failed) => {
    createInterface({ input: child.stdout }).once("line", (line) => done(line.replace("listening on ", "")));
    child.once("exit", (code) => failed(new Error(`serve ended with ${code}`)));
  });
}

before(async () => {
  [browser, url] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test("the files of the page", async () => {
  const index = await fetch(url);
  assert.equal(index.status, 200, "this program has the page");
  assert.equal(index.headers.get("content-type"), "text/html; charset=utf-8");
  assert.equal(index.headers.get("cache-control"), "no-cache");
  assert.match(index.headers.get("content-security-policy"), /^default-src 'none'; script-src 'self';/);
  const html = await index.text();
  const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]);
  assert.ok(assets.length >= 3 && assets.every((path) => path.startsWith("/assets/")), assets.join(" "));
  for (const path of assets) {
    const asset = await fetch(url + path);
    assert.match(asset.headers.get("content-type"), /^(text\/(javascript|css); charset=utf-8|image\/svg\+xml)$/);
    assert.equal(asset.headers.get("x-content-type-options"), "nosniff");
    assert.match(asset.headers.get("cache-control"), /immutable/);
    if (/js|css/.test(path)) assert.equal(asset.headers.get("content-encoding"), "gzip");
    const plain = await fetch(url + path, { headers: { "Accept-Encoding": "identity" } });
    assert.equal(plain.headers.get("content-encoding"), null);
    assert.equal(await plain.text(), await asset.text());
    assert.equal((await fetch(url + path, { method: "HEAD" })).status, 200);
  }
  const none = await fetch(url + "/assets/none.js");
  assert.equal(none.status, 404);
  assert.equal((await none.json()).error.code, "not_found");
});

test("a conversation; the same seed gives the same text; tokens with probabilities", async () => {
  const { page, closed } = await open(browser, url);
  assert.match(await page.getByRole("list", { name: "The model" }).innerText(), /curated\s+backend cpu\s+context 1024/);
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await page.getByRole("spinbutton", { name: "Max tokens" }).fill("60");
  await page.getByRole("spinbutton", { name: "Temperature" }).fill("0.8");
  await page.getByRole("spinbutton", { name: "Seed" }).fill("7");
  await page.getByRole("button", { name: "Close settings" }).click();
  await page.getByRole("button", { name: "Tokens" }).click();
  await ask(page, "Why is the sky blue? Answer in two sentences.");
  await answered(page);
  const options = page.getByRole("option");
  assert.ok((await options.count()) > 10);
  await page.getByRole("button", { name: "Recipe" }).click();
  assert.match(await page.locator(".recipe").innerText(), /request hash\s+blake3:[0-9a-f]{64}\s+seed\s+\d+\s+model\s+blake3:[0-9a-f]{64}/);
  await page.getByRole("button", { name: "Same seed again" }).click();
  await answered(page);
  await page.getByText("same text as answer 1").waitFor();
  const least = await options.evaluateAll((all) => all.findIndex((one) => /p[3-5]/.test(one.className)));
  await options.nth(Math.max(0, least)).hover();
  const shares = (await page.locator(".rivals .number").allInnerTexts()).map((text) => Number.parseFloat(text.replace("<", "")));
  assert.ok(shares.length >= 6 && shares.every((share, at) => at === 0 || share <= shares[at - 1]), shares.join(" "));
  const sum = shares.reduce((a, b) => a + b);
  assert.ok(sum > 1 && sum < 100.5, `${sum} %`);
  await screenshot(page, "real_tokens");
  await accessible(page, "tokens of the real model");
  await page.mouse.move(2, 2);

  // Replayed by its hash, and by the program from the file that the page writes.
  await page.getByRole("button", { name: "Recipe" }).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Replay by request hash" });
  await dialog.getByRole("button", { name: "Ask again" }).click();
  await dialog.getByText("The same answer.").waitFor({ timeout: 60000 });
  assert.match(await dialog.innerText(), /Log-probabilities\s+same\s+all \d+, to the last bit/);
  await screenshot(page, "real_replay");
  const replayed = spawnSync(PROGRAM, ["replay", await file.path(), MODEL], { encoding: "utf8" });
  assert.equal(replayed.stdout, "the same answer, bit for bit\n", replayed.stderr);
  assert.equal(replayed.status, 0);
  await closed();
});

test("a second model is loaded, with its progress, and answers", async () => {
  const { page, closed } = await open(browser, await serve(`second=${MODEL}`));
  const choice = page.getByRole("combobox", { name: "Model" });
  await choice.selectOption("second");
  await page.getByRole("list", { name: "The model" }).getByText("curated").waitFor({ timeout: 60000 });
  assert.match((await choice.locator("option").allInnerTexts())[1], /^second$/);
  await ask(page, "Say hello.");
  await answered(page);
  assert.match(await page.locator(".answer-foot .muted").innerText(), /^second ·/);
  await closed();
});

test("stop ends the work of the server too", async () => {
  const { page, closed } = await open(browser, url);
  const running = async () => /^cyb_llm_answers_running(?:\{[^}]*\})? (\d+)/m.exec(await (await fetch(url + "/metrics")).text())?.[1];
  await ask(page, "Count from one to one thousand.");
  await lastAnswer(page).locator(".markdown").waitFor();
  await page.keyboard.press("Escape");
  await answered(page);
  assert.match(await lastAnswer(page).innerText(), /stopped/);
  let left = "";
  for (let tries = 0; tries < 100 && (left = await running()) !== "0"; ++tries) await new Promise((done) => setTimeout(done, 50));
  assert.equal(left, "0");
  await closed();
});

test("an error of the server, and a server with keys", async () => {
  const keys = join(folder, "keys.txt");
  writeFileSync(keys, "a-key-of-sixteen-characters\n");
  const { page, closed } = await open(browser, await serve("--api-key-file", keys));
  await page.getByLabel("This server needs an API key").fill("a-key-of-sixteen-characters");
  await page.keyboard.press("Enter");
  await page.getByRole("list", { name: "The model" }).waitFor();
  await ask(page, "word ".repeat(2000));
  await answered(page);
  assert.match(await page.getByRole("alert").innerText(), /code context_length_exceeded\s*status 400[\s\S]*request req-/);
  await closed();
});
