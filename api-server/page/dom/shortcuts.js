// Keyboard shortcuts of one key. They can be turned off, for those who speak to their computer (WCAG 2.1.4).

import { load, save } from "../storage/settings.js";
import { element } from "./element.js";
import { openDialog } from "./dialog.js";
import { t } from "../text/text.js";

let isOn = load("shortcuts") ?? true;

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;

/** `actions` are `{ keys, text, run() }`; `run` returns false where it does not apply. */
export function shortcuts(actions) {
  const all = [...actions, { keys: ["?"], text: t("shortcuts.help"), run: () => showHelp(all) }];
  document.addEventListener("keydown", (event) => {
    if (!isOn || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const action = all.find(({ keys }) => keys.includes(event.key));
    if (action && action.run() !== false) event.preventDefault();
  });
  return { showHelp: () => showHelp(all) };
}

const names = { Delete: "Del", Escape: "Esc" };

function showHelp(actions) {
  const toggle = element("input", {
    type: "checkbox", id: "shortcuts-on", checked: isOn,
    on: {
      change: () => {
        isOn = toggle.checked;
        save("shortcuts", isOn);
      },
    },
  });
  openDialog({
    title: t("shortcuts.title"),
    content: [
      element("table", { class: "shortcuts" }, element("tbody", {}, actions.map(({ keys, text }) =>
        element("tr", {}, element("th", { scope: "row" }, keys.map((key) => element("kbd", {}, names[key] ?? key))), element("td", {}, text))))),
      element("p", { class: "note" }, t("shortcuts.always")),
      element("label", { class: "check" }, toggle, t("shortcuts.on")),
    ],
  });
}
