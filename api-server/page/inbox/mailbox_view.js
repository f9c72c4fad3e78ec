// The chosen mailbox: its address, its mail, and the message that is open.

import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { emptyState } from "../dom/placeholder.js";
import { deleteWithUndo } from "../message/deletion.js";
import { MessageListView, searchField } from "../message/list_view.js";
import { MessageReader } from "../message/reader.js";
import { errorWords } from "../text/errors.js";
import { t } from "../text/text.js";
import { addressCard } from "./address_card.js";

export class MailboxView {
  #undo = null;
  #open = null;
  #isRefused = false;

  /** `onForget()` takes the mailbox off this browser, `onSignIn()` signs in to it again. */
  constructor(mailbox, { onForget, onSignIn }) {
    Object.assign(this, { mailbox, onForget, onSignIn });
    this.card = addressCard(mailbox, { onForget });
    this.list = new MessageListView({
      feed: mailbox.feed,
      label: t("list.title"),
      hrefOf: ({ id }) => `#/message/${id}`,
      expiryOf: mailbox.expiryOf,
      empty: () => emptyState({
        title: t("inbox.empty"),
        text: t("inbox.empty_text", { address: mailbox.address }),
      }),
    });
    this.search = searchField(() => this.list, t("list.search"));
    this.reader = new MessageReader({
      backHref: "#/",
      idle: () => emptyState({ name: "mail", title: t("inbox.none_open"), text: t("inbox.none_open_text"), level: "h2" }),
      onOpened: (message) => {
        if (!message.is_read) mailbox.api.markRead(message.id).catch(() => {});
        mailbox.learnFrom(message);
      },
      onGone: (id) => mailbox.feed.messages.remove([id]),
      onDelete: (id) => this.delete(id),
    });
    this.title = element("h2", { id: "list-title", tabindex: "-1" }, t("list.title"));
    this.count = element("span", { class: "muted" });
    this.notice = element("div");
    this.panes = element("div", { class: "panes" },
      element("section", { class: "list-pane", "aria-labelledby": "list-title" },
        element("header", { class: "list-header" }, this.title, this.count, this.search.node),
        this.list.node),
      this.reader.node);
    this.node = element("div", { class: "mailbox" }, this.card.node, this.notice, this.panes);
    this.update();
  }

  close() {
    this.list.close();
    this.reader.close();
    this.node.remove();
  }

  /** Shows what `#/message/<id>` names; null for the list. */
  show(id) {
    const before = this.#open;
    this.#open = id;
    this.node.dataset.view = id ? "message" : "list";
    this.list.select(id);
    if (id) this.reader.open(this.mailbox.api, id);
    else {
      this.reader.close();
      if (before) this.list.focusRow(before);
    }
  }

  update() {
    this.card.update();
    const { messages, isComplete } = this.mailbox.feed;
    const text = messages.size === 0 ? "" : t(isComplete ? "list.count" : "list.count_loaded", { count: messages.size });
    if (this.count.textContent !== text) this.count.textContent = text;
    const isRefused = this.mailbox.state === "refused";
    if (isRefused === this.#isRefused) return;
    this.#isRefused = isRefused;
    this.notice.replaceChildren(isRefused ? this.#refused() : "");
  }

  /** The JWT is not valid any more: what is loaded stays readable as far as it is on the page. */
  #refused() {
    const code = this.mailbox.socket.code;
    const { title, advice } = code === "invalid_token"
      ? { title: t("inbox.signed_out"), advice: t("inbox.signed_out_text") }
      : errorWords({ code });
    return element("div", { class: "problem" }, icon("warning"),
      element("div", { role: "alert" }, element("p", { class: "problem-title" }, title), element("p", {}, advice)),
      element("div", { class: "actions" },
        button({ class: "button button-primary", on: { click: () => this.onSignIn() } }, t("new.sign_in")),
        button({ class: "button", on: { click: () => this.onForget() } }, t("card.forget"))));
  }

  step(offset) {
    const next = this.list.neighbour(offset);
    if (!next) return false;
    location.hash = `#/message/${next.id}`;
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
      location.hash = "#/";
    } else focus();
    this.#undo = deleteWithUndo(this.mailbox.feed, id);
    return true;
  }

  undo() {
    this.#undo?.act();
    this.#undo = null;
  }
}
