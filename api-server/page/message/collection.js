// The messages that are loaded, newest first.

const isNewer = (a, b) => (a.created_at === b.created_at ? a.id > b.id : a.created_at > b.created_at);

export class MessageCollection extends EventTarget {
  #byId = new Map();
  #ordered = [];
  /** Deleted here, perhaps not yet there: not shown, whatever a list says that was on its way. */
  #deleted = new Set();

  get size() {
    return this.#ordered.length;
  }

  get all() {
    return this.#ordered;
  }

  get oldest() {
    return this.#ordered.at(-1);
  }

  get = (id) => this.#byId.get(id);

  /** Adds what is not there and updates what is. Returns what was added. */
  merge(messages) {
    const added = [];
    for (const message of messages) {
      if (this.#deleted.has(message.id)) continue;
      const known = this.#byId.get(message.id);
      if (known) {
        // Read here, perhaps not yet there.
        Object.assign(known, message, { is_read: known.is_read || Boolean(message.is_read) });
      } else {
        const entry = { is_read: false, ...message };
        this.#byId.set(entry.id, entry);
        this.#ordered.splice(this.#placeOf(entry), 0, entry);
        added.push(entry);
      }
    }
    if (messages.length > 0) this.#changed();
    return added;
  }

  update(id, change) {
    const message = this.#byId.get(id);
    if (!message) return;
    Object.assign(message, change);
    this.#changed();
  }

  /** Takes messages out that are no longer there. */
  remove(ids) {
    const gone = new Set(ids);
    if (gone.size === 0) return;
    this.#ordered = this.#ordered.filter(({ id }) => !gone.has(id));
    for (const id of gone) this.#byId.delete(id);
    this.#changed();
  }

  /** Hides a message that is about to be deleted. Returns what `restore` takes. */
  delete(id) {
    const message = this.#byId.get(id);
    this.#deleted.add(id);
    this.remove([id]);
    return message;
  }

  restore(message) {
    this.#deleted.delete(message.id);
    this.merge([message]);
  }

  clear() {
    this.remove([...this.#byId.keys()]);
  }

  #placeOf(message) {
    let [low, high] = [0, this.#ordered.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isNewer(this.#ordered[middle], message)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
