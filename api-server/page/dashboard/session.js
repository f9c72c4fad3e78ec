// The Pro session of this browser. When it ends, here or in another tab, the page is loaded again: nothing that it had in
// memory or on the screen is left.

import * as api from "../http/pro_api.js";
import { toast } from "../dom/toast.js";
import { t } from "../text/text.js";

const REASON = /^#\/ended\/([a-z_]+)$/;
const CODE = /^#\/sign-in\/([^/]+)$/;
const WARN_BEFORE = 5 * 60_000;
// Longer timers end at once.
const LONGEST_TIMER = 2 ** 31 - 1;

const tabs = new BroadcastChannel("tempmail-session");
let isEnding = false;

/** Forgets everything and shows the sign-in, with a reason. */
export function endPage(reason) {
  if (isEnding) return;
  isEnding = true;
  document.getElementById("page").replaceChildren();
  history.replaceState(null, "", `#/ended/${reason}`);
  location.reload();
}

// The other tabs have the same cookie: it is gone, or it is another tenant's now.
tabs.addEventListener("message", ({ data }) => {
  if (data === "signed_in") location.reload();
  else endPage(String(data));
});
// A sign-in link that is opened where the page is open already changes the fragment only.
addEventListener("hashchange", () => {
  if (CODE.test(location.hash)) location.reload();
});
// A page that comes back from the history would show what it had.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});

/** Why the session ended, once. */
export function takeReason() {
  const reason = REASON.exec(location.hash)?.[1] ?? null;
  if (reason) history.replaceState(null, "", "#/");
  return reason;
}

/** The code of a sign-in link, once: it is taken off the address bar and the history. */
export function takeCode() {
  const code = CODE.exec(location.hash)?.[1] ?? null;
  if (code) history.replaceState(null, "", "#/");
  return code;
}

export async function signIn(token) {
  await api.signIn(token);
  tabs.postMessage("signed_in");
}

export async function signInByLink(code) {
  await api.signInByLink(code);
  tabs.postMessage("signed_in");
}

export async function signOut() {
  await api.signOut();
  tabs.postMessage("signed_out");
  endPage("signed_out");
}

/** The session as the service knows it; null where there is none. */
export async function readSession() {
  try {
    return await api.readSession();
  } catch (error) {
    if (error.status === 401 || error.status === 440) return null;
    throw error;
  }
}

/** Ends the page when the session ends, and says so some minutes before. */
export function watch(session) {
  api.whenSessionEnds((code) => endPage(code));
  const left = Date.parse(session.expires_at) - Date.now();
  if (!(left > 0)) return;
  setTimeout(() => endPage("session_expired"), Math.min(left, LONGEST_TIMER));
  if (left > WARN_BEFORE) {
    setTimeout(() => toast(t("session.ends_soon"), { seconds: 20 }), Math.min(left - WARN_BEFORE, LONGEST_TIMER));
  }
}
