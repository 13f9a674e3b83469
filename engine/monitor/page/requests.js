// Requests: those under way as cards, those that have ended as lines of a table.
import { by, element, facts, keyed, text } from "./dom.js";
import { clock, count, duration, prompt, rate, short, tokens } from "./format.js";

const phases = [["tokenize", "Tokenize"], ["queue", "Queue"], ["prefill", "Prefill"], ["decode", "Decode"]];
const ended = new Set(["done", "cancelled", "failed"]);
const mostEnded = 64;

export const isEnded = (r) => ended.has(r.phase);

// merge takes a change into the requests that are known, the latest start first.
export function merge(known, now, whole) {
  if (whole) known.clear();
  for (const r of now.requests) known.set(r.id, r);
  const sorted = [...known.values()].sort((a, b) => Date.parse(b.started) - Date.parse(a.started));
  for (const r of sorted.filter(isEnded).slice(mostEnded)) known.delete(r.id);
  return sorted.filter((r) => known.has(r.id));
}

export function showActive(requests, cancel) {
  const active = requests.filter((r) => !isEnded(r));
  by("active-none").hidden = active.length > 0;
  keyed(by("active"), active, (r) => makeCard(r, cancel), updateCard);
}

function makeCard(r, cancel) {
  const name = short(r.id);
  const button = element("button", { type: "button", "aria-label": `Cancel request ${name}` }, "Cancel");
  button.addEventListener("click", () => cancel(r.id, button));
  return element("li", { class: "card", "aria-label": `Request ${name}` },
    element("div", { class: "card-head" },
      element("ol", { class: "phases", "aria-label": "Phase" }, ...phases.map(([id, word]) => element("li", { "data-phase": id }, word))),
      button),
    element("progress", { max: "1", value: "0", "aria-label": `Progress of request ${name}` }),
    element("p", { class: "what" }),
    element("p", { class: "sum" }),
    element("p", { class: "note" }, element("code", { title: r.id }, name), " · started ", clock(r.started), " · ", element("span", { class: "since" })));
}

function updateCard(card, r) {
  card.dataset.phase = r.phase;
  card.dataset.started = r.started;
  const at = phases.findIndex(([id]) => id === r.phase);
  card.querySelectorAll(".phases li").forEach((step, i) => {
    step.dataset.passed = String(i < at);
    if (i === at) step.setAttribute("aria-current", "step");
    else step.removeAttribute("aria-current");
  });
  const bar = card.querySelector("progress");
  const decoding = r.phase === "decode";
  bar.max = Math.max(1, decoding ? r.max_tokens : r.prefill.of_tokens);
  bar.value = decoding ? r.completion_tokens : r.prefill.done_tokens;
  text(card.querySelector(".what"), describe(r));
  text(card.querySelector(".sum"), `Prompt so far ${prompt(r)}`);
}

function describe(r) {
  switch (r.phase) {
    case "tokenize":
      return "The text is cut into tokens.";
    case "queue":
      return `Waits for its turn with ${tokens(r.prefill.of_tokens)}.`;
    case "prefill": {
      const words = [`Prefill ${count(r.prefill.done_tokens)} of ${tokens(r.prefill.of_tokens)}`];
      if (r.prefill_tokens_per_s !== null) words.push(`${rate(r.prefill_tokens_per_s)} so far (provisional)`);
      if (r.prefill_left_ms !== null) words.push(`about ${duration(r.prefill_left_ms)} left`);
      return words.join(" · ");
    }
    default: {
      const words = [`Decode ${count(r.completion_tokens)} of at most ${tokens(r.max_tokens)}`];
      if (r.decode_tokens_per_s !== null) words.push(`${rate(r.decode_tokens_per_s)} so far (provisional)`);
      words.push(`first token after ${duration(r.first_token_ms)}`);
      return words.join(" · ");
    }
  }
}

