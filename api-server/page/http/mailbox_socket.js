// The WebSocket of a mailbox. `mail` is dispatched for each new one, `state` as it connects; after `live` the list is to be
// read, since mail that came in between is not pushed.

import { Connection } from "./connection.js";

const AUTH_TIMEOUT = 15_000;
// The service may be out of sockets for this mailbox for long: three tabs are open.
const WHEN_BUSY = 30_000;

export class MailboxSocket extends Connection {
  #token;
  #socket = null;
  #timer = 0;
  /** What the server said last before it closed. */
  #reason = null;

  constructor(token) {
    super();
    this.#token = token;
  }

  connect() {
    const url = new URL("/api/ws", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#reason = null;
    this.#timer = setTimeout(() => this.#ended(socket), AUTH_TIMEOUT);
    socket.addEventListener("open", () => socket.send(JSON.stringify({ type: "auth", token: this.#token })));
    socket.addEventListener("message", ({ data }) => this.#received(socket, data));
    socket.addEventListener("close", () => this.#ended(socket));
  }

  disconnect() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #received(socket, data) {
    if (socket !== this.#socket) return;
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    if (message.type === "auth_ok") {
      clearTimeout(this.#timer);
      this.succeeded();
    } else if (message.type === "new_email") {
      this.dispatchEvent(new CustomEvent("mail", { detail: message }));
    } else if (typeof message.error === "string") this.#reason = message.error;
  }

  #ended(socket) {
    if (socket !== this.#socket) return;
    if (this.#reason === "invalid_token" || this.#reason === "account_disabled") this.refused(this.#reason);
    else {
      this.code = this.#reason;
      this.failed(this.#reason === "too_many_connections" ? WHEN_BUSY : 0);
    }
  }
}
