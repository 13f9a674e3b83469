// What changes slowly: memory, restore points, the machine, the model, neighbours.
import { by, element, facts, text } from "./dom.js";
import { bytes, clock, count, diskBytes } from "./format.js";

export function showServer(server, cache) {
  text(by("model"), server.model);
  const busy = server.active > 0;
  const [state, word] = server.draining ? ["draining", "Stopping"] : !server.ready ? ["waiting", "Not ready"] : busy ? ["busy", `${server.active} active, ${server.queued} queued`] : ["ready", "Ready"];
  const pill = by("state");
  pill.dataset.state = state;
  text(pill, word);
  text(by("facts"), [server.device, `window ${count(server.window_tokens)} tokens`, `prefill ${server.prefill_policy}`, server.kv_format && `KV ${server.kv_format}`, draftWords(server)].filter(Boolean).join(" · "));
  facts(by("served"), [
    ["Name", server.model], ["Revision", server.revision ? server.revision.slice(0, 12) : "not given"], ["Device", server.device || "—"],
    ["Window", `${count(server.window_tokens)} tokens`], ["Prefill policy", server.prefill_policy], ["KV format", server.kv_format || "—"], ["Draft", draftWords(server) ?? "none"], ["Numerics", server.numerics || "—"],
  ]);
  showCache(cache);
}

function showCache(cache) {
  if (!cache) {
    facts(by("cache"), [["Kept", "nothing, as it was started"]]);
    return;
  }
  const tier = (t, size) => `${count(t.points)} points, ${size(t.bytes)} of ${size(t.budget_bytes)}`;
  const lines = [["In memory", tier(cache.memory, bytes)], ["On disk", cache.disk ? tier(cache.disk, diskBytes) : "none"],
    ["Prompts gone on from", `memory ${count(cache.from_memory)}, disk ${count(cache.from_disk)}, nothing ${count(cache.from_nothing)}`],
    ["Saved, evicted", `${count(cache.saved)}, ${count(cache.evicted)}`]];
  if (cache.disk) lines.push(["Written to disk", diskBytes(cache.written_bytes)]);
  if (cache.damaged > 0) lines.push(["Damaged files dropped", count(cache.damaged)]);
  facts(by("cache"), lines);
}

export function showSystem(s) {
  showMemory(s.memory, s.launch);
  const m = s.machine;
  facts(by("machine"), !m ? [["Memory", "unknown"]] : [
    ["Memory pressure", m.pressure || "unknown", m.pressure === "warning" || m.pressure === "critical" ? "alarm" : ""],
    ["Available", m.available_bytes === null ? "unknown" : `${bytes(m.available_bytes)} of ${bytes(m.ram_bytes)}`],
    ["Installed", bytes(m.ram_bytes)], ["Swap used", bytes(m.swap_used_bytes)], ["This server", bytes(m.own_bytes)],
    ["Running since", clock(s.process.started)], ["Process", `${s.process.pid}, version ${s.process.version}`],
  ]);
  const list = by("neighbors");
  const neighbors = s.launch?.neighbors ?? [];
  const lines = neighbors.length ? neighbors.map((n) => n.sentence || `${n.title} on port ${n.port}`) : ["No other server was stopped for this one."];
  if (list.dataset.lines !== JSON.stringify(lines)) {
    list.dataset.lines = JSON.stringify(lines);
    list.replaceChildren(...lines.map((line) => element("li", {}, line)));
  }
}

function showMemory(m, launch) {
  if (!m) {
    facts(by("memory"), [["Memory", "unknown"]]);
    return;
  }
  const parts = [["Weights", m.weights_bytes, "weights"], ["KV and states", m.context_bytes, "context"], ["Restore points at most", m.points_budget_bytes, "points"], ["Work space", m.work_bytes, "work"]];
  const total = parts.reduce((sum, [, n]) => sum + n, 0);
  const budget = launch?.budget_bytes ?? 0;
  const lines = parts.map(([name, n, mark]) => [name, bytes(n), mark]);
  lines.push(["Together", bytes(total)]);
  if (budget > 0) lines.push(["Budget", bytes(budget)]);
  if (!m.loaded) lines.push(["Now", "given back until the next request"]);
  facts(by("memory"), lines);
  text(by("limit"), launch?.limit ?? "");

  const holder = by("memory-bar");
  const key = JSON.stringify([parts, budget]);
  if (holder.dataset.shown === key) return;
  holder.dataset.shown = key;
  const whole = Math.max(total, budget, 1);
  let at = 0;
  const bars = parts.map(([name, n, mark]) => {
    const width = (100 * n) / whole;
    const bar = element("rect", { x: String(at), y: "0", width: String(width), height: "10", "data-mark": mark });
    at += width;
    return bar;
  });
  const label = parts.map(([name, n]) => `${name} ${bytes(n)}`).join(", ") + (budget > 0 ? `, of a budget of ${bytes(budget)}` : "");
  holder.replaceChildren(element("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label, class: "bar" }, ...bars));
}

// draftWords names the draft and how many tokens it proposes at a time; null without one.
function draftWords(server) {
  if (!server.draft || server.draft === "none") return null;
  return server.draft_tokens === 0 ? `draft ${server.draft}, off` : `draft ${server.draft}, ${count(server.draft_tokens)} at a time`;
}
