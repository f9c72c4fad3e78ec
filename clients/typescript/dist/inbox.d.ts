import { type Connection } from "./connection.js";
import type { Mail } from "./mail.js";
import type { EmailSummary } from "./types.js";
import { type WaitOptions } from "./wait.js";
/** What an inbox needs of its client. */
export interface InboxContext {
    connection: Connection;
    /** The token of the team, which mints those of the inbox. */
    token: string;
    /** Timeout of a wait that names none, in milliseconds. */
    timeout: number;
    /** Called before each wait, with its timeout in milliseconds. */
    onWait: ((timeout: number) => void) | undefined;
}
/**
 * An address, from the moment at which the inbox was made: earlier mail is never seen.
 *
 * Waits of one inbox may run in parallel. Each mail is handed out once.
 */
export declare class Inbox {
    #private;
    /** The address to sign up with. */
    readonly address: string;
    /** The cursor of the moment at which the inbox was made. */
    readonly since: string;
    private constructor();
    /** Waits for a mail that matches, the oldest first; throws `WaitTimeoutError` where none comes in time. */
    wait(options?: WaitOptions): Promise<Mail>;
    /** Waits for a mail with a code, and returns the code. */
    code(options?: WaitOptions): Promise<string>;
    /** Waits for a mail with an action link, and returns its URL. */
    link(options?: WaitOptions): Promise<string>;
    /** All mail since the inbox was made, oldest first, at most 1,000. */
    list(): Promise<EmailSummary[]>;
    /** The mail as it was received (`message/rfc822`). */
    raw(mail: Pick<Mail, "id">): Promise<Uint8Array>;
    /** The data of an attachment, by its `index`. */
    attachment(mail: Pick<Mail, "id">, index: number): Promise<Uint8Array>;
    /** Deletes a mail. */
    delete(mail: Pick<Mail, "id">): Promise<void>;
    /**
     * Revokes the tokens of the inbox, which end by themselves otherwise: a tenant has 200 at a time. Mail stays.
     * What fails here is left to their expiry.
     */
    close(): Promise<void>;
}
