// A list of messages beside the one that is open, as everything and the mail of a mailbox are shown.

import { element } from "../dom/element.js";
import { emptyState } from "../dom/placeholder.js";
import { deleteWithUndo } from "../message/deletion.js";
import { MessageListView, searchField } from "../message/list_view.js";
import { MessageReader } from "../message/reader.js";
import { t } from "../text/text.js";

export class MailPanes {
  #undo = null;
  #open = null;
  #lifetime = new AbortController();

  /** `href` is that of the list, and `${href}/<id>` that of a message. */
  constructor({ feed, api, href, empty, showsRecipient }) {
    Object.assign(this, { feed, api, href, showsRecipient });
    this.list = new MessageListView({
      feed, empty, showsRecipient, marksUnread: false,
      label: t("list.title"),
      hrefOf: ({ id }) => `${href}/${id}`,
      expiryOf: (message) => (message.expires_at ? Date.parse(message.expires_at) : null),
    });
    this.search = searchField(() => this.list, t("list.search"));
    this.reader = new MessageReader({
      backHref: href,
      idle: () => emptyState({ name: "mail", title: t("inbox.none_open"), text: t("inbox.none_open_text"), level: "h2" }),
      onOpened: (message) => feed.messages.update(message.id, { from: message.from, expires_at: message.expires_at }),
      onGone: (id) => this.#gone(id),
      onDelete: (id) => this.delete(id),
    });
    this.title = element("h2", { id: "list-title", tabindex: "-1" }, t("list.title"));
    this.count = element("span", { class: "muted" });
    this.node = element("div", { class: "panes" },
      element("section", { class: "list-pane", "aria-labelledby": "list-title" },
        element("header", { class: "list-header" }, this.title, this.count, this.search.node),
        this.list.node),
      this.reader.node);
    const options = { signal: this.#lifetime.signal };
    feed.addEventListener("state", () => this.#showCount(), options);
    feed.messages.addEventListener("change", () => this.#showCount(), options);
    this.#showCount();
  }

  close() {
    this.#lifetime.abort();
    this.list.close();
    this.reader.close();
  }

  show(id) {
    const before = this.#open;
    this.#open = id;
    this.list.select(id);
    if (id && this.#isUnreadable(id)) this.#explain(id);
    else if (id) this.reader.open(this.api, id);
    else {
      this.reader.close();
      if (before) this.list.focusRow(before);
    }
  }

  /** Mail to an address without a mailbox is listed, and its contents are read over `/v1` only. */
  #isUnreadable(id) {
    return this.feed.messages.get(id)?.account_id === null;
  }

  #explain(id) {
    this.reader.explain(id, emptyState({ name: "mail", title: t("everything.no_mailbox"), text: t("everything.no_mailbox_text"), level: "h2" }));
  }

  /** A message that was not found. One that was pushed a moment ago may be unreadable, which the list says. */
  async #gone(id) {
    if (this.showsRecipient && this.feed.messages.get(id)?.account_id === undefined) await this.feed.refresh().catch(() => {});
    if (!this.#isUnreadable(id)) this.feed.messages.remove([id]);
    else if (this.#open === id) this.#explain(id);
  }

  step(offset) {
    const next = this.list.neighbour(offset);
    if (!next) return false;
    location.hash = `${this.href}/${next.id}`;
    return true;
  }

  /** Deletes a message: without an id the open one, or the one whose row has the focus. */
  delete(id = this.#open ?? this.list.focused) {
    if (!id) return false;
    const next = this.list.neighbour(1, id) ?? this.list.neighbour(-1, id);
    const focus = () => requestAnimationFrame(() => (next && this.list.focusRow(next.id)) || this.title.focus());
    if (this.#open === id) {
      this.#open = null;
      // On a narrow screen the list is shown after that.
      addEventListener("hashchange", focus, { once: true });
      location.hash = this.href;
    } else focus();
    this.#undo = deleteWithUndo(this.feed, id);
    return true;
  }

  undo() {
    this.#undo?.act();
    this.#undo = null;
  }

  #showCount() {
    const { messages, isComplete } = this.feed;
    const text = messages.size === 0 ? "" : t(isComplete ? "list.count" : "list.count_loaded", { count: messages.size });
    if (this.count.textContent !== text) this.count.textContent = text;
  }
}
