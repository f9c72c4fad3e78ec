/** Time, taken when the module is loaded: the fake timers of a test runner must not stop a wait. */
/** Milliseconds of a clock that never goes back. */
export declare const now: () => number;
/** Calls `call` after a time in milliseconds; returns what revokes it. */
export declare function after(milliseconds: number, call: () => void): () => void;
/** Waits, in milliseconds, or until `signal` aborts, whose reason it throws. */
export declare function sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
