// A button that copies a text and says so.

import { announce } from "./announce.js";
import { button, element } from "./element.js";
import { icon } from "./icons.js";
import { toast } from "./toast.js";
import { t } from "../text/text.js";

/** Copies; also where the clipboard needs https and the page has none. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement;
    const field = element("textarea", { class: "visually-hidden", readonly: true, value: text });
    // In a dialog, only what is inside can be selected.
    (before?.closest("dialog") ?? document.body).append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    before?.focus();
    return copied;
  }
}

/** `label` is what is copied, for screen readers; `text` is shown beside the icon. */
export function copyButton(value, { label, text = "", kind = "button-quiet" }) {
  const face = element("span", { class: "button-face" }, icon("copy"), text && element("span", {}, text));
  const node = button({ class: `button ${kind}`, "aria-label": label, title: label }, face);
  let timer = 0;
  node.addEventListener("click", async () => {
    if (!(await copyText(typeof value === "function" ? value() : value))) {
      toast(t("copy.failed"), { tone: "danger" });
      return;
    }
    announce(t("copy.done"));
    face.replaceChildren(icon("check"), text ? element("span", {}, t("copy.short")) : "");
    clearTimeout(timer);
    timer = setTimeout(() => face.replaceChildren(icon("copy"), text ? element("span", {}, text) : ""), 2000);
  });
  return node;
}
