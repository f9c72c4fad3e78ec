// A bar that shows how much of a limit is used.

import { element } from "./element.js";

/** `limit` is null where there is none. */
export function meter({ label, value, limit, text }) {
  const share = limit === null ? 0 : limit > 0 ? Math.min(1, value / limit) : 1;
  const bar = element("span", { class: "meter-bar" });
  bar.style.setProperty("inline-size", `${(100 * share).toFixed(1)}%`);
  const level = share >= 1 ? "full" : share >= 0.8 ? "high" : "low";
  return element("div", { class: "meter", "data-level": level },
    limit !== null && element("div", {
      class: "meter-track", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": Math.max(limit, 1),
      "aria-valuenow": Math.min(value, Math.max(limit, 1)), "aria-valuetext": text,
    }, bar),
    element("span", { class: "meter-text" }, text));
}
