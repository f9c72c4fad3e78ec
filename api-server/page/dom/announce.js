// Live regions: what changes without a click is said to screen readers.

import { element } from "./element.js";

const polite = element("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
const assertive = element("div", { class: "visually-hidden", role: "alert", "aria-live": "assertive" });
document.body.append(polite, assertive);

/** Says a text. Lines that come at once are said together. */
export function announce(text, { urgent = false } = {}) {
  const region = urgent ? assertive : polite;
  // What is outside of an open modal dialog is inert, and not said.
  const host = [...document.querySelectorAll("dialog[open]")].pop() ?? document.body;
  if (region.parentNode !== host) host.append(region);
  const line = element("p", {}, text);
  setTimeout(() => region.append(line), 50);
  setTimeout(() => line.remove(), 5000);
}
