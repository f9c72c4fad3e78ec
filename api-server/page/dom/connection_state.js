// The state of a live connection: a dot, a word and when the next attempt is; and a banner when it lasts.

import { announce } from "./announce.js";
import { everySecond } from "./clock.js";
import { button, element } from "./element.js";
import { icon } from "./icons.js";
import { errorWords } from "../text/errors.js";
import { duration } from "../text/format.js";
import { t } from "../text/text.js";

// Attempts that fail before the banner is shown.
const LASTING = 3;

/** `connection()` is the one that is shown, or null. */
export function connectionState(connection) {
  const text = element("span", { class: "state-text" });
  const again = button({ class: "link-button", hidden: true, on: { click: () => connection()?.retry() } }, t("state.retry"));
  const node = element("div", { class: "connection-state", hidden: true }, element("span", { class: "state-dot", "aria-hidden": "true" }), text, again);
  const banner = element("div", { class: "connection-banner", hidden: true });
  let bannerCode = null;
  const updateBanner = (current) => {
    const isLost = current.state === "offline" || (current.state !== "live" && current.failures >= LASTING && current.code === null);
    const code = !isLost ? null : navigator.onLine ? "unreachable" : "offline";
    if (code === bannerCode) return;
    bannerCode = code;
    banner.hidden = code === null;
    if (code === null) return;
    const { title, advice } = errorWords({ code });
    banner.replaceChildren(icon("warning"), element("p", {}, element("strong", {}, title), " ", advice));
  };
  let shown = null;
  let said = null;
  let timer = 0;
  const update = () => {
    const current = connection();
    node.hidden = current === null;
    banner.hidden ||= current === null;
    if (!current) {
      bannerCode = null;
      return;
    }
    updateBanner(current);
    const { state, code } = current;
    // Between two attempts and during the next one the same is shown.
    const isRetrying = state === "waiting" || (state === "connecting" && current.failures > 0);
    const kind = isRetrying ? (code === "too_many_connections" ? "shared" : "waiting")
      : state === "refused" && code === "account_disabled" ? "suspended"
      : state;
    const left = current.retryAt - Date.now();
    const label = kind === "waiting" && left > 1500 ? t("state.waiting_for", { time: duration(left) }) : t(`state.${kind}`);
    if (text.textContent !== label) text.textContent = label;
    node.dataset.state = kind;
    again.hidden = !(kind === "waiting" || state === "offline");
    if (shown === kind) return;
    shown = kind;
    // Said when it lasts: a short interruption is not worth a sentence.
    clearTimeout(timer);
    timer = setTimeout(() => {
      const isNews = kind === "live" ? said !== null && said !== "live" : kind !== "connecting" && kind !== "closed";
      if (isNews && said !== kind) announce(t(`state.${kind}`));
      if (kind !== "connecting") said = kind;
    }, 2000);
  };
  everySecond(node, update);
  return { node, banner, update };
}
