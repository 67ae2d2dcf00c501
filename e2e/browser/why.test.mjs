// A person on a phone, in Japanese: reads why a reply was withheld, disagrees, is answered by a second
// reviewer, and gets the corrected reply. Without script, and with axe on every page.
//
//   CONCLAVE_URL            where the house is
//   CONCLAVE_WHY            the address of the person's page
//   CONCLAVE_REVIEWER, CONCLAVE_PASSWORD   the account of the second reviewer
//   CONCLAVE_WORDS, CONCLAVE_CORRECTED     what the person writes, and what they get in the end
//   CHROMIUM                the browser (default /usr/bin/chromium)
//   SCREENSHOTS             a folder for pictures; none are taken without it
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const base = process.env.CONCLAVE_URL.replace(/\/$/, "");
const why = base + process.env.CONCLAVE_WHY;
const words = process.env.CONCLAVE_WORDS;
const corrected = process.env.CONCLAVE_CORRECTED;
const pictures = process.env.SCREENSHOTS;
const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, locale: "ja-JP" };

let browser;

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.trouble = [];
  page.on("dialog", (dialog) => { page.trouble.push("a dialog"); dialog.dismiss(); });
  page.on("pageerror", (error) => page.trouble.push(`script error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${base}/`)) page.trouble.push(`request to ${request.url()}`);
  });
  return page;
}

async function sound(page, what) {
  const [wide, seen] = await page.evaluate(() =>
    [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= seen, `${what} scrolls sideways: ${wide} > ${seen}`);
  assert.deepEqual(page.trouble, [], what);
  if (pictures) {
    await page.screenshot({ path: path.join(pictures, `${what}.png`), fullPage: true });
  }
  const { violations } = await new AxeBuilder({ page }).analyze();
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((one) => one.html).join(" ")}`);
  assert.deepEqual(told, [], `${what}: axe`);
}

async function says(page, sentences) {
  const text = await page.locator("main").innerText();
  for (const sentence of sentences) assert.ok(text.includes(sentence), `${sentence} in ${text}`);
}

before(async () => {
  if (pictures) await mkdir(pictures, { recursive: true });
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ARGS });
});

after(async () => { await browser?.close(); });

test("a person is told why, disagrees, and gets the corrected reply", { timeout: 300_000 }, async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open({ ...PHONE, colorScheme, javaScriptEnabled: true });
    const answer = await page.goto(why);
    assert.equal(answer.status(), 200);
    assert.match(answer.headers()["content-security-policy"], /default-src 'none'/);
    assert.equal(await page.locator("html").getAttribute("lang"), "ja");
    assert.equal(await page.locator("h1").count(), 1);
    await says(page, [
      "この返信をお送りした理由", "お伝えした内容", "何が起きたか", "誰が確認したか",
      "互いの結果を知らない複数のプログラム", "危険な状態にある人と、その周りの人の安全が守られるか",
      "気がかりとされた点", "どう対応したか", "どの返事も送らず", "人が内容を見て、送らないと決めました",
      "いまできること", "この判断に関わっていない人が見直し",
    ]);
    await sound(page, `why-${colorScheme}`);
    await page.context().close();
  }
  // Without script: the form is all there is.
  const plain = await open({ ...PHONE, javaScriptEnabled: false });
  await plain.goto(why);
  await plain.getByLabel("答えてもらえるはずだった").check();
  await plain.getByLabel("ご自身の言葉でお書きください").fill(words);
  await plain.getByRole("button", { name: "見直しを求める" }).click();
  await says(plain, ["見直しを求められました", "見直しの期限", words]);
  assert.equal(await plain.locator("form").count(), 0, "there is one appeal for each decision");
  assert.deepEqual(plain.trouble, []);

  const desk = await open({ viewport: { width: 1200, height: 900 } });
  await desk.goto(`${base}/login`);
  await desk.getByLabel("Name").fill(process.env.CONCLAVE_REVIEWER);
  await desk.getByLabel("Password").fill(process.env.CONCLAVE_PASSWORD);
  await desk.getByRole("button", { name: "Sign in" }).click();
  await desk.waitForURL(`${base}/reviews`);
  await desk.locator("main table a[href^='/reviews/']").first().click();
  await desk.getByRole("button", { name: "Claim" }).click();
  await says(desk, ["What the person says", "I should have got an answer", words, "How the checks voted"]);
  await sound(desk, "appeal-claimed");
  await desk.getByLabel("Ruling").selectOption("uphold");
  await desk.getByLabel("Notes").fill("A harmless question.");
  // Nothing said to the person yet: refused, and what was typed is still there.
  await desk.getByLabel("the corrected reply").fill(corrected);
  await desk.getByRole("button", { name: "Decide" }).click();
  await says(desk, ["words must say to the person why"]);
  assert.equal(await desk.getByLabel("the corrected reply").inputValue(), corrected);
  assert.equal(await desk.getByLabel("Notes").inputValue(), "A harmless question.");
  await desk.getByLabel("a sentence in their language").selectOption("0");
  await desk.getByRole("button", { name: "Decide" }).click();
  await says(desk, ["Approved"]);
  await sound(desk, "appeal-decided");

  const page = await open(PHONE);
  await page.goto(why);
  await says(page, [
    "見直しの結果", "ご指摘のとおりでした", "お尋ねになったことに問題はなく", "改められた返信",
  ]);
  assert.equal(await page.locator("#corrected").innerText(), corrected);
  await sound(page, "why-answered");
});
