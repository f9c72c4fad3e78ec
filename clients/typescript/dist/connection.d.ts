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
export declare class Connection {
    #private;
    private readonly url;
    private readonly retryFor;
    private readonly fetch;
    /** @param retryFor For how long such failures are repeated, in milliseconds. */
    constructor(url: string, retryFor: number, fetch: typeof globalThis.fetch);
    /** Sends a request until it is answered; throws `ApiError` or `UnreachableError`, or the reason of the signal. */
    send(token: string, request: ApiRequest): Promise<ApiAnswer>;
}
/** The JSON of an answer; throws `ApiError` where something else answered than the server. */
export declare function json<Body>(answer: ApiAnswer, request: string): Body;