// tick counts on the time since the start; offset is the server's clock less ours, in milliseconds.
export function tick(offset) {
  for (const card of by("active").children)
    text(card.querySelector(".since"), `${duration(Math.max(0, Date.now() + offset - Date.parse(card.dataset.started)))} ago`);
}

export function showRecent(requests) {
  const done = requests.filter(isEnded);
  by("recent-none").hidden = done.length > 0;
  by("recent").hidden = done.length === 0;
  keyed(by("recent").tBodies[0], done, makeRow, updateRow);
}

const columns = ["Started", "Prompt = cached + computed", "Prefill", "First token", "Reply", "Decode", "Draft accepted", "Policy", "Computed again"];

function makeRow() {
  return element("tr", {}, ...columns.map((label) => element("td", { "data-label": label })));
}

function updateRow(row, r) {
  const want = JSON.stringify(r);
  if (row.dataset.shown === want) return; // an ended request does not change any more
  row.dataset.shown = want;
  row.dataset.phase = r.phase;
  const [started, sum, prefill, first, reply, decode, draft, policy, again] = row.cells;
  const outcome = element("span", { class: "pill", "data-state": r.phase }, r.phase);
  started.replaceChildren(element("time", { datetime: r.started, title: r.id }, clock(r.started)), " ", outcome);
  const whole = r.prefill.of_tokens;
  sum.replaceChildren(prompt(r) + (whole > r.prompt_tokens ? `, of ${count(whole)}` : ""));
  text(prefill, r.prefill_tokens_per_s === null ? duration(r.prefill_ms) : `${duration(r.prefill_ms)}, ${rate(r.prefill_tokens_per_s)}`);
  text(first, duration(r.first_token_ms));
  text(reply, tokens(r.completion_tokens) + (r.phase === "done" ? `, ${r.finish_reason}` : ""));
  text(decode, rate(r.decode_tokens_per_s));
  draft.replaceChildren(...drafted(r.draft));
  text(policy, r.prefill_policy);
  again.replaceChildren(...computedAgain(r.recomputed));
}

// drafted says how many proposed tokens were accepted, and how that came about.
function drafted(d) {
  if (!d) return ["no draft"];
  const words = [`${count(d.accepted)} of ${count(d.drafted)}`];
  if (d.tokens_per_pass) words.push(`${d.tokens_per_pass.toFixed(2)} tokens a pass`);
  if (d.off) words.push("switched off");
  const parts = [words.join(", ")];
  const lines = (d.positions ?? []).map((p, i) => [`Place ${i + 1}`, `${count(p.accepted)} of ${count(p.drafted)}`]);
  if (d.verify_ms) lines.push(["Time in the draft", duration(d.draft_ms)], ["Time in verification", duration(d.verify_ms)]);
  if (d.off) lines.push(["Why it is off", d.off]);
  if (lines.length) {
    const how = element("dl", {});
    facts(how, lines);
    parts.push(element("details", {}, element("summary", {}, "By place"), how));
  }
  return parts;
}

function computedAgain(c) {
  if (!c) return ["—"];
  const words = c.again_tokens === 0 ? "nothing" : `${count(c.again_tokens)} of ${count(c.known_tokens)} known`;
  const parts = [c.because ? `${words}: ${c.because}` : words];
  if (c.other_key?.length) parts.push(` (${c.other_key.join("; ")})`);
  if (c.volatile || c.snippet) {
    const why = element("dl", {});
    const lines = [];
    if (c.parted_at_token !== null) lines.push(["Parts at token", count(c.parted_at_token)]);
    if (c.snippet) lines.push(["After", c.snippet.before || "the start"], ["Was", c.snippet.old || "nothing"], ["Is now", c.snippet.new || "nothing"]);
    if (c.advice) lines.push(["Advice", c.advice]);
    facts(why, lines);
    parts.push(element("details", {}, element("summary", {}, "Where it differs"), why));
  }
  return parts;
}
