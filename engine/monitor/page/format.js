// How numbers are written. Every number comes from the API; here it only gets its words.
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const count = (n) => grouped.format(n);

export const tokens = (n) => `${count(n)} ${n === 1 ? "token" : "tokens"}`;

export function duration(ms) {
  if (ms === null || ms === undefined) return "—";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return "—";
  return `${perSecond < 100 ? perSecond.toFixed(1) : count(perSecond)} tok/s`;
}

// Disks are counted in GB of 1,000,000,000 bytes, memory in GiB, as everywhere in slipway.
export function diskBytes(n) {
  if (n === null || n === undefined) return "—";
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 999.5 && i < units.length - 1) { n /= 1000; i++; }
  return `${n.toFixed(i === 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2)} ${units[i]}`;
}

export function bytes(n) {
  if (n === null || n === undefined) return "—";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return i === 0 ? `${n} B` : `${n.toFixed(1)} ${units[i]}`;
}

export const clock = (when) => new Date(when).toLocaleTimeString("en-GB");

export const short = (id) => id.replace(/^req_/, "").slice(0, 8);

// The sum that every line keeps.
export const prompt = (r) => `${count(r.prompt_tokens)} = ${count(r.cached_tokens)} cached + ${count(r.computed_tokens)} computed`;
