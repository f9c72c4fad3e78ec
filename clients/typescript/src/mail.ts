import { TempmailError, quoted } from "./errors.js";
import type { Code, Email, Link, WaitAnswer } from "./types.js";

// The fields of the mail, as the server sends them.
export interface Mail extends Readonly<Omit<Email, "codes" | "links">> {}

/** A mail, with its codes and links. */
export class Mail {
  /** One-time codes, best first. */
  readonly codes: readonly Code[];
  /** Action links, best first. */
  readonly links: readonly Link[];

  constructor(answer: WaitAnswer) {
    Object.assign(this, answer.email);
    this.codes = answer.codes;
    this.links = answer.links;
  }

  /** The best code; throws `TempmailError` with code `no_code` where the mail has none. */
  get code(): string {
    const [best] = this.codes;
    if (best !== undefined) return best.code;
    throw this.#lacks("code", "no_code");
  }

  /** URL of the best link; throws `TempmailError` with code `no_link` where the mail has none. */
  get link(): string {
    const [best] = this.links;
    if (best !== undefined) return best.url;
    throw this.#lacks("link", "no_link");
  }

  #lacks(what: "code" | "link", code: string): TempmailError {
    const problem = `The mail ${quoted(this.subject)} from ${quoted(this.from_email)} has no ${what}.`;
    return new TempmailError(code, null, problem, `Wait for one that has: { has: "${what}" }, or read \`text\`.`);
  }
}
