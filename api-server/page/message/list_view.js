// A list of messages. Rows are kept by id and moved, made and removed as little as possible, once a frame; rows are made in
// steps as one scrolls, so that 500 mails cost what the first 60 do. Tab stops at one row, and arrows go on from there.

import { announce } from "../dom/announce.js";
import { everySecond } from "../dom/clock.js";
import { button, element, hiddenText } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { emptyState, problem, skeleton } from "../dom/placeholder.js";
import { bytes, fullTime, roughDuration, shortTime } from "../text/format.js";
import { folded, t } from "../text/text.js";
import { visibleName, visibleString } from "../text/visible.js";
import { authorMark } from "./author_mark.js";
import { authorLine } from "./sender.js";

const STEP = 60;

const words = (message) =>
  folded([message.from, message.from_email, message.sender, message.subject, message.preview_text, message.address].join("\n"));

export class MessageListView {
  #rows = new Map();
  #limit = STEP;
  #query = "";
  #frame = 0;
  #selected = null;
  #haystacks = new WeakMap();

  /**
   * `hrefOf(message)` is where a row leads; `empty()` is shown where there is no message; `expiryOf(message)` is when it ends
   * in milliseconds, or null. `showsRecipient` for lists of several addresses.
   */
  constructor({ feed, hrefOf, empty, expiryOf = () => null, showsRecipient = false, marksUnread = true, label }) {
    Object.assign(this, { feed, hrefOf, empty, expiryOf, showsRecipient, marksUnread });
    this.list = element("ul", { class: "message-list", "aria-label": label, on: {
      keydown: (event) => this.#step(event),
      focusin: ({ target }) => this.#stopAt(target.closest(".message-row")?.dataset.id),
    } });
    this.status = element("div", { class: "list-status" });
    this.end = element("div", { class: "list-end" });
    this.node = element("div", { class: "list-body" }, this.status, this.list, this.end);
    this.#lifetime = new AbortController();
    const options = { signal: this.#lifetime.signal };
    feed.addEventListener("state", () => this.#schedule(), options);
    feed.messages.addEventListener("change", () => this.#schedule(), options);
    this.#observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) this.#more();
    }, { rootMargin: "600px" });
    this.#observer.observe(this.end);
    let minute = 0;
    everySecond(this.node, (now) => {
      const next = Math.floor(now / 20_000);
      if (next !== minute) this.#schedule();
      minute = next;
    });
    this.#render();
  }

  #lifetime;
  #observer;

  close() {
    this.#lifetime.abort();
    this.#observer.disconnect();
    cancelAnimationFrame(this.#frame);
    this.node.remove();
  }

  /** Shows only what has all words of the query. */
  search(query) {
    this.#query = query;
    this.#limit = STEP;
    this.#render();
    if (query.trim()) announce(t("list.found", { count: this.#matching().length }));
  }

  select(id) {
    this.#row(this.#selected)?.removeAttribute("aria-current");
    this.#selected = id;
    this.#row(id)?.setAttribute("aria-current", "true");
    if (id) this.#stopAt(id);
  }

  /** The message before or after the selected one as it is shown; the first where none is. */
  neighbour(offset, from = this.#selected) {
    const shown = this.#matching();
    const at = shown.findIndex(({ id }) => id === from);
    return at < 0 ? shown[0] : shown[at + offset];
  }

  focusRow(id) {
    const link = this.#row(id);
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
    return Boolean(link);
  }

  /** The message whose row has the focus; null where none has. */
  get focused() {
    const row = this.list.contains(document.activeElement) ? document.activeElement.closest(".message-row") : null;
    return row?.dataset.id ?? null;
  }

  #row(id) {
    return this.#rows.get(id)?.link;
  }

  /** Arrows, Home and End move the focus; rows that are not made yet are. */
  #step(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = this.#matching();
    const at = shown.findIndex(({ id }) => id === this.focused);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    if (!shown[to]) return;
    if (to >= this.#limit) {
      this.#limit = to + STEP;
      this.#render();
    }
    this.focusRow(shown[to].id);
  }

  /** Tab stops at the row that had the focus last or is selected, else at the first. */
  #placeStop() {
    const link = this.#row(this.#stop) ?? this.list.firstChild?.firstChild;
    if (link === this.#stopped) return;
    this.#stopped?.setAttribute("tabindex", "-1");
    this.#stopped = link;
    link?.setAttribute("tabindex", "0");
  }

  #stopAt(id) {
    this.#stop = id;
    this.#placeStop();
  }

  #stop = null;
  #stopped = null;

  #matching() {
    const terms = folded(this.#query).split(/\s+/).filter(Boolean);
    if (terms.length === 0) return this.feed.messages.all;
    return this.feed.messages.all.filter((message) => {
      const cached = this.#haystacks.get(message);
      // A pushed message gets its From header later.
      const haystack = cached?.from === message.from ? cached : { from: message.from, words: words(message) };
      if (haystack !== cached) this.#haystacks.set(message, haystack);
      return terms.every((term) => haystack.words.includes(term));
    });
  }

  #schedule() {
    if (this.#frame !== 0) return;
    const run = () => {
      this.#frame = 0;
      this.#render();
    };
    // Frames do not come while the page is hidden; what counts unread mail does not wait for them.
    this.#frame = document.hidden ? setTimeout(run, 200) : requestAnimationFrame(run);
  }

  #more() {
    if (this.#limit < this.#matching().length) {
      this.#limit += STEP;
      this.#render();
    } else if (!this.#query.trim() && !this.feed.olderError) this.feed.loadOlder();
  }

  #render() {
    const now = Date.now();
    const expired = this.feed.messages.all.filter((message) => (this.expiryOf(message) ?? Infinity) <= now);
    if (expired.length > 0) this.feed.messages.remove(expired.map(({ id }) => id));
    const matching = this.#matching();
    const shown = matching.slice(0, this.#limit);
    this.#renderRows(shown, now);
    this.#renderStatus(matching.length);
    this.#renderEnd(matching.length);
  }

  #renderRows(shown, now) {
    const wanted = new Set(shown.map(({ id }) => id));
    const focused = document.activeElement?.closest?.(".message-row")?.dataset.id;
    const heir = focused && !wanted.has(focused) && this.list.contains(document.activeElement)
      ? this.#heirOf(focused, wanted)
      : null;
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) continue;
      row.item.remove();
      this.#rows.delete(id);
    }
    let next = this.list.firstChild;
    for (const message of shown) {
      let row = this.#rows.get(message.id);
      if (!row) {
        row = this.#makeRow(message);
        this.#rows.set(message.id, row);
      }
      row.update(now);
      if (row.item === next) next = next.nextSibling;
      else this.list.insertBefore(row.item, next);
    }
    this.list.hidden = shown.length === 0;
    this.#placeStop();
    // The row that had the focus is gone: the one in its place gets it.
    if (heir) this.focusRow(heir);
  }

  #heirOf(id, wanted) {
    const item = this.#rows.get(id).item;
    for (const step of ["nextElementSibling", "previousElementSibling"]) {
      for (let node = item[step]; node; node = node[step]) {
        const other = node.firstChild.dataset.id;
        if (wanted.has(other)) return other;
      }
    }
    return null;
  }

  #makeRow(message) {
    const from = element("span", { class: "row-from" });
    const time = element("time", { class: "row-time", datetime: message.created_at, title: fullTime(message.created_at) });
    const left = element("span", { class: "row-left" });
    const unread = element("span", { class: "row-unread" });
    const mark = element("span", { class: "row-mark" });
    const link = element("a", {
      class: "message-row", href: this.hrefOf(message), "data-id": message.id, tabindex: "-1",
      "aria-current": message.id === this.#selected && "true",
    },
      unread, mark,
      element("span", { class: "row-head" }, from, time),
      element("span", { class: "row-subject" }, message.subject ? visibleName(message.subject) : t("message.no_subject")),
      element("span", { class: "row-preview" }, visibleString(message.preview_text ?? "")),
      element("span", { class: "row-foot" },
        this.showsRecipient && element("span", { class: "row-to" }, hiddenText(`${t("message.to")} `), visibleName(message.address ?? "")),
        element("span", { class: "row-size" }, bytes(message.size)), left));
    const item = element("li", {}, link);
    let known = {};
    // Only what changed is written: each write costs a layout.
    const update = (now) => {
      if (known.from !== message.from) {
        const author = authorLine(message);
        from.replaceChildren(author ? visibleName(author) : t("message.no_sender"));
        mark.replaceChildren(authorMark(author));
      }
      const isUnread = this.marksUnread && !message.is_read;
      if (known.isUnread !== isUnread) {
        link.classList.toggle("unread", isUnread);
        unread.replaceChildren(isUnread ? hiddenText(`${t("list.unread")} `) : "");
      }
      const timeText = shortTime(message.created_at, new Date(now));
      if (known.timeText !== timeText) time.textContent = timeText;
      const expiry = this.expiryOf(message);
      const leftText = expiry === null ? "" : t("list.expires_in", { time: roughDuration(expiry - now) });
      if (known.leftText !== leftText) left.textContent = leftText;
      known = { from: message.from, isUnread, timeText, leftText };
    };
    return { item, link, update };
  }

  #renderStatus(count) {
    const { feed } = this;
    const kind = feed.state === "loading" && feed.messages.size === 0 ? "loading"
      : feed.state === "failed" ? "failed"
      : count > 0 ? "none"
      : this.#query.trim() && feed.messages.size > 0 ? "no_match" : "empty";
    if (this.#status === kind && kind !== "failed") return;
    if (kind === "failed" && this.#statusError === feed.error) return;
    this.#status = kind;
    this.#statusError = kind === "failed" ? feed.error : null;
    this.status.dataset.kind = kind;
    this.status.replaceChildren(...{
      loading: () => [skeleton(6)],
      failed: () => [problem(feed.error, () => feed.refresh().catch(() => {}))],
      none: () => [],
      no_match: () => [emptyState({ name: "search", title: t("list.no_match"), text: t("list.no_match_text") })],
      empty: () => [this.empty()],
    }[kind]());
  }

  #status = null;
  #statusError = null;

  #renderEnd(count) {
    const { feed } = this;
    const isSearch = this.#query.trim() !== "";
    const kind = feed.state !== "ready" || feed.messages.size === 0 ? "none"
      : feed.isLoadingOlder ? "loading"
      : feed.olderError ? "failed"
      : this.#limit < count ? "rows"
      : !feed.isComplete ? (isSearch ? "search_all" : "older")
      : count > STEP ? "end" : "none";
    if (this.#endKind === kind) return;
    this.#endKind = kind;
    const more = (text, action) => button({ class: "button", on: { click: action } }, text);
    const again = () => {
      feed.olderError = null;
      return feed.loadOlder();
    };
    this.end.replaceChildren(...{
      none: () => [],
      loading: () => [skeleton(2)],
      failed: () => [problem(feed.olderError, again)],
      rows: () => [more(t("list.more"), () => this.#more())],
      older: () => [more(t("list.older"), () => feed.loadOlder())],
      search_all: () => [more(t("list.search_all"), () => feed.loadAll())],
      end: () => [element("p", { class: "list-note" }, t("list.end"))],
    }[kind]());
    // A button that was replaced had the observer's attention: it may be in sight still.
    this.#observer?.unobserve(this.end);
    this.#observer?.observe(this.end);
  }

  #endKind = null;
}

/** The search field above a list. */
export function searchField(view, label) {
  let timer = 0;
  const input = element("input", {
    type: "search", class: "search-input", placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false",
    on: {
      input: () => {
        clearTimeout(timer);
        timer = setTimeout(() => view().search(input.value), 120);
      },
      keydown: (event) => {
        if (event.key === "Escape" && input.value) {
          event.stopPropagation();
          input.value = "";
          view().search("");
        }
      },
    },
  });
  return { node: element("div", { class: "search", role: "search" }, icon("search"), input), input };
}
