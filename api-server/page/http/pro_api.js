// What a tenant manages, in a Pro session: the cookie is the credential, and no script can read it.

import { RequestError, request } from "./request.js";

const PREFIX = "/pro/api";
const path = (strings, ...values) =>
  strings.reduce((whole, part, at) => whole + encodeURIComponent(values[at - 1]) + part);

/** Called when the session has ended, whatever was asked. */
let onEnded = () => {};
export const whenSessionEnds = (listener) => {
  onEnded = listener;
};

const ENDED = new Set(["session_expired", "invalid_token", "authentication_required"]);

async function send(rest, options = {}) {
  try {
    return await request(PREFIX + rest, options);
  } catch (error) {
    if (error instanceof RequestError && ENDED.has(error.code) && !options.isSigningIn) onEnded(error.code);
    throw error;
  }
}

/** Exchanges a Pro token for a session. The token is sent once, and kept nowhere. */
export const signIn = (token) =>
  send("/session", { method: "POST", token, usesCookie: true, body: { token, cookie: true }, isSigningIn: true });
export const signInByLink = (code) => send("/session/link", { method: "POST", body: { code }, isSigningIn: true });
export const readSession = () => send("/session", { isSigningIn: true });
export const signOut = () => send("/session", { method: "DELETE", isSigningIn: true });

const PAGE = 1_000;
const MOST_PAGES = 100;

/** All pages of a list. */
async function listAll(rest, key) {
  const all = new Map();
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const rows = (await send(`${rest}?page=${page}`))[key];
    const before = all.size;
    for (const row of rows) all.set(row.id, row);
    if (rows.length < PAGE || all.size === before) break;
  }
  return [...all.values()];
}

export const listMailboxes = () => listAll("/accounts", "accounts");
export const createMailbox = (address, password) => send("/accounts", { method: "POST", body: { address, password } });
export const deleteMailbox = (id) => send(path`/accounts/${id}`, { method: "DELETE" });
export const resetPassword = (id, password) =>
  send(path`/accounts/${id}/reset-password`, { method: "PUT", body: { password } });

export const listDomains = () => listAll("/domains", "domains");
export const addDomain = (domain) => send("/domains", { method: "POST", body: { domain } });
export const checkDomain = (id) => send(path`/domains/${id}/verify`, { method: "POST" });
export const deleteDomain = (id) => send(path`/domains/${id}`, { method: "DELETE" });

export const listWebhooks = () => listAll("/webhooks", "webhooks");
export const createWebhook = (url) => send("/webhooks", { method: "POST", body: { url, events: ["email.received"] } });
export const deleteWebhook = (id) => send(path`/webhooks/${id}`, { method: "DELETE" });
export const rotateSecret = (id) => send(path`/webhooks/${id}/rotate`, { method: "POST" });
export const listDeliveries = async (id) => (await send(path`/webhooks/${id}/deliveries?limit=100`)).deliveries;

export const listTokens = () => listAll("/tokens", "tokens");
export const createToken = (token) => send("/tokens", { method: "POST", body: token });
export const revokeToken = (id) => send(path`/tokens/${id}`, { method: "DELETE" });

export const readUsage = () => send("/usage");

const messages = {
  message: (id, signal) => send(path`/messages/${id}`, { signal, timeout: 60_000 }),
  deleteMessage: (id, keepalive = false) => send(path`/messages/${id}`, { method: "DELETE", keepalive }),
  source: (id) => send(path`/messages/${id}/source`, { as: "blob", timeout: 0 }),
  attachment: (id, index) => send(path`/messages/${id}/attachments/${index}`, { as: "blob", timeout: 0 }),
  document: (id, remote, signal) => send(path`/messages/${id}/document`, { method: "POST", body: { remote }, signal }),
};

/** Everything that the tenant owns. */
export const everything = {
  ...messages,
  listMessages: async ({ before }) =>
    (await send(before ? `/messages?before=${encodeURIComponent(before)}` : "/messages")).messages,
  deleteAll: () => send("/messages", { method: "DELETE" }),
};

/** The mail of one mailbox of the tenant. */
export const mailboxMessages = (id) => ({
  ...messages,
  listMessages: async ({ before }) =>
    (await send(path`/accounts/${id}/messages` + (before ? `?before=${encodeURIComponent(before)}` : ""))).messages,
});

export const EVENTS = `${PREFIX}/messages/events`;
