// What this browser remembers. Where storage is blocked, it is forgotten when the page is left.

const memory = new Map();
const PREFIX = "tempmail.";

export function load(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name)) ?? memory.get(name) ?? null;
  } catch {
    return memory.get(name) ?? null;
  }
}

/** Remembers a value; null forgets it. */
export function save(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
    memory.delete(name);
  } catch {
    memory.set(name, value);
  }
}

/** Calls the listener when another tab changes a value. */
export function onChange(name, listener) {
  addEventListener("storage", (event) => {
    if (event.key === PREFIX + name || event.key === null) listener();
  });
}
