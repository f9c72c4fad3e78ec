// Where the links of a mail go, beside what they say.

import { copyButton } from "../dom/copy_button.js";
import { element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { hostForms, hostInText } from "../text/host_name.js";
import { t } from "../text/text.js";
import { visibleName, visibleString } from "../text/visible.js";

const SHOWN = 200;

/** Whether the text of a link names one host, and it leads to another. */
function isMisleading(link) {
  const named = hostInText(link.text ?? "");
  const goes = (link.ascii_host ?? "").toLowerCase();
  if (!named || !goes) return false;
  const site = named.replace(/^www\./, "");
  return goes !== site && !goes.endsWith(`.${site}`);
}

/** `links` are those of the document of a mail; null where it has none. */
export function linkList(links) {
  if (links.length === 0) return null;
  const misleading = links.filter(isMisleading).length;
  return element("details", { class: "links", open: misleading > 0 },
    element("summary", {}, icon("link"), t("links.title", { count: links.length }),
      misleading > 0 && element("span", { class: "caution" }, icon("warning"), t("links.misleading", { count: misleading }))),
    element("ul", {}, links.slice(0, SHOWN).map(row)),
    links.length > SHOWN && element("p", { class: "note" }, t("links.more", { count: links.length - SHOWN })));
}

function row(link) {
  const host = link.host || link.ascii_host || "";
  const forms = hostForms(link.ascii_host || host);
  return element("li", {},
    element("div", { class: "link-text" }, visibleName(link.text?.trim() || t("links.no_text"))),
    element("div", { class: "link-target" },
      element("span", { class: "link-host" }, t("links.goes_to"), " ", element("strong", {}, visibleName(forms.unicode || link.href))),
      forms.differ && element("span", { class: "ascii-host", title: t("links.looks_like") }, forms.ascii),
      isMisleading(link) && element("span", { class: "caution" }, icon("warning"), t("links.says_other"))),
    element("div", { class: "link-href" }, element("code", {}, visibleString(link.href)),
      copyButton(link.href, { label: t("links.copy") })));
}
