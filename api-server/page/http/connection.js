// What the two live connections have in common: attempts with backoff, and a state that the page shows.
//
// States: `connecting`, `live`, `waiting` (`retryAt` says until when), `offline`, `refused` (`code` says why), `closed`.

import { Backoff } from "./backoff.js";
import { isLocal } from "./service_host.js";

export class Connection extends EventTarget {
  state = "connecting";
  retryAt = 0;
  code = null;
  #backoff = new Backoff();
  #timer = 0;
  #lifetime = new AbortController();

  constructor() {
    super();
    const options = { signal: this.#lifetime.signal };
    addEventListener("online", () => this.retry(), options);
    addEventListener("offline", () => this.#networkLost(), options);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state === "waiting") this.retry();
    }, options);
  }

  /** Attempts that failed since the last success. */
  get failures() {
    return this.#backoff.failures;
  }

  /** Begins an attempt; subclasses say how with `connect()` and `disconnect()`. */
  open() {
    clearTimeout(this.#timer);
    if (!navigator.onLine && !isLocal) {
      this.#setState("offline");
      return;
    }
    if (this.state !== "offline") this.#setState("connecting");
    this.connect();
  }

  /** Tries again now. */
  retry() {
    if (this.state === "closed" || this.state === "live" || this.state === "refused") return;
    this.disconnect();
    this.open();
  }

  close() {
    clearTimeout(this.#timer);
    this.#setState("closed");
    this.#lifetime.abort();
    this.disconnect();
  }

  /** The server said yes. */
  succeeded() {
    this.code = null;
    this.#backoff.reset();
    this.#setState("live");
  }

  /** The connection ended: another attempt follows, at the earliest after `atLeast` milliseconds. */
  failed(atLeast = 0) {
    this.disconnect();
    if (this.state === "closed" || this.state === "refused") return;
    const delay = Math.max(atLeast, this.#backoff.next());
    this.retryAt = Date.now() + delay;
    this.#setState(navigator.onLine ? "waiting" : "offline");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.open(), delay);
  }

  /** The server said no, and will again. */
  refused(code) {
    this.code = code;
    clearTimeout(this.#timer);
    this.disconnect();
    this.#setState("refused");
  }

  #networkLost() {
    if (this.state === "closed" || this.state === "refused") return;
    this.failed();
  }

  #setState(state) {
    if (this.state === "closed") return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}
