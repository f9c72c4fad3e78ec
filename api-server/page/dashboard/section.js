// What the sections of the dashboard have in common: a heading, and a list that is loading, failed, empty or there.

import { element } from "../dom/element.js";
import { problem, skeleton } from "../dom/placeholder.js";

/** The heading of a section, with what it is for and its main action. */
export const sectionHead = ({ title, lead, actions = [] }) =>
  element("header", { class: "section-head" },
    element("div", {}, element("h1", { tabindex: "-1" }, title), lead && element("p", { class: "lead" }, lead)),
    actions.length > 0 && element("div", { class: "actions" }, actions));

/** What had the focus was replaced: by what has its name, or it is gone, and the heading gets the focus. */
function giveFocusBack(node, focused) {
  const label = focused.getAttribute("aria-label");
  const same = label && [...node.querySelectorAll(focused.tagName)].find((other) => other.getAttribute("aria-label") === label);
  (same || node.closest(".section")?.querySelector("h1"))?.focus({ preventScroll: Boolean(same) });
}

/** Content that is read from the service. `reload()` reads again and keeps what is shown until then. */
export function loaded(read, render) {
  const node = element("div", { class: "loaded" });
  let isLoaded = false;
  let turn = 0;
  const reload = async () => {
    const mine = (turn += 1);
    if (!isLoaded) node.replaceChildren(skeleton(4));
    try {
      const content = [render(await read())].flat(Infinity).filter(Boolean);
      if (mine !== turn) return;
      isLoaded = true;
      const focused = node.contains(document.activeElement) ? document.activeElement : null;
      node.replaceChildren(...content);
      if (focused) giveFocusBack(node, focused);
    } catch (error) {
      if (mine === turn) {
        isLoaded = false;
        node.replaceChildren(problem(error, reload));
      }
    }
  };
  reload();
  return { node, reload };
}

/** A status as a word and a colour. */
export const pill = (tone, text) => element("span", { class: `pill pill-${tone}` }, text);
