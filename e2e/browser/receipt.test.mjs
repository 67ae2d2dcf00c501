// The page that checks receipts, in a real browser: a true one holds, one with any part changed does
// not, and nothing that is pasted leaves the page.
//
//   CONCLAVE_URL  where the dashboard is
//   CONCLAVE_KEY  an API key: a turn is sent first, and its receipt fetched
//   CHROMIUM      the browser (default /usr/bin/chromium)
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const base = (process.env.CONCLAVE_URL ?? "http://127.0.0.1:8420").replace(/\/$/, "");
const auth = { authorization: `Bearer ${process.env.CONCLAVE_KEY}` };

let browser;
let page;
let receipt;
const sent = [];

// A receipt is there once the next checkpoint is signed.
async function fetched() {
  const answer = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: { ...auth, "content-type": "application/json" },
    body: JSON.stringify({ model: "builtin", messages: [{ role: "user", content: "My day was long." }] }),
  });
  await answer.text();
  const id = answer.headers.get("x-conclave-audit-id");
  for (let tries = 0; tries < 100; tries += 1) {
    const found = await fetch(`${base}/v1/decisions/${id}/receipt`, { headers: auth });
    if (found.status === 200) return found.json();
    await found.text();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no receipt for ${id}`);
}

async function verdict(text, key) {
  await page.locator("#receipt").fill(text);
  if (key !== undefined) await page.locator("#vkey").fill(key);
  await page.getByRole("button", { name: "Check" }).click();
  const said = page.locator("[data-receipt-said].verdict");
  await said.waitFor();
  const shown = { text: await said.innerText(), good: await said.evaluate((it) => it.classList.contains("good")) };
  await said.evaluate((it) => { it.className = ""; it.textContent = ""; });
  return shown;
}

before(async () => {
  receipt = await fetched();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
  page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(15_000);
  await page.goto(`${base}/receipt`);
  await page.waitForFunction(() => document.querySelector("#vkey").value !== "");
  page.on("request", (request) => sent.push(request.url()));
});

after(async () => {
  await browser?.close();
});

test("a receipt of this log holds, with the key it gives out", async () => {
  const { good, text } = await verdict(JSON.stringify(receipt));
  assert.ok(good, text);
  assert.match(text, new RegExp(`entry ${receipt.index} of `));
});

test("no changed part of it passes", async () => {
  const flipped = (base64) => {
    const bytes = Buffer.from(base64, "base64");
    bytes[Math.floor(bytes.length / 2)] ^= 1;
    return bytes.toString("base64");
  };
  const lines = receipt.checkpoint.split("\n");
  const larger = [lines[0], String(Number(lines[1]) + 1), ...lines.slice(2)].join("\n");
  const changed = [
    { ...receipt, leaf: flipped(receipt.leaf) },
    { ...receipt, index: receipt.index + 1 },
    { ...receipt, index: -1 },
    { ...receipt, checkpoint: larger },
    { ...receipt, checkpoint: lines.slice(0, 3).join("\n") },
    { ...receipt, proof: [...receipt.proof, Buffer.alloc(32).toString("base64")] },
    { ...receipt, proof: receipt.proof.map(flipped) },
    { ...receipt, v: 2 },
  ];
  if (receipt.proof.length === 0) changed.splice(6, 1);
  for (const one of changed) {
    const { good, text } = await verdict(JSON.stringify(one));
    assert.ok(!good, `${JSON.stringify(one)} passed: ${text}`);
  }
});

test("what is no receipt is said to be none", async () => {
  for (const text of ["", "{", "null", "[]", "\"x\"", "{\"v\":1}", "<script>alert(1)</script>"]) {
    const { good } = await verdict(text);
    assert.ok(!good, text);
  }
});

test("another log's key does not vouch for it", async () => {
  const own = await page.locator("#vkey").inputValue();
  const [name] = own.split("+");
  for (const key of ["", "nonsense", own.replace(name, "other.example"), `${own.slice(0, -4)}AAA=`]) {
    const { good } = await verdict(JSON.stringify(receipt), key);
    assert.ok(!good, key);
  }
});

test("nothing that was pasted has left the page", () => {
  assert.deepEqual(sent, []);
});
