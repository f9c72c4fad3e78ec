// An open mailbox: its mail, and the connection that brings more.

import { MailboxApi } from "../http/mailbox_api.js";
import { MailboxSocket } from "../http/mailbox_socket.js";
import { MessageFeed } from "../message/feed.js";

// A socket can be dead without a sign, as after sleep: the list is read again now and then, and says so.
const CHECK_EVERY = 60_000;
const CHECK_WHEN_BUSY = 15_000;

/** Dispatches `state` when its connection or its mail list changes, and `mail` for each new message. */
export class Mailbox extends EventTarget {
  account = null;
  /** Milliseconds that mail is kept; null until known. */
  retention = null;
  #checked = 0;
  #timer = 0;
  #lifetime = new AbortController();

  /** `password` is known right after creation only, and kept in memory only. */
  constructor({ id, address, token, password = null }, freeRetention) {
    super();
    Object.assign(this, { id, address, token, password, freeRetention });
    this.api = new MailboxApi(token);
    this.feed = new MessageFeed(this.api);
    this.socket = new MailboxSocket(token);
  }

  get state() {
    return this.socket.state;
  }

  get unread() {
    return this.feed.messages.all.filter((message) => !message.is_read).length;
  }

  open() {
    const options = { signal: this.#lifetime.signal };
    this.socket.addEventListener("state", () => {
      if (this.state === "live") this.#refresh();
      else this.feed.markGap();
      this.#changed();
    }, options);
    this.socket.addEventListener("mail", ({ detail }) => this.feed.push(detail), options);
    this.feed.addEventListener("added", ({ detail }) => {
      for (const message of detail) this.dispatchEvent(new CustomEvent("mail", { detail: message }));
    }, options);
    this.feed.addEventListener("state", () => this.#changed(), options);
    this.feed.messages.addEventListener("change", () => this.#changed(), options);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && Date.now() - this.#checked > CHECK_EVERY) this.#check();
    }, options);
    this.#timer = setInterval(() => {
      const isBusy = this.state === "waiting" && this.socket.code === "too_many_connections";
      if (isBusy || (this.state === "live" && !document.hidden && Date.now() - this.#checked > CHECK_EVERY)) this.#check();
    }, CHECK_WHEN_BUSY);
    this.readAccount();
    this.socket.open();
    // Mail is listed without waiting for the socket, which has its own reasons not to open.
    this.#refresh();
  }

  close() {
    clearInterval(this.#timer);
    this.#lifetime.abort();
    this.socket.close();
  }

  /** When a message ends, in milliseconds; null while it is not known. */
  expiryOf = (message) => {
    if (message.expires_at) return Date.parse(message.expires_at);
    return this.retention === null ? null : Date.parse(message.created_at) + this.retention;
  };

  /** The full message has when it expires, and so how long this mailbox keeps mail. */
  learnFrom(message) {
    this.retention = Date.parse(message.expires_at) - Date.parse(message.created_at);
    this.feed.messages.update(message.id, { is_read: true, expires_at: message.expires_at });
  }

  /** Reads what is used of the quota. */
  async readAccount() {
    try {
      this.account = await this.api.account();
      if (this.account.role === "free") this.retention ??= await this.freeRetention();
    } catch {
      // The list and the socket say what is wrong.
    }
    this.#changed();
  }

  async #refresh() {
    this.#checked = Date.now();
    try {
      await this.feed.refreshUntilRead(this.#lifetime.signal);
    } catch (error) {
      if (error.code === "invalid_token" || error.code === "account_disabled") this.socket.refused(error.code);
    }
  }

  /** Mail in the list that a live socket did not push: the socket is dead. */
  async #check() {
    const wasLive = this.state === "live";
    this.#checked = Date.now();
    try {
      const missed = await this.feed.refresh();
      if (wasLive && missed.length > 0) this.socket.failed();
    } catch {
      if (wasLive) this.socket.failed();
    }
  }

  #changed() {
    this.dispatchEvent(new Event("state"));
  }
}
