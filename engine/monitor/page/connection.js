// What is asked of the port that the page came from. The key, where one is needed, is kept in this tab alone.
let key = sessionStorage.getItem("slipway-key") ?? "";

export function useKey(value) {
  key = value;
  sessionStorage.setItem("slipway-key", value);
}

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// Unreachable: no answer, or the connection broke.
export class Unreachable extends Error {}

const reached = (promise) => promise.catch(() => { throw new Unreachable("The server cannot be reached."); });

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await reached(fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" }));
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Refused(response.status, body.error?.code ?? "", body.error?.message ?? `the server answered ${response.status}`);
  }
  return response;
}

export const get = async (path) => (await ask(path)).json();

export const post = async (path, body = {}) =>
  (await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();

// events reads a stream of server-sent events until it ends. EventSource cannot send a key.
export async function events(path, each) {
  const reader = (await ask(path)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reached(reader.read());
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let name = "message", data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (data) each(name, JSON.parse(data));
    }
  }
}
