// A mailbox by its JWT.

import { request } from "./request.js";

export class MailboxApi {
  #token;

  constructor(token) {
    this.#token = token;
  }

  #send(path, options = {}) {
    return request(`/api${path}`, { ...options, token: this.#token });
  }

  account = () => this.#send("/me");
  deleteAccount = () => this.#send("/me", { method: "DELETE" });
  listMessages = async ({ before }) =>
    (await this.#send(before ? `/messages?before=${encodeURIComponent(before)}` : "/messages")).messages;
  message = (id, signal) => this.#send(`/messages/${encodeURIComponent(id)}`, { signal, timeout: 60_000 });
  markRead = (id) => this.#send(`/messages/${encodeURIComponent(id)}/read`, { method: "PUT" });
  deleteMessage = (id, keepalive = false) =>
    this.#send(`/messages/${encodeURIComponent(id)}`, { method: "DELETE", keepalive });
  source = (id) => this.#send(`/messages/${encodeURIComponent(id)}/raw`, { as: "blob", timeout: 0 });
  attachment = (id, index) =>
    this.#send(`/messages/${encodeURIComponent(id)}/attachments/${index}`, { as: "blob", timeout: 0 });
  document = (id, remote, signal) =>
    this.#send(`/messages/${encodeURIComponent(id)}/document`, { method: "POST", body: { remote }, signal });
}
