// Tabs by the pattern of ARIA: one stop for Tab, arrows between them, panels made when first shown.

import { element, uniqueId } from "./element.js";

/** `tabs` are `{ key, label, render() }`. */
export function tabView({ label, tabs, selected }) {
  const id = uniqueId("tabs");
  const made = new Set();
  const buttons = tabs.map((tab, at) => element("button", {
    type: "button", role: "tab", class: "tab", id: `${id}-tab-${tab.key}`, "aria-controls": `${id}-panel-${tab.key}`,
    on: {
      click: () => choose(at),
      keydown: (event) => {
        const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = (to + tabs.length) % tabs.length;
        choose(next);
        buttons[next].focus();
      },
    },
  }, tab.label));
  const panels = tabs.map((tab) => element("div", {
    role: "tabpanel", class: "tab-panel", id: `${id}-panel-${tab.key}`, "aria-labelledby": `${id}-tab-${tab.key}`, hidden: true,
  }));
  function choose(at) {
    buttons.forEach((node, index) => {
      node.setAttribute("aria-selected", String(index === at));
      node.tabIndex = index === at ? 0 : -1;
      panels[index].hidden = index !== at;
    });
    if (!made.has(at)) {
      made.add(at);
      panels[at].append(...[tabs[at].render()].flat());
    }
  }
  choose(Math.max(0, tabs.findIndex((tab) => tab.key === selected)));
  return element("div", { class: "tabs" }, element("div", { class: "tab-list", role: "tablist", "aria-label": label }, buttons), panels);
}
