import { advice } from "./advice.js";
import type { EmailSummary } from "./types.js";

/** What every error of this package has. */
export class TempmailError extends Error {
  override name = "TempmailError";

  /**
   * @param code A word for programs: a code of the server (`docs/api.md`), or one of `unreachable`, `wait_timeout`,
   *   `no_code`, `no_link`, `closed`, `invalid_option`, `unexpected_answer`.
   * @param status Status of the HTTP answer; `null` where there was none.
   * @param problem What is wrong: a sentence.
   * @param advice What to do: a sentence.
   */
  constructor(
    readonly code: string,
    readonly status: number | null,
    problem: string,
    readonly advice: string,
    options?: ErrorOptions,
  ) {
    super(`${problem} ${advice}`, options);
  }
}

/** The server refused a request. */
export class ApiError extends TempmailError {
  override name = "ApiError";

  /** @param request Method and path, without query. */
  constructor(
    status: number,
    code: string,
    readonly request: string,
  ) {
    super(code, status, `${request} was answered by ${status} ${code}.`, advice(code));
  }
}

/** No answer came from the server, although the request was repeated. */
export class UnreachableError extends TempmailError {
  override name = "UnreachableError";

  constructor(url: string, cause: unknown) {
    const problem = `No answer from ${url}: ${reason(cause)}.`;
    super("unreachable", null, problem, "Check that tempmail runs there, and TEMPMAIL_CLIENT_URL.", { cause });
  }
}

/** No mail that matches came in time. */
export class WaitTimeoutError extends TempmailError {
  override name = "WaitTimeoutError";

  /**
   * @param asked What was waited for.
   * @param timeout For how long, in milliseconds.
   * @param arrived What came instead, oldest first, up to 50; `null` where it could not be listed.
   */
  constructor(
    asked: string,
    readonly timeout: number,
    readonly arrived: readonly EmailSummary[] | null,
  ) {
    const problem = `No ${asked} came within ${timeout / 1000} s.`;
    super("wait_timeout", null, problem, `${instead(arrived)}`);
  }
}

/** Says what came instead, and what to do. */
function instead(arrived: readonly EmailSummary[] | null): string {
  if (arrived === null) return "Check that the application sent it, and to this address.";
  if (arrived.length === 0) {
    return "No other mail came either. Check that the application sends to this address, by the SMTP server of tempmail.";
  }
  const lines = arrived.map((mail) => {
    return `  ${mail.created_at} ${quoted(mail.subject)} from ${quoted(mail.from_email)} to ${quoted(mail.address)}`;
  });
  return `This came instead; compare it with what was asked for:\n${lines.join("\n")}`;
}

/** Text of a mail on one line, with control and format characters made visible. */
export function quoted(text: string): string {
  const visible = (char: string) => `\\u{${char.codePointAt(0)?.toString(16)}}`;
  return `"${text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, visible)}"`;
}

/** Why `fetch` failed: its own message says so only in its cause. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return cause.message || ("code" in cause ? String(cause.code) : cause.name);
  return error.message;
}
