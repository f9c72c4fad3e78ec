// What both pages have around their content: a link past the header, the header, and the landmark of the content.

import { button, element, svg } from "./element.js";
import { icon } from "./icons.js";
import { themeSwitch } from "./theme_switch.js";
import { t } from "../text/text.js";

/** The mark of tempmail: an envelope, and the time that it has left. */
const mark = () =>
  svg("svg", { class: "brand-mark", viewBox: "0 0 32 32", "aria-hidden": "true" },
    svg("rect", { class: "mark-ground", width: 32, height: 32, rx: 8 }),
    svg("path", { class: "mark-line", d: "M6.5 10.5h19v12h-19z M6.5 11l9.5 7 9.5-7" }),
    svg("circle", { class: "mark-hole", cx: 24.5, cy: 8.5, r: 6 }),
    svg("path", { class: "mark-time", d: "M24.5 4.2a4.3 4.3 0 1 1-4.3 4.3" }));

export function pageFrame({ home, title, tools = [], links = [] }) {
  const main = element("main", { id: "main", tabindex: "-1" });
  const skip = element("a", { class: "skip-link", href: "#main", on: {
    // The fragment of the page says what is open.
    click: (event) => {
      event.preventDefault();
      main.focus();
    },
  } }, t("frame.skip"));
  const header = element("header", { class: "page-header" },
    element("a", { class: "brand", href: home }, mark(), element("span", { class: "brand-name" }, t("frame.name")),
      title && element("span", { class: "brand-part" }, title)),
    element("div", { class: "page-tools" }, tools),
    element("nav", { class: "page-links", "aria-label": t("frame.links") }, links),
    themeSwitch());
  document.getElementById("page").replaceChildren(skip, header, main);
  return { main, header };
}

export const helpButton = (open) =>
  button({ class: "icon-button wide-only", "aria-label": t("shortcuts.title"), title: t("shortcuts.title"), on: { click: open } }, icon("keyboard"));
