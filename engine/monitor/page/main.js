// The monitor. Main line: follow /slipway/events and show each change; ask /slipway/system every few seconds.
import { showHour } from "./chart.js";
import { Refused, Unreachable, events, get, post, useKey } from "./connection.js";
import { by, text } from "./dom.js";
import { duration, short } from "./format.js";
import { merge, showActive, showRecent, tick } from "./requests.js";
import { showServer, showSystem } from "./system.js";

const known = new Map();
let offset = 0; // the server's clock less ours, in milliseconds

// say tells what happened; unless it goes on, the words go after a while.
let fading = 0;
function say(words, goesOn = false) {
  clearTimeout(fading);
  text(by("message"), words);
  if (!goesOn) fading = setTimeout(() => text(by("message"), ""), 20_000);
}
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1).replace(/\.$/, "") + ".";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// unexpected leaves a bug of this page for its author.
function unexpected(problem) {
  if (!(problem instanceof Refused || problem instanceof Unreachable)) console.error(problem);
}

async function follow() {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 10_000)) {
    try {
      await events("/slipway/events", (name, now) => {
        wait = 1000;
        document.body.dataset.live = "true";
        offset = Date.parse(now.at) - Date.now();
        showServer(now.server, now.cache);
        const requests = merge(known, now, name === "snapshot");
        showActive(requests, cancel);
        showRecent(requests);
        tick(offset);
      });
      lost("The server closed the connection.");
    } catch (problem) {
      if (await needsKey(problem)) continue;
      unexpected(problem);
      lost(sentence(problem.message), problem.code === "loading" ? "Loading" : "No connection");
    }
    await pause(wait);
  }
}

function lost(words, state = "No connection") {
  document.body.dataset.live = "false";
  by("state").dataset.state = "waiting";
  text(by("state"), state);
  say(`${words} Trying again.`, true);
}

async function survey() {
  for (;;) {
    try {
      const s = await get("/slipway/system");
      showSystem(s);
      showHour(s.history, Date.parse(s.at));
      if (by("message").textContent.endsWith("Trying again.")) say("");
    } catch (problem) {
      unexpected(problem); // what is expected, follow says
    }
    await pause(document.hidden ? 30_000 : 3000);
  }
}

async function cancel(id, button) {
  button.disabled = true;
  try {
    await post(`/slipway/requests/${id}/cancel`);
    say(`Request ${short(id)} is cancelled.`);
  } catch (problem) {
    button.disabled = false;
    say(`Request ${short(id)} was not cancelled. ${sentence(problem.message)}`);
  }
}

function askReload() {
  const dialog = by("reload-dialog");
  by("reload-drain").checked = false;
  dialog.showModal();
  by("reload-no").focus();
}

async function reload() {
  by("reload-dialog").close();
  const button = by("reload");
  button.disabled = true;
  say("The model is being reloaded.", true);
  try {
    const done = await post("/slipway/reload", { drain: by("reload-drain").checked });
    say(`The model was reloaded in ${duration(done.took_ms)}. The cache is empty.`);
  } catch (problem) {
    say(`The model was not reloaded. ${sentence(problem.message)}`);
  }
  button.disabled = false;
}

let keyAsked = false, keyTried = false;

// needsKey asks for the key where that was the problem, and waits for it.
async function needsKey(problem) {
  if (problem.status !== 401) return false;
  const dialog = by("key-dialog");
  say(sentence(problem.message), true);
  text(by("key-wrong"), keyTried ? "The server does not take that key." : "");
  keyAsked = true;
  if (!dialog.open) dialog.showModal();
  await new Promise((resolve) => by("key-form").addEventListener("submit", resolve, { once: true }));
  [keyAsked, keyTried] = [false, true];
  useKey(by("key").value.trim());
  by("key").value = "";
  dialog.close();
  say("");
  return true;
}

by("reload").addEventListener("click", askReload);
by("reload-no").addEventListener("click", () => by("reload-dialog").close());
by("reload-yes").addEventListener("click", reload);
by("key-form").addEventListener("submit", (event) => event.preventDefault());
by("key-dialog").addEventListener("close", (event) => { // by Escape, which cannot always be prevented
  if (keyAsked && !event.target.open) event.target.showModal();
});
setInterval(() => tick(offset), 500);
follow();
survey();
