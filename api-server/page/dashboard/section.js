// What the sections of the dashboard have in common: a heading, and a list that is loading, failed, empty or there.

import { element } from "../dom/element.js";
import { problem, skeleton } from "../dom/placeholder.js";

/** The heading of a section, with what it is for and its main action. */
export const sectionHead = ({ title, lead, actions = [] }) =>
  element("header", { class: "section-head" },
    element("div", {}, element("h1", { tabindex: "-1" }, title), lead && element("p", { class: "lead" }, lead)),
    actions.length > 0 && element("div", { class: "actions" }, actions));

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
      node.replaceChildren(...content);
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
