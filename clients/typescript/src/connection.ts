import { after, now, sleep } from "./clock.js";
import { ApiError, UnreachableError } from "./errors.js";

/** For how long a server is tried that never answered, in milliseconds: it may not run at all. */
const FIRST_CONTACT = 3_000;
/** Time for a request that does not wait, and what a wait gets beyond its own time, in milliseconds. */
const ANSWER_TIME = 15_000;
/** The pauses between attempts grow from the first to the second, in milliseconds. */
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [100, 2_000];
/** Statuses of a moment: the request was not carried out, or its answer got lost, and it is sent again. */
const PASSING = new Set([408, 429, 502, 503, 504]);
/** The code of an answer that is not of the server, but of something before it. */
const UNEXPECTED = "unexpected_answer";

/** A request to the server. */
export interface ApiRequest {
  method: "GET" | "POST" | "DELETE";
  /** Path and query. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** The JSON body; made for each attempt, since a wait asks for the time that is left. */
  body?: () => object;
  /** For how long the server may wait before it answers, in milliseconds. */
  waits?: number;
  /** Until when failures of a moment are repeated, by `now`, if that is later than `retryFor` says. */
  until?: number;
  signal?: AbortSignal | undefined;
}

/** An answer that is no error. */
export interface ApiAnswer {
  status: number;
  headers: Headers;
  body: Uint8Array;
}

/** Sends requests; what fails for a moment only (a connection that was cut, 429, 503) is sent again. */
export class Connection {
  #reached = false;

  /** @param retryFor For how long such failures are repeated, in milliseconds. */
  constructor(
    private readonly url: string,
    private readonly retryFor: number,
    private readonly fetch: typeof globalThis.fetch,
  ) {}

  /** Sends a request until it is answered; throws `ApiError` or `UnreachableError`, or the reason of the signal. */
  async send(token: string, request: ApiRequest): Promise<ApiAnswer> {
    const start = now();
    const until = Math.max(start + this.retryFor, request.until ?? start);
    let pause = SHORTEST_PAUSE;
    for (;;) {
      const attempt = now();
      const result = await this.#attempt(token, request);
      if ("body" in result) return result;
      // A connection that was open for long was cut, and says nothing about the next one.
      if (now() - attempt > LONGEST_PAUSE) pause = SHORTEST_PAUSE;
      const end = this.#reached ? until : start + FIRST_CONTACT;
      const delay = (1 + Math.random()) * Math.max(pause, result.retryAfter);
      if (now() + delay > end) throw result.error;
      pause = Math.min(2 * pause, LONGEST_PAUSE);
      await sleep(delay, request.signal);
    }
  }

  /** One attempt: the answer, or the failure of a moment and the pause that the server asked for, in milliseconds. */
  async #attempt(token: string, request: ApiRequest): Promise<ApiAnswer | { error: Error; retryAfter: number }> {
    let response: Response;
    let body: Uint8Array;
    try {
      [response, body] = await this.#exchange(token, request);
    } catch (error) {
      request.signal?.throwIfAborted();
      return { error: new UnreachableError(this.url, error), retryAfter: 0 };
    }
    this.#reached = true;
    const { status, headers } = response;
    if (response.ok) return { status, headers, body };
    const error = new ApiError(status, codeOf(body), `${request.method} ${request.path.replace(/\?.*/, "")}`);
    if (!isPassing(error)) throw error;
    return { error, retryAfter: retryAfter(headers) };
  }

  /** Sends the request and reads the whole answer, within its time. */
  async #exchange(token: string, request: ApiRequest): Promise<[Response, Uint8Array]> {
    const { method, path, signal } = request;
    // `AbortSignal.any` is not there before Node 20.
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort, { once: true });
    const time = (request.waits ?? 0) + ANSWER_TIME;
    const cancel = after(time, () => controller.abort(new Error(`nothing within ${time / 1000} s`)));
    const headers: Record<string, string> = { "x-api-token": token, ...request.headers };
    const init: RequestInit = { method, headers, redirect: "manual", signal: controller.signal };
    if (request.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(request.body());
    }
    try {
      const response = await this.fetch(this.url + path, init);
      try {
        return [response, new Uint8Array(await response.arrayBuffer())];
      } catch (error) {
        // The status of an error says enough.
        if (response.ok || signal?.aborted) throw error;
        return [response, new Uint8Array()];
      }
    } finally {
      cancel();
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** The JSON of an answer; throws `ApiError` where something else answered than the server. */
export function json<Body>(answer: ApiAnswer, request: string): Body {
  try {
    return JSON.parse(new TextDecoder().decode(answer.body)) as Body;
  } catch {
    throw new ApiError(answer.status, UNEXPECTED, request);
  }
}

/** The code of an error answer. Something before the server may answer anything: only what looks like a code is one. */
function codeOf(body: Uint8Array): string {
  try {
    const { error } = JSON.parse(new TextDecoder().decode(body)) as { error?: unknown };
    return typeof error === "string" && /^[a-z_]{1,64}$/.test(error) ? error : UNEXPECTED;
  } catch {
    return UNEXPECTED;
  }
}

/** Whether the same request may succeed in a moment. Any 5xx from before the server is, such as the 522 of a CDN. */
function isPassing({ status, code }: ApiError): boolean {
  return status !== null && (PASSING.has(status) || (status >= 500 && code === UNEXPECTED));
}

/** `Retry-After` in milliseconds (RFC 9110 10.2.3); 0 where there is none. */
function retryAfter(headers: Headers): number {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // One of the forms of dates names no zone, and is UTC as well.
  const date = /^[A-Z][a-z]+,? /.test(value) ? Date.parse(value.endsWith("GMT") ? value : `${value} GMT`) : NaN;
  return Number.isNaN(date) ? 0 : Math.max(0, date - Date.now());
}
