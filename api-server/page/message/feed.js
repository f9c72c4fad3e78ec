// A list of messages that is kept up to date: pages of it, what is pushed, and what was missed between two connections.

import { Backoff } from "../http/backoff.js";
import { MessageCollection } from "./collection.js";

const PAGE = 30;
// Of what came while the connection was away, so many pages are read at once; the rest when one scrolls there.
const MOST_PAGES = 10;

/** Whether a request would fail the same way again. */
const isFinal = ({ status }) => status >= 400 && status < 500 && status !== 408 && status !== 429;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Dispatches `state`, and `added` with the messages that were not known, but for those of the first list. */
export class MessageFeed extends EventTarget {
  messages = new MessageCollection();
  /** `loading`, `ready` or `failed` (`error` says why). */
  state = "loading";
  error = null;
  /** Whether the oldest message is loaded. */
  isComplete = false;
  isLoadingOlder = false;
  olderError = null;
  /** The messages that were loaded when the connection was lost. */
  #anchor = null;
  #gaps = 0;
  /** What a refresh found that did not come to its end. */
  #unreported = [];
  #refreshing = null;
  #refreshAgain = false;
  #isRetrying = false;

  /** `api` lists messages, by `before` or by `page`. */
  constructor(api) {
    super();
    this.api = api;
  }

  /** Reads the newest messages, and further ones until they meet what is loaded. Returns what was not known. */
  refresh() {
    if (this.#refreshing) {
      // What is being read may be older than what asked for this.
      this.#refreshAgain = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#refreshNow().finally(() => {
      this.#refreshing = null;
      if (this.#refreshAgain) {
        this.#refreshAgain = false;
        this.refresh().catch(() => {});
      }
    });
    return this.#refreshing;
  }

  /** As `refresh`, until it succeeds: after a restart the first requests may fail. Throws what will not get better. */
  async refreshUntilRead(signal) {
    if (this.#isRetrying) {
      // The loop goes on in any case; perhaps there is no need to wait for it.
      await this.refresh().catch(() => {});
      return;
    }
    this.#isRetrying = true;
    const backoff = new Backoff();
    try {
      for (;;) {
        try {
          await this.refresh();
          return;
        } catch (error) {
          if (isFinal(error)) throw error;
          await pause(Math.max(1000 * (error.retryAfter ?? 0), backoff.next()));
          if (signal.aborted) return;
        }
      }
    } finally {
      this.#isRetrying = false;
    }
  }

  /** What is pushed from now on may leave a gap behind it: `refresh` reads until it meets what is loaded now. */
  markGap() {
    this.#gaps += 1;
    this.#anchor ??= new Set(this.messages.all.map(({ id }) => id));
  }

  async #refreshNow() {
    const isFirst = this.state !== "ready";
    const known = [...this.messages.all];
    // Kept when this fails half way: the next attempt has to read as far.
    const anchor = (this.#anchor ??= new Set(known.map(({ id }) => id)));
    const gaps = this.#gaps;
    try {
      let last;
      for (let page = 1; ; page += 1) {
        const found = await this.api.listMessages({ before: last?.id, page });
        this.#removeMissing(known, found, last);
        this.#unreported.push(...this.messages.merge(found));
        if (found.length < PAGE) {
          this.isComplete = true;
          break;
        }
        if (found.some(({ id }) => anchor.has(id))) break;
        last = found.at(-1);
        if (anchor.size === 0 || page === MOST_PAGES) {
          // What is older is read when one scrolls there.
          this.messages.remove(known.filter((message) => message.created_at < last.created_at).map(({ id }) => id));
          this.isComplete = false;
          break;
        }
      }
    } catch (error) {
      // What is loaded stays on the page; the connection's state says that it may be old.
      if (isFirst) {
        // The same words are not said again and again.
        if (this.error?.code !== error.code || error.retryAfter) this.error = error;
        this.#set("failed");
      }
      throw error;
    }
    // Where the connection was lost meanwhile, there is another gap.
    this.#anchor = gaps === this.#gaps ? null : new Set(this.messages.all.map(({ id }) => id));
    this.error = null;
    this.#set("ready");
    const added = this.#unreported.splice(0);
    if (isFirst) return [];
    this.#report(added);
    return added;
  }

  /** Takes out what was loaded before, belongs into this page, and is not in it: others deleted it, or it expired. */
  #removeMissing(known, found, last) {
    const present = new Set(found.map(({ id }) => id));
    const oldest = found.length < PAGE ? "" : found.at(-1).created_at;
    const gone = known.filter((message) =>
      !present.has(message.id) && message.created_at > oldest && (!last || message.created_at < last.created_at));
    this.messages.remove(gone.map(({ id }) => id));
  }

  async loadOlder() {
    if (this.isComplete || this.isLoadingOlder || this.state !== "ready") return;
    this.isLoadingOlder = true;
    this.olderError = null;
    this.#set("ready");
    try {
      // By page: what is loaded says which page comes next, also after some of it was deleted.
      let page = Math.floor(this.messages.size / PAGE) + 1;
      for (;;) {
        const before = this.messages.oldest?.id;
        const found = await this.api.listMessages({ before, page });
        const added = this.messages.merge(found);
        if (found.length < PAGE) this.isComplete = true;
        if (this.isComplete || added.length > 0) break;
        page += 1;
      }
    } catch (error) {
      // The message before which to go on is gone itself, so everything after it is, too.
      if (error.code === "email_expired" || error.code === "not_found") this.isComplete = true;
      else this.olderError = error;
    } finally {
      this.isLoadingOlder = false;
      this.#set("ready");
    }
  }

  /** Everything, for a search in all of it. Ends where a page fails. */
  async loadAll() {
    while (!this.isComplete && !this.olderError) await this.loadOlder();
  }

  /** A message that was pushed. Returns whether it was not known. */
  push(message) {
    const added = this.messages.merge([message]);
    this.#report(added);
    return added.length > 0;
  }

  #report(added) {
    if (added.length > 0) this.dispatchEvent(new CustomEvent("added", { detail: added }));
  }

  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}
