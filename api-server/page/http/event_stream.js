// The event stream of everything that a tenant owns. `mail` is dispatched for each new one; after `live` the list is to
// be read. EventSource gives up after any answer but 200, and does not say which: attempts are made here instead.

import { Connection } from "./connection.js";
import { EVENTS, readSession } from "./pro_api.js";

export class EventStream extends Connection {
  #source = null;

  constructor({ onSessionEnd }) {
    super();
    this.onSessionEnd = onSessionEnd;
  }

  connect() {
    const source = new EventSource(EVENTS);
    this.#source = source;
    source.addEventListener("open", () => {
      if (source === this.#source) this.succeeded();
    });
    source.addEventListener("new_email", ({ data }) => {
      if (source === this.#source) this.dispatchEvent(new CustomEvent("mail", { detail: JSON.parse(data) }));
    });
    source.addEventListener("error", () => {
      if (source === this.#source) this.#failed();
    });
  }

  disconnect() {
    const source = this.#source;
    this.#source = null;
    source?.close();
  }

  /** EventSource does not say why: a session that ended is asked for. */
  async #failed() {
    this.failed();
    try {
      await readSession();
    } catch (error) {
      if (error.status === 401 || error.status === 440) this.onSessionEnd(error.code);
      else if (error.code === "account_disabled") this.refused(error.code);
    }
  }
}
