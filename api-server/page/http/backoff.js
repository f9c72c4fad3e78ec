// How long to wait before the next attempt: twice as long each time, with jitter, so that the clients of a server that
// restarts do not return all at once.

import { isLocal } from "./service_host.js";

const FIRST = 500;
const LONGEST = isLocal ? FIRST : 8_000;

export class Backoff {
  #failures = 0;

  /** Milliseconds until the next attempt. */
  next() {
    const most = Math.min(LONGEST, FIRST * 2 ** this.#failures);
    this.#failures += 1;
    return most / 2 + Math.random() * (most / 2);
  }

  get failures() {
    return this.#failures;
  }

  reset() {
    this.#failures = 0;
  }
}
