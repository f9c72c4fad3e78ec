// A mail as it was received, and its header fields.

import { whileBusy } from "../dom/busy.js";
import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { problem, skeleton } from "../dom/placeholder.js";
import { toast } from "../dom/toast.js";
import { errorLine } from "../text/errors.js";
import { bytes } from "../text/format.js";
import { t } from "../text/text.js";
import { visibleText } from "../text/visible.js";
import { save } from "./download.js";

const SHOWN = 256 * 1024;
const MOST_FIELDS = 500;

export function downloadSource(api, message) {
  const node = button({ class: "button button-quiet", "aria-label": t("message.download_label") },
    icon("download"), element("span", {}, t("message.download")));
  node.addEventListener("click", whileBusy(node, async () => {
    try {
      save(await api.source(message.id), `${message.id}.eml`);
    } catch (error) {
      toast(errorLine(error), { tone: "danger" });
    }
  }));
  return node;
}

export function sourceView(api, message) {
  const body = element("div", {}, skeleton(8, "line"));
  const load = async () => {
    try {
      const blob = await api.source(message.id);
      const text = await blob.slice(0, SHOWN).text();
      body.replaceChildren(...[
        blob.size > SHOWN && element("p", { class: "note" }, t("message.source_cut", { size: bytes(SHOWN) })),
        element("pre", { class: "source", tabindex: "0", role: "document", "aria-label": t("message.source") }, visibleText(text)),
      ].filter(Boolean));
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };
  load();
  return body;
}

export const headersView = (message) => [
  message.headers.length > MOST_FIELDS && element("p", { class: "note" }, t("message.headers_cut", { count: MOST_FIELDS })),
  element("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": t("message.headers") },
    element("table", { class: "headers" },
      element("caption", { class: "visually-hidden" }, t("message.headers")),
      element("tbody", {}, message.headers.slice(0, MOST_FIELDS).map(({ name, value }) =>
        element("tr", {}, element("th", { scope: "row" }, visibleText(name)), element("td", { dir: "auto" }, visibleText(value))))))),
].filter(Boolean);
