// The attachments of a message, with what their names hide.

import { whileBusy } from "../dom/busy.js";
import { button, element, uniqueId } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { toast } from "../dom/toast.js";
import { errorLine } from "../text/errors.js";
import { bytes } from "../text/format.js";
import { t } from "../text/text.js";
import { hasHidden, visibleName, visibleString } from "../text/visible.js";
import { save } from "./download.js";

const FOLDED_ABOVE = 6;
// What runs, or leads somewhere else, when it is opened.
const RUNS = /\.(exe|scr|com|bat|cmd|msi|ps1|vbs|vbe|js|jse|wsf|hta|jar|lnk|iso|img|dll|cpl|reg|app|pkg|dmg|sh|html?|xht(ml)?|svg|docm|xlsm|pptm)$/i;

export function attachmentList(api, message) {
  const { attachments } = message;
  if (attachments.length === 0) return null;
  const id = uniqueId("attachments");
  const title = element("h3", { id }, t("attachments.title", { count: attachments.length }));
  const list = element("ul", {}, attachments.map((attachment) => row(api, message, attachment)));
  return element("section", { class: "attachments", "aria-labelledby": id }, attachments.length > FOLDED_ABOVE
    ? element("details", {}, element("summary", {}, title), list)
    : [title, list]);
}

function row(api, message, attachment) {
  const name = attachment.filename ?? t("attachments.unnamed", { index: attachment.index + 1 });
  const shown = visibleString(name);
  const get = button({ class: "button button-quiet", "aria-label": t("attachments.download", { name: shown }) },
    icon("download"), element("span", {}, t("attachments.save")));
  get.addEventListener("click", whileBusy(get, async () => {
    try {
      save(await api.attachment(message.id, attachment.index), attachment.filename ?? `attachment-${attachment.index}`);
    } catch (error) {
      toast(errorLine(error), { tone: "danger" });
    }
  }));
  const warning = hasHidden(name) ? t("attachments.hidden_name") : RUNS.test(name.trim()) ? t("attachments.can_run") : null;
  return element("li", { class: "attachment" },
    icon(attachment.content_type.startsWith("image/") ? "image" : "file"),
    element("div", { class: "attachment-name" },
      element("span", { class: "attachment-file" }, visibleName(name)),
      element("span", { class: "attachment-type" }, `${bytes(attachment.size)} · ${visibleString(attachment.content_type)}`),
      warning && element("span", { class: "caution" }, icon("warning"), warning)),
    get);
}
