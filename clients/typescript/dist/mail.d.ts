import type { Code, Email, Link, WaitAnswer } from "./types.js";
export interface Mail extends Readonly<Omit<Email, "codes" | "links">> {
}
/** A mail, with its codes and links. */
export declare class Mail {
    #private;
    /** One-time codes, best first. */
    readonly codes: readonly Code[];
    /** Action links, best first. */
    readonly links: readonly Link[];
    constructor(answer: WaitAnswer);
    /** The best code; throws `TempmailError` with code `no_code` where the mail has none. */
    get code(): string;
    /** URL of the best link; throws `TempmailError` with code `no_link` where the mail has none. */
    get link(): string;
}
