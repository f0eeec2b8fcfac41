// Chromium through playwright-core, and what every test holds a page to: nothing leaves its origin, no violation of the policy, no error.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"] });
}

/** A page in a context of its own; `problems()` is checked by closed(). */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1180, height: 780 }, ...options });
  const page = await context.newPage();
  const problems = [];
  const origin = new URL(url).origin;
  page.on("request", (request) => {
    if (!request.url().startsWith(origin + "/")) problems.push(`a request to ${request.url()}`);
  });
  page.on("console", (message) => {
    // The browser itself reports answers that are no success.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(url);
  await page.getByRole("textbox", { name: "Your message" }).waitFor();
  return {
    page,
    async closed() {
      assert.deepEqual(await page.evaluate(() => window.violations), []);
      assert.deepEqual(problems, []);
      await context.close();
    },
  };
}

export async function ask(page, text) {
  await page.getByRole("textbox", { name: "Your message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** Into SHOTS, where it is given. */
export async function screenshot(page, name) {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
}

/** Until no answer grows. */
export async function answered(page) {
  await page.getByRole("button", { name: "Send" }).waitFor({ timeout: 60000 });
}

export const lastAnswer = (page) => page.getByRole("article", { name: "Answer" }).last();

/** No serious or critical finding of axe-core. */
export async function accessible(page, name) {
  // Evaluated through the protocol, not through a script element: the policy stays as it is.
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  assert.ok(found.passes.length > 10, "axe-core ran");
  const bad = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
  const text = bad.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ") + " " + node.failureSummary).join("; ")}`);
  assert.deepEqual(text, [], `axe-core on ${name}`);
}
