// The last hour as two small charts, each with its own scale: prefill is many times faster than decode.
import { by, element } from "./dom.js";
import { clock, count, rate } from "./format.js";

const width = 720, height = 96;

const series = [
  ["computed_tokens", "Prompt tokens computed", "computed"],
  ["completion_tokens", "Tokens generated", "generated"],
];

export function showHour(history, now) {
  const key = JSON.stringify([history, Math.floor(now / (history.step_s * 1000))]);
  const charts = by("charts");
  if (charts.dataset.shown === key) return;
  charts.dataset.shown = key;
  charts.replaceChildren(...series.map((s) => chart(history, now, ...s)));
  by("hour").replaceChildren(...history.steps.toReversed().map((step) => element("tr", {}, element("th", { scope: "row" }, clock(step.start)),
    ...[step.cached_tokens + step.computed_tokens, step.cached_tokens, step.computed_tokens, step.completion_tokens, step.ended].map((n) => element("td", { class: "n" }, count(n))))));
}

function chart(history, now, member, title, mark) {
  const span = 3600 * 1000, step = history.step_s * 1000;
  const end = Math.ceil(now / step) * step;
  const rates = history.steps.map((s) => s[member] / history.step_s);
  const most = Math.max(0, ...rates);
  const bars = history.steps.map((s, i) => {
    const tall = most > 0 ? (height * rates[i]) / most : 0;
    const x = width * (1 - (end - Date.parse(s.start)) / span);
    return element("rect", { x: x.toFixed(1), y: (height - tall).toFixed(1), width: (width * step / span - 0.6).toFixed(1), height: tall.toFixed(1) },
      element("title", {}, `${clock(s.start)}: ${rate(rates[i])}`));
  });
  const total = history.steps.reduce((sum, s) => sum + s[member], 0);
  const words = total === 0 ? `${title}: none in the last hour` : `${title}: ${count(total)} in the last hour, at most ${rate(most)} over ${history.step_s} seconds`;
  return element("figure", { "data-mark": mark },
    element("figcaption", {}, element("strong", {}, title), element("span", {}, total === 0 ? "none" : `${count(total)}, peak ${rate(most)}`)),
    element("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
      ...[0.25, 0.5, 0.75].map((x) => element("line", { x1: String(width * x), x2: String(width * x), y1: "0", y2: String(height) })), ...bars),
    element("div", { class: "axis", "aria-hidden": "true" }, ...["60 min ago", "45", "30", "15", "now"].map((label) => element("span", {}, label))));
}
