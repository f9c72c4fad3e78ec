import { now } from "./clock.js";
import { Connection, json, type ApiAnswer, type ApiRequest } from "./connection.js";
import { TempmailError } from "./errors.js";
import { Inbox } from "./inbox.js";
import type { Mail } from "./mail.js";
import type { ServerConfig } from "./types.js";
import { waitForMail, type Scope, type WaitOptions } from "./wait.js";

/** For how long the public configuration is kept, in milliseconds, as the server allows. */
const CONFIG_AGE = 60_000;

/** Options of a client. */
export interface TempmailOptions {
  /** Base URL of the server [default: TEMPMAIL_CLIENT_URL, else http://127.0.0.1:8080, where `tempmail up` listens]. */
  url?: string;
  /** Live token (`tm_live_…`) of the team [default: TEMPMAIL_CLIENT_TOKEN]. */
  token?: string;
  /** Domain of new addresses [default: the default system domain of the server]. */
  domain?: string;
  /** Timeout of a wait that names none, in milliseconds [default: 60,000]. */
  timeout?: number;
  /**
   * For how long a request is repeated that failed for a moment (no connection, 429, 503), in milliseconds
   * [default: 30,000]. A wait repeats them until its timeout if that is longer. A server that never answered is tried
   * for 3 s only.
   */
  retryFor?: number;
  /** Called before each wait, with its timeout in milliseconds: where a test runner has its own, to extend that. */
  onWait?: (timeout: number) => void;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** What address an inbox has. */
export interface InboxOptions {
  /** An address of your own; without it a fresh one is made. */
  address?: string;
  /** Begin of the local part of a fresh address [default: `test`]. */
  name?: string;
  /** Domain of a fresh address [default: that of the client]. */
  domain?: string;
}

/** Where a wait of the whole team begins; `domain` and `all` need a start. */
export interface StartOptions {
  /** A cursor, as `inbox.since`: only mail behind it. */
  since?: string;
  /** Only mail that came later. */
  after?: Date;
}

/** A client of tempmail. */
export class Tempmail {
  readonly #options: TempmailOptions;
  readonly #inboxes = new Set<Inbox>();
  #connected: { connection: Connection; token: string; url: string } | undefined;

  /** Reads what the options leave open from the environment, at the first request. */
  constructor(options: TempmailOptions = {}) {
    this.#options = options;
  }

  /** Makes an inbox: a fresh address, and a token that can wait and read there only. It sees new mail only. */
  async inbox(options: InboxOptions = {}): Promise<Inbox> {
    const address = options.address ?? (await this.#freshAddress(options));
    const { connection, token } = this.#connect();
    const context = { connection, token, timeout: this.#timeout(), onWait: this.#options.onWait };
    const inbox = await Inbox.open(context, address);
    this.#inboxes.add(inbox);
    return inbox;
  }

  /**
   * Waits with the token of the team, which can have one wait open: for an address, a verified domain of the tenant, or
   * all that it owns. Parallel tests wait on an `inbox()` each instead.
   */
  async wait(options: Scope & StartOptions & WaitOptions): Promise<Mail> {
    const timeout = options.timeout ?? this.#timeout();
    this.#options.onWait?.(timeout);
    const scope: Scope = "address" in options ? { address: options.address }
      : "domain" in options ? { domain: options.domain }
      : { all: true };
    const send = (request: ApiRequest) => this.#send(request);
    const after = options.after?.toISOString();
    return waitForMail({ send, scope, since: options.since, after, options, timeout });
  }

  /** The public configuration of the server. */
  async config(): Promise<ServerConfig> {
    const { url } = this.#connect();
    const known = configs.get(url);
    if (known !== undefined && now() - known.read < CONFIG_AGE) return known.config;
    const config = json<ServerConfig>(await this.#send({ method: "GET", path: "/v1/config" }), "GET /v1/config");
    configs.set(url, { config, read: now() });
    return config;
  }

  /** Closes all inboxes of this client. */
  async close(): Promise<void> {
    const inboxes = [...this.#inboxes];
    this.#inboxes.clear();
    await Promise.all(inboxes.map((inbox) => inbox.close()));
  }

  async #freshAddress(options: InboxOptions): Promise<string> {
    const domain = options.domain ?? this.#options.domain ?? (await this.#systemDomain());
    if (domain === undefined) {
      const advice = "Set the option `domain` to a verified domain of your tenant.";
      throw new TempmailError("invalid_option", null, "The server has no system domain.", advice);
    }
    return `${options.name ?? "test"}-${random()}@${domain}`;
  }

  async #systemDomain(): Promise<string | undefined> {
    const { system_domains: domains } = await this.config();
    return (domains.find((domain) => domain.default) ?? domains[0])?.domain;
  }

  #timeout(): number {
    return this.#options.timeout ?? 60_000;
  }

  async #send(request: ApiRequest): Promise<ApiAnswer> {
    const { connection, token } = this.#connect();
    return connection.send(token, request);
  }

  #connect(): { connection: Connection; token: string; url: string } {
    if (this.#connected !== undefined) return this.#connected;
    const { retryFor = 30_000, fetch = globalThis.fetch.bind(globalThis) } = this.#options;
    const url = (this.#options.url ?? environment("TEMPMAIL_CLIENT_URL") ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    const token = this.#options.token ?? environment("TEMPMAIL_CLIENT_TOKEN");
    if (!/^https?:\/\/./.test(url)) {
      const advice = "Set TEMPMAIL_CLIENT_URL or the option `url` to the address of the server.";
      throw new TempmailError("invalid_option", null, `${url} is no http or https URL.`, advice);
    }
    if (token === undefined) {
      const advice = "Set TEMPMAIL_CLIENT_TOKEN or the option `token` to a live token (tm_live_…).";
      throw new TempmailError("authentication_required", null, "There is no token.", advice);
    }
    return (this.#connected = { connection: new Connection(url, retryFor, fetch), token, url });
  }
}

/** The client of the environment: TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN. */
export const tempmail = new Tempmail();

/** Public configurations by base URL. */
const configs = new Map<string, { config: ServerConfig; read: number }>();

/** A variable of the environment; `undefined` where there is none, as in browsers. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

/** 16 random characters of a local part (80 bits). */
function random(): string {
  const alphabet = "abcdefghijkmnpqrstuvwxyz23456789";
  const bytes = new Uint8Array(16);
  // Node 18 has no global `crypto`.
  if (globalThis.crypto === undefined) bytes.forEach((_, i) => (bytes[i] = Math.random() * 256));
  else globalThis.crypto.getRandomValues(bytes);
  return Array.from(bytes, (byte) => alphabet[byte % 32]).join("");
}
