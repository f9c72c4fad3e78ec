import { advice } from "./advice.js";
/** What every error of this package has. */
export class TempmailError extends Error {
    code;
    status;
    advice;
    name = "TempmailError";
    /**
     * @param code A word for programs: a code of the server (`docs/api.md`), or one of `unreachable`, `wait_timeout`,
     *   `no_code`, `no_link`, `closed`, `invalid_option`, `unexpected_answer`.
     * @param status Status of the HTTP answer; `null` where there was none.
     * @param problem What is wrong: a sentence.
     * @param advice What to do: a sentence.
     */
    constructor(code, status, problem, advice, options) {
        super(`${problem} ${advice}`, options);
        this.code = code;
        this.status = status;
        this.advice = advice;
    }
}
/** The server refused a request. */
export class ApiError extends TempmailError {
    request;
    name = "ApiError";
    /** @param request Method and path, without query. */
    constructor(status, code, request) {
        super(code, status, `${request} was answered by ${status} ${code}.`, advice(code));
        this.request = request;
    }
}
/** No answer came from the server, although the request was repeated. */
export class UnreachableError extends TempmailError {
    name = "UnreachableError";
    constructor(url, cause) {
        const problem = `No answer from ${url}: ${reason(cause)}.`;
        super("unreachable", null, problem, "Check that tempmail runs there, and TEMPMAIL_CLIENT_URL.", { cause });
    }
}
/** No mail that matches came in time. */
export class WaitTimeoutError extends TempmailError {
    timeout;
    arrived;
    name = "WaitTimeoutError";
    /**
     * @param asked What was waited for.
     * @param timeout For how long, in milliseconds.
     * @param arrived What came instead, oldest first, up to 50; `null` where it could not be listed.
     */
    constructor(asked, timeout, arrived) {
        const problem = `No ${asked} came within ${timeout / 1000} s.`;
        super("wait_timeout", null, problem, `${instead(arrived)}`);
        this.timeout = timeout;
        this.arrived = arrived;
    }
}
/** Says what came instead, and what to do. */
function instead(arrived) {
    if (arrived === null)
        return "Check that the application sent it, and to this address.";
    if (arrived.length === 0) {
        return "No other mail came either. Check that the application sends to this address, by the SMTP server of tempmail.";
    }
    const lines = arrived.map((mail) => {
        return `  ${mail.created_at} ${quoted(mail.subject)} from ${quoted(mail.from_email)} to ${quoted(mail.address)}`;
    });
    return `This came instead; compare it with what was asked for:\n${lines.join("\n")}`;
}
/** Text of a mail on one line, with control and format characters made visible. */
export function quoted(text) {
    const visible = (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`;
    return `"${text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, visible)}"`;
}
/** Why `fetch` failed: its own message says so only in its cause. */
function reason(error) {
    if (!(error instanceof Error))
        return String(error);
    const { cause } = error;
    if (cause instanceof Error)
        return cause.message || ("code" in cause ? String(cause.code) : cause.name);
    return error.message;
}
