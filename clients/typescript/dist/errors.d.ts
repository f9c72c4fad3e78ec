import type { EmailSummary } from "./types.js";
/** What every error of this package has. */
export declare class TempmailError extends Error {
    readonly code: string;
    readonly status: number | null;
    readonly advice: string;
    name: string;
    /**
     * @param code A word for programs: a code of the server (`docs/api.md`), or one of `unreachable`, `wait_timeout`,
     *   `no_code`, `no_link`, `closed`, `invalid_option`, `unexpected_answer`.
     * @param status Status of the HTTP answer; `null` where there was none.
     * @param problem What is wrong: a sentence.
     * @param advice What to do: a sentence.
     */
    constructor(code: string, status: number | null, problem: string, advice: string, options?: ErrorOptions);
}
/** The server refused a request. */
export declare class ApiError extends TempmailError {
    readonly request: string;
    name: string;
    /** @param request Method and path, without query. */
    constructor(status: number, code: string, request: string);
}
/** No answer came from the server, although the request was repeated. */
export declare class UnreachableError extends TempmailError {
    name: string;
    constructor(url: string, cause: unknown);
}
/** No mail that matches came in time. */
export declare class WaitTimeoutError extends TempmailError {
    readonly timeout: number;
    readonly arrived: readonly EmailSummary[] | null;
    name: string;
    /**
     * @param asked What was waited for.
     * @param timeout For how long, in milliseconds.
     * @param arrived What came instead, oldest first, up to 50; `null` where it could not be listed.
     */
    constructor(asked: string, timeout: number, arrived: readonly EmailSummary[] | null);
}
/** Text of a mail on one line, with control and format characters made visible. */
export declare function quoted(text: string): string;
