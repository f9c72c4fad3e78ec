import { Inbox } from "./inbox.js";
import type { Mail } from "./mail.js";
import type { ServerConfig } from "./types.js";
import { type Scope, type WaitOptions } from "./wait.js";
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
export declare class Tempmail {
    #private;
    /** Reads what the options leave open from the environment, at the first request. */
    constructor(options?: TempmailOptions);
    /** Makes an inbox: a fresh address, and a token that can wait and read there only. It sees new mail only. */
    inbox(options?: InboxOptions): Promise<Inbox>;
    /**
     * Waits with the token of the team, which can have one wait open: for an address, a verified domain of the tenant, or
     * all that it owns. Parallel tests wait on an `inbox()` each instead.
     */
    wait(options: Scope & StartOptions & WaitOptions): Promise<Mail>;
    /** The public configuration of the server. */
    config(): Promise<ServerConfig>;
    /** Closes all inboxes of this client. */
    close(): Promise<void>;
}
/** The client of the environment: TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN. */
export declare const tempmail: Tempmail;
