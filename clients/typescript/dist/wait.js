import { now, sleep } from "./clock.js";
import { json } from "./connection.js";
import { TempmailError, WaitTimeoutError, quoted } from "./errors.js";
import { Mail } from "./mail.js";
/** The longest that one request waits, in milliseconds: below the 60 s at which proxies cut idle connections. */
const LONGEST_REQUEST = 50_000;
/** Mails of one list, and lists that are asked for. */
const [PAGE, PAGES] = [50, 20];
/** Further looks after the timeout, if the last one ended at a bound of the server and not at the newest mail. */
const LAST_LOOKS = 10;
/** Waits for the next mail that matches; throws `WaitTimeoutError` where none came in time. */
export async function waitForMail(wait) {
    const { send, scope, after, options, timeout } = wait;
    if (!(timeout >= 0)) {
        throw new TempmailError("invalid_option", null, `A timeout of ${timeout} ms is none.`, "Use milliseconds, 0 or more.");
    }
    const match = matchOf(options);
    const deadline = now() + timeout;
    const timeLeft = () => Math.min(LONGEST_REQUEST, Math.max(0, deadline - now()));
    let since = wait.since;
    let looks = 0;
    for (;;) {
        const asked = now();
        const body = () => ({
            ...scope,
            ...(since !== undefined && { since }),
            ...(after !== undefined && { after }),
            ...(match !== undefined && { match }),
            timeout: Math.ceil(timeLeft() / 1000),
            full: true,
        });
        const request = { method: "POST", path: "/v1/wait", body, waits: timeLeft(), until: deadline };
        const answer = await send({ ...request, signal: options.signal });
        let reached;
        if (answer.status === 200) {
            const found = json(answer, "POST /v1/wait");
            if (wait.accepts?.(found, since, match === undefined) ?? true)
                return new Mail(found);
            reached = found.next_since;
        }
        else {
            reached = answer.headers.get("x-next-since");
            const isOver = now() >= deadline;
            if (isOver && (reached === null || reached === since || ++looks >= LAST_LOOKS))
                break;
            // A server that ends waits early, as one that is shut down, is not asked without a pause.
            if (!isOver && now() - asked < 250)
                await sleep(250, options.signal);
        }
        since = reached ?? since;
    }
    const arrived = await listMails(send, scope, wait.start ?? wait.since, options.signal).catch(() => null);
    throw new WaitTimeoutError(describe(scope, options), timeout, arrived?.slice(0, PAGE) ?? null);
}
/** Lists the mails after a cursor, oldest first, at most 1,000; without one, the newest 50. */
export async function listMails(send, scope, since, signal) {
    const path = "address" in scope ? `/v1/inbox/${encodeURIComponent(scope.address)}`
        : "domain" in scope ? `/v1/domain/${encodeURIComponent(scope.domain)}`
            : "/v1/me";
    const mails = [];
    for (let page = 0; page < PAGES; page++) {
        const query = new URLSearchParams({ limit: String(PAGE), ...(since !== undefined && { since }) });
        const headers = { prefer: "wait=0" };
        const answer = await send({ method: "GET", path: `${path}?${query}`, headers, signal });
        if (answer.status !== 200)
            break;
        const { emails, next_since } = json(answer, `GET ${path}`);
        mails.push(...emails.reverse());
        if (since === undefined)
            break;
        since = next_since;
    }
    return mails;
}
/** The `match` of a request; `undefined` where every mail does. */
function matchOf({ from, to, subject, text, has }) {
    const all = { from, to, subject, text, has };
    const match = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return Object.keys(match).length === 0 ? undefined : match;
}
/** What is waited for, in words. */
function describe(scope, options) {
    const where = "address" in scope ? `to ${scope.address}`
        : "domain" in scope ? `to ${scope.domain}`
            : "to any address of the tenant";
    const places = { from: "From", to: "its address", subject: "its subject", text: "its text" };
    const texts = Object.keys(places).flatMap((field) => {
        const value = options[field];
        return value === undefined ? [] : [`${quoted(value)} in ${places[field]}`];
    });
    const has = [options.has ?? []].flat().map((what) => `${what === "attachment" ? "an" : "a"} ${what}`);
    const conditions = [...texts, ...has].join(", ");
    return `mail ${where}${conditions && ` with ${conditions}`}`;
}
