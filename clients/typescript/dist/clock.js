/** Time, taken when the module is loaded: the fake timers of a test runner must not stop a wait. */
const { setTimeout, clearTimeout } = globalThis;
/** Milliseconds of a clock that never goes back. */
export const now = performance.now.bind(performance);
/** Calls `call` after a time in milliseconds; returns what revokes it. */
export function after(milliseconds, call) {
    const timer = setTimeout(call, milliseconds);
    return () => clearTimeout(timer);
}
/** Waits, in milliseconds, or until `signal` aborts, whose reason it throws. */
export function sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
        const abort = () => {
            cancel();
            reject(signal?.reason);
        };
        const cancel = after(milliseconds, () => {
            signal?.removeEventListener("abort", abort);
            resolve();
        });
        if (signal?.aborted)
            abort();
        else
            signal?.addEventListener("abort", abort, { once: true });
    });
}
