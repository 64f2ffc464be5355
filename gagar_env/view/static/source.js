// Where answers come from: the server, or the blocks inside a file for offline use.

const blocks = new Map([...document.querySelectorAll("script[data-key]")].map((node) => [node.dataset.key, node]));
const opened = new Map();
const KEPT = 12;

export const offline = blocks.size > 0;

function blockOf(address) {
  const [, run, , group, , , kind] = address.split("/");
  if (address === "runs") return "runs";
  if (group === undefined) return run;
  return `${run}/${group}/${kind === "turns" ? "t" : kind === "turn" ? "c" : "g"}`;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

async function fromFile(address) {
  const key = blockOf(address);
  if (!blocks.has(key)) return null;
  if (!opened.has(key)) {
    opened.set(key, unpack(blocks.get(key).textContent));
    if (opened.size > KEPT) opened.delete(opened.keys().next().value);
  }
  return (await opened.get(key))[address] ?? null;
}

async function fromServer(address) {
  const response = await fetch(`/api/${address}`, { credentials: "omit" });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

// The answer to an address; null when there is none, or when a file leaves it out.
export function load(address) {
  return offline ? fromFile(address) : fromServer(address);
}

export const MISSING = offline ? "Left out of this file, to keep it small." : "Not on disk.";
