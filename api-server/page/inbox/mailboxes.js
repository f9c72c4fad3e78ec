// The mailboxes that are open in this browser. Their JWTs are remembered, for as long as they are valid; passwords never.

import { load, onChange, save } from "../storage/settings.js";
import { Mailbox } from "./mailbox.js";

const MOST = 12;

/** Dispatches `change` when mailboxes or the chosen one change, `state` when one of them does, and `mail` for new mail. */
export class Mailboxes extends EventTarget {
  all = [];
  current = null;
  #freeRetention;

  constructor(freeRetention) {
    super();
    this.#freeRetention = freeRetention;
    onChange("mailboxes", () => this.#read());
  }

  open() {
    this.#read();
  }

  get isFull() {
    return this.all.length >= MOST;
  }

  get unread() {
    return this.all.reduce((sum, mailbox) => sum + mailbox.unread, 0);
  }

  /** Opens a mailbox, or again with a new JWT, and chooses it. */
  add(account) {
    this.#drop(account.id);
    const mailbox = this.#openOne(account);
    this.all = [mailbox, ...this.all];
    this.#write();
    this.choose(mailbox);
    return mailbox;
  }

  choose(mailbox) {
    this.current = mailbox;
    save("current", mailbox?.id ?? null);
    this.#changed();
  }

  /** Forgets a mailbox in this browser. It and its mail stay. */
  forget(mailbox) {
    this.#drop(mailbox.id);
    this.#write();
    if (this.current === mailbox) this.choose(this.all[0] ?? null);
    else this.#changed();
  }

  /** Takes over what is stored: at the beginning, and when another tab has changed it. */
  #read() {
    const stored = (load("mailboxes") ?? []).filter((entry) => entry?.id && entry.address && entry.token);
    for (const mailbox of this.all) {
      if (!stored.some(({ id, token }) => id === mailbox.id && token === mailbox.token)) this.#drop(mailbox.id);
    }
    this.all = stored.map((entry) => this.all.find(({ id }) => id === entry.id) ?? this.#openOne(entry));
    const chosen = this.current?.id ?? load("current");
    this.current = this.all.find(({ id }) => id === chosen) ?? this.all[0] ?? null;
    this.#changed();
  }

  #openOne(account) {
    const mailbox = new Mailbox(account, this.#freeRetention);
    mailbox.addEventListener("state", () => this.dispatchEvent(new CustomEvent("state", { detail: mailbox })));
    mailbox.addEventListener("mail", ({ detail }) =>
      this.dispatchEvent(new CustomEvent("mail", { detail: { mailbox, message: detail } })));
    mailbox.open();
    return mailbox;
  }

  #drop(id) {
    this.all.find((mailbox) => mailbox.id === id)?.close();
    this.all = this.all.filter((mailbox) => mailbox.id !== id);
  }

  #write() {
    save("mailboxes", this.all.length > 0 ? this.all.map(({ id, address, token }) => ({ id, address, token })) : null);
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
