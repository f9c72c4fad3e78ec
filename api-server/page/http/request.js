// Requests to the service, and the one kind of error that they end with.

/** A request that failed: `code` is one of the interface, or `offline`, `unreachable`, `timeout`, `unexpected`. */
export class RequestError extends Error {
  constructor(code, { status = 0, serverMessage = "", retryAfter = 0, requestId = null } = {}) {
    super(`${code} ${status}`);
    this.code = code;
    this.status = status;
    this.serverMessage = serverMessage;
    /** Seconds. */
    this.retryAfter = retryAfter;
    this.requestId = requestId;
  }
}

/** Whether the caller itself ended the request. */
export const isAborted = (error) => error?.name === "AbortError";

const TIMEOUT = 30_000;

/** Seconds of a Retry-After header, which is a number or a date. */
function seconds(header) {
  if (!header) return 0;
  if (/^\d+$/.test(header)) return Number(header);
  return Math.max(0, Math.ceil((Date.parse(header) - Date.now()) / 1000)) || 0;
}

async function failure(response) {
  const body = await response.json().catch(() => ({}));
  return new RequestError(typeof body?.error === "string" ? body.error : "unexpected", {
    status: response.status,
    serverMessage: typeof body?.message === "string" ? body.message : "",
    retryAfter: seconds(response.headers.get("retry-after")),
    // Only what the service can't explain needs looking up in its log.
    requestId: response.status >= 500 ? response.headers.get("x-request-id") : null,
  });
}

/**
 * Sends a request and reads its answer as JSON, or as a Blob.
 * A token goes into the Authorization header; without one the browser sends the cookie of a Pro session, if there is one.
 */
export async function request(path, { method = "GET", token, usesCookie = !token, body, signal, as = "json", keepalive = false, timeout = TIMEOUT } = {}) {
  const headers = { accept: as === "json" ? "application/json" : "*/*" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const timer = new AbortController();
  const late = timeout && setTimeout(() => timer.abort(), timeout);
  const stop = () => timer.abort();
  signal?.addEventListener("abort", stop);
  try {
    if (signal?.aborted) stop();
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      // A mailbox is opened by its JWT alone, and its requests carry no cookie.
      credentials: usesCookie ? "same-origin" : "omit",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: timer.signal,
      keepalive,
    });
    if (!response.ok) throw await failure(response);
    if (response.status === 204) return null;
    return as === "json" ? await response.json() : await response.blob();
  } catch (error) {
    if (error instanceof RequestError || signal?.aborted) throw error;
    if (timer.signal.aborted) throw new RequestError("timeout");
    throw new RequestError(navigator.onLine ? "unreachable" : "offline");
  } finally {
    clearTimeout(late);
    signal?.removeEventListener("abort", stop);
  }
}
