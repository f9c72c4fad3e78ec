import { type ApiAnswer, type ApiRequest } from "./connection.js";
import { Mail } from "./mail.js";
import type { EmailSummary, WaitAnswer } from "./types.js";
/** What to wait for: texts are looked for without regard to case, and all that is set must hold. */
export interface WaitOptions {
    /** In the From header. */
    from?: string;
    /** In the address of the recipient. */
    to?: string;
    /** In the subject. */
    subject?: string;
    /** In the text as it is shown. */
    text?: string;
    /** What the mail must have. */
    has?: Has | Has[];
    /** For how long to wait, in milliseconds, any length; 0 looks once [default: that of the client, 60,000]. */
    timeout?: number;
    /** Ends the wait. */
    signal?: AbortSignal;
}
/** What a mail may have to have. */
export type Has = "code" | "link" | "attachment";
/** Where to wait: an address, a verified domain of the tenant, or all that it owns. */
export type Scope = {
    address: string;
} | {
    domain: string;
} | {
    all: true;
};
/** Sends a request with the token of a scope. */
export type Send = (request: ApiRequest) => Promise<ApiAnswer>;
/** A wait in a scope. */
export interface Wait {
    send: Send;
    scope: Scope;
    /** Only mail after this cursor. */
    since?: string | undefined;
    /** What is listed at the timeout came after this cursor [default: `since`]. */
    start?: string;
    /** Only mail after this time, RFC 3339. */
    after?: string | undefined;
    options: WaitOptions;
    /** For how long, in milliseconds. */
    timeout: number;
    /**
     * Whether a mail is wanted; one that is not is skipped. `since` is the cursor that was asked with, and `isNext` is true
     * where every mail matches, so that none between the cursor and this one was left out.
     */
    accepts?: (answer: WaitAnswer, since: string | undefined, isNext: boolean) => boolean;
}
/** Waits for the next mail that matches; throws `WaitTimeoutError` where none came in time. */
export declare function waitForMail(wait: Wait): Promise<Mail>;
/** Lists the mails after a cursor, oldest first, at most 1,000; without one, the newest 50. */
export declare function listMails(send: Send, scope: Scope, since: string | undefined, signal?: AbortSignal): Promise<EmailSummary[]>;
