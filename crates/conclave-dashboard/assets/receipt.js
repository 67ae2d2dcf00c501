// Checks a receipt in this page: nothing that is pasted leaves it.
"use strict";
(() => {
  const place = document.querySelector("[data-receipt]");
  const said = document.querySelector("[data-receipt-said]");
  if (!place || !said) return;
  const [paper, field, button] = ["textarea", "input", "button"].map((name) => place.querySelector(name));
  const HASH_BYTES = 32;
  const PROOF_MAX = 64;

  class Refusal extends Error {}
  const refuse = (why) => { throw new Refusal(why); };

  const bytesOf = (text, what) => {
    if (typeof text !== "string" || !/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) {
      refuse(what + " is not base64.");
    }
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  };
  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const join = (...parts) => {
    const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
    let at = 0;
    for (const part of parts) { whole.set(part, at); at += part.length; }
    return whole;
  };
  const utf8 = (text) => new TextEncoder().encode(text);
  const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const leafHash = (leaf) => sha256(join(Uint8Array.of(0), leaf));
  const nodeHash = (left, right) => sha256(join(Uint8Array.of(1), left, right));
  const same = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);

  const readKey = async (text) => {
    const [name, id, ...rest] = text.trim().split("+");
    const key = bytesOf(rest.join("+"), "The key");
    if (!name || key.length !== 33 || key[0] !== 1) refuse("This is not an Ed25519 verifier key.");
    const digest = await sha256(join(utf8(name + "\n"), key));
    if (hex(digest.slice(0, 4)) !== id) refuse("The key was mistyped: its id does not fit.");
    return { name, id: digest.slice(0, 4), bytes: key.slice(1) };
  };

  const readCheckpoint = async (note, key) => {
    const cut = typeof note === "string" ? note.lastIndexOf("\n\n") : -1;
    if (cut < 0) refuse("The checkpoint is not a signed note.");
    const text = note.slice(0, cut + 1);
    const start = "\u2014 " + key.name + " ";
    const lines = note.slice(cut + 2).split("\n").filter((line) => line.startsWith(start));
    const signatures = lines
      .map((line) => bytesOf(line.slice(start.length), "A signature"))
      .filter((bytes) => bytes.length === 68 && same(bytes.slice(0, 4), key.id));
    if (signatures.length === 0) refuse("The checkpoint is not signed by this key.");
    const imported = await crypto.subtle.importKey("raw", key.bytes, "Ed25519", false, ["verify"]);
    const signed = await crypto.subtle.verify("Ed25519", imported, signatures[0].slice(4), utf8(text));
    if (!signed) refuse("The signature of the checkpoint is wrong.");
    const [origin, size, root] = text.split("\n");
    if (origin !== key.name) refuse("The checkpoint speaks of another log.");
    if (!/^(0|[1-9][0-9]{0,14})$/.test(size)) refuse("The checkpoint has no size.");
    return { origin, size: Number(size), root: bytesOf(root, "The root") };
  };

  const leads = async (leaf, index, size, proof, root) => {
    if (!Number.isSafeInteger(index) || index < 0 || index >= size) return false;
    let [at, last, node] = [index, size - 1, leaf];
    const half = (number) => Math.floor(number / 2);
    for (const sibling of proof) {
      if (last === 0) return false;
      if (at % 2 === 1 || at === last) {
        node = await nodeHash(sibling, node);
        while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
      } else {
        node = await nodeHash(node, sibling);
      }
      [at, last] = [half(at), half(last)];
    }
    return last === 0 && same(node, root);
  };

  const check = async (receiptText, keyText) => {
    if (!globalThis.crypto || !crypto.subtle) {
      refuse("This page was not loaded over https or from this machine, so the browser does not let it check signatures. Use the command below.");
    }
    let receipt;
    try { receipt = JSON.parse(receiptText); } catch { refuse("The receipt is not JSON."); }
    if (!receipt || receipt.v !== 1) refuse("This is not a receipt of version 1.");
    const key = await readKey(keyText);
    const checkpoint = await readCheckpoint(receipt.checkpoint, key);
    if (!Array.isArray(receipt.proof) || receipt.proof.length > PROOF_MAX) refuse("The proof is none.");
    const proof = receipt.proof.map((hash) => bytesOf(hash, "A hash of the proof"));
    if (proof.some((hash) => hash.length !== HASH_BYTES)) refuse("The proof is none.");
    const leaf = await leafHash(bytesOf(receipt.leaf, "The leaf"));
    if (!(await leads(leaf, receipt.index, checkpoint.size, proof, checkpoint.root))) {
      refuse("The proof does not lead from the leaf to the root of the checkpoint.");
    }
    return "The receipt holds: entry " + receipt.index + " of " + checkpoint.origin +
      ", leaf " + hex(leaf) + ", is in the log of " + checkpoint.size + " entries.";
  };

  const show = (text, good) => {
    said.textContent = text;
    said.className = good ? "verdict good" : "verdict bad";
  };

  button.addEventListener("click", async () => {
    try {
      show(await check(paper.value, field.value), true);
    } catch (error) {
      const reason = error instanceof Refusal ? error.message :
        "This browser cannot check Ed25519 signatures. Use the command below.";
      show(reason, false);
    }
  });

  const prefill = async () => {
    try {
      const answer = await fetch("/ledger/vkey");
      const keys = answer.ok ? await answer.text() : "";
      if (!field.value) field.value = keys.split("\n")[0];
    } catch {
      // Without a connection the key is pasted.
    }
  };
  prefill();
})();
