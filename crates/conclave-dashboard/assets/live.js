// Keeps the tiles of the overview fresh. Without it the page is whole, only not moving.
"use strict";
(() => {
  const board = document.querySelector("[data-live]");
  const state = document.querySelector("[data-live-state]");
  if (!board || !state || typeof fetch !== "function") return;
  const PAUSE_MS = 10000;
  const newest = board.dataset.newest;
  const news = document.querySelector("[data-live-news]");
  let timer = 0;

  const say = (text) => { if (state.textContent !== text) state.textContent = text; };

  const show = (figures) => {
    for (const place of board.querySelectorAll("[data-figure]")) {
      const text = figures[place.dataset.figure];
      if (typeof text === "string" && place.textContent !== text) place.textContent = text;
    }
    if (news) news.hidden = figures.newest === newest;
    say("Updated " + figures.clock + " UTC");
  };

  const ask = async () => {
    try {
      const answer = await fetch("/live", { headers: { accept: "application/json" } });
      if (answer.status === 401) {
        say("Signed out: reload the page to sign in again");
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.json());
    } catch {
      say("The house does not answer; trying again");
    }
    wait();
  };

  const wait = () => {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, PAUSE_MS);
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) ask();
  });
  wait();
})();
