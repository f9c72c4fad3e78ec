import { now } from "./clock.js";
import { Connection, json } from "./connection.js";
import { TempmailError } from "./errors.js";
import { Inbox } from "./inbox.js";
import { waitForMail } from "./wait.js";
/** For how long the public configuration is kept, in milliseconds, as the server allows. */
const CONFIG_AGE = 60_000;
/** A client of tempmail. */
export class Tempmail {
    #options;
    #inboxes = new Set();
    #connected;
    /** Reads what the options leave open from the environment, at the first request. */
    constructor(options = {}) {
        this.#options = options;
    }
    /** Makes an inbox: a fresh address, and a token that can wait and read there only. It sees new mail only. */
    async inbox(options = {}) {
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
    async wait(options) {
        const timeout = options.timeout ?? this.#timeout();
        this.#options.onWait?.(timeout);
        const scope = "address" in options ? { address: options.address }
            : "domain" in options ? { domain: options.domain }
                : { all: true };
        const send = (request) => this.#send(request);
        const after = options.after?.toISOString();
        return waitForMail({ send, scope, since: options.since, after, options, timeout });
    }
    /** The public configuration of the server. */
    async config() {
        const { url } = this.#connect();
        const known = configs.get(url);
        if (known !== undefined && now() - known.read < CONFIG_AGE)
            return known.config;
        const config = json(await this.#send({ method: "GET", path: "/v1/config" }), "GET /v1/config");
        configs.set(url, { config, read: now() });
        return config;
    }
    /** Closes all inboxes of this client. */
    async close() {
        const inboxes = [...this.#inboxes];
        this.#inboxes.clear();
        await Promise.all(inboxes.map((inbox) => inbox.close()));
    }
    async #freshAddress(options) {
        const domain = options.domain ?? this.#options.domain ?? (await this.#systemDomain());
        if (domain === undefined) {
            const advice = "Set the option `domain` to a verified domain of your tenant.";
            throw new TempmailError("invalid_option", null, "The server has no system domain.", advice);
        }
        return `${options.name ?? "test"}-${random()}@${domain}`;
    }
    async #systemDomain() {
        const { system_domains: domains } = await this.config();
        return (domains.find((domain) => domain.default) ?? domains[0])?.domain;
    }
    #timeout() {
        return this.#options.timeout ?? 60_000;
    }
    async #send(request) {
        const { connection, token } = this.#connect();
        return connection.send(token, request);
    }
    #connect() {
        if (this.#connected !== undefined)
            return this.#connected;
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
const configs = new Map();
/** A variable of the environment; `undefined` where there is none, as in browsers. */
function environment(name) {
    const { process } = globalThis;
    return process?.env?.[name] || undefined;
}
/** 16 random characters of a local part (80 bits). */
function random() {
    const alphabet = "abcdefghijkmnpqrstuvwxyz23456789";
    const bytes = new Uint8Array(16);
    // Node 18 has no global `crypto`.
    if (globalThis.crypto === undefined)
        bytes.forEach((_, i) => (bytes[i] = Math.random() * 256));
    else
        globalThis.crypto.getRandomValues(bytes);
    return Array.from(bytes, (byte) => alphabet[byte % 32]).join("");
}
