// System, light or dark, in turns.

import { load, save } from "../storage/settings.js";
import { announce } from "./announce.js";
import { button } from "./element.js";
import { icon } from "./icons.js";
import { t } from "../text/text.js";

const THEMES = { system: "half", light: "sun", dark: "moon" };

export function themeSwitch() {
  let theme = load("theme") ?? "system";
  if (!Object.hasOwn(THEMES, theme)) theme = "system";
  const node = button({ class: "icon-button", on: { click: () => next() } });
  const show = () => {
    const label = t("theme.label", { theme: t(`theme.${theme}`) });
    node.replaceChildren(icon(THEMES[theme]));
    node.setAttribute("aria-label", label);
    node.title = label;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  const next = () => {
    const names = Object.keys(THEMES);
    theme = names[(names.indexOf(theme) + 1) % names.length];
    save("theme", theme);
    show();
    announce(node.getAttribute("aria-label"));
  };
  show();
  return node;
}
