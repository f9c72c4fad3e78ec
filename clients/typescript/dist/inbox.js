import { json } from "./connection.js";
import { ApiError, TempmailError } from "./errors.js";
import { listMails, waitForMail } from "./wait.js";
/**
 * An address, from the moment at which the inbox was made: earlier mail is never seen.
 *
 * Waits of one inbox may run in parallel. Each mail is handed out once.
 */
export class Inbox {
    /** The address to sign up with. */
    address;
    /** The cursor of the moment at which the inbox was made. */
    since;
    #context;
    /** Tokens that no request uses: each can have one wait open. */
    #idle = [];
    /** Ids of all tokens of this inbox. */
    #tokenIds = [];
    /** All mail up to this cursor was handed out. */
    #base;
    /** Ids of the mails that were handed out. */
    #handedOut = new Set();
    #closed = false;
    constructor(context, created) {
        this.#context = context;
        this.address = created.address;
        this.since = created.since;
        this.#base = created.since;
        this.#idle.push(created.token);
        this.#tokenIds.push(created.id);
    }
    /** @internal */
    static async open(context, address) {
        return new Inbox(context, await mint(context, address));
    }
    /** Waits for a mail that matches, the oldest first; throws `WaitTimeoutError` where none comes in time. */
    async wait(options = {}) {
        const timeout = options.timeout ?? this.#context.timeout;
        this.#context.onWait?.(timeout);
        return waitForMail({
            send: (request) => this.#send(request),
            scope: { address: this.address },
            since: this.#base,
            start: this.since,
            options,
            timeout,
            accepts: (answer, since, isNext) => this.#accept(answer, since, isNext),
        });
    }
    /** Waits for a mail with a code, and returns the code. */
    async code(options = {}) {
        return (await this.wait({ ...options, has: and(options.has, "code") })).code;
    }
    /** Waits for a mail with an action link, and returns its URL. */
    async link(options = {}) {
        return (await this.wait({ ...options, has: and(options.has, "link") })).link;
    }
    /** All mail since the inbox was made, oldest first, at most 1,000. */
    async list() {
        return listMails((request) => this.#send(request), { address: this.address }, this.since);
    }
    /** The mail as it was received (`message/rfc822`). */
    async raw(mail) {
        return (await this.#send({ method: "GET", path: `/v1/email/${encodeURIComponent(mail.id)}/raw` })).body;
    }
    /** The data of an attachment, by its `index`. */
    async attachment(mail, index) {
        const path = `/v1/email/${encodeURIComponent(mail.id)}/attachments/${index}`;
        return (await this.#send({ method: "GET", path })).body;
    }
    /** Deletes a mail. */
    async delete(mail) {
        await this.#send({ method: "DELETE", path: `/v1/email/${encodeURIComponent(mail.id)}` });
    }
    /**
     * Revokes the tokens of the inbox, which end by themselves otherwise: a tenant has 200 at a time. Mail stays.
     * What fails here is left to their expiry.
     */
    async close() {
        this.#closed = true;
        const { connection, token } = this.#context;
        const revoke = (id) => connection.send(token, { method: "DELETE", path: `/v1/tokens/${id}` });
        await Promise.allSettled(this.#tokenIds.splice(0).map(revoke));
    }
    /**
     * Decides whether a mail is handed out by the wait that found it, at once, since waits run in parallel. `isNext` says
     * that no mail between `since` and this one was left out.
     */
    #accept(answer, since, isNext) {
        const { id } = answer.email;
        const isNew = !this.#handedOut.has(id);
        this.#handedOut.add(id);
        if (isNext && since === this.#base)
            this.#base = answer.next_since;
        return isNew;
    }
    /** Sends a request with a token that no other one uses, and with a new one where that has expired. */
    async #send(request) {
        let token = this.#idle.pop() ?? (await this.#mint());
        try {
            try {
                return await this.#context.connection.send(token, request);
            }
            catch (error) {
                if (!(error instanceof ApiError && (error.status === 401 || error.status === 440)))
                    throw error;
                token = await this.#mint();
                return await this.#context.connection.send(token, request);
            }
        }
        finally {
            this.#idle.push(token);
        }
    }
    async #mint() {
        if (this.#closed) {
            throw new TempmailError("closed", null, `The inbox ${this.address} is closed.`, "Wait before it is closed.");
        }
        const { id, token } = await mint(this.#context, this.address);
        this.#tokenIds.push(id);
        return token;
    }
}
/** The conditions of a wait, and one more. */
function and(has, more) {
    return [...new Set([has ?? [], more].flat())];
}
async function mint({ connection, token }, address) {
    const answer = await connection.send(token, { method: "POST", path: "/v1/tokens", body: () => ({ address }) });
    return json(answer, "POST /v1/tokens");
}
