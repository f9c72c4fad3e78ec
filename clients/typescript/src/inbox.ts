import { json, type ApiAnswer, type ApiRequest, type Connection } from "./connection.js";
import { ApiError, TempmailError } from "./errors.js";
import type { Mail } from "./mail.js";
import type { CreatedToken, EmailSummary, WaitAnswer } from "./types.js";
import { listMails, waitForMail, type Has, type WaitOptions } from "./wait.js";

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
export class Inbox {
  /** The address to sign up with. */
  readonly address: string;
  /** The cursor of the moment at which the inbox was made. */
  readonly since: string;
  readonly #context: InboxContext;
  /** Tokens that no request uses: each can have one wait open. */
  readonly #idle: string[] = [];
  /** Ids of all tokens of this inbox. */
  readonly #tokenIds: string[] = [];
  /** All mail up to this cursor was handed out. */
  #base: string;
  /** Ids of the mails that were handed out. */
  readonly #handedOut = new Set<string>();
  #closed = false;

  private constructor(context: InboxContext, created: MintedToken) {
    this.#context = context;
    this.address = created.address;
    this.since = created.since;
    this.#base = created.since;
    this.#idle.push(created.token);
    this.#tokenIds.push(created.id);
  }

  /** @internal */
  static async open(context: InboxContext, address: string): Promise<Inbox> {
    return new Inbox(context, await mint(context, address));
  }

  /** Waits for a mail that matches, the oldest first; throws `WaitTimeoutError` where none comes in time. */
  async wait(options: WaitOptions = {}): Promise<Mail> {
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
  async code(options: WaitOptions = {}): Promise<string> {
    return (await this.wait({ ...options, has: and(options.has, "code") })).code;
  }

  /** Waits for a mail with an action link, and returns its URL. */
  async link(options: WaitOptions = {}): Promise<string> {
    return (await this.wait({ ...options, has: and(options.has, "link") })).link;
  }

  /** All mail since the inbox was made, oldest first, at most 1,000. */
  async list(): Promise<EmailSummary[]> {
    return listMails((request) => this.#send(request), { address: this.address }, this.since);
  }

  /** The mail as it was received (`message/rfc822`). */
  async raw(mail: Pick<Mail, "id">): Promise<Uint8Array> {
    return (await this.#send({ method: "GET", path: `/v1/email/${encodeURIComponent(mail.id)}/raw` })).body;
  }

  /** The data of an attachment, by its `index`. */
  async attachment(mail: Pick<Mail, "id">, index: number): Promise<Uint8Array> {
    const path = `/v1/email/${encodeURIComponent(mail.id)}/attachments/${index}`;
    return (await this.#send({ method: "GET", path })).body;
  }

  /** Deletes a mail. */
  async delete(mail: Pick<Mail, "id">): Promise<void> {
    await this.#send({ method: "DELETE", path: `/v1/email/${encodeURIComponent(mail.id)}` });
  }

  /**
   * Revokes the tokens of the inbox, which end by themselves otherwise: a tenant has 200 at a time. Mail stays.
   * What fails here is left to their expiry.
   */
  async close(): Promise<void> {
    this.#closed = true;
    const { connection, token } = this.#context;
    const revoke = (id: string) => connection.send(token, { method: "DELETE", path: `/v1/tokens/${id}` });
    await Promise.allSettled(this.#tokenIds.splice(0).map(revoke));
  }

  /**
   * Decides whether a mail is handed out by the wait that found it, at once, since waits run in parallel. `isNext` says
   * that no mail between `since` and this one was left out.
   */
  #accept(answer: WaitAnswer, since: string | undefined, isNext: boolean): boolean {
    const { id } = answer.email;
    const isNew = !this.#handedOut.has(id);
    this.#handedOut.add(id);
    if (isNext && since === this.#base) this.#base = answer.next_since;
    return isNew;
  }

  /** Sends a request with a token that no other one uses, and with a new one where that has expired. */
  async #send(request: ApiRequest): Promise<ApiAnswer> {
    let token = this.#idle.pop() ?? (await this.#mint());
    try {
      try {
        return await this.#context.connection.send(token, request);
      } catch (error) {
        if (!(error instanceof ApiError && (error.status === 401 || error.status === 440))) throw error;
        token = await this.#mint();
        return await this.#context.connection.send(token, request);
      }
    } finally {
      this.#idle.push(token);
    }
  }

  async #mint(): Promise<string> {
    if (this.#closed) {
      throw new TempmailError("closed", null, `The inbox ${this.address} is closed.`, "Wait before it is closed.");
    }
    const { id, token } = await mint(this.#context, this.address);
    this.#tokenIds.push(id);
    return token;
  }
}

/** The conditions of a wait, and one more. */
function and(has: WaitOptions["has"], more: Has): Has[] {
  return [...new Set([has ?? [], more].flat())];
}

/** A token for one address, and the cursor of the moment at which it was minted. */
type MintedToken = CreatedToken & { address: string; since: string };

async function mint({ connection, token }: InboxContext, address: string): Promise<MintedToken> {
  const answer = await connection.send(token, { method: "POST", path: "/v1/tokens", body: () => ({ address }) });
  return json<MintedToken>(answer, "POST /v1/tokens");
}
