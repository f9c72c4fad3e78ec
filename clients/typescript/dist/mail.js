import { TempmailError, quoted } from "./errors.js";
/** A mail, with its codes and links. */
export class Mail {
    /** One-time codes, best first. */
    codes;
    /** Action links, best first. */
    links;
    constructor(answer) {
        Object.assign(this, answer.email);
        this.codes = answer.codes;
        this.links = answer.links;
    }
    /** The best code; throws `TempmailError` with code `no_code` where the mail has none. */
    get code() {
        const [best] = this.codes;
        if (best !== undefined)
            return best.code;
        throw this.#lacks("code", "no_code");
    }
    /** URL of the best link; throws `TempmailError` with code `no_link` where the mail has none. */
    get link() {
        const [best] = this.links;
        if (best !== undefined)
            return best.url;
        throw this.#lacks("link", "no_link");
    }
    #lacks(what, code) {
        const problem = `The mail ${quoted(this.subject)} from ${quoted(this.from_email)} has no ${what}.`;
        return new TempmailError(code, null, problem, `Wait for one that has: { has: "${what}" }, or read \`text\`.`);
    }
}
